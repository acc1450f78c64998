"""Search in the thread: messages by words, collapsed segments by meaning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.postgres.search import SearchHeadline, SearchQuery, SearchRank
from django.db.models import F, Model, QuerySet
from pgvector.django import CosineDistance

from conversations import selectors, tsquery, words
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
    """Messages by words, with all that presenting them needs, and segments by meaning.

    `since` and `until` bound when it was said, both inclusive. What is off the record is not found.
    """
    highlight = SearchHeadline(
        "text",
        _as_query(query),
        config="english",
        start_sel="**",
        stop_sel="**",
        max_words=40,
        min_words=15,
    )
    rows = selectors.messages(user).annotate(highlight=highlight)
    best = said(user, query, rows, since, until)
    return Found(
        messages=[Hit(message=row, highlight=row.highlight) for row in best],
        segments=segments(user, query, since, until),
    )


def said(
    user: User,
    query: str,
    rows: QuerySet[Message],
    since: datetime | None,
    until: datetime | None,
) -> list[Any]:
    """Those of `rows` that answer the query, the best first; in web-search syntax ("quoted phrase",
    or, -not).
    """
    best = sorted(ranked(user, query, since, until), reverse=True)[:SEARCH_MESSAGES]
    ids = [pk for _, _, pk in best]
    by_id = {row.pk: row for row in rows.filter(pk__in=ids)}
    return [by_id[pk] for pk in ids if pk in by_id]


def ranked(
    user: User, query: str, since: datetime | None, until: datetime | None
) -> list[tuple[float, int, UUID]]:
    """Rank, position and id of the newest messages that answer it, SEARCH_CANDIDATES at most: a
    word that is said in every message costs no more in a long thread than in a short one.
    """
    asked = words.asked(user, query)
    span = _span(user, since, until) if asked.text else None
    if span is None:
        return []
    rows = (
        _within(Message.objects.for_user(user), "created_at", since, until)
        .filter(search_vector=_as_query(query), is_off_record=False)
        .order_by("-position")
        .values_list(SearchRank(F("search_vector"), _as_query(query)), "position", "pk")
    )
    condition = tsquery.condition(asked.text)
    if condition is None:
        return list(rows[:SEARCH_CANDIDATES])
    found = list(rows.filter(position__gte=asked.unkept_from)[:SEARCH_CANDIDATES])
    first, last = span[0], min(span[1], asked.unkept_from - 1)
    is_rare = not found  # as far as the newest messages tell
    for part in words.positions(user, condition, first=first, last=last, is_rare=is_rare):
        while part and len(found) < SEARCH_CANDIDATES:
            some, part = part[:SEARCH_CANDIDATES], part[SEARCH_CANDIDATES:]
            found += rows.filter(position__in=some)[: SEARCH_CANDIDATES - len(found)]
        if len(found) == SEARCH_CANDIDATES:
            break
    return found


def _as_query(query: str) -> SearchQuery:
    return SearchQuery(query, config="english", search_type="websearch")


def _span(user: User, since: datetime | None, until: datetime | None) -> tuple[int, int] | None:
    """The first and the last position that may have been said then; None if nothing was.

    Positions follow time. A block is added on either side, for clocks that were set.
    """
    rows = Message.objects.for_user(user).only("position")
    first, last = 0, sys.maxsize
    if since is not None:
        earliest = rows.filter(created_at__gte=since).order_by("created_at").first()
        if earliest is None:
            return None
        first = max(0, earliest.position - words.BLOCK)
    if until is not None:
        latest = rows.filter(created_at__lte=until).order_by("-created_at").first()
        if latest is None:
            return None
        last = latest.position + words.BLOCK
    return first, last


def _within(
    rows: QuerySet[Row], name: str, since: datetime | None, until: datetime | None
) -> QuerySet[Row]:
    bounds = {f"{name}__gte": since, f"{name}__lte": until}
    return rows.filter(**{lookup: value for lookup, value in bounds.items() if value is not None})


def segments(
    user: User, query: str, since: datetime | None, until: datetime | None
) -> list[Segment]:
    """Collapsed segments by meaning, the nearest first; none while there is no embedding model."""
    try:
        vector = embeddings.embed_one(query)
    except EmbeddingsUnavailable:
        return []
    rows: QuerySet[Segment] = Segment.objects.for_user(user).filter(
        embedding__isnull=False, embedding_model=embeddings.model_id()
    )
    if until is not None:
        rows = rows.filter(opened_at__lte=until)
    return list(
        _within(rows, "last_message_at", since, None)
        .annotate(distance=CosineDistance("embedding", vector))
        .filter(distance__lt=SEARCH_SEGMENT_DISTANCE)
        .defer("embedding")
        .order_by("distance", "-opened_at")[:SEARCH_SEGMENTS]
    )
