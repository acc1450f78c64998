from __future__ import annotations

from datetime import date

import pytest

from memory.relative_dates import mentions

SATURDAY = date(2026, 11, 28)


@pytest.mark.parametrize(
    ("text", "words", "on"),
    [
        ("I fly tomorrow.", "tomorrow", date(2026, 11, 29)),
        ("The day after tomorrow I rest.", "The day after tomorrow", date(2026, 11, 30)),
        ("We met yesterday.", "yesterday", date(2026, 11, 27)),
        ("We go next Friday.", "next Friday", date(2026, 12, 4)),
        ("We met last Friday.", "last Friday", date(2026, 11, 27)),
        ("We met last Saturday.", "last Saturday", date(2026, 11, 21)),
        ("The party is on Tuesday.", "on Tuesday", date(2026, 12, 1)),
        ("The wedding is in two weeks.", "in two weeks", date(2026, 12, 12)),
        ("I quit 3 days ago.", "3 days ago", date(2026, 11, 25)),
        ("Wir fahren morgen weg.", "morgen", date(2026, 11, 29)),
        ("Übermorgen ist Prüfung.", "Übermorgen", date(2026, 11, 30)),
        ("Wir fahren nächsten Freitag.", "nächsten Freitag", date(2026, 12, 4)),
        ("Das war vor drei Tagen.", "vor drei Tagen", date(2026, 11, 25)),
        ("Demain je pars.", "Demain", date(2026, 11, 29)),
        ("Je pars vendredi prochain.", "vendredi prochain", date(2026, 12, 4)),
        ("Je suis arrivé hier.", "hier", date(2026, 11, 27)),
        ("Mañana viajo a Roma.", "Mañana", date(2026, 11, 29)),
        ("Viajo pasado mañana.", "pasado mañana", date(2026, 11, 30)),
        ("Llegué hace dos semanas.", "hace dos semanas", date(2026, 11, 14)),
    ],
)
def test_a_relative_date_is_found_and_resolved(text, words, on):
    assert [(one.words, one.on) for one in mentions(text, SATURDAY)] == [(words, on)]


@pytest.mark.parametrize(
    "text",
    [
        "Guten Morgen zusammen.",
        "Am Morgen trinke ich Tee.",
        "Ich wohne hier in Köln.",
        "Trabajo por la mañana.",
        "I sunday-drive often.",
        "In a hundred years nobody cares.",
    ],
)
def test_what_only_looks_like_one_is_left_alone(text):
    assert mentions(text, SATURDAY) == []


def test_several_keep_their_order():
    found = mentions("Tomorrow I pack, next Friday I fly.", SATURDAY)
    assert [one.words for one in found] == ["Tomorrow", "next Friday"]
