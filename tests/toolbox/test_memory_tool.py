"""Long-term memory by hand: every operation, every form of an id, and never across two people."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from memory import selectors, short_ids
from memory.models import (
    Annotation,
    Conflict,
    Memory,
    MemoryAccess,
    MemoryLink,
    Merge,
    Stakes,
    Trust,
)
from memory.types import SourceMessage
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, MiraError, NotFound
from tests.factories import MemoryFactory
from toolbox import registry
from toolbox.tools.memory_tool import Arguments, memory_tool
from toolbox.types import Answer, ToolContext

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedder")]

BOAT = "Alice's boat is called Merula."


def context(user: User, *said: str, **fields: Any) -> ToolContext:
    segment = uuid4()
    messages = tuple(
        SourceMessage(
            message_id=uuid4(), segment_id=segment, role="user", text=text, said_at=timezone.now()
        )
        for text in said
    )
    return ToolContext(
        user=user, turn_id=uuid4(), segment_id=segment, now=timezone.now(), said=messages, **fields
    )


def use(given: ToolContext, operation: str, **arguments: Any) -> Answer:
    answer = memory_tool(given, Arguments(operation=operation, **arguments))
    assert isinstance(answer, Answer)
    return answer


def only(user: User) -> Memory:
    row: Memory = Memory.objects.for_user(user).get()
    return row


def test_what_is_created_is_recalled_in_the_next_turn(as_alice: User) -> None:
    answer = use(
        context(as_alice, "Please remember: my boat is called Merula."),
        "create_memory",
        content=BOAT,
        user_requested=True,
    )
    memory = only(as_alice)
    assert answer.text == f"Saved as mem_{memory.short_id}."
    found = selectors.recall(as_alice, "What is my boat called?", limit=3, now=timezone.now())
    assert [item.id for item in found] == [memory.id]
    assert memory.stakes == Stakes.VITAL


def test_what_the_person_said_is_their_word_and_names_the_sentence(as_alice: User) -> None:
    given = context(as_alice, "It rains. My boat is called Merula, please remember that.")
    use(given, "create_memory", content=BOAT)
    memory = only(as_alice)
    (source,) = memory.sources.all()
    assert memory.trust == Trust.SAID
    assert source.message_id == given.said[0].message_id
    assert "Merula" in source.sentence


@pytest.mark.parametrize(
    "said",
    [
        "Remember what I told you.",
        "My boat is called Larus.",
        "> My boat is called Merula.\nWhat do you make of that?",
    ],
)
def test_what_the_person_did_not_say_is_inferred(as_alice: User, said: str) -> None:
    use(context(as_alice, said), "create_memory", content=BOAT)
    memory = only(as_alice)
    assert memory.trust == Trust.INFERRED
    assert not memory.sources.exists()


def test_a_day_worked_out_from_tomorrow_is_still_the_persons_word(as_alice: User) -> None:
    use(
        context(as_alice, "Remember that I fly to Oslo tomorrow."),
        "create_memory",
        content="Alice flies to Oslo on 3 December 2026.",
        happens_at="2026-12-03",
    )
    memory = only(as_alice)
    assert memory.trust == Trust.SAID
    assert memory.happens_at == datetime(2026, 12, 2, 23, tzinfo=UTC)  # midnight in Berlin


def test_under_the_influence_of_outside_text_a_memory_is_outside_text(as_alice: User) -> None:
    use(
        context(as_alice, "What does the page say?", lowest_read=Trust.OUTSIDE),
        "create_memory",
        content="The harbour of Izola closes in winter.",
    )
    assert only(as_alice).trust == Trust.OUTSIDE


def test_what_is_remembered_already_is_not_stored_twice_and_gains_its_source(
    as_alice: User,
) -> None:
    MemoryFactory(user=as_alice, text=BOAT, trust=Trust.INFERRED)
    answer = use(context(as_alice, "My boat is called Merula."), "create_memory", content=BOAT)
    memory = only(as_alice)
    assert "remembered already" in answer.text
    assert memory.trust == Trust.SAID
    assert memory.sources.count() == 1


def test_nothing_is_called_saved_that_was_not_stored(as_alice: User) -> None:
    past = (timezone.now() - timedelta(days=2)).isoformat()
    for bad in ({"content": "short"}, {"content": BOAT, "expires_at": past},
                {"content": BOAT, "happens_at": "soon"},
                {"content": BOAT, "supersedes_memory_ids": ["mem_00000000"]}):  # fmt: skip
        with pytest.raises(MiraError):
            use(context(as_alice), "create_memory", **bad)
    assert not Memory.objects.for_user(as_alice).exists()


def test_a_new_fact_makes_the_old_one_past(as_alice: User) -> None:
    old = MemoryFactory(user=as_alice, text="Alice lives in Graz.")
    answer = use(
        context(as_alice, "Remember that I live in Linz now."),
        "create_memory",
        content="Alice lives in Linz.",
        supersedes_memory_ids=[short_ids.short(old.id)],
    )
    old.refresh_from_db()
    assert old.valid_until is not None
    assert "past" in answer.text
    found = selectors.recall(as_alice, "Where does Alice live?", limit=5, now=timezone.now())
    assert old.id not in [item.id for item in found]


def test_hearsay_does_not_overrule_the_persons_word(as_alice: User) -> None:
    old = MemoryFactory(user=as_alice, text="Alice lives in Graz.")
    answer = use(
        context(as_alice, "Hm."),
        "create_memory",
        content="Alice lives in Linz.",
        supersedes_memory_ids=[short_ids.short(old.id)],
    )
    old.refresh_from_db()
    assert old.valid_until is None
    assert "until the person decides" in answer.text
    assert Conflict.objects.for_user(as_alice).filter(older=old, status="open").exists()


def test_search_gives_pages_of_quoted_elements(as_alice: User) -> None:
    for day in range(1, 6):
        MemoryFactory(user=as_alice, text=f"Alice sailed to <Izola> on {day} May.")
    first = use(context(as_alice), "search", query="sailing to Izola", max_results=2)
    third = use(context(as_alice), "search", query="sailing to Izola", max_results=2, page=3)
    assert first.text.count("<memory ") == 2
    assert "&lt;Izola&gt;" in first.text
    assert "There is a page 2." in first.text
    assert third.text.count("<memory ") == 1
    assert "There is a page" not in third.text
    assert first.trust is None


def test_search_says_honestly_that_nothing_is_there(as_alice: User) -> None:
    assert "Nothing is remembered" in use(context(as_alice), "search", query="whales").text


def test_outside_text_in_a_result_lowers_what_is_written_after(as_alice: User) -> None:
    MemoryFactory(user=as_alice, text="I read that whales sleep upright.", trust=Trust.OUTSIDE)
    answer = use(context(as_alice), "search", query="whales asleep")
    assert answer.trust == Trust.OUTSIDE
    assert 'origin="read in outside text"' in answer.text


def test_a_memory_is_read_in_full_with_the_words_it_comes_from(as_alice: User) -> None:
    row = MemoryFactory(user=as_alice, text=f"{BOAT} " + "She is blue. " * 200, wing="Harbour")
    at = datetime(2026, 5, 8, 9, tzinfo=UTC)
    row.sources.create(
        user=as_alice, message_id=uuid4(), sentence="My boat is Merula.", said_at=at,
        span="Guess what: my boat is <b>Merula</b>!",
    )  # fmt: skip
    name = short_ids.short(row.id)
    assert name in use(context(as_alice), "search", query="What is the boat called?").text
    answer = use(context(as_alice), "read_memory", memory_id=name)
    assert row.text.strip() in answer.text
    assert '<said on="8 May 2026">Guess what: my boat is &lt;b&gt;Merula&lt;/b&gt;!</said>' in (
        answer.text
    )
    assert 'wing="Harbour"' in answer.text
    assert answer.trust is None


def test_what_may_not_come_up_cannot_be_read_by_its_id(as_alice: User) -> None:
    hidden = MemoryFactory(user=as_alice, text=BOAT, quarantined_at=timezone.now())
    with pytest.raises(NotFound):
        use(context(as_alice), "read_memory", memory_id=short_ids.short(hidden.id))


def test_results_without_room_are_named(as_alice: User) -> None:
    for number in range(12):
        MemoryFactory(user=as_alice, text=f"Boat {number}: " + "it sails on and on. " * 95)
    answer = use(context(as_alice), "search", query="Which boat sails?", max_results=12)
    assert answer.text.count("<memory ") + answer.text.count("mem_", answer.text.index(
        "</results>")) == 12  # fmt: skip


def test_links_notes_and_merges(as_alice: User) -> None:
    one = MemoryFactory(user=as_alice, text=BOAT)
    other = MemoryFactory(user=as_alice, text="Alice's boat lies in Izola.")
    given = context(as_alice)
    ids = [short_ids.short(one.id), short_ids.short(other.id)]
    # a second write replaces the first
    for kind in ("refines", "because", "triggered", "resolves", "precedes"):
        use(given, "link_memories", source_memory_id=ids[0], target_memory_id=ids[1],
            link_type=kind, reasoning="Both are about the boat.")  # fmt: skip
    assert [row.link_type for row in MemoryLink.objects.for_user(as_alice)] == ["precedes"]
    use(given, "annotate_memory", memory_id=ids[0], annotation="She is proud of it.")
    assert Annotation.objects.for_user(as_alice).get().text == "She is proud of it."
    answer = use(given, "merge_memories", memory_ids=ids,
                 consolidated_text="Alice's boat is called Merula and lies in Izola.")  # fmt: skip
    assert Merge.objects.for_user(as_alice).get().result.short_id in answer.text


def test_touching_adds_up_over_calls_and_counts_once_a_segment(as_alice: User) -> None:
    rows = [MemoryFactory(user=as_alice) for _ in range(3)]
    given = context(as_alice)
    for chosen in (rows[:1], rows[1:], rows):
        use(given, "touch", memory_ids=[short_ids.short(row.id) for row in chosen])
    used = MemoryAccess.objects.for_user(as_alice).filter(kind="used", segment_id=given.segment_id)
    assert set(used.values_list("memory_id", flat=True)) == {row.id for row in rows}
    assert used.count() == 3


def test_an_archived_memory_can_be_restored(as_alice: User) -> None:
    memory = MemoryFactory(user=as_alice, text=BOAT)
    use(context(as_alice), "archive", memory_id=short_ids.short(memory.id))
    memory.refresh_from_db()
    assert memory.archived_at is not None


@pytest.mark.parametrize("form", ["mem_{}", "{}", "MEM_{}", "`mem_{}`", " mem_{} "])
def test_an_id_in_any_form_is_understood(as_alice: User, form: str) -> None:
    memory = MemoryFactory(user=as_alice)
    short = memory.short_id
    assert short_ids.resolve(as_alice, form.format(short)) == memory.id
    assert short_ids.resolve(as_alice, form.format(short.upper())) == memory.id
    assert short_ids.resolve(as_alice, str(memory.id)) == memory.id


def test_an_unknown_or_ambiguous_id_says_what_to_do(as_alice: User) -> None:
    for tail in ("1", "2"):
        MemoryFactory(user=as_alice, id=UUID(f"abcdef12-0000-4000-8000-00000000000{tail}"))
    with pytest.raises(BadRequest, match="more of its digits"):
        short_ids.resolve(as_alice, "mem_abcdef12")
    with pytest.raises(NotFound, match="Search"):
        short_ids.resolve(as_alice, "mem_99999999")
    for junk in ("", "mem_", "mem_12", "the boat", "mem_ghijklmn"):
        with pytest.raises(BadRequest, match="looks like"):
            short_ids.resolve(as_alice, junk)


def test_an_id_is_looked_up_by_an_index(as_alice: User) -> None:
    made = MemoryFactory.build_batch(500, user=as_alice, embedding=[1.0] + [0.0] * 383)
    Memory.objects.bulk_create(made)
    first, last = UUID("abcdef12" + "0" * 24), UUID("abcdef12" + "f" * 24)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_memories")
        cursor.execute(
            "EXPLAIN SELECT id FROM memory_memories WHERE user_id = %s AND archived_at IS NULL"
            " AND id >= %s AND id <= %s",
            [as_alice.pk, first, last],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond: ((id >= 'abcdef12" in plan


def test_ids_in_a_text_are_a_list() -> None:
    for given in ("mem_11111111, mem_22222222", '["mem_11111111", "mem_22222222"]',
                  ["mem_11111111", "mem_22222222"]):  # fmt: skip
        arguments = Arguments(operation="touch", memory_ids=given)
        assert arguments.memory_ids == ["mem_11111111", "mem_22222222"]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("link_memories", {"link_type": "refines", "reasoning": "Because it is so."}),
        ("annotate_memory", {"annotation": "A note."}),
        ("touch", {}),
        ("archive", {}),
        ("merge_memories", {"consolidated_text": "Alice's boat is called Merula, says Bob."}),
        ("create_memory", {"content": "Bob has a boat as well."}),
    ],
)
def test_nobody_touches_what_is_somebody_elses(
    as_alice: User, bob: User, operation: str, arguments: dict[str, Any]
) -> None:
    hers = short_ids.short(MemoryFactory(user=as_alice, text=BOAT).id)
    with isolation.acting_as(bob.pk):
        his = short_ids.short(MemoryFactory(user=bob, text="Bob has a bicycle.").id)
        named = {
            "link_memories": {"source_memory_id": his, "target_memory_id": hers},
            "touch": {"memory_ids": [hers]},
            "merge_memories": {"memory_ids": [his, hers]},
            "create_memory": {"supersedes_memory_ids": [hers]},
        }.get(operation, {"memory_id": hers})
        with pytest.raises(NotFound):
            use(context(bob), operation, **arguments, **named)
        assert "Merula" not in use(context(bob), "search", query="boat Merula").text
    assert Memory.objects.for_user(as_alice).get().archived_at is None


def test_the_tool_is_found_and_its_arguments_are_one_object(as_alice: User) -> None:
    tool = registry.find("memory_tool")
    assert tool is not None
    assert tool.schema["type"] == "object"
    with time_machine.travel(timezone.now()):
        later = replace(context(as_alice), now=timezone.now())
    assert tool.run(later, Arguments(operation="search", query="boat"))
