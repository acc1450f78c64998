"""What speaks for a memory, and that equal input gives equal bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest

from memory import alike, asking, months, ranking, recall, search, selectors, token_vectors
from memory.constants import NEAR_FLOOR, OVERLAP_FLOOR
from memory.models import TokenVectors
from mira_site import embeddings
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.fixture
def talk(as_alice):
    """A conversation of two, written as every memory is."""
    segment = uuid4()
    lines = [
        "Ben: I adopted a tortoise last week.",
        "Anna: Oh! What do you call it?",
        "Ben: Tank, since nothing stops it.",
        "Anna: I would rather have a boat.",
        "Ben: Boats are expensive.",
    ]
    memories = [
        MemoryFactory(
            user=as_alice, text=text, source_segment_id=segment, position=place,
            speaker=text.split(":")[0], said_at=NOW - timedelta(days=200 - place),
        )
        for place, text in enumerate(lines)
    ]  # fmt: skip
    token_vectors.write(as_alice, memories)
    return memories


def parts(user, query):
    return {item.text: item.why.parts for item in selectors.recall(user, query, now=NOW)}


def test_what_was_said_right_after_an_answer_is_found_through_it(as_alice, talk):
    found = selectors.recall(as_alice, "What is Ben's tortoise called?", now=NOW)
    texts = [item.text for item in found]
    assert texts.index(talk[2].text) < len(texts)
    alone = MemoryFactory(user=as_alice, text="Ben: Kurt, since nothing stops it.")
    token_vectors.write(as_alice, [alone])
    beside = parts(as_alice, "What is Ben's tortoise called?")
    assert alone.text not in beside or beside[talk[2].text].late > beside[alone.text].late


def test_words_of_another_speaker_count_less_if_one_is_named(as_alice, talk):
    by_text = parts(as_alice, "What does Anna say about a boat?")
    assert by_text[talk[3].text].other_speaker == 0
    assert by_text[talk[4].text].other_speaker == 1
    assert parts(as_alice, "boat?")[talk[4].text].other_speaker == 0
    assert parts(as_alice, "What do Anna and Ben say of a boat?")[talk[4].text].other_speaker == 0


def test_a_question_counts_less_than_what_is_told(as_alice, talk):
    by_text = parts(as_alice, "What do you call the tortoise?")
    assert by_text[talk[1].text].asks == 1
    assert by_text[talk[0].text].asks == 0


def test_a_conversation_about_the_question_lifts_what_is_said_in_it(as_alice, talk):
    other = MemoryFactory(user=as_alice, text="Cara: Boats are expensive, too.")
    token_vectors.write(as_alice, [other])
    by_text = parts(as_alice, "boats")
    assert by_text[talk[4].text].session > by_text[other.text].session > 0


def test_the_month_is_the_persons_own(as_alice):
    late = datetime(2026, 5, 31, 22, 30, tzinfo=UTC)  # 1 June in Berlin
    MemoryFactory(user=as_alice, text="Alice sails to Izola.", said_at=late)
    assert [one.month for one in parts(as_alice, "sailing in June").values()] == [1.0]
    assert [one.month for one in parts(as_alice, "sailing in May").values()] == [0.5]
    assert [one.month for one in parts(as_alice, "sailing in June 2025").values()] == [0.0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What happened in May 2023?", ({5}, {2023})),
        ("may I ask?", (set(), set())),
        ("Was war im März?", ({3}, set())),
        ("Qu'est-ce qui s'est passé en août ?", ({8}, set())),
        ("in 2022 and December", ({12}, {2022})),
        ("room 12022", (set(), set())),
    ],
)
def test_months_and_years_are_read(text, named):
    found = months.named(text)
    assert (set(found.months), set(found.years)) == named


def test_a_memory_without_token_vectors_is_scored_by_the_rest(as_alice, talk):
    with_them = parts(as_alice, "What is Ben's tortoise called?")
    TokenVectors.objects.for_user(as_alice).delete()
    assert token_vectors.missing(as_alice).count() == len(talk)
    without = parts(as_alice, "What is Ben's tortoise called?")
    assert 0 < without[talk[0].text].late < with_them[talk[0].text].late
    assert next(iter(without)) == talk[0].text


def test_token_vectors_are_small_and_hold_no_empty_words(as_alice, talk):
    row = TokenVectors.objects.for_user(as_alice).get(memory=talk[4])
    count = len(bytes(row.vectors)) // token_vectors.DIMENSIONS
    assert count == len(["ben", "boats", "expensive"])


def test_a_new_text_replaces_the_token_vectors(as_alice, talk):
    before = bytes(TokenVectors.objects.get(memory=talk[0]).vectors)
    talk[0].text = "Ben: I sold a piano."
    token_vectors.write(as_alice, [talk[0]])
    assert bytes(TokenVectors.objects.get(memory=talk[0]).vectors) != before


def test_an_answer_to_each_word_is_the_best_of_the_pieces():
    rows = np.eye(64, dtype=np.float32)[:3]
    memory = (rows[:2] * 127).astype(np.int8).tobytes()
    found = token_vectors.answers(rows, [memory, b""])
    assert found.tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    near = token_vectors.with_beside(found, np.array([-1, 0]), np.array([1, -1]))
    assert near[1].tolist() == pytest.approx([0.85, 0.85, 0.0])


def test_what_was_said_two_places_away_counts_less_and_further_away_not_at_all():
    found = np.array([[1.0], [0.0], [0.0], [0.0]], dtype=np.float32)
    near = token_vectors.with_beside(found, np.array([-1, 0, 1, 2]), np.array([1, 2, 3, -1]))
    assert near[:, 0].tolist() == pytest.approx([1.0, 0.85, 0.85**2, 0.0])


@pytest.mark.parametrize(
    ("text", "is_particular"),
    [
        ("Ben: We drove to Izola with the boat.", True),
        ("Ben: We drove away. The boat stayed.", False),
        ("Ben: The boat, dear Anna, is expensive.", False),
        ("Ben: I saw the boat on 29 November.", False),
    ],
)
def test_what_names_something_beside_those_who_talk_is_particular(
    as_alice, talk, text, is_particular
):
    MemoryFactory(user=as_alice, text=text, speaker="Ben")
    assert parts(as_alice, "Where was the boat?")[text].particular == is_particular


@pytest.mark.parametrize("query", ["What is Ben's tortoise called?", "expensive", "quantum Anna"])
def test_what_is_shown_is_near_or_well_worded_or_likely_needed(as_alice, talk, query):
    shown = parts(as_alice, query)
    assert shown
    for one in shown.values():
        is_near = one.similarity >= NEAR_FLOOR or one.overlap >= OVERLAP_FLOOR
        assert is_near or one.relevance >= ranking.RELEVANCE_FLOOR


def test_each_signal_can_be_left_out(as_alice, talk):
    for name in ranking.WEIGHTS:
        assert recall.found(as_alice, "boat", now=NOW, without=frozenset({name})).items


def test_without_embeddings_the_recall_says_so(as_alice, talk, monkeypatch):
    assert not recall.found(as_alice, "boat", now=NOW).is_degraded
    monkeypatch.setattr(embeddings, "_load", _away)
    monkeypatch.setattr(embeddings, "_loaded", [])
    embeddings.forget_queries()
    found = recall.found(as_alice, "boat", now=NOW)
    assert found.is_degraded
    assert {item.text for item in found.items} >= {talk[3].text}


def _away(folder: object) -> object:
    raise embeddings.EmbeddingsUnavailable("Away.")


# --- Near duplicates ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I love hiking in the hills.", "I really love hiking in the hills.", True),
        ("The meeting is at 3.", "The meeting is at 4.", False),
        ("I like tea.", "I don't like tea.", False),
        ("We met on Monday.", "We met on Tuesday.", False),
        ("My sister Anna sails.", "My sister Vera sails.", False),
        ("Ich mag Tee.", "Ich mag Tee nicht.", False),
    ],
)
def test_texts_that_differ_in_a_number_a_date_a_name_or_a_not_are_two(one, other, same):
    assert alike.may_stand_for(one, other) is same


def test_of_what_says_nearly_the_same_one_is_shown_and_names_the_others(as_alice):
    one = MemoryFactory(user=as_alice, text="Alice loves hiking in the hills.", importance=0.9)
    two = MemoryFactory(user=as_alice, text="Alice really loves hiking in the hills.")
    three = MemoryFactory(user=as_alice, text="Alice never loves hiking in the hills.")
    found = selectors.recall(as_alice, "hiking in the hills", now=NOW)
    assert {item.id: item.also for item in found} == {one.id: (two.id,), three.id: ()}


# --- The same bytes ----------------------------------------------------------------------------
ASK = """
import django
from django.conf import settings
settings.DATABASES["default"]["NAME"] = {database!r}
django.setup()
from datetime import datetime, UTC
from memory import recall
from mira_site import isolation
from mira_site.accounts.models import User
user = User.objects.get(username={name!r})
with isolation.acting_as(user.pk):
    for question in {questions!r}:
        print(repr(recall.found(user, question, now=datetime(2026, 11, 30, 9, tzinfo=UTC))))
"""
QUESTIONS = ["What is Ben's tortoise called?", "boats", "Who is expensive?"]


@pytest.mark.django_db(transaction=True)
def test_the_same_store_and_question_give_the_same_bytes(as_alice, talk, settings):
    def asked(questions):
        return [repr(recall.found(as_alice, one, now=NOW)) for one in questions]

    first = asked(QUESTIONS)
    asked(["something else", "Ben", "a boat and a piano"])
    assert asked(QUESTIONS[::-1])[::-1] == first
    embeddings.forget_queries()
    assert asked(QUESTIONS) == first
    script = ASK.format(
        database=settings.DATABASES["default"]["NAME"],
        name=as_alice.username,
        questions=QUESTIONS[::-1],
    )
    other = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "mira_site.settings_test"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in other.stdout.splitlines() if line.startswith("Found(")]
    assert lines[::-1] == first


def test_rows_come_in_the_order_of_their_ids(as_alice, talk):
    pool = search.candidates(as_alice, asking.prepare(["boat"]), now=NOW)
    assert list(pool.ids) == sorted(pool.ids)
    assert set(pool.before) | set(pool.after) > {-1}
