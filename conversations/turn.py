"""One turn: recall, compose, stream, store. Read `steps` from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections, transaction
from django.utils import timezone

from conversations import (
    events,
    file_blocks,
    offline,
    presenting,
    prompt,
    remembering,
    selectors,
    situation,
    stream,
    subcortical,
    surfacing,
    threads,
    tool_loop,
)
from conversations.constants import DELTA_FLUSH_S, OFFLINE_QUOTES, STORE_RETRY_S, STORE_TRIES
from conversations.events import Event
from conversations.liveness import Watch
from conversations.models import Message, ToolCall, Turn
from conversations.types import Prepared, TurnContext
from memory import services as memory
from memory.types import OpenQuestion, Recalled, SourceMessage
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable, LLMUnavailable, MiraError
from mira_site.llm import client
from mira_site.llm.types import ModelRequest, TextDelta, ThinkingDelta, Usage
from mira_site.llm.usage import calls_for
from toolbox.types import ToolContext

log = structlog.get_logger(__name__)

OFFLINE_MODEL = "offline"
INTERNAL_DETAIL = "Something went wrong on this side. Your message is kept; try again."
EMPTY_DETAIL = "The model answered with nothing. Your message is kept; try again."

T = TypeVar("T")


@dataclass(slots=True)
class Draft:
    """The answer as far as it has come."""

    text: str = ""
    content: list[dict[str, str]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    is_stopped: bool = False
    open_question: OpenQuestion | None = None
    prepared: Prepared | None = None
    composed: prompt.Composed | None = None
    counted_tokens: int = 0  # of the first request, by the provider
    started: float = field(default_factory=time.perf_counter)
    timings_ms: dict[str, float] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """More of the answer. Blocks of content hold no space between them, the text does."""
        self.text += text
        if self.content and self.content[-1]["type"] == "text":
            self.content[-1]["text"] += text
        elif text.strip():
            self.content.append({"type": "text", "text": text.lstrip()})

    def mark(self, step: str) -> None:
        """Note the time since the turn was taken, once for each step."""
        self.timings_ms.setdefault(step, round((time.perf_counter() - self.started) * 1000, 1))


def run(*, user: User, turn_id: UUID) -> Turn | None:
    """Answer a queued turn; the turn as it ended. None if it was taken or stopped meanwhile."""
    turn = threads.claim_turn(user, turn_id, at=timezone.now())
    if turn is None:
        return None
    draft = Draft()
    with (
        structlog.contextvars.bound_contextvars(turn=turn.short_id),
        calls_for(turn_id=turn.pk),
        Watch(turn) as watch,
    ):
        for event in _guarded(turn, draft, watch):
            stream.publish(user.pk, event)
        draft.mark("ended")
        queued = turn.started_at - turn.queued_at if turn.started_at else timedelta()
        log.info(
            "turn.ended",
            status=turn.status,
            queued_ms=round(queued.total_seconds() * 1000, 1),
            **{f"{step}_ms": at for step, at in draft.timings_ms.items()},
        )
    if draft.prepared is not None:
        subcortical.record(turn, draft.prepared)
    if draft.composed is not None:  # not before the answer: nobody shall wait for it
        situation.record(turn, draft.composed, counted_tokens=draft.counted_tokens)
    if turn.status in (Turn.Status.DONE, Turn.Status.STOPPED):
        _note_accesses(turn, draft)
    return turn


def _note_accesses(turn: Turn, draft: Draft) -> None:
    """What came up keeps its memory alive a little, what was quoted more. The answer is out."""
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
    history = selectors.history(turn)
    draft.mark("history")
    prepared = subcortical.prepare(turn, history, now=now)
    draft.prepared = prepared
    draft.mark("prepared")
    recalled = _recall(turn, prepared, now)
    draft.mark("recalled")
    recalled = threads.store_surfaced(turn, recalled)
    yield Event(
        type=events.CONTEXT_READY,
        turn_id=str(turn.pk),
        body={"surfaced": presenting.recalled(recalled)},
    )
    context = situation.gather(turn, history, recalled, prepared, now=now)
    draft.open_question = context.open_question
    asked = _said(history[-1])
    if client.is_configured():
        composed = prompt.compose(context, history)
        draft.composed = composed
        draft.mark("composed")
        tools = ToolContext(
            user=turn.user,
            turn_id=turn.pk,
            segment_id=turn.segment_id,
            now=now,
            said=(asked,),
            lowest_read=file_blocks.read_class(composed.window),
        )
        yield from _stream_reply(turn, draft, composed.request, context, tools, watch)
    else:
        yield from _quote(turn, draft, context, asked, offline.NOT_CONFIGURED)
    if not draft.text.strip() and not draft.is_stopped:
        yield from _failed(turn, draft, "empty_reply", EMPTY_DETAIL)
        return
    if draft.model != OFFLINE_MODEL:
        remembering.keep_asked(turn.user, asked, calls=draft.calls)
    status = Turn.Status.STOPPED if draft.is_stopped else Turn.Status.DONE
    yield from _stored(turn, draft, status)


def _recall(turn: Turn, prepared: Prepared, now: datetime) -> list[Recalled]:
    """A turn can do without memories, but only when they cannot be had."""
    try:
        return surfacing.surface(turn, prepared, now=now)
    except EmbeddingsUnavailable:
        log.warning("step.skipped", step="recall")
        return []


def _said(asked: Message) -> SourceMessage:
    return SourceMessage(
        message_id=asked.pk,
        segment_id=asked.segment_id,
        role="user",
        text=asked.text,
        said_at=asked.created_at,
    )


def _stream_reply(
    turn: Turn,
    draft: Draft,
    request: ModelRequest,
    context: TurnContext,
    tools: ToolContext,
    watch: Watch,
) -> Iterator[Event]:
    """Text as it comes, in small bundles. Without a single word from the provider: quotes."""
    bundle = _Bundle(turn)
    try:
        for event in tool_loop.run(request, tools, should_stop=watch.should_stop):
            if isinstance(event, TextDelta):
                draft.mark("first_text")
                draft.say(event.text)
                yield from bundle.add(event.text)
            elif isinstance(event, Usage):
                draft.usage = event
                draft.counted_tokens = draft.counted_tokens or event.prompt_tokens
            elif isinstance(event, tool_loop.Ended):
                draft.model, draft.is_stopped = event.model, event.was_stopped
            else:
                yield from bundle.flush()
                yield (
                    _thought(turn, event)
                    if isinstance(event, ThinkingDelta)
                    else _tool_event(turn, draft, event)
                )
    except LLMUnavailable:
        if draft.text or draft.calls:
            raise
        log.warning("turn.answered_offline")
        yield from _quote(turn, draft, context, tools.said[0], offline.NOT_REACHABLE)
    yield from bundle.flush()


class _Bundle:
    """Text on its way to the page, sent a few words at a time."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._pending, self._flushed_at = turn, "", 0.0

    def add(self, text: str) -> Iterator[Event]:
        self._pending += text
        if time.monotonic() - self._flushed_at >= DELTA_FLUSH_S:
            yield from self.flush()

    def flush(self) -> Iterator[Event]:
        if self._pending:
            yield _delta(self._turn, self._pending)
            self._pending, self._flushed_at = "", time.monotonic()


