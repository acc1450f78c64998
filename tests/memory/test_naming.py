from __future__ import annotations

import pytest

from memory import likeness, naming

PERSON = "person"


@pytest.mark.parametrize(
    ("one", "two"),
    [("Jana  Novák", "jana novak"), ("I.B.M.", "ibm"), ("Jean-Luc", "Jean Luc"),
     ("O’Brien", "O'Brien"), ("STRASSE", "Straße"), ("Zoë", "Zoe")],
)  # fmt: skip
def test_spellings_of_one_name_share_a_key(one, two):
    assert naming.key(one) == naming.key(two)


@pytest.mark.parametrize(
    ("one", "two"), [("C", "C++"), ("C#", "C++"), ("3.11", "311"), ("Anna", "Annika")]
)
def test_what_tells_names_apart_stays(one, two):
    assert naming.key(one) != naming.key(two)


def test_other_scripts_keep_their_letters():
    assert naming.key("が") != naming.key("か")
    assert naming.key("서울") == "서울"


@pytest.mark.parametrize(
    ("kind", "known"),
    [("PERSON", PERSON), (" Organization ", "organisation"), ("GPE", "place"),
     ("nonsense", "other"), (None, "other"), (3, "other"), ([], "other")],
)  # fmt: skip
def test_a_bad_kind_falls_back(kind, known):
    assert naming.known_type(kind) == known


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My boat is called Merula.", ["Merula"]),
        ("Jana Novak lives in Prague with her dog Rex.", ["Jana Novak", "Prague", "Rex"]),
        ("Yesterday Paul and I met Dr. Weber in New York.", ["Paul", "Dr. Weber", "New York"]),
        ("We met J. Novak there.", ["J. Novak"]),
        ("Anna is my sister. I love Anna.", ["Anna"]),
        ("Sailing is fun.", []),
        ("I speak German and leave on Monday in May.", []),
        ("I HATE MONDAYS AND BROCCOLI", []),
        ("My car is a Tesla Model 3.", ["Tesla Model 3"]),
        ("I saw Anna 3 times this week.", ["Anna"]),
        ("Meine Schwester Anna wohnt mit dem Hund in der Stadt.", ["Anna"]),
        ("Ich habe mit dem Auto im Garten auf den Regen gewartet.", []),
        ("Ma sœur habite à Lyon avec Pierre.", ["Lyon", "Pierre"]),
        ("Mi hermano Carlos vive en Buenos Aires.", ["Carlos", "Buenos Aires"]),
        ("Моя сестра Аня пьёт чай.", ["Аня"]),
        ("", []),
    ],
)
def test_names_are_read_by_rule(text, names):
    assert naming.names_in(text) == names


def test_a_word_that_opens_a_sentence_is_a_name_once_it_is_known():
    assert naming.names_in("Merula needs paint.") == []
    assert naming.names_in("Merula needs paint.", known={"merula"}) == ["Merula"]


ALIKE = [
    ("Dr. Jana Novak", "Jana Novak", PERSON), ("Novak Jana", "Jana Novak", PERSON),
    ("Müller", "Mueller", PERSON), ("Katherine Johnson", "Kathrine Johnson", PERSON),
    ("Jana M. Novak", "Jana Novak", PERSON),
    ("IBM", "International Business Machines", "organisation"),
    ("Acme GmbH", "Acme", "organisation"), ("PostgresSQL", "Postgressql", "product"),
]  # fmt: skip
APART = [
    ("Anna", "Annika", PERSON), ("Jan", "Jana", PERSON), ("Maria", "Mario", PERSON),
    ("Daniel", "Daniela", PERSON), ("Christian", "Christina", PERSON),
    ("Michael Weber", "Michaela Weber", PERSON), ("Jan Novak", "Jana Novak", PERSON),
    ("Mr Novak", "Mrs Novak", PERSON), ("John Smith Jr", "John Smith Sr", PERSON),
    ("Paula", "Paola", PERSON), ("Apollo 11", "Apollo 12", "event"),
    ("Rocky II", "Rocky III", "work"), ("iPhone 15", "iPhone 16", "product"),
    ("Iran", "Iraq", "place"), ("Gambia", "Zambia", "place"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two", "kind"), ALIKE)
def test_ways_to_write_one_name_are_strongly_alike_and_found_by_key(one, two, kind):
    for first, second in ((one, two), (two, one)):
        found = likeness.alike(first, kind, second, kind)
        assert found is not None
        assert found.score >= likeness.STRONG
    assert likeness.search_keys(one) & likeness.search_keys(two)


@pytest.mark.parametrize(("one", "two", "kind"), APART)
def test_names_of_two_things_are_not_alike(one, two, kind):
    assert likeness.alike(one, kind, two, kind) is None
    assert likeness.alike(two, kind, one, kind) is None


@pytest.mark.parametrize(
    ("one", "two"), [("J. Novak", "Jana Novak"), ("Jana", "Jana Novak"), ("Dr. Weber", "Weber")]
)
def test_what_only_the_person_can_tell_is_weak(one, two):
    found = likeness.alike(one, PERSON, two, PERSON)
    assert found is not None
    assert found.score < likeness.STRONG


def test_a_person_is_never_a_place():
    assert likeness.alike("Paris", PERSON, "Paris", "place") is None
