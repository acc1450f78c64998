"""Searching memories on request, page by page, as a model reads the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import links, recall, short_ids
from memory.constants import RECALL_LIMIT_MAX
from memory.dates import day
from memory.models import Annotation, Memory, Trust
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.prompts import quoted

LINKED_FIRST = 5  # of the results show what they are linked with; spec memory 8.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One page of results; `lowest` is the least trusted class among them."""

    text: str
    count: int
    has_more: bool
    lowest: Trust | None


def look_up(user: User, query: str, *, limit: int, page: int = 1, now: datetime) -> Found:
    """What answers the query, rendered as quoted elements; pages end where recall does."""
    wanted = min(limit * page + 1, RECALL_LIMIT_MAX)
    recalled = recall.recall(user, query, limit=wanted, now=now)
    ids = [item.id for item in recalled][limit * (page - 1) : limit * page]
    return Found(
        text=render(user, ids, now=now),
        count=len(ids),
        has_more=len(recalled) > limit * page,
        lowest=_lowest(user, ids),
    )


def _lowest(user: User, ids: Sequence[UUID]) -> Trust | None:
    values = Memory.objects.for_user(user).filter(id__in=ids).values_list("trust", flat=True)
    lowest = min(values, default=None)
    return None if lowest is None else Trust(lowest)


def render(user: User, ids: Sequence[UUID], *, now: datetime) -> str:
    """The memories in this order, each in an element, their text escaped: it is data."""
    zone = accounts.zone(user)
    beside = links.beside(user, ids[:LINKED_FIRST], now=now, depth=1)
    wanted = {*ids, *(one.memory_id for found in beside.values() for one in found)}
    fetched = Memory.objects.for_user(user).live().filter(id__in=wanted)
    rows = {row.id: row for row in fetched.defer("embedding", "search_vector")}
    notes: dict[UUID, list[str]] = {}
    for row in Annotation.objects.for_user(user).filter(memory__in=ids).order_by("created_at"):
        notes.setdefault(row.memory_id, []).append(row.text)
    lines: list[str] = []
    for memory_id in ids:
        if memory_id not in rows:
            continue
        lines.append(_element(rows[memory_id], zone, notes.get(memory_id, ())))
        for link in beside.get(memory_id, ()):
            if link.memory_id in rows:
                other = _element(rows[link.memory_id], zone, ())
                lines.append(f'  <linked how="{link.link_type}">{other}</linked>')
    return "\n".join(lines)


def _element(row: Memory, zone: ZoneInfo, notes: Sequence[str]) -> str:
    attributes = {"id": short_ids.short(row.id), "noted": day(row.created_at, zone)}
    if row.happens_at:
        attributes["happens"] = f"{row.happens_at.astimezone(zone):%Y-%m-%d %H:%M}"
    if row.expires_at:
        attributes["expires"] = f"{row.expires_at.astimezone(zone):%Y-%m-%d %H:%M}"
    if row.valid_until:
        attributes["true_until"] = day(row.valid_until, zone)
    if row.trust != Trust.SAID:
        attributes["trust"] = str(Trust(row.trust).label)
    opening = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    said = "".join(f"<note>{quoted(note)}</note>" for note in notes)
    return f"<memory {opening}>{quoted(row.text)}{said}</memory>"
