"""Trinket: what went before this segment, in MIRA's own words, and the last words said."""

from __future__ import annotations

from datetime import tzinfo

from conversations import passages
from conversations.constants import TAIL_CHARS
from conversations.ledger import by, cut
from conversations.models import Message
from conversations.trinkets.base import Slot, trinket
from conversations.types import Summary, TurnContext
from mira_site.prompts import in_quotes, quoted


@trinket("continuation", slot=Slot.SEGMENT, order=20)
def continuation(turn: TurnContext) -> str:
    """Older segments by precis, the last ones by trace, oldest first, then the last words.

    Absolute local dates only: relative ones would be wrong tomorrow and break the cache.
    """
    before = turn.continuity
    if not before.told and not before.tail:
        return ""
    zone = turn.now.tzinfo
    newest = before.told[-1] if before.told else None
    lines = ["<continuation>"]
    lines += [as_told("earlier_segment", one, one.precis, zone) for one in before.hinted]
    lines += [
        as_told("last_segment" if one is newest else "earlier_segment", one, one.trace, zone)
        for one in before.told
    ]
    if before.tail:
        lines += ["<last_words>", *(_said(one, zone) for one in before.tail), "</last_words>"]
    lines.append("</continuation>")
    return "\n".join(lines)


def as_told(element: str, one: Summary, text: str, zone: tzinfo | None) -> str:
    """A segment in the prompt, with the local times between which it was talked in."""
    return (
        f'<{element} id="seg_{one.segment_id.hex[:8]}" '
        f'from="{one.opened_at.astimezone(zone):%A, %d %B %Y, %H:%M}" '
        f'to="{one.last_message_at.astimezone(zone):%d %B %Y, %H:%M}" '
        f'title="{in_quotes(one.title)}">\n{quoted(text)}\n</{element}>'
    )


def _said(message: Message, zone: tzinfo | None) -> str:
    at = f"{message.created_at.astimezone(zone):%d %B %Y, %H:%M}"
    text = cut(passages.read(message), TAIL_CHARS)
    return f'<said by="{by(message)}" at="{at}">{quoted(text)}</said>'
