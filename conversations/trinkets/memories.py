"""Trinket: the memories that came up for this turn."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted


@trinket("memories", slot=Slot.HUD, order=30)
def memories(turn: TurnContext) -> str:
    """Escaped and labelled: a memory is data, whatever its text says."""
    if not turn.surfaced:
        return "<memories>Nothing came up for this message.</memories>"
    zone = turn.now.tzinfo
    lines = ["<memories>"]
    for item in turn.surfaced:
        happens = (
            f' happens="{item.happens_at.astimezone(zone):%d %B %Y, %H:%M}"'
            if item.happens_at
            else ""
        )
        known = f"{item.created_at.astimezone(zone):%d %B %Y}"
        lines.append(
            f'<memory id="{item.short_id}" from="{known}"{happens}>{quoted(item.text)}</memory>'
        )
    lines.append("</memories>")
    return "\n".join(lines)
