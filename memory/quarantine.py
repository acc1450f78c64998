"""Memories that read like instructions: kept out of everything until the person has looked."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from memory import scores
from memory.models import Memory, MemoryQuerySet
from memory.storage import lock
from mira_site.accounts.models import User
from mira_site.errors import NotFound

log = structlog.get_logger(__name__)


def held(user: User) -> MemoryQuerySet:
    """What is held back, the newest first."""
    found: MemoryQuerySet = Memory.objects.for_user(user).live()
    return found.filter(quarantined_at__isnull=False).order_by("-quarantined_at", "-id")


@transaction.atomic
def release(user: User, memory_id: UUID, *, at: datetime) -> Memory:
    """What was held back may come up: the person has looked. Releasing twice changes nothing.

    Raises NotFound if the user has no such memory.
    """
    lock(user)
    rows = Memory.objects.for_user(user).filter(id=memory_id)
    memory: Memory | None = rows.select_for_update().first()
    if memory is None:
        raise NotFound("There is no such memory.")
    if memory.quarantined_at is not None:
        memory.quarantined_at, memory.confirmed_at = None, at
        memory.save(update_fields=["quarantined_at", "confirmed_at", "updated_at"])
        scores.rescore(user, now=at, memory_ids=[memory.id])
        log.info("memory.released", memory=memory.short_id)
    return memory
