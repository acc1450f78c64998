"""One tool call: arguments checked, run within its time, its result cut to size.

Whatever goes wrong becomes a result that tells the model what to do instead; a turn never breaks
on a tool. Arguments are the person's and never logged.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import structlog
from django.db import DatabaseError, connection
from pydantic import BaseModel, ValidationError

from mira_site.errors import MiraError, RequestError, ToolError
from mira_site.llm.types import ToolCall
from toolbox import registry
from toolbox.constants import (
    RESULT_KEPT_MAX_CHARS,
    RESULT_MAX_CHARS,
    STOP_POLL_S,
    SUMMARY_MAX_CHARS,
)
from toolbox.types import Answer, Tool, ToolContext, ToolOutcome

log = structlog.get_logger(__name__)

BROKE = "The tool failed for a reason of its own, not because of your call. Go on without it."
TOO_LONG = (
    "The tool took too long and was given up; it may or may not have done its work. Look before "
    "you try again, or go on without it."
)
STOPPED = "The person stopped the answer."
OFF_RECORD = (
    "Not done: the person speaks off the record, so nothing may be written or changed. Looking "
    "things up works. Tell them that it was not stored, and that it takes being back on the record."
)


def may_run_beside_others(call: ToolCall) -> bool:
    """Whether the call changes nothing, so that its place among others does not matter."""
    tool = registry.find(call.name)
    if tool is None or not tool.parallel:
        return False
    try:
        return tool.may_run_beside_others(_arguments(tool, call))
    except ToolError:
        return False


def execute(
    call: ToolCall,
    context: ToolContext,
    *,
    result_id: str = "",
    should_stop: Callable[[], bool] = lambda: False,
) -> ToolOutcome:
    """Do one call. Never raises for what a model, a tool or a time limit did.

    `result_id` names the result, so that what is cut of it can be asked for.
    """
    tool = registry.find(call.name)
    if tool is None:
        known = ", ".join(one.name for one in registry.every()) or "none"
        return _error(call, f"There is no tool of this name. Tools: {known}.", "unknown tool")
    try:
        arguments = _arguments(tool, call)
    except ToolError as problem:
        return _error(call, str(problem), tool.summary)
    if context.is_off_record and not tool.may_run_beside_others(arguments):
        return _error(call, OFF_RECORD, "nothing is written off the record")
    started = time.monotonic()
    answer, error = _Run(tool, arguments, context).within(tool.limit_s, should_stop)
    log.info(
        "tool.called",
        tool=tool.name,
        ok=answer is not None,
        took_ms=round((time.monotonic() - started) * 1000),
    )
    if answer is None:
        return _error(call, error, tool.summary)
    whole = answer.text[:RESULT_KEPT_MAX_CHARS]
    return ToolOutcome(
        call_id=call.id,
        name=call.name,
        text=_cut(whole, result_id) or "Done.",
        is_error=False,
        summary=(answer.summary or tool.summary)[:SUMMARY_MAX_CHARS],
        trust=answer.trust,
        whole=whole if len(whole) > RESULT_MAX_CHARS else "",
    )


def _arguments(tool: Tool, call: ToolCall) -> BaseModel:
    """Raises ToolError with what is wrong and the schema."""
    if call.malformed:
        raise ToolError(f"The arguments were no complete JSON object. {_wanted(tool)}")
    try:
        return tool.arguments.model_validate(dict(call.input))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = [
            f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in found[:10]
        ]
        raise ToolError("\n".join(["The arguments do not fit.", *lines, _wanted(tool)])) from error


def _wanted(tool: Tool) -> str:
    return f"They must fit this schema: {json.dumps(tool.schema, ensure_ascii=False)}"


class _Run:
    """A tool in a thread of its own, so that it can be given up: by time, or by the person.

    The thread has its own database connection, on which PostgreSQL keeps the time limit too, so
    a call that was given up does not work on for long.
    """

    def __init__(self, tool: Tool, arguments: BaseModel, context: ToolContext) -> None:
        self._tool, self._arguments, self._context = tool, arguments, context
        self._answer: Answer | None = None
        self._error = BROKE
        self._over = threading.Event()

    def within(self, limit_s: float, should_stop: Callable[[], bool]) -> tuple[Answer | None, str]:
        """The answer, or None and what to tell the model."""
        scope = copy_context()
        name = f"tool-{self._tool.name}"
        threading.Thread(target=scope.run, args=(self._work,), name=name, daemon=True).start()
        until = time.monotonic() + limit_s
        while not self._over.wait(STOP_POLL_S):
            if should_stop():
                return None, STOPPED
            if time.monotonic() >= until:
                log.warning("tool.given_up", tool=self._tool.name)
                return None, TOO_LONG
        return self._answer, self._error

    def _work(self) -> None:
        try:
            self._bound_statements()
            given = self._tool.run(self._context, self._arguments)
            self._answer = Answer(text=given) if isinstance(given, str) else given
        except RequestError as error:
            self._error = "\n".join([str(error), *error.fields.values()])
        except MiraError as error:
            self._error = str(error)
        except Exception:  # a tool's bug costs its result, not the turn
            log.exception("tool.broke", tool=self._tool.name)
        finally:
            connection.close()
            self._over.set()

    def _bound_statements(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET statement_timeout = %s", [round(self._tool.limit_s * 1000)])
        except DatabaseError as error:  # the tool may not need it, and if it does, it says so
            log.warning("tool.without_database", reason=type(error).__name__)


def _cut(text: str, result_id: str = "") -> str:
    if len(text) <= RESULT_MAX_CHARS:
        return text
    left_out = len(text) - RESULT_MAX_CHARS
    ask = f"read_tool_result {result_id} gives them" if result_id else "ask for less"
    return f"{text[:RESULT_MAX_CHARS]}\n[{left_out:,} characters more were cut; {ask}.]"


def _error(call: ToolCall, text: str, summary: str) -> ToolOutcome:
    return ToolOutcome(
        call_id=call.id, name=call.name, text=_cut(text), is_error=True, summary=summary
    )
