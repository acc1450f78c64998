"""What is read from a text by rule, and what is not (spec recall 1.5 and its fault table)."""

from __future__ import annotations

from datetime import date

import pytest

from memory import fingerprint_rules, written_dates
from memory.fingerprint_rules import type_of
from memory.fingerprints import Fingerprint, Rejected, canonical, line

ON = date(2026, 11, 28)  # a Saturday
DOC = (
    "Decision: we chose PostgreSQL for v2 because it is ACID. Rejected: MySQL (not ACID), MongoDB "
    "(not relational). Deadline: 15/03/2027. Approved by CTO. Assigned to Jean."
)


def read(text: str, *, entities=(), person="Alice", memory_type="fact") -> Fingerprint:
    return fingerprint_rules.read(
        text, memory_type=memory_type, on=ON, entities=entities, person=person
    )


def facts(text: str, **given) -> list[tuple[str, str]]:
    return [(one.key, one.value) for one in read(text, **given).facts]


# --- The fault table ----------------------------------------------------------------------------


def test_a_word_inside_another_is_no_preference():
    assert type_of("most likely the cache") == "session_note"


def test_a_word_that_ends_in_as_gives_no_reason():
    assert read("It was raining").reasons == ()


def test_an_s_before_a_number_is_no_sprint():
    assert read("The server costs 100 dollars").deadline == ""


def test_the_documented_example_gives_every_field():
    found = read(DOC)
    assert found.decision == "PostgreSQL for v2"
    assert found.rejected == (
        Rejected(name="MySQL", note="not ACID"),
        Rejected(name="MongoDB", note="not relational"),
    )
    assert found.reasons == ("it is ACID",)
    assert (found.validated_by, found.assignee, found.deadline) == ("CTO", "Jean", "2027-03-15")
    assert type_of(DOC) == "decision"


def test_any_verb_behind_will_assigns_and_a_relative_date_is_worked_out():
    found = read("Marie will review it tomorrow")
    assert (found.assignee, found.deadline) == ("Marie", "2026-11-29")


@pytest.mark.parametrize("text", ["It will rain tomorrow", "Marie will be there", "We will see"])
def test_what_assigns_nothing_has_no_assignee(text):
    assert read(text).assignee == ""


def test_french_is_read_with_its_own_pack():
    found = read(
        "Nous avons décidé d'utiliser PostgreSQL plutôt que MySQL parce que nous avons besoin de "
        "transactions. Validé par Claire. Paul s'en charge avant vendredi."
    )
    assert found.decision == "PostgreSQL"
    assert found.rejected == (Rejected(name="MySQL"),)
    assert found.reasons == ("nous avons besoin de transactions",)
    assert (found.validated_by, found.assignee) == ("Claire", "Paul")
    assert found.deadline == "2026-12-04"


def test_french_personal_facts_are_found():
    assert facts("J'habite à Lyon avec mon chat Félix et j'adore le thé vert.") == [
        ("home", "Lyon avec mon chat Félix"),
        ("pet", "chat Félix"),
        ("likes", "le thé vert"),
    ]


def test_first_person_talk_gives_facts_beyond_the_default_subject():
    assert facts("I love hiking with my dog Max") == [
        ("likes", "hiking with my dog Max"),
        ("pet", "dog Max"),
    ]
    assert type_of("I love hiking with my dog Max") == "preference"


# --- Personal facts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is Robin.", ("name", "Robin")),
        ("My birthday is on 3 May.", ("birthday", "3 May")),
        ("I work as a nurse in Hamburg.", ("job", "nurse in Hamburg")),
        ("I live in Vienna and work at Siemens.", ("home", "Vienna")),
        ("I live in Vienna and work at Siemens.", ("job", "Siemens")),
        ("I'm originally from Sweden.", ("origin", "Sweden")),
        ("My sister Mia is a doctor.", ("family", "sister Mia")),
        ("We have two kids and a dog named Rex.", ("family", "two kids")),
        ("We have two kids and a dog named Rex.", ("pet", "a dog named Rex")),
        ("My boat is called Merula.", ("own", "boat is called Merula")),
        ("I'm allergic to peanuts.", ("health", "allergic to peanuts")),
        ("I don't like coffee but I love tea.", ("dislikes", "coffee")),
        ("I don't like coffee but I love tea.", ("likes", "tea")),
        ("I'm going to visit Rome next Friday.", ("plan", "visit Rome 2026-12-04")),
        ("Tomorrow I'll call the bank.", ("plan", "call the bank, 2026-11-29")),
        ("I visited Anna yesterday.", ("past", "visited Anna 2026-11-27")),
    ],
)
def test_a_sentence_about_oneself_gives_its_fact(text, expected):
    assert expected in facts(text)


