"""The retry sweep: read for memories what a collapse has left unread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone

from conversations import collapse
from conversations.management.segments import SegmentCommand


class Command(SegmentCommand):
    help = (
        "Take up again the collapse of segments that were not read for memories, "
        "without waiting for their next attempt."
    )
    reason = "extract_memories command"
    would = "would be read for memories"
    done = "read for memories"
    failed = "could not be read"

    def find(self, options: dict[str, Any]) -> Sequence[tuple[UUID, UUID]]:
        return collapse.unread(at=timezone.now())
