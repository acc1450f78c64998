"""Pages of the thread, by position, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from conversations import presenting
from conversations.constants import PAGE_SIZE, PAGE_SIZE_MAX
from conversations.models import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Messages, newest first, and whether there are more on either side."""

    rows: Sequence[Message]
    has_older: bool
    has_newer: bool

    def older_url(self, request: Request, size: int) -> str | None:
        if not (self.has_older and self.rows):
            return None
        return _url(request, before=self.rows[-1].position, page_size=size)

    def newer_url(self, request: Request, size: int) -> str | None:
        if not (self.has_newer and self.rows):
            return None
        return _url(request, after=self.rows[0].position, page_size=size)


def _url(request: Request, **query: int) -> str:
    return request.build_absolute_uri(f"{request.path}?{urlencode(query)}")


def page(messages: QuerySet[Message], before: int | None, after: int | None, size: int) -> Page:
    """`messages` is newest first. `before` and `after` are positions, exclusive; `before` wins."""
    if before is None and after is not None:
        newer = list(messages.filter(position__gt=after).order_by("position")[: size + 1])
        rows = newer[:size][::-1]
        return Page(rows=rows, has_older=bool(rows) and after > 0, has_newer=len(newer) > size)
    older = messages if before is None else messages.filter(position__lt=before)
    found = list(older[: size + 1])
    return Page(rows=found[:size], has_older=len(found) > size, has_newer=before is not None)


def newest(messages: QuerySet[Message]) -> dict[str, Any]:
    """The first page as `GET messages/` would give it, for a page that shows it at once."""
    first = page(messages, None, None, PAGE_SIZE)
    older = {"before": first.rows[-1].position, "page_size": PAGE_SIZE} if first.has_older else None
    return {
        "results": [presenting.message(row) for row in first.rows],
        "at": None,
        "next": f"/api/v1/messages/?{urlencode(older)}" if older else None,
        "previous": None,
    }


def around(messages: QuerySet[Message], position: int, size: int) -> Page:
    """The page with the message of this position in its middle.

    Its ends are looked up first: what presenting the messages needs is then read once for all.
    """
    half = max(1, size // 2)
    places = messages.values_list("position", flat=True)
    newer = list(places.filter(position__gt=position).order_by("position")[: half + 1])
    older = list(places.filter(position__lte=position)[: size - half + 1])
    ends = (older[: size - half] or newer)[-1:] + (newer[:half] or older)[-1:]
    rows = messages.filter(position__range=(min(ends), max(ends))) if ends else []
    return Page(rows=list(rows), has_older=len(older) > size - half, has_newer=len(newer) > half)


class SegmentPagination(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("-opened_at", "-id")


def cursor_page(item: type[serializers.Serializer]) -> serializers.Serializer:
    """For the schema: a page of `item`."""
    return inline_serializer(
        f"{item.__name__}Page",
        {
            "results": item(many=True),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
        },
    )
