"""The words around a memory's sentence: kept, bounded, and gone with what is forgotten."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from memory import services, spans
from memory.models import Memory, MemorySource
from memory.sentences import around
from mira_site import isolation
from tests.factories import MemoryFactory
from tests.memory.conftest import SAID_AT

NOW = SAID_AT + timedelta(days=1)
BOTH = "My boat is called Merula. I drink green tea every morning. It was a fine week."


def all_spans() -> str:
    """By raw SQL, whatever the scope lets through."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(string_agg(span, E'\\n'), '') FROM memory_sources")
        return str(cursor.fetchone()[0])


def remembered(user, segment) -> list[Memory]:
    ids = services.remember(
        user=user, segment_id=segment.id, messages=segment.messages, at=NOW
    ).memory_ids
    return [Memory.objects.for_user(user).get(id=memory_id) for memory_id in ids]


def about(user, word: str) -> Memory:
    return Memory.objects.for_user(user).get(text__contains=word)


def span_of(memory: Memory) -> str:
    return str(memory.sources.get().span)


def source(user, memory, span: str, *, message_id=None, sentence="", minutes=0) -> MemorySource:
    return MemorySource.objects.create(
        user=user,
        memory=memory,
        message_id=message_id or uuid4(),
        sentence=sentence,
        span=span,
        said_at=SAID_AT + timedelta(minutes=minutes),
    )


# --- Kept ---------------------------------------------------------------------------------------


def test_a_source_keeps_the_message_it_stands_in(as_alice, segment):
    remembered(as_alice, segment.said(BOTH))
    assert span_of(about(as_alice, "Merula")) == BOTH
    assert span_of(about(as_alice, "tea")) == BOTH


def test_what_the_person_asked_to_keep_has_the_whole_message_too(as_alice, segment):
    text = "What a day. Remember that my boat is called Merula."
    (message,) = segment.said(text).messages
    services.remember_asked(user=as_alice, message=message, at=NOW)
    assert span_of(about(as_alice, "Merula")) == text


def test_of_a_long_message_whole_sentences_around_are_kept():
    before, after = "It rained all day long. " * 600, "Then the sun came out. " * 600
    wanted = "My boat is called Merula."
    span = around(f"{before}{wanted} {after}", wanted)
    assert wanted in span
    assert 8_000 < len(span) <= 8_192
    assert span.startswith("It rained")
    assert span.endswith("out.")


def test_a_sentence_longer_than_the_bound_is_cut():
    assert len(around("x" * 10_000, "x" * 10_000)) == 8_192


def test_a_message_without_the_sentence_gives_its_beginning():
    assert around("One. Two. " * 2000, "Three.").startswith("One. Two.")


def test_all_spans_of_a_memory_are_64k_at_most_and_the_newest_stay(as_alice):
    memory = MemoryFactory(user=as_alice)
    rows = [source(as_alice, memory, "y" * 8_192, minutes=n) for n in range(10)]
    spans.bound(as_alice, [memory.id])
    kept = [bool(MemorySource.objects.for_user(as_alice).get(id=row.id).span) for row in rows]
    assert kept == [False, False] + [True] * 8
    assert len(all_spans().replace("\n", "")) == 65_536


def test_a_merged_memory_keeps_the_spans_of_its_parts(as_alice, segment):
    one, two = remembered(as_alice, segment.said("I like green tea.", "I like black coffee."))
    merge = services.merge(
        user=as_alice,
        memory_ids=[one.id, two.id],
        text="Alice said: “I like green tea.” and “I like black coffee.”",
    )
    found = MemorySource.objects.for_user(as_alice).filter(memory=merge.result)
    assert {row.span for row in found} == {"I like green tea.", "I like black coffee."}


# --- Forgotten ----------------------------------------------------------------------------------


def test_forgetting_cleans_the_spans_of_other_memories(as_alice, segment):
    remembered(as_alice, segment.said(BOTH))
    receipt = services.forget(user=as_alice, memory_id=about(as_alice, "Merula").id)
    assert "Merula" not in all_spans()
    assert "boat" not in all_spans()
    assert "green tea" in span_of(about(as_alice, "tea"))
    assert receipt.counts["spans"] == 1


