"""Reads of what upkeep left behind: open questions, what is held back, merges, receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Prefetch, Q, QuerySet

from memory import fingerprints, states, truth
from memory.models import (
    Fingerprint,
    ForgetReceipt,
    Memory,
    MemoryAccess,
    MemoryRevision,
    Merge,
    MergeSource,
)
from mira_site.accounts.models import User

MERGES_SHOWN = 100  # the newest; older ones cannot be undone any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How many things wait for a look of the person."""

    questions: int
    held_back: int
    faded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened to one memory: wordings before this one, merges, and how often it came up.

    `in_short` is the line of its facts, '' where it tells none.
    """

    revisions: Sequence[MemoryRevision]
    made_by: Merge | None
    part_of: Merge | None
    surfaced: int
    used: int
    last_at: datetime | None
    in_short: str


def waiting(user: User, *, now: datetime) -> Waiting:
    counts = Memory.objects.for_user(user).aggregate(
        held_back=Count("id", filter=states.of("held_back", now=now)),
        faded=Count("id", filter=states.of("faded", now=now)),
    )
    return Waiting(questions=truth.open_conflicts(user, now=now).count(), **counts)


def receipts(user: User) -> QuerySet[ForgetReceipt]:
    """Receipts of what was forgotten, newest first."""
    rows: QuerySet[ForgetReceipt] = ForgetReceipt.objects.for_user(user)
    return rows.order_by("-requested_at", "-id")


def merges(user: User) -> list[Merge]:
    """The merges that stand, newest first, with their parts."""
    rows = _with_parts(user, Merge.objects.for_user(user).filter(undone_at__isnull=True))
    return list(rows.order_by("-merged_at", "-id")[:MERGES_SHOWN])


def history(user: User, memory: Memory) -> History:
    accesses = MemoryAccess.objects.for_user(user).filter(memory=memory)
    kinds = MemoryAccess.Kind
    counts = accesses.aggregate(
        surfaced=Count("id", filter=Q(kind=kinds.SURFACED)),
        used=Count("id", filter=Q(kind=kinds.USED)),
    )
    standing = _with_parts(user, Merge.objects.for_user(user).filter(undone_at__isnull=True))
    revisions = MemoryRevision.objects.for_user(user).filter(memory=memory)
    last = accesses.order_by("-accessed_at").values_list("accessed_at", flat=True).first()
    return History(
        revisions=list(revisions.order_by("-changed_at")),
        made_by=standing.filter(result=memory).order_by("-merged_at").first(),
        part_of=standing.filter(parts__memory=memory).order_by("-merged_at").first(),
        last_at=last,
        in_short=_in_short(user, memory),
        **counts,
    )


def _in_short(user: User, memory: Memory) -> str:
    row = Fingerprint.objects.for_user(user).filter(memory=memory).first()
    parsed = fingerprints.parse(row.canonical) if row else None
    return fingerprints.line(parsed) if parsed and fingerprints.is_worth_showing(parsed) else ""


def _with_parts(user: User, rows: QuerySet[Merge]) -> QuerySet[Merge]:
    parts = (
        MergeSource.objects.for_user(user)
        .select_related("memory")
        .defer("memory__embedding", "memory__search_vector")
        .order_by("memory__created_at", "memory_id")
    )
    return (
        rows.select_related("result")
        .defer("result__embedding", "result__search_vector")
        .prefetch_related(Prefetch("parts", queryset=parts))
    )
