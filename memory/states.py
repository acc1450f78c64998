"""In which state a memory can be, as the person's list tells them apart."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from memory.models import Memory
from memory.scores import FADED
from memory.visibility import visible

FADED_DAYS = 7  # "this week"
STATES = ("active", "past", "archived", "faded", "muted", "held_back")


def of_memory(memory: Memory, *, now: datetime) -> str:
    """The one state a memory is shown in; of several the one that explains most."""
    if memory.archived_at is not None:
        return "archived"
    if memory.quarantined_at is not None:
        return "held_back"
    if memory.muted_at is not None:
        return "muted"
    ends = (memory.valid_until, memory.expires_at)
    return "past" if any(end is not None and end <= now for end in ends) else "active"


def of(state: str, *, now: datetime) -> Q:
    """The memories in this state, as a filter. Raises ValueError for one there is not."""
    is_live = Q(archived_at__isnull=True)
    is_over = Q(valid_until__lte=now) | Q(expires_at__lte=now)
    match state:
        case "active":
            return visible(now)
        case "past":
            return is_live & is_over & Q(quarantined_at__isnull=True)
        case "archived":
            return ~is_live
        case "faded":
            since = now - timedelta(days=FADED_DAYS)
            return Q(archive_reason=FADED, archived_at__gte=since)
        case "muted":
            return is_live & Q(muted_at__isnull=False)
        case "held_back":
            return is_live & Q(quarantined_at__isnull=False)
    raise ValueError(f"There is no state {state!r}.")
