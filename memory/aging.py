"""Notes of a session and of a search for a fault have their time; then they go to the archive.

Fading goes by use-days and by what a memory earned; this goes by the calendar and by its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from memory import storage, telling
from memory.constants import AGED_AFTER_DAYS
from memory.models import Memory, MemoryAccess, MemoryQuerySet, Stakes
from mira_site import tokens
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

AGED = "aged"  # archive_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedAged:
    """How many of each type there is a limit for, and the tokens of their texts."""

    counts: Mapping[str, int]
    tokens: int


@transaction.atomic
def archive_aged(*, user: User, now: datetime, dry_run: bool = False) -> ArchivedAged:
    """Archive what is older than its type is kept; restorable. With `dry_run` only count.

    What came up or was used within that time stays, and so does what the person confirmed or
    weighed, what would cost them if forgotten, and what waits for a look.
    """
    storage.lock(user)
    rows = list(_aged(Memory.objects.for_user(user), now).values_list("id", "memory_type", "text"))
    counts: Counter[str] = Counter(dict.fromkeys(AGED_AFTER_DAYS, 0))
    counts.update(memory_type for _, memory_type, _ in rows)
    if rows and not dry_run:
        ids = [memory_id for memory_id, _, _ in rows]
        Memory.objects.for_user(user).filter(id__in=ids).update(
            archived_at=now, archive_reason=AGED, updated_at=now
        )
        gone = Memory.objects.for_user(user).filter(id__in=ids).defer("embedding")
        telling.archived(user, gone, reason=AGED)
        log.info("memories.aged", **counts)
    return ArchivedAged(
        counts=dict(counts), tokens=sum(tokens.estimate(text) for _, _, text in rows)
    )


def users_due(*, at: datetime) -> list[UUID]:
    """Ids of the users with something to archive. Runs inside `all_users`."""
    rows = _aged(Memory.objects.filter(user=OuterRef("pk")), at)
    found = User.objects.filter(Exists(rows), is_active=True).order_by("pk")
    return list(found.values_list("pk", flat=True))


def _aged(rows: MemoryQuerySet, now: datetime) -> MemoryQuerySet:
    free = rows.live().filter(
        quarantined_at__isnull=True, confirmed_at__isnull=True, importance_by_person__isnull=True
    )
    is_old = Q(pk__in=[])
    for memory_type, days in AGED_AFTER_DAYS.items():
        before = now - timedelta(days=days)
        recent = MemoryAccess.objects.filter(memory=OuterRef("pk"), accessed_at__gte=before)
        is_old |= Q(memory_type=memory_type, said_at__lt=before) & Q(~Exists(recent))
    return free.exclude(stakes=Stakes.VITAL).filter(is_old)
