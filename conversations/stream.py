"""Events of a person: a Redis stream keeps them, for replay and for those who listen now.

Every reader takes from the stream what comes after the last id it has seen, and waits there for the
next: so nothing is lost or doubled, and an event is with a page one step after it was stored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from uuid import UUID

import redis
import redis.asyncio
import structlog
from django.conf import settings

from conversations.constants import STREAM_MAX_EVENTS, STREAM_TTL_S
from conversations.events import Event, StoredEvent, order
from mira_site.errors import EventsUnavailable

log = structlog.get_logger(__name__)

START = "0"


def key(user_id: UUID | str) -> str:
    return f"{settings.REDIS_PREFIX}events:{user_id}"


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=10, socket_connect_timeout=3
    )


def client() -> redis.Redis:
    return _client(settings.REDIS_URL)


def publish(user_id: UUID | str, event: Event) -> str:
    """Store an event, which wakes the open pages. Returns its id, or "" when Redis is away.

    What an event tells is in the database already (or will be, at the end of the turn), so a turn
    goes on without Redis; pages catch up from there.
    """
    payload = {"type": event.type, "turn": event.turn_id, **event.body}
    name = key(user_id)
    try:
        pipeline = client().pipeline(transaction=False)
        pipeline.xadd(name, {"e": json.dumps(payload)}, maxlen=STREAM_MAX_EVENTS, approximate=True)
        pipeline.expire(name, STREAM_TTL_S)
        return str(pipeline.execute()[0])
    except redis.RedisError as error:
        log.warning("event.lost", type=event.type, reason=type(error).__name__)
        return ""


def forget(user_id: UUID | str) -> bool:
    """Drop every kept event of the person; pages catch up from the database.

    The stream stays, empty: a new one would begin its ids anew within the same millisecond, and
    who had heard the last event would not hear the next. False where Redis is away and they may
    still be there.
    """
    try:
        client().xtrim(key(user_id), maxlen=0, approximate=False)
    except redis.RedisError as error:
        log.warning("events.not_dropped", reason=type(error).__name__)
        return False
    return True


def last_id(user_id: UUID | str) -> str:
    """The id of the newest event, or "0". Raises EventsUnavailable."""
    try:
        newest = client().xrevrange(key(user_id), count=1)
    except redis.RedisError as error:
        raise EventsUnavailable(
            "Live updates are not available right now. Try again shortly."
        ) from error
    return str(newest[0][0]) if newest else START


def after(user_id: UUID | str, event_id: str, *, block_ms: int | None = None) -> list[StoredEvent]:
    """Events later than `event_id`, oldest first; waits up to `block_ms` for one if there is none.

    Raises EventsUnavailable.
    """
    try:
        found = client().xread({key(user_id): event_id}, count=500, block=block_ms)
    except redis.RedisError as error:
        raise EventsUnavailable(
            "Live updates are not available right now. Try again shortly."
        ) from error
    return _read(found)


def of_turn(
    user_id: UUID | str, turn_id: UUID | str, event_id: str, *, wait_s: float
) -> Iterator[StoredEvent]:
    """Events of one turn after `event_id` as they come; ends after `wait_s` without any.

    Raises EventsUnavailable.
    """
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        for event in after(user_id, event_id, block_ms=1000):
            event_id = event.id
            if event.turn_id == str(turn_id):
                deadline = time.monotonic() + wait_s
                yield event


def _read(found: Any) -> list[StoredEvent]:
    """Of XREAD's answer, whose type the client cannot know: (stream, entries) pairs."""
    return [_stored(*entry) for _, entries in found for entry in entries]


def _stored(event_id: str, fields: dict[str, str]) -> StoredEvent:
    return StoredEvent(id=event_id, payload=json.loads(fields["e"]))


class AsyncReader:
    """The same reads for one socket or SSE response, on a connection of its own."""

    def __init__(self, user_id: UUID | str) -> None:
        self._key = key(user_id)
        self._redis = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, decode_responses=True, socket_timeout=10, socket_connect_timeout=3
        )

    async def after(self, event_id: str, *, block_ms: int | None = None) -> list[StoredEvent]:
        """As `after()` above. Raises redis.RedisError."""
        found = await self._redis.xread({self._key: event_id}, count=500, block=block_ms)
        return _read(found)

    async def last_id(self) -> str:
        newest = await self._redis.xrevrange(self._key, count=1)
        return str(newest[0][0]) if newest else START

    async def close(self) -> None:
        await self._redis.aclose()


def is_later(event_id: str, than: str) -> bool:
    return order(event_id) > order(than)
