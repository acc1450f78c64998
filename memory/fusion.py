"""Rank fusion: several result lists into one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

RRF_K = 60  # Cormack, Clarke & Buettcher, SIGIR 2009


def fuse(
    rankings: Sequence[Sequence[UUID]],
    *,
    weights: Sequence[float] | None = None,
    k: int = RRF_K,
) -> list[tuple[UUID, float]]:
    """Reciprocal rank fusion of several result lists, best first.

    Each inner list is best first without repeats; lengths may differ. A score is the sum of
    weight / (k + rank), rank from 1, weights 1 unless given; it compares only within one call.
    Equal scores go by id. Raises ValueError if k < 1, or if there is not one weight a list.
    Source: Cormack, Clarke & Buettcher, SIGIR 2009 (k = 60).
    """
    if k < 1:
        raise ValueError("k must be at least 1.")
    scores: dict[UUID, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
