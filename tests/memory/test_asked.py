"""Which messages ask to remember something, and what of them is kept."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from memory import asked, orders

ORDERS = [
    "Remember that my locker code is 4417.",
    "please remember my sister Vera lives in Graz",
    "Hey MIRA, please remember that I hate cilantro!",
    "Could you please remember that I am allergic to nuts?",
    "I'd like you to remember that Tom is my boss.",
    "Don't forget that I am vegan.",
    "My locker code is 4417, please remember that.",
    "Merk dir, dass mein Hund Bello heißt.",
    "Merk dir bitte: Mein Hund heißt Bello.",
    "Kannst du dir bitte merken, dass ich Anna heiße?",
    "Vergiss nicht, dass ich am 3. Mai Geburtstag habe.",
    "Souviens-toi que ma sœur habite à Lyon.",
    "N'oublie pas que je suis végétarien.",
    "Recuerda que mi hermana vive en Madrid.",
    "No olvides que soy alérgico a las nueces.",
]
NO_ORDERS = [
    "Do you remember that my sister lives in Graz?",
    "Remember that I told you about Vera?",
    "Remember when we went to Rome.",
    "I remember that he was nice.",
    "I can't remember that word.",
    "I don't want you to remember that I smoke.",
    "Weißt du noch, dass ich in Graz wohne?",
    "Te souviens-tu que j'habite à Lyon ?",
    "¿Recuerdas que vivo en Madrid?",
    "> Remember that the code is 4417.\n\nWhat does that mean?",
    "",
]


def kept(segment, text):
    (message,) = segment.said(text).messages
    facts = asked.facts(message, name="Alice", zone=ZoneInfo("Europe/Berlin"))
    return [fact.sources[0].sentence for fact in facts]


@pytest.mark.parametrize("text", ORDERS)
def test_an_order_to_remember_is_kept_in_the_persons_words(segment, text):
    assert asked.is_asked(text)
    (sentence,) = kept(segment, text)
    assert sentence.rstrip(".!?") in text


@pytest.mark.parametrize("text", NO_ORDERS)
def test_what_only_speaks_of_remembering_is_no_order(segment, text):
    assert not asked.is_asked(text)
    assert kept(segment, text) == []


def test_remember_this_stands_for_what_else_the_message_states(segment, new_segment):
    both = ("My PIN is 4417. Please remember that.", "Remember this! My PIN is 4417.")
    assert [kept(new_segment(), text) for text in both] == [["My PIN is 4417."]] * 2
    assert kept(segment, "Remember that.") == []


def test_only_what_is_asked_for_is_kept(segment):
    text = "I am tired today. Remember that my boat is called Merula. What time is it?"
    assert kept(segment, text) == ["Remember that my boat is called Merula."]


def test_a_sentence_that_leans_on_it_comes_along(segment):
    text = "Remember that Vera lives in Graz. She is a doctor."
    assert kept(segment, text) == [text]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Remember that my code is 4417.", "my code is 4417."),
        ("Please remember this: my code is 4417.", "my code is 4417."),
        ("Could you remember that my code is 4417?", "my code is 4417"),
        ("My code is 4417, please remember that.", "My code is 4417."),
        ("Merk dir bitte, dass ich Anna heiße.", "ich Anna heiße."),
        ("My code is 4417.", "My code is 4417."),
        ("Remember when we went to Rome.", "Remember when we went to Rome."),
    ],
)
def test_without_the_order_the_fact_itself_is_left(text, rest):
    assert orders.without(text) == rest
