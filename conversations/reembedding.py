"""Vectors of summaries that another embedding model made, made anew by the present one.

Until then such a segment is found by its words. memory/reembedding.py does the same for memories.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db.models import Q, QuerySet

from conversations import summarising
from conversations.models import Segment
from mira_site import embeddings
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

BATCH = 50  # a trace fills what the model reads: some seconds


def write(user: User) -> int:
    """Make those of some segments anew; returns how many were looked at, 0 once all are.

    A segment that was summarised meanwhile is left as it is. Raises EmbeddingsUnavailable.
    """
    found = list(waiting(Segment.objects.for_user(user)).only("title", "trace")[:BATCH])
    vectors = embeddings.embed([summarising.meaning(one.title, one.trace) for one in found])
    for segment, vector in zip(found, vectors, strict=True):
        same = waiting(Segment.objects.for_user(user)).filter(
            pk=segment.pk, title=segment.title, trace=segment.trace
        )
        same.update(embedding=vector, embedding_model=embeddings.model_id())
    if found:
        log.info("segments.reembedded", segments=len(found))
    return len(found)


def waiting(rows: QuerySet[Segment]) -> QuerySet[Segment]:
    """Those of the segments whose vector is not by the present model, the newest first.

    Raises EmbeddingsUnavailable.
    """
    by_another = ~Q(embedding_model=embeddings.model_id())
    return rows.filter(by_another, embedding__isnull=False).order_by("-opened_at", "id")


def users_waiting() -> list[UUID]:
    """Ids of the users with such segments. Runs inside `all_users`."""
    rows = waiting(Segment.objects.filter(user__is_active=True)).order_by("user_id")
    return list(rows.values_list("user_id", flat=True).distinct())
