"""What a client hears during a turn (contract 8). chat.js knows the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TURN_STARTED = "turn.started"
CONTEXT_READY = "context.ready"
TEXT_DELTA = "text.delta"
THINKING_DELTA = "thinking.delta"
TOOL_STARTED = "tool.started"
TOOL_FINISHED = "tool.finished"
TURN_FINISHED = "turn.finished"
TURN_STOPPED = "turn.stopped"
TURN_FAILED = "turn.failed"
SEGMENT_COLLAPSED = "segment.collapsed"
NOTICE = "notice"

LAST_OF_A_TURN = frozenset({TURN_FINISHED, TURN_STOPPED, TURN_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event before it has an id. `body` is JSON-ready and holds no `type`, `turn` or `id`."""

    type: str
    turn_id: str | None
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event of the stream; ids grow and compare by `order()`."""

    id: str
    payload: Mapping[str, Any]

    @property
    def type(self) -> str:
        return str(self.payload["type"])

    @property
    def turn_id(self) -> str | None:
        return self.payload.get("turn")


def order(event_id: str) -> tuple[int, int]:
    """Redis stream ids, `milliseconds-sequence`, as comparable numbers. Raises ValueError."""
    milliseconds, _, sequence = event_id.partition("-")
    return int(milliseconds), int(sequence or 0)
