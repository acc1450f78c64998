"""One turn: recall, compose, stream, store. Read `steps` from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TypeVar
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections, transaction
from django.utils import timezone

from conversations import (
    events,
    file_blocks,
    offline,
    passages,
    presenting,
    prompt,
    quotations,
    remembering,
    replying,
    selectors,
    situation,
    stream,
    subcortical,
    surfacing,
    threads,
)
from conversations.constants import OFFLINE_MODEL, OFFLINE_QUOTES, STORE_RETRY_S, STORE_TRIES
from conversations.draft import Draft
from conversations.events import Event
from conversations.liveness import Watch
from conversations.models import Message, Turn
from conversations.prompt import Composed
from conversations.types import Prepared
from memory import services as memory
from memory.types import Recalled, SourceMessage, Trust
from mira_site.errors import EmbeddingsUnavailable, MiraError
from mira_site.llm import budget, client
from mira_site.llm.usage import calls_for
from toolbox.types import ToolContext

log = structlog.get_logger(__name__)

INTERNAL_DETAIL = "Something went wrong on this side. Your message is kept; try again."
EMPTY_DETAIL = "The model answered with nothing. Your message is kept; try again."

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A turn as it ended; `was_too_long`: its prompt did not fit the model as it was."""

    turn: Turn
    was_too_long: bool


def run(*, user_id: UUID, turn_id: UUID) -> Answered | None:
    """Answer a queued turn; the turn as it ended. None if it was taken or stopped meanwhile."""
    turn = threads.claim_turn(user_id, turn_id, at=timezone.now())
    if turn is None:
        return None
    draft = Draft()
    with (
        structlog.contextvars.bound_contextvars(turn=turn.short_id),
        calls_for(turn_id=turn.pk),
        Watch(turn) as watch,
    ):
        for event in _guarded(turn, draft, watch):
            stream.publish(user_id, event)
        draft.mark("ended")
        queued = turn.started_at - turn.queued_at if turn.started_at else timedelta()
        log.info(
            "turn.ended",
            status=turn.status,
            queued_ms=round(queued.total_seconds() * 1000, 1),
            **{f"{step}_ms": at for step, at in draft.timings_ms.items()},
        )
    situation.record(  # not before the answer: nobody shall wait for it
        turn,
        prepared=draft.prepared,
        composed=draft.composed,
        counted_tokens=draft.counted_tokens,
    )
    _tell_of_cap(turn)
    if turn.status in (Turn.Status.DONE, Turn.Status.STOPPED):
        _note_accesses(turn, draft)
    return Answered(turn=turn, was_too_long=draft.was_too_long)


def _tell_of_cap(turn: Turn) -> None:
    """Once a month: the cap that the person set is near. They go on as before."""
    near = budget.take_notice(turn.user_id)
    if near is not None:
        text = (
            f"Of your monthly cap of ${near.cap}, ${near.spent:.2f} are spent. It starts anew on"
            f" {near.resets_on}; Settings, Usage shows where it went."
        )
        body = {"level": "info", "text": text}
        stream.publish(turn.user_id, Event(type=events.NOTICE, turn_id=None, body=body))


def _note_accesses(turn: Turn, draft: Draft) -> None:
    """What came up keeps its memory alive a little, what was quoted more. The answer is out."""
    if turn.is_off_record:
        return
    ids = selectors.came_up(turn.user, turn.pk)
    memory.note_accesses(
        user=turn.user,
        segment_id=turn.segment_id,
        surfaced=ids,
        used=ids[:OFFLINE_QUOTES] if draft.model == OFFLINE_MODEL else (),
        at=timezone.now(),
    )


def _guarded(turn: Turn, draft: Draft, watch: Watch) -> Iterator[Event]:
    try:
        yield from steps(turn, draft, watch)
    except MiraError as error:
        log.warning("turn.failed", code=error.code)
        yield from _failed(turn, draft, error.code, str(error))
    except Exception:  # the last line of defence: whatever broke, the person hears of it
        log.exception("turn.broke")
        yield from _failed(turn, draft, "internal", INTERNAL_DETAIL)


def steps(turn: Turn, draft: Draft, watch: Watch) -> Iterator[Event]:
    """The turn, step by step; `draft` holds the answer so far for whoever must save it."""
    now = timezone.now()
    told = selectors.brief(turn)
    history = selectors.history(turn, told)
    draft.mark("history")
    around = cache(partial(situation.around, turn, history, now=now))
    prepared = subcortical.prepare(turn, history, now=now, meanwhile=around)
    draft.prepared = prepared
    draft.mark("prepared")
    recalled = _recall(turn, prepared, now)
    draft.mark("recalled")
    meanwhile = partial(_in_front, turn, draft, recalled)
    context = situation.gather(turn, history, recalled, prepared, told, around(), now=now)
    draft.open_question = context.open_question
    asked = _said(history[-1])
    if client.is_configured():
        composed = prompt.compose(
            context,
            history,
            effort=replying.effort(turn.user, prepared, history),
            ratio=around().ratio,
        )
        draft.composed = composed
        draft.mark("composed")
        tools = ToolContext(
            user=turn.user,
            turn_id=turn.pk,
            segment_id=turn.segment_id,
            now=now,
            said=(asked,),
            is_off_record=turn.is_off_record,
            lowest_read=_lowest_read(composed, recalled),
        )
        yield from replying.stream_reply(turn, draft, composed, context, tools, watch, meanwhile)
    else:
        yield from meanwhile()
        yield from replying.quote(turn, draft, context, asked, offline.NOT_CONFIGURED)
    if not draft.text.strip() and not draft.is_stopped:
        yield from _failed(turn, draft, "empty_reply", EMPTY_DETAIL)
        return
    if draft.model != OFFLINE_MODEL:
        remembering.keep_asked(turn.user, asked, calls=draft.calls)
    status = Turn.Status.STOPPED if draft.is_stopped else Turn.Status.DONE
    yield from _stored(turn, draft, status)


