"""A question to a model with one typed answer.

The answer is asked for as the arguments of a tool named like the job: every server that speaks the
Messages API knows tools, and not all know other ways to ask for JSON. Plain JSON in the text will
do too. An answer that breaks its schema is asked for once more, with what was wrong; then, as when
no model can be asked at all, `otherwise` says what happens.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, NoReturn, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from mira_site import prompts
from mira_site.errors import (
    LLMCapReached,
    LLMRefused,
    LLMUnavailable,
    ModelOutputError,
    WorkLeftDue,
)
from mira_site.llm import client, constants, usage
from mira_site.llm.assembly import storable
from mira_site.llm.types import (
    ChatMessage,
    Finished,
    ModelRequest,
    SystemSection,
    Text,
    ThinkingMode,
    Tier,
    ToolCall,
    ToolResult,
    ToolSpec,
)

Answer = TypeVar("Answer", bound=BaseModel)

log = structlog.get_logger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def leave_due() -> NoReturn:
    """`otherwise` where nothing honest can stand in for a model: the work stays due."""
    raise WorkLeftDue("No model could do this now. It stays due and is taken up later.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[Answer]):
    """An answer and where it came from; `reason` says why it is not a model's."""

    answer: Answer
    by_model: bool
    model: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Job(Generic[Answer]):
    """A question asked in the same words each time: prompt files (app, purpose), answer's schema.

    Raises ValueError for a name that cannot be a tool's.
    """

    name: str
    tier: Tier
    prompt: tuple[str, str]
    answer: type[Answer]
    max_tokens: int = constants.JOB_MAX_TOKENS
    deadline_s: float | None = None  # of the whole, a second try included; else by its tier
    tries: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name} cannot be the name of a job: a-z, 0-9 and _, up to 40.")

    def ask(self, values: Mapping[str, str], *, otherwise: Callable[[], Answer]) -> Answer:
        """The model's answer, or what `otherwise` returns or raises."""
        return self.ask_outcome(values, otherwise=otherwise).answer

    def ask_outcome(
        self,
        values: Mapping[str, str],
        *,
        otherwise: Callable[[], Answer],
        meanwhile: Callable[[], object] | None = None,
    ) -> Outcome[Answer]:
        """As `ask`, for callers that keep where the answer came from.

        `meanwhile` may be called, and more than once, while a job with a deadline is on its way.
        """
        request = self._request(values)
        if not client.is_configured():
            return self._without_model(otherwise, reason="not_configured")
        try:
            return self._by_model(request, meanwhile)
        except LLMCapReached as error:
            # What is kept for good is worth waiting for the month in which a model may do it.
            if self.tier is Tier.BACKGROUND:
                raise WorkLeftDue(str(error)) from error
            return self._without_model(otherwise, reason=error.code)
        except (LLMUnavailable, LLMRefused, ModelOutputError) as error:
            return self._without_model(otherwise, reason=error.code)

    def _without_model(self, otherwise: Callable[[], Answer], *, reason: str) -> Outcome[Answer]:
        log.warning("job.fell_back", job=self.name, reason=reason)
        return Outcome(answer=otherwise(), by_model=False, reason=reason)

    def _by_model(
        self, request: ModelRequest, meanwhile: Callable[[], object] | None
    ) -> Outcome[Answer]:
        started = time.monotonic()
        finished = client.complete(request, meanwhile=meanwhile)
        try:
            answer = self._read(finished)
        except ModelOutputError as problem:
            usage.mark_bad_answer(finished.call_id)
            log.info("job.answer_refused", job=self.name, stop_reason=finished.stop_reason)
            again = _repair(request, finished, str(problem))
            if self.deadline_s is not None:
                left_s = self.deadline_s - (time.monotonic() - started)
                if left_s <= 0:
                    raise
                again = replace(again, deadline_s=left_s)
            finished = client.complete(again)
            answer = self._read_again(finished)
        return Outcome(answer=answer, by_model=True, model=finished.model)

    def _read_again(self, finished: Finished) -> Answer:
        try:
            return self._read(finished)
        except ModelOutputError:
            usage.mark_bad_answer(finished.call_id)
            raise

    def _request(self, values: Mapping[str, str]) -> ModelRequest:
        system, user = prompts.question(*self.prompt, values)
        is_fast = self.tier is Tier.FAST
        order = f"Answer only by calling the tool `{self.name}`, once, with the whole answer."
        return ModelRequest(
            tier=self.tier,
            job=self.name,
            # Fast jobs run every turn, within the life of the provider's cache.
            system=(SystemSection(text=f"{system}\n\n{order}", cached=is_fast),),
            messages=(ChatMessage(role="user", content=user),),
            tools=(_tool(self.name, self.answer),),
            forced_tool=self.name,
            max_tokens=self.max_tokens,
            thinking=ThinkingMode.OFF if is_fast else ThinkingMode.DEFAULT,
            deadline_s=self.deadline_s or (constants.FAST_DEADLINE_S if is_fast else None),
            tries=self.tries or (constants.FAST_TRIES if is_fast else constants.MAX_TRIES),
        )

    def _read(self, finished: Finished) -> Answer:
        """The answer, checked. Raises ModelOutputError that tells the model what to do better."""
        if finished.stop_reason == "max_tokens":
            raise ModelOutputError("The answer was cut off. Give a shorter one, complete.")
        if finished.stop_reason == "refusal":
            raise ModelOutputError("The question was declined. Answer what can be answered.")
        given = _given(finished, self.name)
        if not given:
            raise ModelOutputError(f"The answer was empty. Call the tool `{self.name}`.")
        try:
            return self.answer.model_validate(given)
        except ValidationError as error:
            raise ModelOutputError(_problems(error)) from error


@lru_cache(maxsize=128)
def _tool(name: str, answer: type[BaseModel]) -> ToolSpec:
    """The tool whose arguments are the answer; its schema takes milliseconds to make."""
    schema = answer.model_json_schema()
    description = schema.pop("description", None) or "Gives the answer to the question."
    return ToolSpec(name=name, description=description, input_schema=schema)


def _given(finished: Finished, name: str) -> Mapping[str, Any]:
    """What the model gave as its answer, {} for nothing. Raises ModelOutputError if unreadable."""
    for call in finished.tool_calls:
        if call.name == name:
            if call.malformed:
                raise ModelOutputError("The tool's arguments were not valid JSON.")
            return call.input
    text = finished.text.strip()
    if not text:
        return {}
    fenced = _FENCED.search(text)
    candidate = fenced.group(1) if fenced else text[text.find("{") : text.rfind("}") + 1]
    try:
        given = json.loads(candidate)
    except ValueError as error:
        raise ModelOutputError(f"The answer was not JSON. Call the tool `{name}`.") from error
    if not isinstance(given, dict):
        raise ModelOutputError("The answer must be one JSON object.")
    return storable(given)


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, item['loc'])) or 'answer'}: {item['msg']}" for item in found[:10]]
    return "The answer does not fit:\n" + "\n".join(lines)


def _repair(request: ModelRequest, finished: Finished, problem: str) -> ModelRequest:
    """The same question with the bad answer and what is wrong with it."""
    results = [
        ToolResult(call_id=call.id, text=problem, is_error=True) for call in finished.tool_calls
    ]
    said = any(isinstance(block, Text | ToolCall) for block in finished.content)
    answered = [ChatMessage(role="assistant", content=finished.content)] if said else []
    asked_again = ChatMessage(
        role="user", content=[*results, Text(text=f"{problem}\n\nAnswer again, in full.")]
    )
    return replace(request, messages=(*request.messages, *answered, asked_again))
