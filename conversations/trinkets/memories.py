"""Trinket: the memories that came up for this turn."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from conversations.constants import SURFACED_BUDGET_TOKENS
from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from memory import selectors as memory

NOTHING = "<memories>Nothing came up for this message.</memories>"


@trinket("memories", slot=Slot.HUD, order=30)
def memories(turn: TurnContext) -> str:
    """Escaped and labelled: a memory is data, whatever its text says."""
    context = memory.context(
        turn.surfaced,
        budget_tokens=SURFACED_BUDGET_TOKENS,
        zone=ZoneInfo(turn.person.timezone),
    )
    return context.text or NOTHING
