"""Reads of a person's memories."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from uuid import UUID

from django.db.models import Case, IntegerField, Prefetch, QuerySet, Value, When
from django.utils import timezone

from memory import dates, graph_selectors, places, states
from memory.causality import chain as causal_chain
from memory.constants import KEPT_MAX, SEARCH_MAX
from memory.contexts import context, recall_context
from memory.lookup import Found, look_up, opened
from memory.models import Memory, MemoryQuerySet, MemorySource, Merge
from memory.naming import names_asked_for, names_in
from memory.past import asks_for_past
from memory.recall import compared, found_ids, recall
from memory.rendering import element, trust_of
from memory.sentences import best_sentence, sentences
from memory.short_ids import resolve, resolve_all
from memory.standing import resting_on
from memory.status import status
from memory.timeline import timeline
from memory.truth import open_question
from memory.upkeep_selectors import receipts
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import NotFound

__all__ = [
    "KEPT_MAX",
    "Found",
    "asks_for_past",
    "best_sentence",
    "causal_chain",
    "compared",
    "context",
    "element",
    "look_up",
    "made_of_segment",
    "memories",
    "memory",
    "merges",
    "moment",
    "names_asked_for",
    "names_in",
    "open_question",
    "opened",
    "recall",
    "recall_context",
    "receipts",
    "resolve",
    "resolve_all",
    "resting_on",
    "sentences",
    "status",
    "timeline",
    "trust_of",
]


def memories(
    user: User,
    *,
    q: str = "",
    archived: bool | None = False,
    state: str | None = None,
    wing: str | None = None,
    room: str | None = None,
    memory_type: str | None = None,
    entity: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> MemoryQuerySet:
    """The person's memories with their sources, newest first; `archived=None` means both kinds.

    `state`, one of states.STATES, takes the place of `archived`.
    With `q` only those that answer it, by words or meaning, in the annotated order `place`, best
    first. `wing` and `room` may be written in any case. `since` and `until` bound the time a memory
    was stored, both inclusive. `entity` keeps those that mention it under any of its names;
    NotFound if the user has no such entity.
    """
    found: MemoryQuerySet = _with_sources(Memory.objects.for_user(user))
    if state is not None:
        found = found.filter(states.of(state, now=timezone.now()))
    elif archived is not None:
        found = found.filter(archived_at__isnull=not archived)
    bounds = {
        "memory_type": memory_type,
        "created_at__gte": since,
        "created_at__lte": until,
    }
    found = found.filter(**{name: value for name, value in bounds.items() if value is not None})
    found = found.filter(places.inside(user, wing=wing or None, room=room or None))
    if entity is not None:
        found = found.filter(graph_selectors.mentioning(user, entity))
    if not q.strip():
        return found.order_by("-created_at", "-id")
    ids = found_ids(user, q, now=timezone.now())[:SEARCH_MAX]
    whens = [When(id=memory_id, then=Value(place)) for place, memory_id in enumerate(ids)]
    place = Case(*whens, default=Value(SEARCH_MAX), output_field=IntegerField())
    placed: MemoryQuerySet = found.filter(id__in=ids).annotate(place=place)
    return placed.order_by("place", "id")


def memory(user: User, memory_id: UUID) -> Memory:
    """One memory with its sources. Raises NotFound if the user has no such memory."""
    found: Memory | None = _with_sources(Memory.objects.for_user(user)).filter(id=memory_id).first()
    if found is None:
        raise NotFound("There is no such memory.")
    return found


def made_of_segment(user: User, segment_id: UUID) -> MemoryQuerySet:
    """The memories first made of this segment, archived ones too, in the order they were stored."""
    return _with_sources(
        Memory.objects.for_user(user).filter(source_segment_id=segment_id)
    ).order_by("created_at", "id")


def merges(user: User) -> QuerySet[Merge]:
    """What was merged of the person's, with its parts; vectors stay in the database."""
    plain = Memory.objects.for_user(user).defer("embedding", "search_vector")
    parts = Prefetch("sources", plain.order_by("created_at", "id"))
    found: QuerySet[Merge] = Merge.objects.for_user(user).prefetch_related(
        parts, Prefetch("result", plain)
    )
    return found


def moment(user: User, text: str, *, is_end: bool = False) -> datetime | None:
    """An ISO 8601 date or time on the person's own clock, in UTC; None where it is none.

    A date alone is its first moment, or with `is_end` its last.
    """
    zone = accounts.zone(user)
    with suppress(ValueError):
        on = date.fromisoformat(text.strip())
        return dates.end_of(on, zone) if is_end else dates.start_of(on, zone)
    return dates.parsed(text, zone)


def _with_sources(found: MemoryQuerySet) -> MemoryQuerySet:
    """With fingerprints, and sources in one more query; vectors, lexemes stay in the database."""
    sources = MemorySource.objects.order_by("said_at", "message_id")
    return (
        found.defer("embedding", "search_vector")
        .select_related("fingerprint")
        .prefetch_related(Prefetch("sources", queryset=sources))
    )
