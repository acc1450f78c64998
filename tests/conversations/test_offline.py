"""Traces and titles without a model: quoted, never invented."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from conversations import lately, offline
from conversations.types import Said

OPENED = datetime(2026, 6, 1, 22, 30, tzinfo=UTC).astimezone(ZoneInfo("Europe/Vienna"))


def trace(*texts: str) -> str:
    return offline.trace(texts, name="Alice", opened=OPENED)


def test_a_trace_is_in_the_first_person_dated_and_of_three_or_four_sentences():
    said = trace(
        "My boat is called Ada. She is from 1962.",
        "The boat lies in Trieste.",
        "We painted the boat red. It took a week.",
        "Fine.",
    )
    assert said.startswith("On 2 June 2026 I talked with Alice.")
    quotes = re.findall(r"“(.+?)”", said)
    assert 2 <= len(quotes) <= 3
    assert "The boat lies in Trieste." in quotes


def test_what_is_quoted_was_said_and_stands_in_the_order_in_which_it_was():
    texts = [f"Sentence number {number} is about the harbour." for number in range(9)]
    numbers = [int(found) for found in re.findall(r"number (\d)", trace(*texts))]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is my boat called?", ["My boat is called Ada."]),
        ("Where does she lie?", ["She lies in Piran."]),
        ("And the anchors?", ["We bought an anchor."]),
        ("Which colour has the moon?", []),
        ("Why?", []),
    ],
)
def test_what_was_said_a_minute_ago_is_found_by_the_words_of_a_question(question, found):
    said = [
        Said(text=text, message_id=uuid4(), said_at=OPENED)
        for text in (
            "We bought an anchor.",
            "She lies in Piran.",
            "Where do boats lie?",
            "My boat is called Ada.",
            "My boat is called Ada.",
        )
    ]
    assert [one.text for one in lately.fitting(question, said)] == found


@pytest.mark.parametrize("text", ["Is it red?", "Tell me of Ada.", "Wann war das", "¿Dónde está"])
def test_what_asks_is_told_from_what_tells(text):
    assert lately.is_asked(text)
    assert not lately.is_asked(f"I wonder. {text.rstrip('?')}")


def test_a_very_long_sentence_is_shortened_and_says_so():
    assert len(trace("harbour " * 400)) < 400
    assert "…" in trace("harbour " * 400)


@pytest.mark.parametrize("texts", [(), ("",), ("  \n ",), ("…",), ("🙂",)])
def test_with_next_to_nothing_said_there_is_still_a_trace_and_a_title(texts):
    assert trace(*texts).startswith("On 2 June 2026 I")
    assert offline.title(texts) == "A short exchange"
    assert offline.precis(texts, name="Alice", opened=OPENED)


def test_a_title_is_of_the_telling_words_in_the_order_they_came():
    title = offline.title(
        ["Can you help me with the rigging of my boat?", "The rigging is old, the boat is fine."]
    )
    words = title.split()
    assert words.index("rigging") < words.index("boat")
    assert len(words) <= 6
    assert not {"the", "with", "can"} & set(title.lower().split())


@pytest.mark.parametrize(
    "texts",
    [
        ("Ich wohne seit Mai in Graz und arbeite als Bäckerin.",),
        ("私は京都に住んでいます。", "犬を飼っています。"),
        ("```python\nprint(1)\n```",),
    ],
)
def test_any_language_and_any_text_has_a_trace_and_a_title(texts):
    assert "“" in trace(*texts)
    assert offline.title(texts)


@pytest.mark.parametrize(
    ("messages", "characters", "expected"),
    [(2, 100, 0.5), (4, 5_000, 1.0), (10, 100, 1.0), (30, 100, 2.0), (31, 100, 3.0)],
)
def test_complexity_grows_with_size(messages, characters, expected):
    assert offline.complexity(messages, characters) == expected
