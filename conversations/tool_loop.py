"""Reply, tool calls, their results, again until the answer is whole.

Calls that change something are done one after another, in the order in which the model made them;
then those that only look, side by side. Results stand in the order of the calls. Whatever happens,
each call that was begun has a result, so that what is kept is a valid conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import structlog
from django.utils import timezone

from conversations import file_blocks, tool_results
from conversations.tool_guard import Guard
from memory.types import Trust
from mira_site.errors import LLMBadKey, LLMContextTooLong, LLMRefused, LLMUnavailable
from mira_site.llm import client
from mira_site.llm.types import (
    Block,
    ChatMessage,
    Finished,
    ModelRequest,
    RequestSent,
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
    """The last event; `usage` is that of all steps, `stop_reason` that of the last."""

    usage: Usage
    model: str
    stop_reason: str

    @property
    def was_stopped(self) -> bool:
        return self.stop_reason == "stopped"


LoopEvent = RequestSent | TextDelta | ThinkingDelta | CallStarted | CallFinished | Usage | Ended
# What was said before the turn's own steps, these steps, and how often that was too long already:
# the same in short, or None where it cannot be made shorter.
Messages = tuple[Sequence[ChatMessage], Sequence[ChatMessage]]
Shorten = Callable[[Sequence[ChatMessage], Sequence[ChatMessage], int], Messages | None]


def run(
    request: ModelRequest,
    context: ToolContext,
    *,
    should_stop: Callable[[], bool],
    shorten: Shorten = lambda said, done, tries: None,
) -> Iterator[LoopEvent]:
    """The answer as it comes, with the calls between. A Usage follows each step: the sum so far.

    A prompt that is too long for the model is shortened and sent again; no call is done twice for
    it. Raises what the model client raises; what came before stands.
    """
    return _Loop(request, context, should_stop, shorten, said=list(request.messages)).events()


@dataclass(slots=True)
class _Loop:
    """`said` is the prompt's conversation, `done` what the turn has added to it."""

    request: ModelRequest
    context: ToolContext
    should_stop: Callable[[], bool]
    shorten: Shorten
    said: list[ChatMessage]
    done: list[ChatMessage] = field(default_factory=list)
    guard: Guard = field(default_factory=Guard)
    too_long: int = 0  # times
    has_spoken: bool = False
    spent: Usage = field(default_factory=Usage)

    def events(self) -> Iterator[LoopEvent]:
        while True:
            finished = yield from self._step()
            self.guard.pay(finished)
            self.spent = self.spent + finished.usage
            self.has_spoken = self.has_spoken or bool(finished.text)
            yield self.spent
            was_stopped = finished.stop_reason == "stopped"
            if was_stopped or not self._goes_on(finished):
                if not was_stopped:
                    yield from self._explained()
                yield self._ended(finished, finished.stop_reason)
                return
            results = yield from self._calls(finished.tool_calls)
            if self.should_stop():
                yield self._ended(finished, "stopped")
                return
            self._continue(finished, results)

    def _ended(self, finished: Finished, stop_reason: str) -> Ended:
        return Ended(usage=self.spent, model=finished.model, stop_reason=stop_reason)

    def _explained(self) -> Iterator[TextDelta]:
        """Why there were no more tools, as the end of the answer."""
        if self.guard.notice:
            apart = PARAGRAPH if self.has_spoken else ""
            yield TextDelta(text=f"{apart}{self.guard.notice}")

    # --- The model ----------------------------------------------------------------------------

    def _step(self) -> Generator[RequestSent | TextDelta | ThinkingDelta, None, Finished]:
        while True:
            step = replace(
                self.request,
                messages=(*self.said, *self.done),
                no_tools=self.guard.is_closed,
            )
            try:
                return (yield from _streamed(step, self.should_stop, apart=self.has_spoken))
            except LLMContextTooLong:
                # It was refused, so nothing has come of it.
                shorter = self.shorten(self.said, self.done, self.too_long)
                if shorter is None:
                    raise
                self.too_long += 1
                self.said, self.done = list(shorter[0]), list(shorter[1])
                log.warning("turn.prompt_shortened", times=self.too_long)

    def _goes_on(self, finished: Finished) -> bool:
        """Whether there is another step. After calls without a word there is one, to answer."""
        if finished.tool_calls and not self.guard.is_closed:
            return True
        if self.has_spoken or self.guard.is_closed or not self.guard.done:
            return False
        self.guard.close("silent")
        return True

    def _continue(self, finished: Finished, results: list[Block]) -> None:
        """Add what was said and what came back. Of results only the newest are a breakpoint."""
        notice: list[Block] = [Text(text=ANSWER_NOW)] if self.guard.is_closed else []
        if not results:  # nothing was said: an empty message may not stand; the plea joins the last
            where = self.done or self.said
            last = where[-1]
            said: list[Block] = (
                [Text(text=last.content)] if isinstance(last.content, str) else list(last.content)
            )
            where[-1] = replace(last, content=(*said, *notice))
            return
        if self.done:
            self.done[-1] = replace(self.done[-1], cached=False)
        self.done.append(ChatMessage(role="assistant", content=finished.content))
        self.done.append(ChatMessage(role="user", content=(*results, *notice), cached=True))

    # --- The tools ----------------------------------------------------------------------------

    def _calls(
        self, calls: Sequence[ToolCall]
    ) -> Generator[CallStarted | CallFinished, None, list[Block]]:
        """Do the calls of one step; their results in the order of the calls."""
        looking = [call for call in calls if toolbox.may_run_beside_others(call)]
        outcomes: dict[int, ToolOutcome] = {}
        for place, call in enumerate(calls):
            if call not in looking and not self.should_stop():
                outcomes[place] = yield from self._alone(call)
        rest = [place for place, call in enumerate(calls) if call in looking]
        together = yield from self._together([calls[place] for place in rest])
        outcomes |= {rest[index]: outcome for index, outcome in together.items()}
        return [outcomes[place].result for place in sorted(outcomes)]

    def _alone(self, call: ToolCall) -> Generator[CallStarted | CallFinished, None, ToolOutcome]:
        call_id = uuid4()
        yield CallStarted(id=call_id, call=call)
        outcome = self._refused(call)
        if outcome is None:
            outcome = toolbox.execute(
                call,
                replace(self.context, now=timezone.now()),
                result_id=tool_results.short_id(call_id),
                should_stop=self.should_stop,
            )
            self._learn(call_id, call, outcome)
        yield CallFinished(id=call_id, call=call, outcome=outcome)
        return outcome

    def _together(
        self, calls: Sequence[ToolCall]
    ) -> Generator[CallStarted | CallFinished, None, dict[int, ToolOutcome]]:
        """What could be done side by side; places in `calls` that a stop left out are missing."""
        ids = [uuid4() for _ in calls]
        outcomes: dict[int, ToolOutcome] = {}
        let_in: list[int] = []
        for place, call in enumerate(calls):
            refused = None if self.should_stop() else self._refused(call)
            if refused is None:
                let_in.append(place)
                continue
            yield CallStarted(id=ids[place], call=call)
            yield CallFinished(id=ids[place], call=call, outcome=refused)
            outcomes[place] = refused
        running = toolbox.side_by_side(
            [(calls[place], tool_results.short_id(ids[place])) for place in let_in],
            replace(self.context, now=timezone.now()),
            should_stop=self.should_stop,
        )
        for index, outcome in running:
            place = let_in[index]
            if outcome is None:
                yield CallStarted(id=ids[place], call=calls[place])
                continue
            outcomes[place] = outcome
            yield CallFinished(id=ids[place], call=calls[place], outcome=outcome)
        for place in let_in:
            if place in outcomes:
                self._learn(ids[place], calls[place], outcomes[place])
        return outcomes

    def _refused(self, call: ToolCall) -> ToolOutcome | None:
        refusal = self.guard.refusal(call)
        if not refusal:
            return None
        return ToolOutcome(
            call_id=call.id, name=call.name, text=refusal, is_error=True, summary="not done"
        )

    def _learn(self, call_id: UUID, call: ToolCall, outcome: ToolOutcome) -> None:
        """Count it, and hold in the context what it brought in."""
        self.guard.learn(call, outcome)
        self.context = replace(
            self.context,
            lowest_read=_lower(self.context.lowest_read, outcome.trust),
            results={**self.context.results, tool_results.short_id(call_id): outcome.kept},
        )


def _streamed(
    request: ModelRequest, should_stop: Callable[[], bool], *, apart: bool
) -> Generator[RequestSent | TextDelta | ThinkingDelta, None, Finished]:
    """One step. `apart`: something was said before, so its text begins a paragraph."""
    for event in _opened(request, should_stop):
        if isinstance(event, TextDelta):
            if apart:
                yield TextDelta(text=PARAGRAPH)
            apart = False
            yield event
        elif isinstance(event, RequestSent | ThinkingDelta):
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
            has_begun = not isinstance(event, RequestSent)
            yield event
    except LLMRefused as error:
        is_other = has_begun or isinstance(error, LLMBadKey | LLMContextTooLong)
        bare = None if is_other else file_blocks.without(request)
        if bare is None:
            raise
        log.warning("turn.files_refused")
        yield from client.stream(bare, should_stop=should_stop)


def _lower(one: Trust | None, other: Trust | None) -> Trust | None:
    return min((trust for trust in (one, other) if trust is not None), default=None)
