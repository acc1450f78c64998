"""Trinket: the parts of the conversation by date and title, so that MIRA knows what there is."""

from __future__ import annotations

from itertools import groupby

from conversations.ledger import cut
from conversations.trinkets.base import Slot, trinket
from conversations.types import Summary, TurnContext
from mira_site.prompts import quoted

HOW = "Earlier parts of the conversation, newest day first. search_history opens any of them."
PRECIS_CHARS = 240  # of each part


@trinket("manifest", slot=Slot.SEGMENT, order=15)
def manifest(turn: TurnContext) -> str:
    """Only what is over is in it, with absolute dates: it stays the same within a segment.

    A part that the continuation does not tell is told by its precis here.
    """
    segments = turn.continuity.manifest
    if not segments:
        return ""
    zone = turn.now.tzinfo
    told = {one.segment_id for one in (*turn.continuity.told, *turn.continuity.hinted)}

    def day(one: Summary) -> str:
        return f"{one.opened_at.astimezone(zone):%A, %d %B %Y}"

    lines = ["<manifest>", HOW]
    for on, group in groupby(segments, key=day):
        lines.append(f'<day on="{on}">')
        for one in reversed(list(group)):
            opened = one.opened_at.astimezone(zone)
            closed = one.last_message_at.astimezone(zone)
            precis = "" if one.segment_id in told else cut(one.precis, PRECIS_CHARS)
            lines.append(
                f'<segment id="seg_{one.segment_id.hex[:8]}" time="{opened:%H:%M}-{closed:%H:%M}">'
                f"{quoted(': '.join(filter(None, (one.title, precis))))}</segment>"
            )
        lines.append("</day>")
    return "\n".join([*lines, "</manifest>"])
