from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory.duplicates import normalised, says_the_same, text_hash


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Alice's boat is called Merula.", "Alice's boat is called Merula"),
        ("Alice prefers window seats.", "Alice prefers a window seat."),
        ("Alice has a dog.", "Alice has a black dog called Rex."),
        ("Meine Schwester wohnt in Köln.", "Meine Schwester wohnt in Köln!"),
    ],
)
def test_what_adds_nothing_says_the_same(new, old):
    assert says_the_same(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("My dog is 3.", "My dog is 4."),
        ("My dog is three.", "My dog is four."),
        ("My friend is called Anna.", "My friend is called Annika."),
        ("Alice lives in Berlin.", "Alice lives in Potsdam."),
        ("Alice does not like tea.", "Alice likes tea."),
        ("Alice likes tea.", "Alice does not like coffee."),
        ("My brother is a pilot.", "My sister is a pilot."),
        ("Alice is taller than Bob.", "Bob is taller than Alice."),
        ("Alice has a black dog called Rex.", "Alice has a dog."),
        ("The rent is 1.200 Euro.", "The rent is 1.250 Euro."),
    ],
)
def test_a_difference_in_substance_makes_two_facts(new, old):
    assert not says_the_same(new, old)


def test_the_same_words_about_another_day_are_another_fact():
    monday, tuesday = (datetime(2026, 11, day, tzinfo=UTC) for day in (30, 29))
    text = "Alice sees the dentist."
    assert not says_the_same(text, text, new_happens_at=monday, old_happens_at=tuesday)
    assert not says_the_same(text, text, new_happens_at=monday)
    assert says_the_same(text, text, old_happens_at=tuesday)
    assert text_hash(text, monday) != text_hash(text, tuesday)


def test_case_spaces_quotes_and_punctuation_do_not_change_the_hash():
    assert text_hash("Alice said:  “I sail”.", None) == text_hash('alice said: "I sail"', None)
    assert text_hash("I sail", None) != text_hash("I sailed", None)


def test_a_sign_that_carries_meaning_is_kept():
    assert normalised("C++") != normalised("C#")


def test_texts_of_signs_alone_are_told_apart():
    assert text_hash("…!", None) != text_hash("?!", None)
