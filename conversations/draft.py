"""The answer of a turn as far as it has come."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from conversations.models import ToolCall
from conversations.prompt import Composed
from conversations.types import Prepared
from memory.types import OpenQuestion, Recalled
from mira_site.llm.types import Usage

OUTPUT_LIMIT = "max_tokens"  # the provider's word for an answer that met its limit


@dataclass(slots=True)
class Draft:
    """Text, blocks in order, calls done, and what a turn must remember until it is stored."""

    text: str = ""
    content: list[dict[str, str]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = ""
    was_too_long: bool = False  # the prompt, for the model
    open_question: OpenQuestion | None = None
    prepared: Prepared | None = None
    surfaced: list[Recalled] | None = None  # None until they are kept
    composed: Composed | None = None
    counted_tokens: int = 0  # of the first request, by the provider
    started: float = field(default_factory=time.perf_counter)
    timings_ms: dict[str, float] = field(default_factory=dict)

    @property
    def is_stopped(self) -> bool:
        return self.stop_reason == "stopped"

    @property
    def is_cut(self) -> bool:
        """The answer met the output limit and may be gone on with."""
        return self.stop_reason == OUTPUT_LIMIT

    def say(self, text: str) -> None:
        """More of the answer. Blocks of content hold no space between them, the text does."""
        self.text += text
        if self.content and self.content[-1]["type"] == "text":
            self.content[-1]["text"] += text
        elif text.strip():
            self.content.append({"type": "text", "text": text.lstrip()})

    def begin_call(self, call_id: UUID) -> None:
        """A call has its place among the words from when it begins."""
        self.content.append({"type": "tool_call", "id": str(call_id)})

    def whole_content(self) -> list[Mapping[str, str]]:
        """The blocks, without calls of which nothing came."""
        ended = {str(call.pk) for call in self.calls}
        return [one for one in self.content if one["type"] != "tool_call" or one["id"] in ended]

    def calls_in_order(self) -> list[ToolCall]:
        """As they were begun, with their positions."""
        places = {one.get("id", ""): place for place, one in enumerate(self.content)}
        ordered = sorted(self.calls, key=lambda call: places[str(call.pk)])
        for position, call in enumerate(ordered):
            call.position = position
        return ordered

    def mark(self, step: str) -> None:
        """Note the time since the turn was taken, once for each step."""
        self.timings_ms.setdefault(step, round((time.perf_counter() - self.started) * 1000, 1))
