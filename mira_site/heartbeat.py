"""Signs of life of the workers: beat puts a task in each queue, whoever takes it leaves the time.

One sign says that beat, Redis and a worker of that queue all do their part. A queue whose threads
are all busy for long has none either.
"""

from __future__ import annotations

import redis
from celery import shared_task
from django.conf import settings
from django.utils import timezone

QUEUES = ("turns", "background")
EVERY_S = 10
LATE_S = 45.0  # older signs say that something is stuck
_KEPT_S = 24 * 3600
_TIMEOUT_S = 1.0


@shared_task
def leave_sign(queue: str) -> None:
    """Somebody works on this queue."""
    client().set(_key(queue), timezone.now().timestamp(), ex=_KEPT_S)


def ages() -> dict[str, float | None]:
    """Seconds since the last sign of each queue; None without one. Raises redis.RedisError."""
    now = timezone.now().timestamp()
    signs = client().mget([_key(queue) for queue in QUEUES])
    return {
        queue: None if sign is None else max(now - float(sign), 0.0)
        for queue, sign in zip(QUEUES, signs, strict=True)
    }


def client() -> redis.Redis:
    """Redis, with short time limits: who asks for health does not wait for the sick."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
    )


def _key(queue: str) -> str:
    return f"{settings.REDIS_PREFIX}heartbeat:{queue}"
