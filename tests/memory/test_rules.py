from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memory import rules
from memory.constants import RULE_FACTS_MAX
from memory.rules import is_statement

BERLIN = ZoneInfo("Europe/Berlin")


def kept(segment, *texts):
    return rules.facts(segment.said(*texts).messages, name="Alice", zone=BERLIN)


def test_a_statement_is_kept_in_the_persons_own_words(segment):
    (fact,) = kept(segment, "Hi Mira! My boat is called Merula. What do you think?")
    assert fact.text == "Alice said: “My boat is called Merula.”"
    assert fact.sources[0].sentence == "My boat is called Merula."
    assert fact.sources[0].message_id == segment.messages[0].message_id


@pytest.mark.parametrize(
    "sentence",
    [
        "My sister Anna is allergic to nuts.",
        "I decided to go with PostgreSQL.",
        "We married in June 2015.",
        "Remember that my landlord is Dr. Weber.",
        "I am 34.",
        "Meine Schwester wohnt in Köln.",
        "Ich mag keinen Kaffee.",
        "Je m'appelle Chloé et j'habite à Lyon.",
        "Soy alérgico a las nueces.",
        "Mi perro se llama Luna.",
        "Mieszkam w małym domu pod lasem.",
        "私の犬の名前はハチです。",
    ],
)
def test_a_statement_is_recognised_in_any_language(sentence):
    assert is_statement(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "What is my boat called?",
        "what is my boat called",
        "Can you help me",
        "Wie heißt mein Boot?",
        "¿Cómo se llama mi barco?",
        "好きな食べ物は何ですか？",
        "Good morning, Mira!",
        "Thanks a lot!",
        "Danke dir sehr!",
        "Please write me a poem about sailing.",
        "Tell me a joke about Hamburg.",
        "Schreib mir ein Gedicht.",
        "I want you to translate this.",
        "Not really.",
        "That is so funny.",
        "Here is the list:",
    ],
)
def test_questions_greetings_requests_and_crumbs_are_not_statements(sentence):
    assert not is_statement(sentence)


def test_what_the_assistant_said_is_never_the_persons(segment):
    segment.answered("My boat is called Titanic.", "I live in the cloud.")
    assert kept(segment, "My boat is called Merula.")[0].sources[0].sentence.endswith("Merula.")
    assert len(kept(segment)) == 1


def test_code_is_not_a_statement(segment):
    assert kept(segment, "```\nI am in the code today\n```") == []


def test_a_relative_date_gets_the_day_it_means_on_the_persons_clock(segment):
    segment.at = datetime(2026, 11, 28, 23, 30, tzinfo=UTC)  # the 29th in Berlin
    (fact,) = kept(segment, "I fly to Rome tomorrow.")
    assert fact.text == ("Alice said: “I fly to Rome tomorrow.” (“tomorrow” is 30 November 2026)")
    assert fact.happens_at == datetime(2026, 11, 29, 23, tzinfo=UTC)


def test_a_sentence_that_opens_with_a_pronoun_stays_with_the_one_it_leans_on(segment):
    (fact,) = kept(segment, "My sister visits often. She is allergic to nuts.")
    assert "My sister visits often. She is allergic to nuts." in fact.text


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("I decided to go with PostgreSQL.", "decision"),
        ("I love rainy days.", "preference"),
        ("Ich mag keinen Kaffee.", "preference"),
        ("I would like to sail around Iceland.", "fact"),
        ("My boat is called Merula.", "fact"),
    ],
)
def test_a_statement_is_typed(segment, sentence, kind):
    assert kept(segment, sentence)[0].memory_type == kind


def test_a_long_segment_keeps_what_says_most_about_the_person(segment):
    chatter = [f"The weather was fine there, number {n}." for n in range(RULE_FACTS_MAX + 20)]
    found = kept(segment, *chatter, "I decided that my boat is called Merula.")
    assert len(found) == RULE_FACTS_MAX
    assert "Merula" in found[-1].text