@pytest.mark.parametrize(
    "elsewhere",
    [
        "We painted Merula white. Then it rained.",
        "I wonder how MERULA's sails are. Then it rained.",
        "The boat that is called Merula leaks. Then it rained.",
    ],
)
def test_it_is_cleaned_out_of_spans_of_other_messages_too(as_alice, segment, elsewhere):
    other = MemoryFactory(user=as_alice, text="It rained.")
    source(as_alice, other, elsewhere)
    remembered(as_alice, segment.said("My boat is called Merula."))
    services.forget(user=as_alice, memory_id=about(as_alice, "Merula").id)
    assert "merula" not in all_spans().casefold()
    assert span_of(other) == "Then it rained."


def test_letters_that_change_with_case_hide_nothing(as_alice):
    other = MemoryFactory(user=as_alice, text="It rained.")
    source(as_alice, other, "Ich wohne in der ÄUSSEREN GASSE. It rained.")
    source(as_alice, other, "Die äußere Gasse ist schmal. It snowed.")
    gone = services.create(user=as_alice, text="Alice wohnt in der Äußeren Gasse.")
    services.forget(user=as_alice, memory_id=gone.id)
    assert "gasse" not in all_spans().casefold()


def test_what_two_sentences_say_together_takes_the_whole_span(as_alice):
    other = MemoryFactory(user=as_alice, text="It rained.")
    source(as_alice, other, "My doctor is kind. She treats asthma gently. It rained.")
    gone = services.create(user=as_alice, text="My doctor treats asthma gently.")
    services.forget(user=as_alice, memory_id=gone.id)
    assert "asthma" not in all_spans()


def test_spans_of_others_people_stay_as_they_are(as_alice, bob):
    with isolation.acting_as(bob.pk):
        theirs = MemoryFactory(user=bob, text="It rained.")
        source(bob, theirs, "Merula is the name of a bird.")
    gone = services.create(user=as_alice, text="My boat is called Merula.")
    services.forget(user=as_alice, memory_id=gone.id)
    with isolation.acting_as(bob.pk):
        assert all_spans() == "Merula is the name of a bird."


def test_a_merged_memorys_parts_wake_without_the_forgotten_words(as_alice, segment):
    one, two = remembered(as_alice, segment.said("I like green tea. My boat is called Merula."))
    services.merge(
        user=as_alice,
        memory_ids=[one.id, two.id],
        text="Alice said: “I like green tea.” and “My boat is called Merula.”",
    )
    services.forget(user=as_alice, memory_id=about_part(as_alice, "Merula", (one, two)).id)
    assert "Merula" not in all_spans()


def about_part(user, word, parts) -> Memory:
    return next(part for part in parts if word in part.text)


# --- Changed ------------------------------------------------------------------------------------


def test_a_deleted_message_takes_its_spans_along(as_alice, segment):
    remembered(as_alice, segment.said(BOTH))
    services.drop_sources(user=as_alice, message_ids=[segment.messages[0].message_id])
    assert all_spans() == ""


def test_a_changed_message_is_quoted_as_it_reads_now_or_not_at_all(as_alice, segment):
    remembered(as_alice, segment.said(BOTH))
    services.message_changed(
        user=as_alice,
        message_id=segment.messages[0].message_id,
        text="I drink green tea every morning. It was a bad week.",
    )
    assert span_of(about(as_alice, "tea")).endswith("It was a bad week.")
    assert span_of(about(as_alice, "Merula")) == ""
    assert "fine week" not in all_spans()


def test_bob_cannot_change_what_alices_memories_quote(as_alice, bob, segment):
    remembered(as_alice, segment.said(BOTH))
    with isolation.acting_as(bob.pk):
        services.message_changed(
            user=bob, message_id=segment.messages[0].message_id, text="Nothing."
        )
        assert all_spans() == ""
    assert "Merula" in all_spans()


def test_a_note_on_a_message_of_which_something_was_forgotten_keeps_no_span(as_alice, segment):
    (message,) = segment.said(BOTH).messages
    noted = services.remember_now(
        user=as_alice, text="My boat is called Merula.", said=[message],
        segment_id=segment.id, at=NOW,
    )  # fmt: skip
    assert span_of(noted.memory) == BOTH
    services.forget(user=as_alice, memory_id=noted.memory.id)
    services.remember_now(
        user=as_alice, text="I drink green tea every morning.", said=[message],
        segment_id=segment.id, at=NOW + timedelta(seconds=1),
    )  # fmt: skip
    assert all_spans() == ""
