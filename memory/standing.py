"""What rests on which messages."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memory.models import Memory, MemorySource
from memory.types import Resting
from mira_site.accounts.models import User


def resting_on(user: User, message_ids: Collection[UUID]) -> Resting:
    """The memories that rest on these messages, archived ones too, oldest first."""
    sources = MemorySource.objects.for_user(user)
    here = sources.filter(message_id__in=message_ids)
    elsewhere = set(
        sources.filter(memory__in=here.values("memory_id"))
        .exclude(message_id__in=message_ids)
        .values_list("memory_id", flat=True)
    )
    rows = Memory.objects.for_user(user).filter(id__in=here.values("memory_id"))
    memories = list(rows.defer("embedding", "search_vector").order_by("created_at", "id"))
    return Resting(
        alone=tuple(one for one in memories if one.id not in elsewhere),
        among_others=tuple(one for one in memories if one.id in elsewhere),
    )
