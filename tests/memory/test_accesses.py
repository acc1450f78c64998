"""Coming up and being used: what counts, how often, and that it lifts a memory."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from conversations.models import SurfacedMemory
from memory import accesses, services
from memory.models import Memory, MemoryAccess
from mira_site import isolation
from mira_site.accounts import services as accounts
from tests.conversations import talking
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)
FLAT = [1.0] + [0.0] * 383
SURFACED, USED = MemoryAccess.Kind.SURFACED, MemoryAccess.Kind.USED


@pytest.fixture
def memory(as_alice) -> Memory:
    accounts.record_use(user=as_alice, at=NOW)
    return MemoryFactory(user=as_alice, embedding=FLAT)


def importance(memory: Memory) -> float:
    memory.refresh_from_db(fields=["importance"])
    return memory.importance


def noted(user) -> list[tuple[str, int]]:
    rows = MemoryAccess.objects.for_user(user).order_by("kind", "accessed_at")
    return list(rows.values_list("kind", "use_day"))


def record(memory, *, kind=SURFACED, segment_id=None):
    return accesses.record(memory.user, [memory.id], segment_id=segment_id, kind=kind, at=NOW)


def test_coming_up_counts_once_a_segment_however_often(as_alice, memory):
    segment = uuid4()
    assert record(memory, segment_id=segment) == [memory.id]
    lifted = importance(memory)
    assert record(memory, segment_id=segment) == []
    assert importance(memory) == lifted
    assert noted(as_alice) == [("surfaced", 1)]
    assert record(memory, segment_id=uuid4()) == [memory.id]
    assert importance(memory) > lifted


def test_being_used_lifts_more_than_coming_up(as_alice, memory):
    other = MemoryFactory(user=as_alice, embedding=FLAT)
    record(memory, kind=USED, segment_id=uuid4())
    record(other, kind=SURFACED, segment_id=uuid4())
    assert importance(memory) > importance(other) > 0.5


def test_outside_of_a_segment_it_counts_once_a_use_day(as_alice, memory):
    assert record(memory, kind=USED) == [memory.id]
    assert record(memory, kind=USED) == []
    accounts.record_use(user=as_alice, at=NOW.replace(day=29))
    assert record(memory, kind=USED) == [memory.id]
    assert noted(as_alice) == [("used", 1), ("used", 2)]


def test_what_is_gone_or_somebody_elses_is_left_out(as_alice, memory, bob):
    with isolation.acting_as(bob.pk):
        foreign = MemoryFactory(user=bob, embedding=FLAT)
    ids = [uuid4(), foreign.id, memory.id]
    assert accesses.record(as_alice, ids, segment_id=uuid4(), kind=USED, at=NOW) == [memory.id]
    assert accesses.record(as_alice, [], segment_id=uuid4(), kind=USED, at=NOW) == []
    with isolation.all_users("test"):
        assert [access.memory_id for access in MemoryAccess.objects.all()] == [memory.id]
        foreign.refresh_from_db()
        assert foreign.scored_at is None


def test_what_came_up_and_was_used_counts_as_both(as_alice, memory):
    segment = uuid4()
    for _ in range(2):
        services.note_accesses(
            user=as_alice, segment_id=segment, surfaced=[memory.id], used=[memory.id], at=NOW
        )
    assert noted(as_alice) == [("surfaced", 1), ("used", 1)]


# --- In a conversation -----------------------------------------------------------------------
@pytest.fixture
def boat(as_alice, embedder) -> Memory:
    return talking.know(as_alice, "Alice's boat is called Merula.")


def test_what_a_turn_brings_up_is_noted_once_a_segment(as_alice, boat, fake_anthropic):
    fake_anthropic.on("reply").says("Merula.", times=2)
    for _ in range(2):
        talking.say(as_alice, "What is the name of my boat?")
    assert SurfacedMemory.objects.for_user(as_alice).count() == 2
    assert noted(as_alice) == [("surfaced", 1)]
    assert importance(boat) > 0.5


def test_what_an_answer_without_a_model_quotes_was_used(as_alice, boat):
    talking.say(as_alice, "What is the name of my boat?")
    assert noted(as_alice) == [("surfaced", 1), ("used", 1)]


def test_a_turn_that_failed_notes_nothing(as_alice, boat, fake_anthropic):
    fake_anthropic.on("reply").says("")
    ended = talking.say(as_alice, "What is the name of my boat?")
    assert ended.status == "failed"
    assert noted(as_alice) == []
