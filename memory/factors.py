"""What spoke for each memory of a recall, from 0 to 1 (pure). docs/contexts.md has the formulas.

Only `relevance` decides what is chosen. The others are told, so that a choice can be understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

# How fast a kind of memory ages, a day; spec recall 2.1. A half-life is ln 2 / λ.
AGEING_PER_DAY: Mapping[str, float] = {
    "decision": 0.001,
    "fact": 0.005,
    "preference": 0.01,
    "session_note": 0.1,
    "debug_log": 0.5,
}
AGEING_OTHERWISE = 0.1
RECENCY_FLOOR = 0.5  # however old, half of it stays: an old answer is still an answer
DENSE_TOKENS = 10  # a fact in so many tokens or fewer is as dense as it gets


def recency(memory_type: str, *, age_days: float) -> float:
    """0.5 + 0.5 × e^(-λ × age), λ by the memory's type; 1 for what lies ahead."""
    ageing = AGEING_PER_DAY.get(memory_type, AGEING_OTHERWISE)
    return RECENCY_FLOOR + (1 - RECENCY_FLOOR) * exp(-ageing * max(0.0, age_days))


def density(facts: int, *, text_tokens: int) -> float:
    """Facts for each DENSE_TOKENS tokens of the text, at most 1."""
    return min(1.0, facts * DENSE_TOKENS / max(1, text_tokens))
