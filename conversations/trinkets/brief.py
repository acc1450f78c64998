"""Trinket: the older part of this segment in short, once it was compacted."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted

FROZEN = (
    "The older messages of this part of the conversation, in your own words as of the time it ends."
    " Later messages win over it. Their exact words can be looked up with search_history."
)


@trinket("brief", slot=Slot.SEGMENT, order=90)
def brief(turn: TurnContext) -> str:
    """Last among the stable ones: it changes now and then within a segment."""
    told = turn.brief
    if told is None:
        return ""
    zone = turn.now.tzinfo
    return "\n".join(
        [
            f'<brief from="{told.covered_from_at.astimezone(zone):%d %B %Y, %H:%M}" '
            f'to="{told.covered_to_at.astimezone(zone):%d %B %Y, %H:%M}">',
            FROZEN,
            quoted(told.text),
            "</brief>",
        ]
    )
