"""Trinket: the person's local time, and how long it was quiet."""

from __future__ import annotations

from datetime import timedelta

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext


@trinket("clock", slot=Slot.HUD, order=10)
def clock(turn: TurnContext) -> str:
    lines = [f"<now>{turn.now:%A, %d %B %Y, %H:%M} ({turn.person.timezone})</now>"]
    if turn.previous_message_at is not None:
        quiet = turn.now - turn.previous_message_at
        if quiet >= timedelta(hours=1):
            last = turn.previous_message_at.astimezone(turn.now.tzinfo)
            lines.append(f"<last_message>{last:%A, %d %B %Y, %H:%M}</last_message>")
    return "\n".join(lines)
