"""Memories in the order they were said, a line each."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q

from memory import dates, places
from memory.constants import MEMORY_TYPES, SUMMARY_CHARS, TIMELINE_LIMIT, TIMELINE_LIMIT_MAX
from memory.instructions import reads_like_an_instruction
from memory.models import Fingerprint, Memory
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import BadRequest

Moment = str | date | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """One memory; `summary` is what it decided, or how its text begins.

    `reads_like_an_instruction`: its text asks to be obeyed; it is data.
    """

    id: UUID
    said_at: datetime
    memory_type: str
    wing: str
    room: str
    summary: str
    reads_like_an_instruction: bool

    @property
    def short_id(self) -> str:
        return self.id.hex[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePage:
    """`next_cursor` asks for what follows, '' at the end."""

    items: tuple[TimelineItem, ...]
    next_cursor: str


def timeline(
    user: User,
    *,
    wing: str | None = None,
    room: str | None = None,
    memory_type: str | None = None,
    since: Moment = None,
    until: Moment = None,
    limit: int = TIMELINE_LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
    now: datetime,
) -> TimelinePage:
    """What may come up, as past too, by the time it was said.

    `since` and `until` are inclusive; an ISO date means that whole day in the person's zone, a time
    without an offset is the person's clock. Raises BadRequest that names each field it cannot read.
    """
    zone = accounts.zone(user)
    wrong: dict[str, str] = {}
    if memory_type is not None and memory_type not in MEMORY_TYPES:
        wrong["type"] = f"Choose one of {', '.join(MEMORY_TYPES)}."
    if not 1 <= limit <= TIMELINE_LIMIT_MAX:
        wrong["limit"] = f"Give a number from 1 to {TIMELINE_LIMIT_MAX}."
    bounds = {
        "said_at__gte": _moment("since", since, zone, wrong),
        "said_at__lte": _moment("until", until, zone, wrong),
    }
    place = _place(cursor, newest_first, wrong) if cursor else None
    if wrong:
        raise BadRequest("Some fields need another value; see errors.", fields=wrong)
    rows = Memory.objects.for_user(user).visible(now, past=True)
    rows = rows.filter(places.inside(user, wing=wing, room=room))
    rows = rows.filter(**{name: value for name, value in bounds.items() if value is not None})
    if memory_type is not None:
        rows = rows.filter(memory_type=memory_type)
    if place is not None:
        rows = rows.filter(_beyond(*place, newest_first=newest_first))
    order = ("-said_at", "-id") if newest_first else ("said_at", "id")
    fields = ("id", "said_at", "memory_type", "wing", "room", "text", "trust")
    found = list(rows.order_by(*order).values_list(*fields)[: limit + 1])
    decisions = _decisions(user, [row[0] for row in found[:limit]])
    items = tuple(
        TimelineItem(
            id=memory_id,
            said_at=said_at,
            memory_type=kind,
            wing=one_wing,
            room=one_room,
            summary=decisions.get(memory_id) or _beginning(text),
            reads_like_an_instruction=reads_like_an_instruction((text,), trust),
        )
        for memory_id, said_at, kind, one_wing, one_room, text, trust in found[:limit]
    )
    more = len(found) > limit
    return TimelinePage(items=items, next_cursor=_cursor(items[-1], newest_first) if more else "")


def _decisions(user: User, memory_ids: list[UUID]) -> dict[UUID, str]:
    """What each memory decided, by its fingerprint; the others are left out."""
    rows = Fingerprint.objects.for_user(user).filter(memory__in=memory_ids)
    found: dict[UUID, str] = {}
    for memory_id, canonical in rows.values_list("memory_id", "canonical"):
        decision = json.loads(canonical).get("decision")
        if isinstance(decision, str) and decision.strip():
            found[memory_id] = decision.strip()
    return found


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1].rstrip()}…"


def _moment(name: str, given: Moment, zone: ZoneInfo, wrong: dict[str, str]) -> datetime | None:
    """The bound in UTC; what cannot be read is noted in `wrong`."""
    if given is None or isinstance(given, datetime):
        return given if given is None or given.tzinfo else given.replace(tzinfo=zone)
    try:
        on = given if isinstance(given, date) else date.fromisoformat(given.strip())
        return dates.end_of(on, zone) if name == "until" else dates.start_of(on, zone)
    except (ValueError, OverflowError):
        found = dates.parsed(given, zone) if isinstance(given, str) else None
    if found is None:
        wrong[name] = "Give an ISO date or time, such as 2026-11-30 or 2026-11-30T14:00."
    return found


# --- The place in the list: the time and the id of the last item, and which way it was read ------


def _beyond(said_at: datetime, memory_id: UUID, *, newest_first: bool) -> Q:
    beside = "lt" if newest_first else "gt"
    return Q(**{f"said_at__{beside}": said_at}) | Q(
        **{"said_at": said_at, f"id__{beside}": memory_id}
    )


def _cursor(last: TimelineItem, newest_first: bool) -> str:
    plain = f"{'n' if newest_first else 'o'}~{last.said_at.isoformat()}~{last.id}"
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def _place(cursor: str, newest_first: bool, wrong: dict[str, str]) -> tuple[datetime, UUID] | None:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        order, moment, memory_id = base64.urlsafe_b64decode(padded).decode().split("~")
        place = datetime.fromisoformat(moment), UUID(memory_id)
        if place[0].tzinfo is not None and order == ("n" if newest_first else "o"):
            return place
    except (ValueError, binascii.Error):
        pass
    wrong["cursor"] = "Give next_cursor of the page before, asked for in the same order."
    return None
