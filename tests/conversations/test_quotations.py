"""Records around turns keep their promises: what is forgotten or changed is gone from them too."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import time_machine
from django.db import connection, transaction
from django.utils import timezone

from conversations import peanut_gallery, remembering, services, situation, tasks
from conversations.constants import CONTEXT_KEPT_DAYS
from conversations.models import (
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Message,
    Observation,
    Segment,
    SubcorticalRecord,
    Turn,
)
from memory import services as memory
from memory.models import Memory
from mira_site import isolation
from tests.conversations.talking import answer, know, put_to_rest, reply, say, tell

RECORDS = {
    "conversations_context_sections": "text",
    "conversations_composed_contexts": "sections::text",
    "conversations_subcortical": "phrases::text || entities::text || kept_ids::text || "
    "offered_ids::text",
    "conversations_observations": "failure || guidance",
    "conversations_briefs": "text",
}


def holding(user, word: str) -> list[str]:
    """Tables that hold the word, by raw SQL."""
    found = []
    with isolation.acting_as(user.pk), connection.cursor() as cursor:
        for table, column in RECORDS.items():
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE user_id = %s AND {column} ILIKE %s",
                [user.pk, f"%{word}%"],
            )
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def rows(user) -> dict[str, int]:
    with isolation.acting_as(user.pk), connection.cursor() as cursor:
        counts = {}
        for table in RECORDS:
            cursor.execute(f"SELECT count(*) FROM {table} WHERE user_id = %s", [user.pk])
            counts[table] = cursor.fetchone()[0]
        return counts


def asked(turn: Turn) -> Message:
    return turn.messages.get(role=Message.Role.USER)


def advise(turn: Turn, guidance: str, failure: str = "It was overlooked.") -> Observation:
    return Observation.objects.create(
        user=turn.user,
        segment=turn.segment,
        turn=turn,
        action="concern",
        failure=failure,
        guidance=guidance,
        evidence_ids=[str(asked(turn).pk)],
        turn_number=turn.number,
        expires_after_turn=turn.number + 2,
        created_at=timezone.now(),
    )


def tell_in_short(turn: Turn, text: str) -> CompactionBrief:
    return CompactionBrief.objects.create(
        user=turn.user,
        segment=turn.segment,
        text=text,
        covered_to_position=asked(turn).position + 1,
        covered_from_at=turn.created_at,
        covered_to_at=turn.created_at,
        updated_at=timezone.now(),
    )


@pytest.fixture
def merula(me, fake_anthropic) -> Memory:
    """A memory that stands in every record of a segment, beside other things."""
    fake_anthropic.on("reply").says("I see.")
    fake_anthropic.on("subcortical").answers(
        {"phrases": ["boat called Merula"], "entities": ["Merula"], "complexity": "complex"}
    )
    known = know(me, "Alice's boat is called Merula.")
    turn = say(me, "How is my boat Merula called?")
    advise(turn, "Call the boat Merula by its name.")
    tell_in_short(turn, "We spoke about Merula, the boat. " * 20)
    fake_anthropic.on("subcortical").answers(
        {"phrases": ["green tea in the morning"], "entities": [], "complexity": "complex"}
    )
    say(me, "I drink green tea every morning.")
    assert holding(me, "Merula") == [
        "conversations_context_sections",
        "conversations_subcortical",
        "conversations_observations",
        "conversations_briefs",
    ]
    return known


def test_a_forgotten_memory_is_gone_from_every_record(me, merula):
    receipt = memory.forget(user=me, memory_id=merula.pk)
    assert holding(me, "Merula") == []
    assert holding(me, merula.pk.hex[:8]) == []
    assert receipt.counts["contexts"] >= 2
    assert receipt.counts["subcortical"] == 1
    assert (receipt.counts["observations"], receipt.counts["briefs"]) == (1, 1)


def test_the_shape_of_the_prompt_and_what_tells_other_things_stay(me, merula):
    memory.forget(user=me, memory_id=merula.pk)
    composed = ComposedContext.objects.for_user(me).earliest("composed_at")
    assert [one["name"] for one in composed.sections][-2:] == ["clock", "memories"]
    assert SubcorticalRecord.objects.for_user(me).get().phrases[0] == "green tea in the morning"
    stored = ContextSection.objects.for_user(me).values_list("name", flat=True)
    assert {"persona", "person", "clock"} <= set(stored)


def test_a_memory_that_is_shown_in_other_words_is_found_by_its_name(me, fake_anthropic):
    known = know(me, "Alice works at Siemens.")
    turn = say(me, "Where do I work?")
    row = ContextSection.objects.for_user(me).get(name="memories")
    row.text = f"[mem_{known.pk.hex[:8]}] employer: S."
    row.save(update_fields=["text"])
    memory.forget(user=me, memory_id=known.pk)
    assert not ContextSection.objects.for_user(me).filter(name="memories").exists()
    assert ComposedContext.objects.for_user(me).filter(turn=turn).exists()


def test_what_the_observer_and_the_reflex_made_of_it_goes_in_whatever_words(me, fake_anthropic):
    """As a brief does: they tell the talk in words of their own."""
    fake_anthropic.on("reply").says("I see.")
    fake_anthropic.on("subcortical").answers(
        {"phrases": ["the blackbird at its berth"], "complexity": "complex"}
    )
    first = say(me, "My boat is called Merula.")
    known = know(me, "Alice's boat is called Merula.")
    known.sources.create(
        user=me,
        message_id=asked(first).pk,
        segment_id=first.segment_id,
        sentence="My boat is called Merula.",
        said_at=first.created_at,
    )
    advise(first, "Do not confuse the blackbird with the ferry.")
    say(me, "Good morning!")
    assert len(holding(me, "blackbird")) == 3
    memory.forget(user=me, memory_id=known.pk)
    assert holding(me, "blackbird") == []


def test_a_summary_told_in_later_prompts_goes_from_them(me, fake_anthropic):
    fake_anthropic.on("reply").says("I see.")
    fake_anthropic.on("summary").answers(
        {
            "trace": "I heard of the blackbird, as the vessel is called, and of the weather.",
            "precis": "The vessel.",
            "title": "The vessel and the weather",
            "complexity": 1,
        }
    )
    fake_anthropic.on("extraction").answers({"facts": []})
    first = say(me, "My boat is called Merula.")
    put_to_rest(me)
    known = know(me, "Alice's boat is called Merula.")
    known.sources.create(
        user=me,
        message_id=asked(first).pk,
        segment_id=first.segment_id,
        sentence="My boat is called Merula.",
        said_at=first.created_at,
    )
    say(me, "Good morning!")
    assert "conversations_context_sections" in holding(me, "blackbird")
    memory.forget(user=me, memory_id=known.pk)
    assert holding(me, "blackbird") == []
    assert holding(me, "Merula") == []


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_what_was_made_of_a_message_goes_when_it_does(me, fake_anthropic, change):
    fake_anthropic.on("reply").says("I see.")
    fake_anthropic.on("subcortical").answers(
        {"phrases": ["the Zanzibar plan"], "entities": ["Zanzibar"], "complexity": "complex"}
    )
    turn = say(me, "I am moving to Zanzibar, tell nobody.")
    advise(turn, "Ask about Zanzibar with care.")
    tell_in_short(turn, "They mean to move to Zanzibar. " * 20)
    say(me, "So much for that.")
    if change == "delete":
        services.delete_message(
            user=me, message_id=asked(turn).pk, what_came_of_it="forget", with_answer=True
        )
    else:
        services.edit_message(
            user=me, message_id=asked(turn).pk, text="Never mind.", what_came_of_it="forget"
        )
    assert holding(me, "Zanzibar") == []


def test_the_last_words_of_a_segment_go_from_the_prompts_of_the_next(me, fake_anthropic):
    fake_anthropic.on("reply").says("I see.")
    turn = say(me, "The code of the safe is <zero> one.")
    put_to_rest(me)
    say(me, "Good morning!")
    assert "conversations_context_sections" in holding(me, "code of the safe")
    services.delete_message(
        user=me, message_id=asked(turn).pk, what_came_of_it="forget", with_answer=True
    )
    assert holding(me, "code of the safe") == []


def test_what_is_forgotten_while_the_answer_is_written_is_not_written_down(
    me, fake_anthropic, monkeypatch
):
    fake_anthropic.on("reply").says("I see.")
    known = know(me, "Alice's boat is called Merula.")
    kept = situation.record

    def late(*args, **kwargs):
        memory.forget(user=me, memory_id=known.pk)
        kept(*args, **kwargs)

    monkeypatch.setattr(situation, "record", late)
    turn = say(me, "How is my boat called?")
    assert holding(me, "Merula") == []
    composed = ComposedContext.objects.for_user(me).get(turn=turn)
    assert "memories" in [one["name"] for one in composed.sections]
    assert not ContextSection.objects.for_user(me).exists()


def test_of_an_answer_in_which_it_may_stand_nothing_is_made(me, fake_anthropic, monkeypatch):
    known = know(me, "Alice's boat is called Merula.")
    fake_anthropic.on("reply").calls_tool("memory_tool", {"operation": "search", "query": "Merula"})
    fake_anthropic.on("reply").says("Your boat is called Merula.")
    kept = remembering.keep_asked

    def late(*args, **kwargs):
        memory.forget(user=me, memory_id=known.pk)
        return kept(*args, **kwargs)

    monkeypatch.setattr(remembering, "keep_asked", late)
    turn = say(me, "How is she called?")
    assert "Merula" in reply(turn), "they read it, as they read it while it was written"
    call = turn.tool_calls.get()
    assert "Merula" not in f"{call.input}{call.result}{call.summary}"
    monkeypatch.undo()
    put_to_rest(me)
    assert "Merula" not in fake_anthropic.seen("summary")[0].prompt
    assert "Your boat is called Merula" not in fake_anthropic.seen("extraction")[0].prompt


def test_what_is_deleted_before_it_was_written_down_stays_away(me, fake_anthropic, monkeypatch):
    fake_anthropic.on("reply").says("I see.")
    kept = situation.record

    def late(turn, **kwargs):
        services.delete_message(
            user=me, message_id=asked(turn).pk, what_came_of_it="forget", with_answer=True
        )
        kept(turn, **kwargs)

    monkeypatch.setattr(situation, "record", late)
    asked_turn = tell(me, "I am moving to Zanzibar.")
    tasks.run_turn(str(me.pk), str(asked_turn.pk))
    assert holding(me, "Zanzibar") == []
    assert rows(me)["conversations_composed_contexts"] == 0


@pytest.mark.django_db(transaction=True)
def test_whoever_forgets_waits_for_whoever_is_writing(me, fake_anthropic, monkeypatch):
    """The row that is about to be committed is seen by the one who forgets."""
    fake_anthropic.on("reply").says("I see.")
    known = know(me, "Alice's boat is called Merula.")
    written, done = threading.Event(), []
    store = situation._store

    def slow(*args):
        store(*args)
        written.set()
        done.append("written" if not thread_of_other.is_alive() else "waiting")

    def other() -> None:
        written.wait(10)
        with isolation.acting_as(me.pk):
            memory.forget(user=me, memory_id=known.pk)
        connection.close()

    thread_of_other = threading.Thread(target=other)
    thread_of_other.start()
    monkeypatch.setattr(situation, "_store", slow)
    say(me, "How is my boat called?")
    thread_of_other.join(20)
    assert done == ["waiting"]
    assert holding(me, "Merula") == []


def test_an_observation_of_what_was_changed_meanwhile_is_dropped(me, fake_anthropic, monkeypatch):
    fake_anthropic.on("reply").says("I see.")
    turns = [say(me, f"Number {number}, my boat is called Merula.") for number in range(5)]
    Observation.objects.for_user(me).delete()
    ask = peanut_gallery.OBSERVATION.ask

    def slow(*args, **kwargs):
        services.edit_message(
            user=me, message_id=asked(turns[3]).pk, text="Never mind.", what_came_of_it="forget"
        )
        return ask(*args, **kwargs)

    monkeypatch.setattr(
        type(peanut_gallery.OBSERVATION), "ask", lambda self, *a, **k: slow(*a, **k)
    )
    fake_anthropic.on("observation").answers(
        {"action": "concern", "failure": "Merula.", "guidance": "Merula!", "evidence": ["m1"]}
    )
    assert peanut_gallery.observe(me, turns[-1].pk) is None
    assert holding(me, "Merula!") == []


def test_a_retry_replaces_what_was_kept_of_the_first_attempt(me, fake_anthropic):
    fake_anthropic.on("reply").fails(400)
    turn = say(me, "Hello there.")
    assert turn.status == Turn.Status.FAILED
    fake_anthropic.on("reply").says("Hello.")
    services.retry_turn(user=me, turn_id=turn.pk)
    answer(turn)
    assert ComposedContext.objects.for_user(me).count() == 1
    assert SubcorticalRecord.objects.for_user(me).count() == 1


def test_sections_that_stay_the_same_are_kept_once(me, fake_anthropic):
    fake_anthropic.on("reply").says("I see.")
    for text in ("One.", "Two.", "Three."):
        say(me, text)
    kept = list(ContextSection.objects.for_user(me).values_list("name", flat=True))
    assert (kept.count("persona"), kept.count("person")) == (1, 1)


def test_keeping_it_takes_few_statements(me, fake_anthropic, django_assert_max_num_queries):
    fake_anthropic.on("reply").says("I see.")
    caught = {}
    kept = situation.record

    def noted(*args, **kwargs):
        caught["args"] = (args, kwargs)
        kept(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(situation, "record", noted)
        say(me, "Hello.")
    args, kwargs = caught["args"]
    with django_assert_max_num_queries(8):  # two of them are the savepoint
        kept(*args, **kwargs)


def test_a_month_after_a_segment_came_to_rest_its_records_are_deleted(me, fake_anthropic):
    fake_anthropic.on("reply").says("I see.")
    old = say(me, "Long ago.")
    advise(old, "Be kind.")
    put_to_rest(me)
    now = timezone.now()
    with time_machine.travel(now + timedelta(days=CONTEXT_KEPT_DAYS, hours=1), tick=True):
        fresh = say(me, "Just now.")
        tasks.delete_old_records()
    assert ComposedContext.objects.for_user(me).get().turn_id == fresh.pk
    assert SubcorticalRecord.objects.for_user(me).get().turn_id == fresh.pk
    assert not Observation.objects.for_user(me).exists()
    assert not ContextSection.objects.for_user(me).filter(segment=old.segment_id).exists()
    assert Message.objects.for_user(me).count() == 4


def test_all_of_it_goes_with_its_segment(me, merula):
    with transaction.atomic():
        Segment.objects.for_user(me).delete()
    assert set(rows(me).values()) == {0}
