from __future__ import annotations

import pytest

from memory.claims import claim, judged


def verdict(new, *older):
    return judged(
        claim(new, name="Alice"), {text: (text, claim(text, name="Alice")) for text in older}
    )


@pytest.mark.parametrize(
    ("new", "older"),
    [
        ("I moved to Vienna.", "Alice lives in Graz."),
        ("We moved from Graz to Vienna last week.", "Alice said: “I live in Graz.”"),
        ("I live in Vienna now.", "Alice lives in Graz."),
        ("I started working at Bosch.", "I work at Siemens."),
        ("My new boss is Bob.", "My boss is Carla."),
        ("My new phone number is 0171 55.", "Alice said: “My phone number is 0170 44.”"),
        ("My favourite colour is green.", "Alice's favourite colour is blue."),
        ("I no longer drink coffee.", "Alice drinks coffee every morning."),
        ("I don't eat meat any more.", "I eat meat on Sundays."),
        ("I no longer work at Siemens.", "Alice works at Siemens."),
        ("Ich bin letzte Woche nach Hamburg gezogen.", "Ich wohne in Köln."),
        ("Meine neue Chefin heißt Ute.", "Meine Chefin heißt Eva."),
        ("Ich trinke keinen Kaffee mehr.", "Ich trinke morgens Kaffee."),
        ("J'ai déménagé à Paris.", "J'habite à Lyon."),
        ("Je ne bois plus de café.", "Je bois du café le matin."),
        ("Me he mudado a Sevilla.", "Vivo en Madrid."),
        ("Mi nueva jefa se llama Ana.", "Mi jefa se llama Eva."),
        ("Ya no bebo café.", "Bebo café por la mañana."),
    ],
)
def test_a_change_replaces_the_one_memory_it_is_about(new, older):
    assert verdict(new, older, "Alice's boat is called Merula.") == (older, "replaced")


@pytest.mark.parametrize(
    ("new", "older"),
    [
        ("My sister moved to Vienna.", "Alice lives in Graz."),
        ("I would love to live in Paris.", "Alice lives in Graz."),
        ("I want to move to Vienna.", "Alice lives in Graz."),
        ("I moved to Vienna.", "My sister lives in Graz."),
        ("I moved to Graz.", "Alice lives in Graz in Austria."),
        ("My new cat is called Mimi.", "My cat is called Tom."),
        ("My cat is called Mimi.", "My cat is called Tom."),
        ("I work at night.", "I work at Siemens."),
        ("I work at Bosch.", "I work at Siemens."),
        ("I no longer drink coffee.", "Alice's brother drinks coffee."),
        ("I no longer drink coffee.", "Alice never drinks coffee."),
        ("My boat is called Merula.", "Alice lives in Graz."),
    ],
)
def test_what_only_looks_like_a_change_replaces_nothing(new, older):
    found = claim(new, name="Alice")
    assert found is None or verdict(new, older) is None


def test_where_two_memories_could_be_meant_none_is_replaced():
    assert verdict("I moved to Vienna.", "I live in Graz.", "Alice lives in Linz.") is None


def test_another_home_that_nobody_called_new_is_disputed_and_not_replaced():
    assert verdict("I live in Vienna.", "I live in Graz.") == ("I live in Graz.", "disputed")


def test_a_part_of_the_same_place_is_no_other_place():
    assert verdict("I live in Vienna.", "I live in Vienna Neubau.") is None