def _thought(turn: Turn, event: ThinkingDelta) -> Event:
    return Event(type=events.THINKING_DELTA, turn_id=str(turn.pk), body={"text": event.text})


def _tool_event(
    turn: Turn, draft: Draft, event: tool_loop.CallStarted | tool_loop.CallFinished
) -> Event:
    """What a page hears of a call; a finished one is noted in the draft."""
    body: dict[str, object] = {"call": str(event.id), "name": event.call.name}
    if isinstance(event, tool_loop.CallStarted):
        body["input"] = dict(event.call.input)
        return Event(type=events.TOOL_STARTED, turn_id=str(turn.pk), body=body)
    outcome = event.outcome
    draft.content.append({"type": "tool_call", "id": str(event.id)})
    draft.calls.append(
        ToolCall(
            id=event.id,
            user_id=turn.user_id,
            turn=turn,
            position=len(draft.calls),
            name=event.call.name[:50],
            input=dict(event.call.input),
            result=outcome.text,
            is_error=outcome.is_error,
            summary=outcome.summary[:120],
            called_at=timezone.now(),
        )
    )
    body |= {"ok": not outcome.is_error, "summary": outcome.summary}
    return Event(type=events.TOOL_FINISHED, turn_id=str(turn.pk), body=body)


def _quote(
    turn: Turn, draft: Draft, context: TurnContext, asked: SourceMessage, notice: str
) -> Iterator[Event]:
    zone = context.now.tzinfo
    assert zone is not None  # noqa: S101 (local_now is aware)
    draft.text = offline.reply(
        context.surfaced,
        zone=zone,
        notice=notice,
        kept=remembering.keep_asked(turn.user, asked),
        question=context.open_question,
        files=len(context.files),
    )
    draft.model = OFFLINE_MODEL
    yield _delta(turn, draft.text)


def _delta(turn: Turn, text: str) -> Event:
    return Event(type=events.TEXT_DELTA, turn_id=str(turn.pk), body={"text": text})


def _stored(turn: Turn, draft: Draft, status: Turn.Status) -> Iterator[Event]:
    """The last event, once the answer is in the database."""
    message = _persist(lambda: _store(turn, draft, status))
    if turn.status != status:
        return  # the sweep gave the turn up, and somebody was told so already
    body = {
        "message": _presented(turn, message),
        "usage": presenting.usage(turn),
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
    threads.store_tool_calls(turn, draft.calls)
    if draft.open_question is not None and status == Turn.Status.DONE:
        memory.mark_asked(turn.user, draft.open_question.conflict_id, at=now)
    if draft.text.strip():  # the provider would refuse a blank message in the next prompt
        message = threads.append(
            thread,
            current.segment,
            turn=turn,
            role=Message.Role.ASSISTANT,
            text=draft.text,
            at=now,
            is_partial=status != Turn.Status.DONE,
            content=draft.content if draft.calls else None,
        )
    threads.close_turn(
        turn,
        status=status,
        at=now,
        usage=draft.usage,
        model=draft.model,
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
