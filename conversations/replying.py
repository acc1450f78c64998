"""The answer of a turn as events: streamed from the model, or quoted where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import structlog
from django.utils import timezone

from conversations import events, lately, offline, remembering, shrinking, tool_loop, warmth
from conversations.constants import DELTA_FLUSH_S, OFFLINE_MODEL
from conversations.draft import Draft
from conversations.events import Event
from conversations.liveness import Watch
from conversations.models import Message, ToolCall, Turn
from conversations.prompt import Composed
from conversations.types import Prepared, TurnContext
from memory.types import SourceMessage
from mira_site.accounts.models import User
from mira_site.errors import LLMCapReached, LLMContextTooLong, LLMUnavailable
from mira_site.llm.types import ChatMessage, Effort, RequestSent, TextDelta, ThinkingDelta, Usage
from toolbox.types import ToolContext

log = structlog.get_logger(__name__)

TOO_LONG = (
    "This part of the conversation has grown too long for the model, even in short. Wrap it up, "
    "then send your message again; nothing is lost by it."
)
MESSAGE_TOO_LONG = (
    "This message is too long for the model. Send it in parts, or only the part that matters; "
    "the conversation goes on without it."
)
EFFORTS: dict[str, Effort] = {"low": "low", "medium": "medium", "high": "high"}


def effort(user: User, prepared: Prepared, history: Sequence[Message]) -> Effort:
    """How hard the model shall try: as the person set it, else by how hard the message is."""
    chosen = EFFORTS.get(str(user.preferences.get("effort", "")), "")
    return chosen or warmth.effort(EFFORTS.get(prepared.effort, ""), history)


def stream_reply(
    turn: Turn,
    draft: Draft,
    composed: Composed,
    context: TurnContext,
    tools: ToolContext,
    watch: Watch,
    meanwhile: Callable[[], Iterator[Event]],
) -> Iterator[Event]:
    """Text as it comes, in small bundles. Without a single word from the provider: quotes.

    `meanwhile` is what the request need not wait for: it is done as soon as that is on its way,
    and may be asked for again.

    A prompt that is too long for the model is tried in short, twice; then LLMContextTooLong says
    what the person can do.
    """

    shorten = partial(_shorter, draft, composed)
    bundle = _Bundle(turn)
    try:
        for event in tool_loop.run(
            composed.request, tools, should_stop=watch.should_stop, shorten=shorten
        ):
            if isinstance(event, RequestSent):
                draft.mark("sent")
                yield from meanwhile()
            elif isinstance(event, TextDelta):
                draft.mark("first_text")
                draft.say(event.text)
                yield from bundle.add(event.text)
            elif isinstance(event, Usage):
                draft.usage = event
                if not draft.was_too_long:  # else what was counted is not what was composed
                    draft.counted_tokens = draft.counted_tokens or event.prompt_tokens
            elif isinstance(event, tool_loop.Ended):
                draft.model, draft.stop_reason = event.model, event.stop_reason
            else:
                yield from bundle.flush()
                yield _said(turn, draft, event)
    except LLMUnavailable as error:
        if draft.text or draft.calls:
            raise
        yield from meanwhile()
        yield from quote(turn, draft, context, tools.said[0], _why_offline(error))
    except LLMContextTooLong as error:
        by_itself = shrinking.is_message_too_long(composed)
        raise LLMContextTooLong(MESSAGE_TOO_LONG if by_itself else TOO_LONG) from error
    yield from bundle.flush()


def _shorter(
    draft: Draft,
    composed: Composed,
    said: Sequence[ChatMessage],
    done: Sequence[ChatMessage],
    tries: int,
) -> tool_loop.Messages | None:
    draft.was_too_long = True
    return shrinking.shorter(composed, said, done, tries)


def _why_offline(error: LLMUnavailable) -> str:
    log.warning("turn.answered_offline", reason=error.code)
    is_capped = isinstance(error, LLMCapReached)
    return offline.cap_reached(str(error)) if is_capped else offline.NOT_REACHABLE


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


def _said(
    turn: Turn,
    draft: Draft,
    event: ThinkingDelta | tool_loop.CallStarted | tool_loop.CallFinished,
) -> Event:
    """What a page hears of a thought or a call; calls are noted in the draft."""
    if isinstance(event, ThinkingDelta):
        body: dict[str, object] = {"text": event.text}
        return Event(type=events.THINKING_DELTA, turn_id=str(turn.pk), body=body)
    body = {"call": str(event.id), "name": event.call.name}
    if isinstance(event, tool_loop.CallStarted):
        draft.begin_call(event.id)
        body["input"] = dict(event.call.input)
        return Event(type=events.TOOL_STARTED, turn_id=str(turn.pk), body=body)
    outcome = event.outcome
    draft.calls.append(
        ToolCall(
            id=event.id,
            user_id=turn.user_id,
            turn=turn,
            position=len(draft.calls),
            name=event.call.name[:50],
            input=dict(event.call.input),
            result=outcome.kept,
            is_error=outcome.is_error,
            summary=outcome.summary[:120],
            called_at=timezone.now(),
        )
    )
    body |= {"ok": not outcome.is_error, "summary": outcome.summary}
    return Event(type=events.TOOL_FINISHED, turn_id=str(turn.pk), body=body)


def quote(
    turn: Turn, draft: Draft, context: TurnContext, asked: SourceMessage, notice: str
) -> Iterator[Event]:
    """The answer without a model."""
    zone = context.now.tzinfo
    assert zone is not None  # noqa: S101 (local_now is aware)
    is_asked = lately.is_asked(asked.text)
    draft.text = offline.reply(
        draft.surfaced or (),
        zone=zone,
        notice=notice,
        kept=remembering.keep_asked(turn.user, asked),
        question=context.open_question,
        files=len(context.files),
        said=lately.said(turn, asked.text) if is_asked else (),
        is_told=not is_asked and not turn.is_off_record,
    )
    draft.model = OFFLINE_MODEL
    yield _delta(turn, draft.text)


def _delta(turn: Turn, text: str) -> Event:
    return Event(type=events.TEXT_DELTA, turn_id=str(turn.pk), body={"text": text})
