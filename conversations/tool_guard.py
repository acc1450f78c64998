"""Ends a tool loop that does not end by itself, and says why in words for the person."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

import structlog

from conversations.constants import (
    TOOL_CALLS_MAX,
    TOOL_FAILURES_MAX,
    TOOL_IDENTICAL_MAX,
    TURN_COST_MAX,
)
from mira_site.llm import prices
from mira_site.llm.types import Finished, ToolCall
from toolbox.types import ToolOutcome

log = structlog.get_logger(__name__)

LIMIT_REACHED = "Not done: this turn has used all its tool calls."
SAID_ALREADY = "Not done: you made this very call before, and its result stands above."
TOO_DEAR = "Not done: this answer has cost as much as one answer may."

ASK_ON = "If something is missing, ask me to go on."
# By the reason of `close`; what stands as the last paragraph of the answer.
NOTICES = {
    "limit": f"*I used tools {TOOL_CALLS_MAX} times, as often as one answer may. {ASK_ON}*",
    "money": f"*This answer reached what one answer may cost (${TURN_COST_MAX}), so I stopped "
    f"using tools. {ASK_ON}*",
    "repeated": "*I was about to make the same call again and again, so I stopped using tools and "
    f"answered with what I had. {ASK_ON}*",
    "failures": "*A tool kept failing, so I answered without it.*",
}


@dataclass(slots=True)
class Guard:
    """Counts what a turn does with tools; `is_closed`: there are no more of them."""

    done: int = 0
    spent: Decimal = Decimal(0)
    closed_for: str = ""
    failures: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def is_closed(self) -> bool:
        return bool(self.closed_for)

    @property
    def notice(self) -> str:
        """Why it stopped using tools, for the person; "" where no limit did it."""
        return NOTICES.get(self.closed_for, "")

    def pay(self, finished: Finished) -> None:
        self.spent += prices.cost(finished.model, finished.usage)

    def refusal(self, call: ToolCall) -> str:
        """Why the call is not done; "" lets it through and counts it."""
        if self.done >= TOOL_CALLS_MAX:
            self.close("limit")
            return LIMIT_REACHED
        if self.spent >= TURN_COST_MAX:
            self.close("money")
            return TOO_DEAR
        if self.seen[_key(call)] >= TOOL_IDENTICAL_MAX:
            self.close("repeated")
            return SAID_ALREADY
        self.done += 1
        self.seen[_key(call)] += 1
        return ""

    def learn(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.failures[call.name] += outcome.is_error
        if self.failures[call.name] >= TOOL_FAILURES_MAX:
            self.close("failures")

    def close(self, reason: str) -> None:
        """The first reason stays."""
        if not self.is_closed:
            log.warning("turn.tools_withdrawn", reason=reason, calls=self.done)
            self.closed_for = reason


def _key(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(dict(call.input), sort_keys=True, default=str)}"
