"""How things stand at this moment, for Prometheus: read from the database and Redis at each scrape.

They are families and not the library's gauges, which would be written to the files that processes
share (metrics.py) and be told a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import redis
from django.apps import apps
from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from pgvector.django import VectorField
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from conversations import collapse
from conversations import reembedding as segments
from conversations.models import Segment, Turn
from memory import reembedding
from memory.models import Memory, Work
from mira_site import heartbeat
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable
from mira_site.llm.models import ModelCall
from mira_site.webhooks import selectors as webhooks

Values = dict[tuple[str, ...], float]
TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")


def registry() -> CollectorRegistry:
    """Everything, as it is now. Runs inside `all_users`."""
    found = CollectorRegistry()
    found.register(_Taken([*_redis(), *_accounts(), *_conversations(), *_memory(), *_webhooks()]))
    return found


def queue_lengths() -> dict[str, int]:
    """Tasks waiting, by queue. Raises redis.RedisError."""
    client = heartbeat.client()
    return {queue: int(client.llen(queue)) for queue in heartbeat.QUEUES}


class _Taken(Collector):
    """Values that were taken already."""

    def __init__(self, families: Sequence[GaugeMetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families


def _one(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, value=value)


def _many(name: str, says: str, labels: Sequence[str], values: Values) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, says, labels=labels)
    for given, value in values.items():
        family.add_metric(given, value)
    return family


def _counted(rows: QuerySet[Any], *names: str) -> Values:
    """How many rows by the values of these columns."""
    found = rows.order_by().values_list(*names).annotate(count=Count("pk"))
    return {tuple(map(str, row[:-1])): row[-1] for row in found}


def _redis() -> Iterator[GaugeMetricFamily]:
    try:
        signs: Values = {
            (queue,): math.inf if age is None else age for queue, age in heartbeat.ages().items()
        }
        waiting: Values = {(queue,): float(length) for queue, length in queue_lengths().items()}
    except redis.RedisError:
        yield _one("mira_redis_up", "Whether Redis answers.", 0)
        return
    yield _one("mira_redis_up", "Whether Redis answers.", 1)
    yield _many("mira_queue_length", "Tasks waiting.", ["queue"], waiting)
    yield _many(
        "mira_heartbeat_age_seconds", "Since a worker's last sign of life.", ["queue"], signs
    )


def _accounts() -> Iterator[GaugeMetricFamily]:
    yield _one("mira_users", "Accounts.", User.objects.count())
    recent = ModelCall.objects.filter(created_at__gte=timezone.now() - timedelta(hours=1))
    calls = _counted(recent, "outcome")
    yield _many("mira_model_calls_last_hour", "By outcome.", ["outcome"], calls)
    sums = recent.aggregate(**{kind: Sum(f"{kind}_tokens") for kind in TOKEN_KINDS})
    tokens: Values = {(kind,): float(sums[kind] or 0) for kind in TOKEN_KINDS}
    yield _many("mira_model_tokens_last_hour", "By kind.", ["kind"], tokens)


def _conversations() -> Iterator[GaugeMetricFamily]:
    turns, segments = (
        _counted(Turn.objects.all(), "status"),
        _counted(Segment.objects.all(), "status"),
    )
    yield _many("mira_turns", "Turns by status.", ["status"], turns)
    yield _many("mira_segments", "Segments by status.", ["status"], segments)
    quiet = collapse.gone_quiet(at=timezone.now())
    due = Segment.objects.filter(quiet | Q(status=Segment.Status.COLLAPSING)).count()
    yield _one("mira_segments_due", "Segments that wait to collapse.", due)


def _memory() -> Iterator[GaugeMetricFamily]:
    work = _counted(Work.objects.all(), "kind", "status")
    yield _many("mira_memory_work", "By kind and status.", ["kind", "status"], work)
    counts = _estimated_counts()
    memories = counts.get(Memory._meta.db_table, 0)
    yield _one("mira_memory_count", "Memories, as PostgreSQL estimates.", memories)
    yield _one("mira_vector_count", "Vectors, as PostgreSQL estimates.", sum(counts.values()))
    with suppress(EmbeddingsUnavailable):
        left: Values = {(kind,): float(count) for kind, count in by_another_model().items()}
        yield _many("mira_vectors_by_another_model", "To be made anew, by kind.", ["kind"], left)


def by_another_model() -> dict[str, int]:
    """How many memories and segments wait to be read by the present embedding model.

    Runs inside `all_users`. Raises EmbeddingsUnavailable.
    """
    memories = Memory.objects.filter(reembedding.of_another_model())
    return {"memory": memories.count(), "segment": segments.waiting(Segment.objects.all()).count()}


def _estimated_counts() -> dict[str, int]:
    """Rows of each table with a vector.

    Counting a million rows at each scrape would cost more than the figure is worth.
    """
    tables = {
        model._meta.db_table
        for model in apps.get_models()
        if any(isinstance(field, VectorField) for field in model._meta.concrete_fields)
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, greatest(reltuples, 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relname = ANY(%s)",
            [sorted(tables)],
        )
        return dict(cursor.fetchall())


def _webhooks() -> Iterator[GaugeMetricFamily]:
    found = webhooks.backlog(now=timezone.now())
    rows: Values = {("pending",): found.pending, ("dead",): found.dead}
    yield _many("mira_webhook_deliveries", "By status.", ["status"], rows)
    yield _one("mira_webhook_due", "Deliveries late by their time.", found.due)
    yield _one("mira_webhook_breakers_open", "Endpoints left alone.", found.breakers_open)