def _lowest_read(composed: Composed, recalled: Sequence[Recalled]) -> Trust | None:
    """The least trusted class of what stands in the prompt before any tool was used."""
    classes = (file_blocks.read_class(composed.window), surfacing.read_class(recalled))
    return min((one for one in classes if one is not None), default=None)


def _recall(turn: Turn, prepared: Prepared, now: datetime) -> list[Recalled]:
    """A turn can do without memories, but only when they cannot be had."""
    try:
        return surfacing.surface(turn, prepared, now=now)
    except EmbeddingsUnavailable:
        log.warning("step.skipped", step="recall")
        return []


def _in_front(turn: Turn, draft: Draft, recalled: Sequence[Recalled]) -> Iterator[Event]:
    """Keep and tell, once, which memories are in front of MIRA."""
    if draft.surfaced is None:
        draft.surfaced = threads.store_surfaced(turn, recalled)
        body = {"surfaced": presenting.recalled(draft.surfaced)}
        yield Event(type=events.CONTEXT_READY, turn_id=str(turn.pk), body=body)


def _said(asked: Message) -> SourceMessage:
    return SourceMessage(
        message_id=asked.pk,
        segment_id=asked.segment_id,
        role="user",
        text=asked.text,
        said_at=asked.created_at,
    )


def _stored(turn: Turn, draft: Draft, status: Turn.Status) -> Iterator[Event]:
    """The last event, once the answer is in the database."""
    message = _persist(lambda: _store(turn, draft, status))
    if turn.status != status:
        return  # the sweep gave the turn up, and somebody was told so already
    body = {
        "message": _presented(turn, message),
        "usage": presenting.usage(turn),
        "stop_reason": turn.stop_reason,
    }
    name = events.TURN_FINISHED if status == Turn.Status.DONE else events.TURN_STOPPED
    yield Event(type=name, turn_id=str(turn.pk), body=body)


def _presented(turn: Turn, message: Message | None) -> Mapping[str, object] | None:
    """The answer as clients see it, read anew so that all its memories come in one query."""
    return presenting.message(selectors.message(turn.user, message.pk)) if message else None


def _failed(turn: Turn, draft: Draft, code: str, detail: str) -> Iterator[Event]:
    turn.error_code, turn.error_detail = code, detail[:300]
    _persist(lambda: _store(turn, draft, Turn.Status.FAILED))
    if turn.status == Turn.Status.FAILED:
        yield Event(
            type=events.TURN_FAILED, turn_id=str(turn.pk), body={"error": presenting.error(turn)}
        )


@transaction.atomic
def _store(turn: Turn, draft: Draft, status: Turn.Status) -> Message | None:
    """Reply, usage and end of the turn in one transaction; nothing if it is no longer ours."""
    thread = threads.lock_thread(turn.user)
    current = threads.lock_turn(turn.user, turn.pk)
    if current.status != Turn.Status.RUNNING or current.attempt != turn.attempt:
        log.warning("turn.given_up", status=current.status)
        turn.status = current.status
        return None
    now = timezone.now()
    message = None
    if draft.open_question is not None and status == Turn.Status.DONE:
        memory.mark_asked(turn.user, draft.open_question.conflict_id, at=now)
    calls = draft.calls_in_order()
    if may_be_forgotten := quotations.forgot_since(turn):
        quotations.empty(calls)
    threads.store_tool_calls(turn, calls)
    if draft.text.strip():  # the provider would refuse a blank message in the next prompt
        message = threads.append(
            thread,
            current.segment,
            turn=turn,
            role=Message.Role.ASSISTANT,
            text=draft.text,
            at=now,
            is_partial=status != Turn.Status.DONE,
            is_cut=draft.is_cut and status == Turn.Status.DONE,
            content=draft.whole_content() if draft.calls else None,
        )
        if may_be_forgotten:  # the person has read it; nothing is made of it
            passages.store(turn.user, [(message.pk, passages.Span(0, len(message.text)))])
    threads.close_turn(
        turn,
        status=status,
        at=now,
        usage=draft.usage,
        model=draft.model,
        effort=draft.composed.request.effort if draft.composed else "",
        stop_reason=draft.stop_reason[:20],
        error_code=turn.error_code,
        error_detail=turn.error_detail,
    )
    return message


def _persist(write: Callable[[], T]) -> T:
    """Do a write; if the database is away, wait for it: an answer in hand is worth the wait."""
    for _ in range(STORE_TRIES - 1):
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            log.warning("turn.store_postponed", reason=type(error).__name__)
            close_old_connections()
            time.sleep(STORE_RETRY_S)
    return write()
