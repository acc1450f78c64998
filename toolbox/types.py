"""Values that cross the toolbox's border."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from memory.types import SourceMessage, Trust
from mira_site.accounts.models import User
from mira_site.llm.types import ToolResult, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """For whom and when a tool works.

    `said` are the person's own messages of this turn. `lowest_read` is the least trusted class of
    what tools have brought in during the turn: what is written now may be under its influence.
    `results` are the results of the turn so far, whole, by their ids. What `is_off_record` may look
    and write nothing.
    """

    user: User
    turn_id: UUID
    segment_id: UUID
    now: datetime
    said: tuple[SourceMessage, ...] = ()
    lowest_read: Trust | None = None
    results: Mapping[str, str] = field(default_factory=dict)
    is_off_record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool returns where text alone is not enough.

    `summary` is a quiet line for the person, "" for the tool's own; `trust` the class of what the
    text brings in, None where all of it is the person's own world.
    """

    text: str
    summary: str = ""
    trust: Trust | None = None


ToolFunction = Callable[[ToolContext, Any], str | Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    arguments: type[BaseModel]
    run: ToolFunction
    summary: str
    limit_s: float
    parallel: bool | frozenset[str] = False

    def may_run_beside_others(self, arguments: BaseModel) -> bool:
        """Whether a call with these arguments changes nothing."""
        if isinstance(self.parallel, bool):
            return self.parallel
        return getattr(arguments, "operation", None) in self.parallel

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, input_schema=self.schema)

    @property
    def schema(self) -> Mapping[str, object]:
        return _schema(self.arguments)


@lru_cache(maxsize=128)
def _schema(arguments: type[BaseModel]) -> Mapping[str, object]:
    """The arguments as JSON schema; titles and the class's docstring say nothing to a model.

    It takes milliseconds to make, and every turn names every tool.
    """
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for one in schema.get("properties", {}).values():
        one.pop("title", None)
    return schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What became of one call. `text` is for the model, `summary` for the person.

    `whole` is the result before it was cut to a size that a prompt can carry, "" where it was not.
    """

    call_id: str
    name: str
    text: str
    is_error: bool
    summary: str
    trust: Trust | None = None
    whole: str = ""

    @property
    def kept(self) -> str:
        """What is stored of it."""
        return self.whole or self.text

    @property
    def result(self) -> ToolResult:
        return ToolResult(call_id=self.call_id, text=self.text, is_error=self.is_error)
