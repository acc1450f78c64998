"""Searching memories on request, page by page, and opening one, as a model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import contexts, links, naming, past, recall, rendering, short_ids, showing
from memory.constants import RECALL_LIMIT_MAX
from memory.dates import day
from memory.models import Annotation, Memory, MemorySource, Trust
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.prompts import quoted

PAGE_TOKENS = 4_000  # of a page of results
LINKED_FIRST = 5  # of the results show what they are linked with; spec memory 8.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One page of results; `lowest` is the least trusted class among them.

    `without_room` are short ids of results that the page has no room for.
    """

    text: str
    count: int
    has_more: bool
    lowest: Trust | None
    without_room: tuple[str, ...] = ()


def look_up(
    user: User,
    query: str,
    *,
    limit: int,
    page: int = 1,
    now: datetime,
    wing: str | None = None,
    room: str | None = None,
) -> Found:
    """What answers the query, rendered as a context is; pages end where recall does.

    What is past comes only where the query asks for it.
    """
    wanted = min(limit * page + 1, RECALL_LIMIT_MAX)
    recalled = recall.recall(
        user,
        query,
        limit=wanted,
        now=now,
        names=naming.names_asked_for(query),
        past=past.asks_for_past(query),
        wing=wing,
        room=room,
    )
    found = recalled[limit * (page - 1) : limit * page]
    filled = contexts.context(found, budget_tokens=PAGE_TOKENS, zone=accounts.zone(user))
    return Found(
        text=filled.text,
        count=len(found),
        has_more=len(recalled) > limit * page,
        lowest=min(map(rendering.trust_of, found), default=None),
        without_room=tuple(short_ids.short(item.memory.id) for item in filled.left_out),
    )


def opened(user: User, memory_id: UUID, *, now: datetime) -> tuple[str, Trust]:
    """One memory as it was stored, with what was said around it, and whose word it is.

    What is past is among it, and says so. Raises NotFound for what may not come up.
    """
    view = showing.shown(user, [memory_id], now=now, past=True).get(memory_id)
    if view is None:
        raise NotFound("There is no such memory, or it is not to come up. Search for another.")
    rows = MemorySource.objects.for_user(user).filter(memory=memory_id)
    said = [(row.said_at, row.span or row.sentence) for row in rows.order_by("said_at", "id")]
    return rendering.whole(view, said, zone=accounts.zone(user)), rendering.trust_of(view)


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
