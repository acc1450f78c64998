"""Reply, tool calls, their results, again until the answer is whole.

Calls are done in the order in which the model made them. Whatever happens, each call that was begun
has a result, so that what is kept is a valid conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import structlog
from django.utils import timezone

from conversations import file_blocks
from conversations.constants import (
    TOOL_CALLS_MAX,
    TOOL_FAILURES_MAX,
    TOOL_IDENTICAL_MAX,
)
from memory.types import Trust
from mira_site.errors import LLMBadKey, LLMContextTooLong, LLMRefused, LLMUnavailable
from mira_site.llm import client
from mira_site.llm.types import (
    Block,
    ChatMessage,
    Finished,
    ModelRequest,
    StreamEvent,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
)
from toolbox import services as toolbox
from toolbox.types import ToolContext, ToolOutcome

log = structlog.get_logger(__name__)

LIMIT_REACHED = "Not done: this turn has used all its tool calls."
SAID_ALREADY = "Not done: you made this very call before, and its result stands above."
ANSWER_NOW = "No more tools in this turn. Answer the person now with what you have."
PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call is about to be done; `id` is ours, for providers repeat theirs."""

    id: UUID
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    id: UUID
    call: ToolCall
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last event; `usage` is that of all steps."""

    usage: Usage
    model: str
    was_stopped: bool


LoopEvent = TextDelta | ThinkingDelta | CallStarted | CallFinished | Usage | Ended


def run(
    request: ModelRequest, context: ToolContext, *, should_stop: Callable[[], bool]
) -> Iterator[LoopEvent]:
    """The answer as it comes, with the calls between. A Usage follows each step: the sum so far.

    Raises what the model client raises; what came before stands.
    """
    guard = _Guard()
    messages = list(request.messages)
    spent, has_spoken = Usage(), False
    while True:
        step = replace(request, messages=tuple(messages), no_tools=guard.is_closed)
        finished = yield from _streamed(step, should_stop, apart=has_spoken)
        spent, has_spoken = spent + finished.usage, has_spoken or bool(finished.text)
        yield spent
        was_stopped = finished.stop_reason == "stopped"
        if was_stopped or not _goes_on(finished, guard, has_spoken=has_spoken):
            yield Ended(usage=spent, model=finished.model, was_stopped=was_stopped)
            return
        results: list[Block] = []
        for call in finished.tool_calls:
            if should_stop():
                break
            call_id = uuid4()
            yield CallStarted(id=call_id, call=call)
            outcome, context = _do(call, context, guard, should_stop)
            results.append(outcome.result)
            yield CallFinished(id=call_id, call=call, outcome=outcome)
        if should_stop():
            yield Ended(usage=spent, model=finished.model, was_stopped=True)
            return
        _continue(messages, finished, results, guard)


def _streamed(
    request: ModelRequest, should_stop: Callable[[], bool], *, apart: bool
) -> Generator[TextDelta | ThinkingDelta, None, Finished]:
    """One step. `apart`: something was said before, so its text begins a paragraph."""
    for event in _opened(request, should_stop):
        if isinstance(event, TextDelta):
            if apart:
                yield TextDelta(text=PARAGRAPH)
            apart = False
            yield event
        elif isinstance(event, ThinkingDelta):
            yield event
        elif isinstance(event, Finished):
            return event
    raise LLMUnavailable("The model's answer broke off. Try again.")


def _opened(request: ModelRequest, should_stop: Callable[[], bool]) -> Iterator[StreamEvent]:
    """The provider's events. A file that it refuses is named instead, or nothing more could be
    said as long as the file is in the prompt: a damaged PDF, a picture for a model without eyes.
    """
    has_begun = False
    try:
        for event in client.stream(request, should_stop=should_stop):
            has_begun = True
            yield event
    except LLMRefused as error:
        is_other = has_begun or isinstance(error, LLMBadKey | LLMContextTooLong)
        bare = None if is_other else file_blocks.without(request)
        if bare is None:
            raise
        log.warning("turn.files_refused")
        yield from client.stream(bare, should_stop=should_stop)


def _goes_on(finished: Finished, guard: _Guard, *, has_spoken: bool) -> bool:
    """Whether there is another step. After calls without a word there is one more, to answer."""
    if finished.tool_calls and not guard.is_closed:
        return True
    if has_spoken or guard.is_closed or not guard.done:
        return False
    guard.close("silent")
    return True


def _continue(
    messages: list[ChatMessage], finished: Finished, results: list[Block], guard: _Guard
) -> None:
    """Add what was said and what came back. Of the results only the newest are a breakpoint."""
    notice: list[Block] = [Text(text=ANSWER_NOW)] if guard.is_closed else []
    if not results:  # nothing was said: an empty message may not stand, so the plea joins the last
        last = messages[-1]
        said: list[Block] = (
            [Text(text=last.content)] if isinstance(last.content, str) else list(last.content)
        )
        messages[-1] = replace(last, content=(*said, *notice))
        return
    if guard.marked:
        messages[-1] = replace(messages[-1], cached=False)
    guard.marked = True
    messages.append(ChatMessage(role="assistant", content=finished.content))
    messages.append(ChatMessage(role="user", content=(*results, *notice), cached=True))


def _do(
    call: ToolCall, context: ToolContext, guard: _Guard, should_stop: Callable[[], bool]
) -> tuple[ToolOutcome, ToolContext]:
    """The outcome, and the context with what it brought in."""
    if refusal := guard.refusal(call):
        outcome = ToolOutcome(
            call_id=call.id, name=call.name, text=refusal, is_error=True, summary="not done"
        )
        return outcome, context
    now = replace(context, now=timezone.now())
    outcome = toolbox.execute(call, now, should_stop=should_stop)
    guard.learn(call, outcome)
    return outcome, replace(now, lowest_read=_lower(context.lowest_read, outcome.trust))


def _lower(one: Trust | None, other: Trust | None) -> Trust | None:
    return min((trust for trust in (one, other) if trust is not None), default=None)


@dataclass(slots=True)
class _Guard:
    """Ends a loop that does not end by itself: too many calls, the same again, only failures."""

    done: int = 0
    is_closed: bool = False
    marked: bool = False
    failures: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def refusal(self, call: ToolCall) -> str:
        """Why the call is not done, or ''."""
        if self.done >= TOOL_CALLS_MAX:
            self.close("limit")
            return LIMIT_REACHED
        if self.seen[_key(call)] >= TOOL_IDENTICAL_MAX:
            self.close("repeated")
            return SAID_ALREADY
        return ""

    def learn(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.done += 1
        self.seen[_key(call)] += 1
        self.failures[call.name] += outcome.is_error
        if self.failures[call.name] >= TOOL_FAILURES_MAX:
            self.close("failures")

    def close(self, reason: str) -> None:
        if not self.is_closed:
            log.warning("turn.tools_withdrawn", reason=reason, calls=self.done)
        self.is_closed = True


def _key(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(dict(call.input), sort_keys=True, default=str)}"
