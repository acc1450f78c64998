"""Pages of memories: for the API by cursor, for the list page by the last row shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework.pagination import CursorPagination

from memory.constants import PAGE_SIZE, PAGE_SIZE_MAX
from memory.models import Memory, MemoryQuerySet


class MemoryPagination(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("-created_at", "-id")

    def get_ordering(self, request: Any, queryset: Any, view: Any) -> tuple[str, ...]:
        """As the selector ordered it: by `place` if it searched."""
        return ("place", "id") if "place" in queryset.query.annotations else self.ordering


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows of the list page; `older` asks for the next ones, '' at the end."""

    rows: list[Memory]
    older: str


def page(found: MemoryQuerySet, *, after_row: str, size: int = PAGE_SIZE) -> Page:
    """The rows after the one that `after_row` names; from the start if it names none.

    `found` is newest first. A row deleted meanwhile still marks its place.
    """
    if place := _place(after_row):
        created_at, memory_id = place
        found = found.filter(
            Q(created_at__lt=created_at) | Q(created_at=created_at, id__lt=memory_id)
        )
    rows = list(found[: size + 1])
    if len(rows) <= size:
        return Page(rows=rows, older="")
    last = rows[size - 1]
    return Page(rows=rows[:size], older=f"{last.created_at.isoformat()}~{last.id}")


def _place(name: str) -> tuple[datetime, UUID] | None:
    created_at, _, memory_id = name.partition("~")
    try:
        moment = datetime.fromisoformat(created_at)
        return (moment, UUID(memory_id)) if moment.tzinfo else None
    except ValueError:
        return None
