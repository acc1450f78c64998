"""Values that cross the border of this app."""

from __future__ import annotations

from django.db import models


class EventType(models.TextChoices):
    """What an endpoint can hear of. RECALL_COMPLETED is sent only to who names it."""

    MEMORY_STORED = "memory.stored"
    MEMORY_EMBEDDING_FAILED = "memory.embedding_failed"
    MEMORY_ARCHIVED = "memory.archived"
    MEMORY_DELETED = "memory.deleted"
    CAUSAL_DETECTED = "causal.detected"
    RECALL_COMPLETED = "recall.completed"
    SEGMENT_COLLAPSED = "segment.collapsed"


EVERYTHING = "*"
TEST = "webhook.test"  # sent on request, to the one endpoint asked for
ONLY_BY_NAME = frozenset({EventType.RECALL_COMPLETED.value})
