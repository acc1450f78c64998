"""Low-level writes of the thread: lock it, append to it, open and close its parts.

Each function expects to run inside the caller's transaction and under `lock_thread`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, OuterRef, Subquery

from conversations import presenting
from conversations.constants import VEIL_MINUTES
from conversations.models import Message, Segment, SurfacedMemory, Thread, ToolCall, Turn, Veil
from memory import selectors as memory
from memory.types import Recalled
from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.llm.types import Usage


def thread_for(user: User) -> Thread:
    """The person's thread, made where first needed."""
    thread: Thread
    thread, _ = Thread.objects.get_or_create(user=user)
    return thread


def lock_thread(user: User) -> Thread:
    """The thread's row, locked until the transaction ends: whoever holds it may append."""
    rows = Thread.objects.for_user(user).select_for_update()
    locked: Thread | None = rows.first()
    return locked if locked is not None else rows.get(pk=thread_for(user).pk)


def active_segment(thread: Thread, *, at: datetime) -> tuple[Segment, int]:
    """The open segment, a new one if there is none, and the number of its next turn, from 1."""
    numbers = Turn.objects.filter(segment=OuterRef("pk")).order_by("-number").values("number")
    rows = thread.segments.filter(status=Segment.Status.ACTIVE)
    found = rows.annotate(last_number=Subquery(numbers[:1])).first()
    if found is not None:
        return found, (found.last_number or 0) + 1
    segment: Segment = Segment.objects.create(
        user_id=thread.user_id, thread=thread, opened_at=at, last_message_at=at
    )
    return segment, 1


def append(
    thread: Thread,
    segment: Segment,
    *,
    turn: Turn,
    role: Message.Role,
    text: str,
    at: datetime,
    is_partial: bool = False,
    is_cut: bool = False,
    content: Sequence[Mapping[str, Any]] | None = None,
) -> Message:
    """Add one message at the end of the thread. `content` is its text where it is not given."""
    thread.last_position += 1  # nobody else may: the row is locked
    Thread.objects.filter(pk=thread.pk).update(last_position=thread.last_position)
    message: Message = Message.objects.create(
        user_id=thread.user_id,
        thread=thread,
        segment=segment,
        turn=turn,
        position=thread.last_position,
        role=role,
        content=content or [{"type": "text", "text": text}],
        text=text,
        is_partial=is_partial,
        is_cut=is_cut,
        is_off_record=turn.is_off_record,
        created_at=at,
    )
    Segment.objects.filter(pk=segment.pk).update(last_message_at=at)
    if turn.is_off_record:
        drawn = Veil.objects.for_user(thread.user_id).filter(lifted_at__isnull=True)
        drawn.update(lifts_at=at + timedelta(minutes=VEIL_MINUTES))
    return message


def next_number(segment: Segment) -> int:
    """The number of the segment's next turn, from 1; the caller holds the thread."""
    last: int | None = segment.turns.aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def lock_turn(user: User, turn_id: UUID) -> Turn:
    """The turn's row, locked. Raises NotFound."""
    turn: Turn | None = (
        Turn.objects.for_user(user)
        .select_for_update(of=("self",))
        .select_related("thread", "segment")
        .filter(pk=turn_id)
        .first()
    )
    if turn is None:
        raise NotFound("There is no such turn.")
    return turn


def claim_turn(user_id: UUID, turn_id: UUID, *, at: datetime) -> Turn | None:
    """Take a queued turn to run it; None if somebody else has it or it was stopped."""
    claimed = (
        Turn.objects.for_user(user_id)
        .filter(pk=turn_id, status=Turn.Status.QUEUED)
        .update(status=Turn.Status.RUNNING, started_at=at, heartbeat_at=at)
    )
    if not claimed:
        return None
    rows = Turn.objects.for_user(user_id).select_related("user", "segment__brief")
    turn: Turn = rows.get(pk=turn_id)
    return turn


@transaction.atomic
def store_surfaced(turn: Turn, recalled: Sequence[Recalled]) -> list[Recalled]:
    """Keep which memories were in front of MIRA; a retry replaces them.

    Returns those that are still there: one may have been forgotten since it was recalled. Their
    rows are locked, so none is forgotten between the look and the write.
    """
    if turn.attempt > 1:
        SurfacedMemory.objects.for_user(turn.user_id).filter(turn=turn).delete()
    ids = [item.id for item in presenting.in_front(recalled)]
    rows = memory.memories(turn.user, archived=None).filter(pk__in=ids)
    locked = rows.prefetch_related(None).order_by("pk").select_for_update(no_key=True)
    alive = set(locked.values_list("pk", flat=True))
    kept = [
        replace(item, linked=tuple(linked for linked in item.linked if linked.id in alive))
        for item in recalled
        if item.id in alive
    ]
    SurfacedMemory.objects.bulk_create(
        SurfacedMemory(
            user_id=turn.user_id,
            turn=turn,
            memory_id=item.id,
            rank=rank,
            score=item.score,
            why=item.why.text[:300],
            parts=presenting.parts(item.why),
        )
        for rank, item in enumerate(presenting.in_front(kept))
    )
    return kept


def store_tool_calls(turn: Turn, calls: Sequence[ToolCall]) -> None:
    """Keep what tools did in the turn; a retry replaces it."""
    ToolCall.objects.for_user(turn.user_id).filter(turn=turn).delete()
    ToolCall.objects.bulk_create(calls)


def close_turn(
    turn: Turn, *, status: Turn.Status, at: datetime, usage: Usage | None = None, **fields: Any
) -> None:
    """Write how a turn ended."""
    turn.status, turn.finished_at = status, at
    names = ["status", "finished_at", *fields]
    for name, value in fields.items():
        setattr(turn, name, value)
    if usage is not None:
        turn.input_tokens, turn.output_tokens = usage.input_tokens, usage.output_tokens
        turn.cache_read_tokens, turn.cache_write_tokens = (
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        names += ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
    turn.save(update_fields=names)
