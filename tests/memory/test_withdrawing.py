"""A collapse is taken back: what it made is withdrawn, and the rest is as it was before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from memory import feedback, links, services, truth, upkeep
from memory.models import (
    Annotation,
    Conflict,
    Entity,
    Extraction,
    Fingerprint,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemorySource,
    TokenVectors,
    Trust,
    Work,
)
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.errors import Conflict as Refused
from tests.factories import MemoryFactory
from tests.fake_anthropic import FakeAnthropic
from tests.memory.conftest import Segment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedder")]

LONG_AGO = timezone.now() - timedelta(days=30)
TABLES: dict[Any, tuple[str, ...]] = {
    Memory: ("text", "valid_from", "valid_until", "archived_at", "said_at", "trust", "tended_at"),
    MemorySource: ("memory_id", "message_id", "sentence"),
    MemoryLink: ("source_id", "target_id", "link_type", "author"),
    MemoryAccess: ("memory_id", "kind", "segment_id"),
    MemoryEntity: ("memory_id", "entity_id"),
    Entity: ("name",),
    Conflict: ("older_id", "newer_id", "status", "kept", "resolved_at"),
    Annotation: ("memory_id", "text"),
    Extraction: ("source_segment_id",),
    Fingerprint: ("memory_id", "canonical"),
    TokenVectors: ("memory_id",),
    Work: ("kind", "subject"),
}
State = dict[str, set[tuple[object, ...]]]


def state(user: User) -> State:
    """What memory knows, row by row."""
    return {
        model._meta.db_table: set(model.objects.for_user(user).values_list("id", *names))
        for model, names in TABLES.items()
    }


def remember(user: User, segment: Segment) -> None:
    services.remember(
        user=user, segment_id=segment.id, messages=segment.messages, at=timezone.now()
    )


def short(memory: Memory) -> str:
    return f"mem_{memory.id.hex[:8]}"


Known = Callable[..., Memory]


@pytest.fixture
def known(as_alice: User) -> Known:
    """A memory of a month ago, with a source in another segment."""

    def make(text: str, **fields: Any) -> Memory:
        memory: Memory = MemoryFactory(user=as_alice, text=text, created_at=LONG_AGO, **fields)
        MemorySource.objects.create(
            user=as_alice,
            memory=memory,
            segment_id=uuid4(),
            message_id=uuid4(),
            sentence=text,
            said_at=LONG_AGO,
        )
        return memory

    return make


def test_a_new_memory_goes_with_its_names_forms_and_sources(as_alice, segment, known):
    known("Alice likes tea.")
    before = state(as_alice)
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    assert Entity.objects.for_user(as_alice).filter(name="Zerlina").exists()
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    done = services.withdraw_segment(as_alice, segment.id)
    assert done.removed == (made.id,)
    assert state(as_alice) == before


def test_it_can_be_remembered_again(as_alice, segment):
    segment.said("My sister Zerlina lives in Graz.")
    remember(as_alice, segment)
    texts = set(Memory.objects.for_user(as_alice).values_list("text", flat=True))
    services.withdraw_segment(as_alice, segment.id)
    remember(as_alice, segment)
    assert set(Memory.objects.for_user(as_alice).values_list("text", flat=True)) == texts
    assert Work.objects.for_user(as_alice).get(subject=str(segment.id)).status == Work.Status.DUE


def test_withdrawing_twice_changes_nothing(as_alice, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    services.withdraw_segment(as_alice, segment.id)
    before = state(as_alice)
    assert services.withdraw_segment(as_alice, segment.id).removed == ()
    assert state(as_alice) == before


def test_what_was_only_said_again_loses_the_source_and_the_use(as_alice, segment, known):
    boat = known("Alice's boat is called Merula.")
    before = state(as_alice)
    remember(as_alice, segment.said("My boat is called Merula."))
    assert boat.sources.count() == 2
    assert boat.accesses.count() == 1
    services.withdraw_segment(as_alice, segment.id)
    assert state(as_alice) == before


def test_uses_of_the_talk_itself_stay(as_alice, segment, known):
    boat = known("Alice's boat is called Merula.")
    services.note_accesses(
        user=as_alice, segment_id=segment.id, surfaced=[boat.id], used=[boat.id], at=timezone.now()
    )
    before = state(as_alice)
    remember(as_alice, segment.said("My boat is called Merula."))
    services.withdraw_segment(as_alice, segment.id)
    assert state(as_alice) == before


def test_what_it_replaced_is_true_again(as_alice, segment, known, fake_anthropic: FakeAnthropic):
    old = known("Alice lives in Vienna.")
    before = state(as_alice)
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": "Alice lives in Graz.", "messages": [1], "replaces": [short(old)]}]}
    )
    remember(as_alice, segment.said("I live in Graz now."))
    old.refresh_from_db()
    assert old.valid_until is not None
    done = services.withdraw_segment(as_alice, segment.id)
    assert done.restored == (old.id,)
    assert state(as_alice) == before


def test_a_conflict_that_it_opened_closes(as_alice, segment, known, fake_anthropic: FakeAnthropic):
    old = known("Alice was born in 1980.")
    before = state(as_alice)
    fake_anthropic.on("extraction").answers(
        {
            "memories": [
                {"text": "Alice was born in 1981.", "messages": [1], "contradicts": [short(old)]}
            ]
        }
    )
    remember(as_alice, segment.said("I was born in 1981."))
    assert Conflict.objects.for_user(as_alice).count() == 1
    services.withdraw_segment(as_alice, segment.id)
    assert state(as_alice) == before


def test_what_it_said_of_two_known_memories_is_taken_back(
    as_alice, segment, known, fake_anthropic: FakeAnthropic
):
    graz, vienna = known("Alice lives in Graz."), known("Alice lives in Vienna.")
    links.connect(
        as_alice,
        vienna.id,
        graz.id,
        link_type="conflicts",
        reasoning="Two homes.",
        author="model",
        at=LONG_AGO,
    )
    truth.conflict(as_alice, vienna.id, graz.id, reasoning="Two homes.", at=LONG_AGO)
    before = state(as_alice)
    fake_anthropic.on("extraction").answers(
        {
            "memories": [
                {
                    "text": "Alice lives in Graz.",
                    "messages": [1],
                    "replaces": [short(vienna)],
                }
            ]
        }
    )
    remember(as_alice, segment.said("I live in Graz."))
    vienna.refresh_from_db()
    assert vienna.valid_until is not None
    services.withdraw_segment(as_alice, segment.id)
    after = state(as_alice)
    for name in ("memory_conflicts", "memory_sources", "memory_accesses"):
        assert after[name] == before[name]
    vienna.refresh_from_db()
    assert vienna.valid_until is None
    kinds = MemoryLink.objects.for_user(as_alice).values_list("link_type", flat=True)
    assert list(kinds) == ["conflicts"]


def test_merged_already_it_is_refused_and_nothing_changes(as_alice, segment, known):
    old = known("Alice's sister Zerlina plays the cello.")
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    services.merge(
        user=as_alice,
        memory_ids=[old.id, made.id],
        text="Alice's sister Zerlina plays the cello. My sister Zerlina lives in Graz.",
    )
    before = state(as_alice)
    with pytest.raises(Refused, match="merged"):
        services.withdraw_segment(as_alice, segment.id)
    assert state(as_alice) == before


def test_once_the_merge_is_undone_it_goes(as_alice, segment, known):
    old = known("Alice's sister Zerlina plays the cello.")
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    merge = services.merge(
        user=as_alice,
        memory_ids=[old.id, made.id],
        text="Alice's sister Zerlina plays the cello. My sister Zerlina lives in Graz.",
    )
    services.undo_merge(user=as_alice, merge_id=merge.id)
    services.withdraw_segment(as_alice, segment.id)
    assert list(Memory.objects.for_user(as_alice).values_list("id", flat=True)) == [old.id]


def test_accessed_since_it_goes_all_the_same(as_alice, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    services.note_accesses(user=as_alice, segment_id=uuid4(), surfaced=[made.id], at=timezone.now())
    services.withdraw_segment(as_alice, segment.id)
    assert not Memory.objects.for_user(as_alice).exists()
    assert not MemoryAccess.objects.for_user(as_alice).exists()


def test_judged_by_the_person_since_it_is_refused(as_alice, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    feedback.judge(user=as_alice, memory_id=made.id, verdict=feedback.Verdict.RIGHT)
    with pytest.raises(Refused, match="judged"):
        services.withdraw_segment(as_alice, segment.id)


def test_edited_by_the_person_since_it_is_refused(as_alice, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    services.edit(user=as_alice, memory_id=made.id, text="My sister Zerlina lives in Linz.")
    with pytest.raises(Refused, match="changed"):
        services.withdraw_segment(as_alice, segment.id)


def test_while_it_is_integrated_it_is_refused(as_alice, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    work = Work.objects.for_user(as_alice).filter(subject=str(segment.id))
    work.update(status=Work.Status.RUNNING, claimed_until=timezone.now() + timedelta(minutes=1))
    with pytest.raises(Refused, match="worked on"):
        services.withdraw_segment(as_alice, segment.id)
    work.update(claimed_until=timezone.now() - timedelta(minutes=1))
    assert services.withdraw_segment(as_alice, segment.id).removed


def test_what_integration_did_since_is_taken_back(
    as_alice, segment, known, fake_anthropic: FakeAnthropic
):
    old = known("Alice's boat lies in Izola.", tended_at=LONG_AGO)
    before = state(as_alice)
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": "Alice's boat is called Merula.", "messages": [1]}]}
    )
    remember(as_alice, segment.said("My boat is called Merula."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    fake_anthropic.on("background").calls_tool(
        "supersede",
        {
            "newer_memory_id": short(made),
            "older_memory_id": short(old),
            "reasoning": "It is about the same boat.",
        },
    ).calls_tool("finish", {"summary": [{"memory_id": short(made), "outcome": "supersede"}]})
    upkeep.run_due(as_alice)
    old.refresh_from_db()
    assert old.valid_until is not None
    services.withdraw_segment(as_alice, segment.id)
    after = state(as_alice)
    after["memory_work"] -= {row for row in after["memory_work"] if row[1] != "integration"}
    assert after == before


def test_what_was_stored_while_talking_stays(as_alice, segment):
    segment.said("Please remember that my code is 4711.", "My sister Zerlina lives in Graz.")
    services.remember_asked(user=as_alice, message=segment.messages[0], at=timezone.now())
    noted = Memory.objects.for_user(as_alice).get()
    remember(as_alice, segment)
    assert Memory.objects.for_user(as_alice).count() > 1
    services.withdraw_segment(as_alice, segment.id)
    assert Memory.objects.for_user(as_alice).get() == noted
    assert noted.sources.count() == 1


def test_what_rests_on_another_segment_by_now_only_loses_this_one(as_alice, segment, new_segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    made = Memory.objects.for_user(as_alice).get(source_segment_id=segment.id)
    remember(as_alice, new_segment().said("My sister Zerlina lives in Graz."))
    assert made.sources.count() == 2
    services.withdraw_segment(as_alice, segment.id)
    made.refresh_from_db()
    assert made.sources.count() == 1
    assert made.trust == Trust.SAID
    assert made.source_segment_id is None


def test_somebody_elses_segment_is_not_touched(as_alice, bob, segment):
    remember(as_alice, segment.said("My sister Zerlina lives in Graz."))
    before = state(as_alice)
    with isolation.acting_as(bob.pk):
        assert services.withdraw_segment(bob, segment.id).removed == ()
    assert state(as_alice) == before
