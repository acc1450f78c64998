"""How many of the best memories a budget of tokens is worth looking at: those that may fit (pure).

The allocator decides what stands in a context; this only keeps from it what never had a chance.
"""

from __future__ import annotations

import math

from memory.constants import (
    DAY_S,
    DAY_TOKENS,
    FRAME_TOKENS,
    FULL_BELOW,
    RECALL_LIMIT_MAX,
    SPARE,
)
from mira_site import tokens


class Fitting:
    """A budget of tokens as it fills with texts in full, without what is linked to them."""

    def __init__(self, budget_tokens: int | None) -> None:
        self._left = math.inf if budget_tokens is None else budget_tokens
        self._days: set[float] = set()
        self._spare = SPARE

    def spare(self, text: str, said_at: float) -> int:
        """Take the text in, if there is room. How many more are worth looking at without one."""
        on = said_at // DAY_S
        cost = FRAME_TOKENS + (0 if on in self._days else DAY_TOKENS)
        cost += tokens.estimate(text)
        if cost <= self._left:
            self._left -= cost
            self._days.add(on)
        elif self._left < FULL_BELOW:
            self._spare -= 1
        return self._spare if self._left < FULL_BELOW else RECALL_LIMIT_MAX
