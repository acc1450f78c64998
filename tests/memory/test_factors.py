"""What spoke for a memory, as numbers from 0 to 1."""

from __future__ import annotations

from math import log

import pytest

from memory import factors


@pytest.mark.parametrize(("facts", "tokens"), [(1, 12), (1, 45), (2, 100), (1, 4_000)])
def test_ordinary_text_is_never_of_no_density(facts, tokens):
    assert 0 < factors.density(facts, text_tokens=tokens) <= 1


def test_more_facts_in_fewer_tokens_are_denser():
    assert factors.density(2, text_tokens=60) > factors.density(1, text_tokens=60)
    assert factors.density(1, text_tokens=30) > factors.density(1, text_tokens=60)
    assert factors.density(3, text_tokens=20) == factors.density(1, text_tokens=1) == 1


@pytest.mark.parametrize("memory_type", [*factors.AGEING_PER_DAY, "of no known kind"])
def test_half_of_what_fades_is_gone_after_a_half_life_and_half_of_all_stays(memory_type):
    ageing = factors.AGEING_PER_DAY.get(memory_type, factors.AGEING_OTHERWISE)
    assert factors.recency(memory_type, age_days=0) == 1
    assert factors.recency(memory_type, age_days=log(2) / ageing) == pytest.approx(0.75)
    assert factors.recency(memory_type, age_days=100_000) == pytest.approx(0.5)


def test_what_lies_ahead_is_fresh():
    assert factors.recency("fact", age_days=-30) == 1


def test_a_decision_stays_fresh_longer_than_a_note():
    kinds = ("decision", "fact", "preference", "session_note", "debug_log")
    aged = [factors.recency(kind, age_days=30) for kind in kinds]
    assert aged == sorted(aged, reverse=True) and len(set(aged)) == len(kinds)
