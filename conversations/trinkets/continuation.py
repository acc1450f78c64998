"""Trinket: what went before this segment, in MIRA's own words."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted


@trinket("continuation", slot=Slot.SEGMENT, order=20)
def continuation(turn: TurnContext) -> str:
    """The last segment's trace whole, the ones before it as precis, oldest first.

    Absolute local dates only: relative ones would be wrong tomorrow and break the cache.
    """
    if not turn.summaries:
        return ""
    *older, last = turn.summaries
    zone = turn.now.tzinfo
    lines = ["<continuation>"]
    for summary in (*older, last):
        opened = summary.opened_at.astimezone(zone)
        text = summary.trace if summary is last else summary.precis or summary.trace
        element = "last_segment" if summary is last else "earlier_segment"
        lines += [
            f'<{element} from="{opened:%A, %d %B %Y, %H:%M}" '
            f'to="{summary.last_message_at.astimezone(zone):%d %B %Y, %H:%M}" '
            f'title="{quoted(summary.title)}">',
            quoted(text),
            f"</{element}>",
        ]
    lines.append("</continuation>")
    return "\n".join(lines)
