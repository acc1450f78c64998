"""What models cost a person: by month, day, job and model. Months and days are their zone's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncMonth

from mira_site.llm import budget
from mira_site.llm.models import ModelCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Calls of one kind, added up. `name` is a job or a model, `first_on` a month's first day."""

    name: str = ""
    first_on: date | None = None
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: Decimal

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cache_share(self) -> float:
        """Which part of the prompts came from the provider's cache, 0 to 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def month(self) -> str:
        return f"{self.first_on:%Y-%m}" if self.first_on else ""


NOTHING = Sums(
    calls=0,
    input_tokens=0,
    output_tokens=0,
    cache_read_tokens=0,
    cache_write_tokens=0,
    cost=Decimal(0),
)


def months(user_id: uuid.UUID, zone: ZoneInfo, *, most: int) -> list[Sums]:
    """The months with calls, newest first, at most so many."""
    rows = ModelCall.objects.for_user(user_id)
    named = rows.annotate(month=TruncMonth("created_at", tzinfo=zone)).values("month")
    found = _summed(named.order_by("-month"))[:most]
    return [_sums(row, first_on=row["month"].date()) for row in found]


def jobs(user_id: uuid.UUID, zone: ZoneInfo, first_on: date) -> list[Sums]:
    """A month by what its calls were for, dearest first."""
    return _by("job", user_id, zone, first_on)


def models(user_id: uuid.UUID, zone: ZoneInfo, first_on: date) -> list[Sums]:
    """A month by the model that answered, dearest first."""
    return _by("model", user_id, zone, first_on)


def days(user_id: uuid.UUID, zone: ZoneInfo, first_on: date) -> list[tuple[date, Decimal]]:
    """Every day of a month, with what it cost."""
    start, end = _border(zone, first_on)
    rows = calls(user_id, zone, first_on).order_by()
    by_day = rows.annotate(day=TruncDate("created_at", tzinfo=zone)).values("day")
    cost = {row["day"]: row["cost"] for row in by_day.annotate(cost=Sum("cost"))}
    length = (end.date() - start.date()).days
    every = (start.date() + timedelta(days=n) for n in range(length))
    return [(day, cost.get(day, Decimal(0))) for day in every]


def calls(user_id: uuid.UUID, zone: ZoneInfo, first_on: date) -> QuerySet[ModelCall]:
    """The calls of a month, oldest first."""
    start, end = _border(zone, first_on)
    rows = ModelCall.objects.for_user(user_id)
    return rows.filter(created_at__gte=start, created_at__lt=end).order_by("created_at", "id")


def lines(rows: QuerySet[ModelCall], zone: ZoneInfo) -> Iterator[Sequence[object]]:
    """A table of calls, its head first, as it goes into a CSV file."""
    yield (
        "at", "job", "tier", "model", "outcome", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "dollars",
    )  # fmt: skip
    for call in rows.iterator(chunk_size=2_000):
        yield (
            call.created_at.astimezone(zone).isoformat(timespec="seconds"), call.job, call.tier,
            _harmless(call.model), call.outcome, call.input_tokens, call.output_tokens,
            call.cache_read_tokens, call.cache_write_tokens, call.cost,
        )  # fmt: skip


def total(rows: Sequence[Sums]) -> Sums:
    """All of them together."""
    return Sums(
        calls=sum(row.calls for row in rows),
        input_tokens=sum(row.input_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
        cache_read_tokens=sum(row.cache_read_tokens for row in rows),
        cache_write_tokens=sum(row.cache_write_tokens for row in rows),
        cost=sum((row.cost for row in rows), Decimal(0)),
    )


def _by(column: str, user_id: uuid.UUID, zone: ZoneInfo, first_on: date) -> list[Sums]:
    rows = calls(user_id, zone, first_on).order_by().values(column)
    return [_sums(row, name=row[column]) for row in _summed(rows).order_by("-cost", column)]


def _border(zone: ZoneInfo, first_on: date) -> tuple[datetime, datetime]:
    noon = datetime(first_on.year, first_on.month, first_on.day, 12, tzinfo=zone)
    return budget.month_of(zone, noon)


def _summed(rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    summed: QuerySet[Any, Any] = rows.annotate(
        calls=Count("id"),
        input=Sum("input_tokens"),
        output=Sum("output_tokens"),
        cache_read=Sum("cache_read_tokens"),
        cache_write=Sum("cache_write_tokens"),
        cost=Sum("cost"),
    )
    return summed


def _sums(row: dict[str, Any], *, name: str = "", first_on: date | None = None) -> Sums:
    return Sums(
        name=name,
        first_on=first_on,
        calls=row["calls"],
        input_tokens=row["input"],
        output_tokens=row["output"],
        cache_read_tokens=row["cache_read"],
        cache_write_tokens=row["cache_write"],
        cost=row["cost"],
    )


def _harmless(model: str) -> str:
    """The provider names its models; a spreadsheet would run a name that begins like a formula."""
    return f"'{model}" if model[:1] in "=+-@\t\r" and model else model
