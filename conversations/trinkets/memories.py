"""Trinket: the memories that came up for this turn."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from memory import selectors as memory


@trinket("memories", slot=Slot.HUD, order=30)
def memories(turn: TurnContext) -> str:
    """Escaped and labelled: a memory is data, whatever its text says."""
    if not turn.surfaced:
        return "<memories>Nothing came up for this message.</memories>"
    zone = ZoneInfo(turn.person.timezone)
    lines = (memory.element(item, zone=zone) for item in turn.surfaced)
    return "\n".join(["<memories>", *lines, "</memories>"])
