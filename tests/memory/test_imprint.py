"""By which words a forgotten memory is recognised, and by which not."""

from __future__ import annotations

import pytest

from memory.imprint import imprint, words_of


def made(*statements: str, seen: dict[str, int] | None = None, known: int = 20):
    counts = dict.fromkeys(words_of(statements), 0) | (seen or {})
    return imprint(statements, seen=counts, known=known, but=["Alice"])


@pytest.mark.parametrize(
    "text",
    [
        "On Monday Alice told me that her boat is called Merula.",
        "merula!",
        "We spoke about Merula’s new sails.",
        "My boat is called Merula",
    ],
)
def test_a_name_that_nothing_else_mentions_gives_it_away(text):
    assert made("My boat is called Merula.").is_in(text)


def test_a_name_that_others_mention_too_does_not_give_it_away_alone():
    traces = made("Anna lives in Graz.", seen={"graz": 3})
    assert not traces.is_in("I moved to Graz in May.")
    assert traces.is_in("Anna moved to Graz in May.")


def test_the_persons_own_name_gives_nothing_away():
    assert not made("Alice sails on Sundays.").is_in("Alice drinks tea.")


def test_a_retelling_in_other_forms_is_recognised():
    traces = made("I drink green tea every morning.")
    assert traces.is_in("She drinks green teas in the morning.")
    assert not traces.is_in("She drinks coffee with her sister.")


def test_words_in_common_with_everything_are_no_quotation():
    assert not made("I like my job.").is_in("She said she would like to go home.")


def test_only_the_sentences_that_say_it_are_taken_out():
    traces = made("My boat is called Merula.")
    text = "It rained all day. Alice spoke of Merula. We laughed."
    assert traces.without(text) == "It rained all day. We laughed."


def test_a_number_gives_it_away():
    assert made("My locker code is 4711.").is_in("She told me 4711.")