def test_what_is_told_of_the_person_by_name_is_read_like_their_own_words():
    assert facts("Alice prefers window seats on night trains.") == [
        ("likes", "window seats on night trains")
    ]
    assert facts("Alice's boat is called Merula.") == [("own", "boat is called Merula")]


def test_a_wish_is_no_taste_and_a_likeness_no_preference():
    assert facts("I would like to know more.") == []
    assert type_of("He looks like a sailor.") == "session_note"


def test_somebody_else_who_speaks_is_the_first_subject():
    assert read("Caroline: I love tea.").subjects[0] == "Caroline"
    assert read("Alice said: “I love tea.”").subjects == ()


# --- Fields -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("We decided to use Redis.", "Redis"),
        ("The team will adopt Node.js v2.1 until spring.", "Node.js v2.1"),
        ("We chose Redis over Memcached as it supports persistence.", "Redis"),
        ("We decided not to use Kubernetes.", "not to use Kubernetes"),
        ("They haven't decided to use anything.", ""),
        ("Décision : garder l'ancienne API.", "garder l'ancienne API"),
    ],
)
def test_a_decision_is_what_was_chosen(text, decision):
    assert read(text).decision == decision


def test_what_was_chosen_against_is_rejected():
    found = read("We chose Redis over Memcached and etcd as it supports persistence.")
    assert [one.name for one in found.rejected] == ["Memcached", "etcd"]
    assert [one.name for one in read("I take tea instead of coffee.").rejected] == ["coffee"]


@pytest.mark.parametrize(
    "text",
    ["I have lived here since 2019.", "I swim since I was a child.", "She works as a nurse."],
)
def test_time_and_trade_are_no_reasons(text):
    assert read(text).reasons == ()


def test_since_gives_a_reason_where_a_statement_follows():
    assert read("We stay here since the rent is low.").reasons == ("the rent is low",)
    assert read("It was open since the summer and had cost us a lot.").reasons == ()


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("The report is due by Friday.", "2026-12-04"),
        ("Send it before 3/1/2027.", "2027-01-03"),
        ("This ships in sprint 12.", "sprint 12"),
        ("Deadline: end of March", "end of March"),
        ("The deadline is tight.", ""),
        ("I lived there until 3 January 2019.", ""),
    ],
)
def test_a_deadline_is_a_day_to_come_a_sprint_or_a_labelled_time(text, deadline):
    assert read(text).deadline == deadline


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Tom approved it.", "Tom"),
        ("It was signed off by the board.", "board"),
        ("It was not approved by Tom.", ""),
        ("It was approved.", ""),
    ],
)
def test_who_validated_it_is_named_either_way_round(text, name):
    assert read(text).validated_by == name


def test_types_are_told_apart():
    assert type_of("Server version 2.4 runs on port 8080") == "fact"
    assert type_of("Users prefer dark mode") == "preference"
    assert type_of("My sister Mia is a doctor.") == "fact"
    assert type_of("Talked about nothing much.") == "session_note"


def test_entities_stand_in_the_order_of_their_first_appearance_without_repeats():
    text = "Mia met Ben at Siemens. Ben wrote to mia@example.org."
    found = read(text, entities=["Siemens", "Ben", "Mia", "ben", "Zoe"])
    assert found.entities == ("Mia", "Ben", "Siemens", "mia@example.org")


def test_the_same_text_gives_the_same_bytes_whatever_the_order_of_the_names():
    one = canonical(read(DOC, entities=["MySQL", "Jean", "PostgreSQL"]))
    assert one == canonical(read(DOC, entities=["PostgreSQL", "MySQL", "Jean"]))


def test_the_line_of_a_personal_memory_says_the_facts():
    assert line(read("I love hiking with my dog Max", memory_type="preference")) == (
        "[Preference|2026-11-28] | likes: hiking with my dog Max | pet: dog Max"
    )


def test_a_repeated_fact_is_kept_once():
    assert facts("I love tea. I love tea.") == [("likes", "tea")]
    assert facts("I love tea. I love green tea.") == [("likes", "green tea")]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("on 15 March", date(2027, 3, 15)),
        ("March 15, 2028", date(2028, 3, 15)),
        ("le 3 décembre", date(2026, 12, 3)),
        ("31/02/2027", None),
        ("by Monday", date(2026, 11, 30)),
        ("in three days", date(2026, 12, 1)),
        ("nothing of the kind", None),
    ],
)
def test_written_days_are_understood(text, day):
    assert written_dates.first_day(text, ON) == day
