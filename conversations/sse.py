"""The events of one turn as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from uuid import UUID

import redis
import structlog
from channels.db import database_sync_to_async

from conversations import events, presenting, selectors, stream
from conversations.constants import SSE_KEEPALIVE_S
from conversations.models import Turn
from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.isolation import acting_as

log = structlog.get_logger(__name__)


async def of_turn(user: User, turn: Turn) -> AsyncIterator[str]:
    """Replays the turn's events from its first and follows it to its last.

    An ended turn whose events are gone is told by its last event, made from the database.
    """
    reader = stream.AsyncReader(user.pk)
    seen, quiet_since = turn.resume_after, time.monotonic()
    try:
        while True:
            found = await reader.after(seen, block_ms=1000)
            for event in found:
                seen = event.id
                if event.turn_id != str(turn.pk):
                    continue
                quiet_since = time.monotonic()
                yield _frame(event.id, event.type, {"id": event.id, **event.payload})
                if event.type in events.LAST_OF_A_TURN:
                    return
            if not found:
                ending = await database_sync_to_async(_ending, thread_sensitive=False)(
                    user, turn.pk
                )
                if ending is not None:
                    yield ending
                    return
                if time.monotonic() - quiet_since > SSE_KEEPALIVE_S:
                    quiet_since = time.monotonic()
                    yield ": still here\n\n"
    except (redis.RedisError, OSError) as error:
        log.warning("sse.lost_redis", reason=type(error).__name__)
        yield _frame(
            "", events.NOTICE, {"type": events.NOTICE, "level": "error", "text": LOST_TEXT}
        )
    finally:
        await reader.close()


ERASED_TEXT = "This was off the record, and is erased."
LOST_TEXT = "Live updates broke off. Ask for the turn at /api/v1/turns/ to see how it ended."


def _ending(user: User, turn_id: UUID) -> str | None:
    with acting_as(user.pk):
        try:
            turn = selectors.turn(user, turn_id)
        except NotFound:  # it was off the record, and the veil has lifted
            body = {"type": events.NOTICE, "level": "resync", "text": ERASED_TEXT}
            return _frame("", events.NOTICE, body)
        if turn.status in Turn.OPEN:
            return None
        whole = presenting.turn(turn)
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        name, body = events.TURN_FAILED, {"error": whole["error"]}
    else:
        name = events.TURN_FINISHED if turn.status == Turn.Status.DONE else events.TURN_STOPPED
        body = {"message": whole["reply"], "usage": whole["usage"]}
    return _frame("", name, {"type": name, "turn": whole["id"], **body})


def _frame(event_id: str, name: str, payload: object) -> str:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: {json.dumps(payload)}\n\n"
