"""Which concrete details a merged text may not lose."""

from __future__ import annotations

import pytest

from memory import details


@pytest.mark.parametrize(
    ("source", "text", "missing"),
    [
        ("Alice has 3 boats.", "Alice has boats.", ["3"]),
        ("Her flight is AB123 at 14:30.", "Her flight leaves at 14:30.", ["AB123"]),
        ("Alice moved on 5 May 2026.", "Alice moved in May 2026.", ["5"]),
        ("Alice's boat is called Merula.", "Alice has a boat.", ["Merula"]),
        ("Anna likes tea.", "She likes tea.", ["Anna"]),
        ("Alice has two sons.", "Alice has sons.", ["two"]),
        ("Alice does not eat meat.", "Alice eats meat.", [details.NEGATION]),
        ("Anna isst kein Fleisch.", "Anna isst Fleisch.", [details.NEGATION]),
    ],
)
def test_a_lost_detail_is_named(source: str, text: str, missing: list[str]) -> None:
    assert details.lost([source], text) == missing


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        (["The boat is in Izola."], "A boat lies in Izola."),
        (["Alice's boat is Merula."], "Merula is the boat of Alice."),
        (["My sister lives in Graz."], "The sister, who lives in Graz, is older."),
        (
            ["Alice has two sons.", "Alice lives in Graz."],
            "Alice, who has two sons, lives in Graz.",
        ),
        (["Alice never eats meat."], "Alice does not eat meat."),
    ],
)
def test_words_may_change_while_the_details_stay(sources: list[str], text: str) -> None:
    assert details.lost(sources, text) == []


def test_each_detail_is_named_once_whatever_its_case() -> None:
    assert details.lost(["In Izola.", "To IZOLA, in 1987."], "There.") == ["Izola", "1987"]
