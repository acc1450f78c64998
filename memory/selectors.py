"""Reads of a person's memories."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Case, IntegerField, Prefetch, Value, When
from django.utils import timezone

from memory import search
from memory.constants import SEARCH_MAX
from memory.models import Memory, MemoryQuerySet, MemorySource
from memory.recall import context, ranked, recall
from mira_site.accounts.models import User
from mira_site.errors import NotFound

__all__ = ["context", "made_of_segment", "memories", "memory", "recall"]


def memories(
    user: User,
    *,
    q: str = "",
    archived: bool | None = False,
    wing: str | None = None,
    room: str | None = None,
    memory_type: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> MemoryQuerySet:
    """The person's memories with their sources, newest first; `archived=None` means both kinds.

    With `q` only those that answer it, by words or meaning, in the annotated order `place`, best
    first. `since` and `until` bound the time a memory was stored, both inclusive.
    """
    found: MemoryQuerySet = _with_sources(Memory.objects.for_user(user))
    if archived is not None:
        found = found.filter(archived_at__isnull=not archived)
    bounds = {
        "wing": wing,
        "room": room,
        "memory_type": memory_type,
        "created_at__gte": since,
        "created_at__lte": until,
    }
    found = found.filter(**{name: value for name, value in bounds.items() if value is not None})
    if not q.strip():
        return found.order_by("-created_at", "-id")
    candidates = search.candidates(user, [q], now=timezone.now(), include_hidden=True)
    ids = [memory_id for memory_id, _ in ranked(candidates)][:SEARCH_MAX]
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


def _with_sources(found: MemoryQuerySet) -> MemoryQuerySet:
    """With sources in one more query; vectors and lexemes stay in the database."""
    sources = MemorySource.objects.order_by("said_at", "message_id")
    return found.defer("embedding", "search_vector").prefetch_related(
        Prefetch("sources", queryset=sources)
    )
