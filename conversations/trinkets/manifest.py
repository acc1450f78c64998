"""Trinket: the parts of the conversation by date and title, so that MIRA knows what there is."""

from __future__ import annotations

from itertools import groupby

from conversations.trinkets.base import Slot, trinket
from conversations.types import Summary, TurnContext
from mira_site.prompts import quoted

HOW = "Earlier parts of the conversation, newest day first. search_history opens any of them."


@trinket("manifest", slot=Slot.SEGMENT, order=15)
def manifest(turn: TurnContext) -> str:
    """Only what is over is in it, with absolute dates: it stays the same within a segment."""
    segments = turn.continuity.manifest
    if not segments:
        return ""
    zone = turn.now.tzinfo

    def day(one: Summary) -> str:
        return f"{one.opened_at.astimezone(zone):%A, %d %B %Y}"

    lines = ["<manifest>", HOW]
    for on, group in groupby(segments, key=day):
        lines.append(f'<day on="{on}">')
        for one in reversed(list(group)):
            opened = one.opened_at.astimezone(zone)
            closed = one.last_message_at.astimezone(zone)
            lines.append(
                f'<segment id="seg_{one.segment_id.hex[:8]}" time="{opened:%H:%M}-{closed:%H:%M}">'
                f"{quoted(one.title)}</segment>"
            )
        lines.append("</day>")
    return "\n".join([*lines, "</manifest>"])
