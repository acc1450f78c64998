"""Search in the thread: messages by words, collapsed segments by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.postgres.search import SearchHeadline, SearchQuery, SearchRank
from django.db.models import F
from pgvector.django import CosineDistance

from conversations import selectors
from conversations.constants import SEARCH_MESSAGES, SEARCH_SEGMENT_DISTANCE, SEARCH_SEGMENTS
from conversations.models import Message, Segment
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    message: Message
    highlight: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    messages: Sequence[Hit]
    segments: Sequence[Segment]


def search(user: User, query: str) -> Found:
    """Words in web-search syntax ("quoted phrase", or, -not), segments by meaning."""
    words = SearchQuery(query, config="english", search_type="websearch")
    rows = (
        selectors.messages(user)
        .filter(search_vector=words)
        .annotate(
            rank=SearchRank(F("search_vector"), words),
            highlight=SearchHeadline(
                "text",
                words,
                config="english",
                start_sel="**",
                stop_sel="**",
                max_words=40,
                min_words=15,
            ),
        )
        .order_by("-rank", "-position")[:SEARCH_MESSAGES]
    )
    return Found(
        messages=[Hit(message=row, highlight=row.highlight) for row in rows],
        segments=_segments(user, query),
    )


def _segments(user: User, query: str) -> list[Segment]:
    try:
        vector = embeddings.embed_one(query)
    except EmbeddingsUnavailable:
        return []
    return list(
        Segment.objects.for_user(user)
        .filter(embedding__isnull=False)
        .annotate(distance=CosineDistance("embedding", vector))
        .filter(distance__lt=SEARCH_SEGMENT_DISTANCE)
        .defer("embedding")
        .order_by("distance", "-opened_at")[:SEARCH_SEGMENTS]
    )
