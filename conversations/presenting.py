"""Rows as the JSON that clients see, the same over HTTP, SSE and WebSocket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from conversations.constants import OFFLINE_MODEL, REOPEN_MINUTES
from conversations.models import Attachment, Message, Segment, SurfacedMemory, ToolCall, Turn
from conversations.types import CameOf, Deleted
from memory.types import ForgetReceipt, LinkedMemory, Memory, MemorySource, Recalled, SourceRef, Why
from mira_site.errors import is_retryable


def iso(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at else None


def segment_label(segment: Segment) -> dict[str, Any]:
    """What a divider in the thread shows."""
    return {
        "id": str(segment.pk),
        "status": segment.status,
        "title": segment.title,
        "opened_at": iso(segment.opened_at),
    }


def surfaced(rows: Iterable[SurfacedMemory]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(row.memory_id),
            "text": row.memory.text,
            "why": row.why,
            "parts": row.parts,
            "created_at": iso(row.memory.created_at),
            "source": source(row.memory.latest_source),
            "judged": judged(row.memory),
        }
        for row in rows
    ]


def recalled(items: Iterable[Recalled]) -> list[dict[str, Any]]:
    return [
        {
            "id": str(item.id),
            "text": item.text,
            "why": item.why.text,
            "parts": parts(item.why),
            "created_at": iso(item.created_at),
            "source": source(item.sources[-1] if item.sources else None),
            "judged": None,
        }
        for item in in_front(items)
    ]


def in_front(items: Iterable[Recalled]) -> list[Recalled | LinkedMemory]:
    """The memories that came up, then those that are linked to them: all that the prompt holds."""
    recalled = list(items)
    return [*recalled, *(linked for item in recalled for linked in item.linked)]


def parts(why: Why) -> dict[str, Any]:
    """By which path a memory came up, for which phrase, and what its score is made of."""
    values = {
        "path": why.path,
        "phrase": why.phrase,
        "words": list(why.words),
        "name": why.name,
        "linked_to": str(why.linked_to) if why.linked_to else "",
        **{name: round(value, 4) for name, value in asdict(why.parts).items()},
    }
    return {name: value for name, value in values.items() if value}


def source(ref: SourceRef | MemorySource | None) -> dict[str, Any] | None:
    """The sentence that a memory rests on, and where it was said."""
    if ref is None:
        return None
    return {
        "message": str(ref.message_id),
        "sentence": ref.sentence,
        "said_at": iso(ref.said_at),
    }


def judged(memory: Memory) -> str | None:
    """What the person said about the memory, as feedback.Verdict; None if nothing stands."""
    if memory.archived_at is not None:
        return "wrong" if memory.archive_reason == "wrong" else "archived"
    if memory.muted_at is not None:
        return "never_mention"
    if memory.valid_until is not None:
        return "outdated"
    return "right" if memory.confirmed_at is not None else None


def message(row: Message) -> dict[str, Any]:
    """A message with its segment's label and, on an answer, the memories that were surfaced."""
    answered = row.role == Message.Role.ASSISTANT and row.turn is not None
    may_have_files = row.role == Message.Role.USER and row.has_files is not False
    return {
        "id": str(row.pk),
        "position": row.position,
        "role": row.role,
        "text": row.text,
        "content": row.content,
        "created_at": iso(row.created_at),
        "edited_at": iso(row.edited_at),
        "segment": segment_label(row.segment),
        "turn": str(row.turn_id) if row.turn_id else None,
        "turn_status": row.turn.status if row.turn else None,
        "error": error(row.turn) if row.turn else None,
        "is_partial": row.is_partial,
        "is_cut": row.is_cut,
        "is_quoted": bool(answered and row.turn and row.turn.model == OFFLINE_MODEL),
        "is_off_record": row.is_off_record,
        "surfaced": surfaced(row.turn.surfaced.all()) if answered and row.turn else [],
        "tools": tools(row.turn.tool_calls.all()) if answered and row.turn else [],
        "attachments": [
            attachment(file) for file in (row.attachments.all() if may_have_files else ())
        ],
    }


def attachment(row: Attachment) -> dict[str, Any]:
    """What a file is; what is in it has an address of its own."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "media_type": row.media_type,
        "size": row.size,
        "width": row.width,
        "height": row.height,
        "pages": row.pages,
        "url": f"/api/v1/files/{row.pk}/content/",
    }


def tools(rows: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """What tools were used for an answer, as quiet lines."""
    return [
        {"call": str(row.pk), "name": row.name, "ok": not row.is_error, "summary": row.summary}
        for row in rows
    ]


def error(turn: Turn) -> dict[str, Any] | None:
    """Why the turn has no whole answer; None while it runs or when it was answered or stopped."""
    if turn.status not in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        return None
    return {
        "code": turn.error_code,
        "detail": turn.error_detail,
        "retryable": is_retryable(turn.error_code),
    }


def usage(turn: Turn) -> dict[str, int]:
    return {
        "input_tokens": turn.input_tokens,
        "output_tokens": turn.output_tokens,
        "cache_read_tokens": turn.cache_read_tokens,
        "cache_write_tokens": turn.cache_write_tokens,
    }


def turn(row: Turn) -> dict[str, Any]:
    """A turn whole. Expects `messages` and `surfaced__memory` prefetched."""
    said = {item.role: item for item in row.messages.all()}
    asked, reply = said.get(Message.Role.USER), said.get(Message.Role.ASSISTANT)
    return {
        "id": str(row.pk),
        "status": row.status,
        "client_id": str(row.client_id),
        "attempt": row.attempt,
        "message": message(asked) if asked else None,
        "reply": message(reply) if reply else None,
        "surfaced": surfaced(row.surfaced.all()),
        "usage": usage(row),
        "model": row.model,
        "effort": row.effort,
        "stop_reason": row.stop_reason,
        "error": error(row),
        "created_at": iso(row.created_at),
    }


def segment(row: Segment) -> dict[str, Any]:
    """A segment with its summary; `message_count` is annotated by the selector."""
    return {
        **segment_label(row),
        "precis": row.precis,
        "trace": row.trace,
        "complexity": row.complexity,
        "last_message_at": iso(row.last_message_at),
        "collapsed_at": iso(row.collapsed_at),
        "collapse_asked_at": iso(row.collapse_asked_at),
        "reopenable_until": iso(reopenable_until(row)),
        "message_count": getattr(row, "message_count", None),
    }


def reopenable_until(row: Segment) -> datetime | None:
    """Until when its collapse may be taken back, if it is the last one; None where it is over."""
    if row.status != Segment.Status.COLLAPSED or row.collapsed_at is None:
        return None
    return row.collapsed_at + timedelta(minutes=REOPEN_MINUTES)


def came_of(came: CameOf) -> dict[str, Any]:
    """What came of a message: its answer, and the memories that rest on it."""

    def brief(rows: Iterable[Memory]) -> list[dict[str, str]]:
        return [{"id": str(row.pk), "text": row.text} for row in rows]

    return {
        "answer": {"id": str(came.answer.pk)} if came.answer else None,
        "memories": brief(came.resting.alone),
        "memories_with_other_sources": brief(came.resting.among_others),
    }


def deleted(gone: Deleted) -> dict[str, Any]:
    return {
        "deleted": [str(message_id) for message_id in gone.message_ids],
        "forgotten": gone.forgotten,
        "kept": gone.kept,
        "receipt": receipt(gone.receipt) if gone.receipt else None,
    }


def receipt(row: ForgetReceipt) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "requested_at": iso(row.requested_at),
        "finished_at": iso(row.finished_at),
        "counts": row.counts,
    }
