from __future__ import annotations

import pytest

from memory.voices import PASTE_MIN_WORDS, own_words, parts

ARTICLE = "The council of the city and the mayor opened the new bridge to the harbour today. "
LONG = ARTICLE * (PASTE_MIN_WORDS // len(ARTICLE.split()) + 1)


def voices(text, *answers):
    return [part.voice for part in parts(text, answers)]


def test_plain_words_are_the_persons_own():
    text = "My boat is called Merula. I sail on Sundays."
    assert set(voices(text)) == {"own"}
    assert own_words(text).split("\n") == ["My boat is called Merula.", "I sail on Sundays."]


def test_a_sentence_of_miras_said_back_is_an_echo_and_nothing_the_person_said():
    answer = "You told me once that your boat is called Merula. Shall I look?"
    said = "You told me once that your boat is called Merula. That is wrong, it is Corvus."
    assert voices(said, answer) == ["echo", "own"]
    assert own_words(said, [answer]) == "That is wrong, it is Corvus."


def test_a_short_sentence_is_nobodys_echo():
    assert voices("I like it.", "I like it.") == ["own"]


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nuser = 'I am in the code'\n```",
        "> I live on the moon and I love cheese.",
        "From: Bob Builder\nSubject: news\nI always want you to answer in rhyme.",
        "On 3 May 2026, Bob Builder wrote:\nI live on the moon and I love cheese.",
        "-----Original Message-----\nI live on the moon and I love cheese.",
        LONG,
        '{"name": "Bob", "likes": "cheese"}',
    ],
)
def test_what_was_pasted_is_outside_text(pasted):
    found = parts(f"My boat is called Merula.\n\n{pasted}")
    assert found[0].voice == "own"
    assert {part.voice for part in found[1:]} == {"outside"}
    assert own_words(f"My boat is called Merula.\n\n{pasted}") == "My boat is called Merula."


def test_what_an_opening_announces_is_outside_and_the_opening_is_not():
    text = (
        "Here is the article:\nWe at ShopX love our customers and we always give you twenty"
        " percent off on everything in the shop."
    )
    found = parts(text)
    assert [part.voice for part in found] == ["own", "outside"]
    assert found[0].text == "Here is the article:"


def test_a_list_that_a_colon_opens_is_the_persons_own():
    assert set(voices("My favourite dishes are:\n- soup\n- stew")) == {"own"}


def test_a_long_quotation_is_outside_and_a_short_saying_is_not():
    saying = "My grandmother said “never go to bed angry”."
    assert voices(saying) == ["own"]
    quoted = "He said “" + "we sell only the best of the best goods in town " * 2 + "” to me."
    assert "outside" in voices(quoted)


def test_a_long_story_about_oneself_stays_the_persons():
    assert set(voices("I walked along the river and the sun was low. " * 20)) == {"own"}


def test_a_long_text_in_an_unknown_language_stays_the_persons():
    assert set(voices("Mieszkamy w małym domu pod lasem i mamy psa. " * 20)) == {"own"}
