"""Search in the thread: messages by words, collapsed segments by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.contrib.postgres.search import SearchHeadline, SearchQuery, SearchRank
from django.db.models import F, Model, QuerySet
from pgvector.django import CosineDistance

from conversations import selectors
from conversations.constants import (
    SEARCH_CANDIDATES,
    SEARCH_MESSAGES,
    SEARCH_SEGMENT_DISTANCE,
    SEARCH_SEGMENTS,
)
from conversations.models import Message, Segment
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    message: Message
    highlight: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    messages: Sequence[Hit]
    segments: Sequence[Segment]


def search(
    user: User, query: str, *, since: datetime | None = None, until: datetime | None = None
) -> Found:
    """Words in web-search syntax ("quoted phrase", or, -not), segments by meaning.

    Of what holds the words the newest are ranked, so that a word said in every message costs no
    more in a long thread than in a short one.

    `since` and `until` bound when it was said, both inclusive. What is off the record is not found.
    """
    words = SearchQuery(query, config="english", search_type="websearch")
    newest = (
        _within(Message.objects.for_user(user), "created_at", since, until)
        .filter(search_vector=words, is_off_record=False)
        .order_by("-position")
        .values("pk")[:SEARCH_CANDIDATES]
    )
    rows = (
        selectors.messages(user)
        .filter(pk__in=newest)
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
        segments=_segments(user, query, since, until),
    )


def _within(
    rows: QuerySet[Row], name: str, since: datetime | None, until: datetime | None
) -> QuerySet[Row]:
    bounds = {f"{name}__gte": since, f"{name}__lte": until}
    return rows.filter(**{lookup: value for lookup, value in bounds.items() if value is not None})


def _segments(
    user: User, query: str, since: datetime | None, until: datetime | None
) -> list[Segment]:
    try:
        vector = embeddings.embed_one(query)
    except EmbeddingsUnavailable:
        return []
    rows: QuerySet[Segment] = Segment.objects.for_user(user).filter(embedding__isnull=False)
    if until is not None:
        rows = rows.filter(opened_at__lte=until)
    return list(
        _within(rows, "last_message_at", since, None)
        .annotate(distance=CosineDistance("embedding", vector))
        .filter(distance__lt=SEARCH_SEGMENT_DISTANCE)
        .defer("embedding")
        .order_by("distance", "-opened_at")[:SEARCH_SEGMENTS]
    )
