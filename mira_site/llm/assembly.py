"""The events of the Messages API, put together to an answer.

Events are read leniently, as plain JSON: many servers speak this protocol, few send every field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mira_site import tokens
from mira_site.llm.types import (
    Block,
    Finished,
    StreamEvent,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    Usage,
)

RawEvent = Mapping[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class _Open:
    """A block that is still coming, in pieces."""

    kind: str
    id: str = ""
    name: str = ""
    signature: str = ""
    redacted: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)


class Assembler:
    """Collects one answer. `feed` turns each event into ours; `finished` sums up."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.is_complete = False
        self.has_yielded = False
        self.stop_reason = ""
        self._open: dict[int, _Open] = {}
        self._content: dict[int, Block] = {}
        self._counts: dict[str, int] = {}

    def feed(self, event: RawEvent) -> Iterator[StreamEvent]:
        for made in self._read(event):
            self.has_yielded = True
            yield made

    def _read(self, event: RawEvent) -> Iterator[StreamEvent]:
        match event.get("type"):
            case "content_block_delta":
                yield from self._delta(event["index"], event["delta"])
            case "content_block_start":
                yield from self._start(event["index"], event["content_block"])
            case "content_block_stop":
                yield from self._stop(event["index"])
            case "message_start":
                message = event["message"]
                self.model = message.get("model") or self.model
                self._count(message.get("usage"))
            case "message_delta":
                self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
                self._count(event.get("usage"))
            case "message_stop":
                self.is_complete = True

    def _start(self, index: int, block: RawEvent) -> Iterator[StreamEvent]:
        kind = block.get("type", "")
        opened = self._open[index] = _Open(
            kind=kind,
            id=block.get("id", ""),
            name=block.get("name", ""),
            signature=block.get("signature") or "",
            redacted=block.get("data", "") if kind == "redacted_thinking" else "",
            given=block.get("input") or {},
        )
        if kind == "tool_use":
            yield ToolCallStarted(id=opened.id, name=opened.name)
        elif kind in ("text", "thinking"):
            yield from self._piece(opened, block.get(kind) or "")

    def _delta(self, index: int, delta: RawEvent) -> Iterator[StreamEvent]:
        opened = self._open.get(index)
        if opened is None:
            return
        match delta.get("type"):
            case "text_delta":
                yield from self._piece(opened, delta["text"])
            case "thinking_delta":
                yield from self._piece(opened, delta["thinking"])
            case "input_json_delta":
                opened.pieces.append(delta["partial_json"])
            case "signature_delta":
                opened.signature += delta["signature"]

    def _piece(self, opened: _Open, text: str) -> Iterator[StreamEvent]:
        text = storable(text)
        if not text:
            return
        opened.pieces.append(text)
        yield TextDelta(text=text) if opened.kind == "text" else ThinkingDelta(text=text)

    def _stop(self, index: int) -> Iterator[StreamEvent]:
        opened = self._open.pop(index, None)
        if opened is None:
            return
        block = _closed(opened)
        if block is None:
            return
        self._content[index] = block
        if isinstance(block, ToolCall):
            yield ToolCallFinished(call=block)

    def _count(self, usage: RawEvent | None) -> None:
        # Counts are cumulative, and later events leave out what they do not change.
        self._counts.update({k: v for k, v in (usage or {}).items() if isinstance(v, int)})

    def usage(self) -> Usage:
        """Tokens so far. The output of an answer that broke off is counted by estimate."""
        output = self._counts.get("output_tokens", 0)
        if not self.is_complete:
            said = "".join(piece for opened in self._open.values() for piece in opened.pieces)
            done = "".join(
                block.text for block in self._content.values() if isinstance(block, Text | Thinking)
            )
            output = max(output, tokens.estimate(said) + tokens.estimate(done))
        return Usage(
            input_tokens=self._counts.get("input_tokens", 0),
            output_tokens=output,
            cache_read_tokens=self._counts.get("cache_read_input_tokens", 0),
            cache_write_tokens=self._counts.get("cache_creation_input_tokens", 0),
        )

    def finished(self, *, was_stopped: bool = False) -> Finished:
        """The answer as it stands. Blocks still open count if they are text."""
        content = dict(self._content)
        for index, opened in self._open.items():
            if opened.kind == "text" and (block := _closed(opened)) is not None:
                content[index] = block
        return Finished(
            content=tuple(block for _, block in sorted(content.items(), key=lambda item: item[0])),
            stop_reason="stopped" if was_stopped else self.stop_reason or "end_turn",
            usage=self.usage(),
            model=self.model,
        )


def _closed(opened: _Open) -> Block | None:
    """The block the pieces make, or None for an empty one or a kind we do not ask for."""
    said = "".join(opened.pieces)
    match opened.kind:
        case "text":
            return Text(text=said) if said else None
        case "thinking":
            return Thinking(text=said, signature=opened.signature)
        case "redacted_thinking":
            return Thinking(redacted=opened.redacted)
        case "tool_use":
            return _tool_call(opened, said)
        case _:
            return None


def _tool_call(opened: _Open, said: str) -> ToolCall:
    try:
        arguments = json.loads(said) if said.strip() else opened.given
    except ValueError:
        arguments = None
    if not isinstance(arguments, Mapping):
        return ToolCall(id=opened.id, name=opened.name, malformed=True)
    return ToolCall(id=opened.id, name=opened.name, input=storable(arguments))


def storable(given: T) -> T:
    """Text, or parsed JSON, without NUL: models write one now and then, no database takes it."""
    cleaned: Any = given
    if isinstance(given, str):
        cleaned = given.replace("\x00", "")
    elif isinstance(given, Mapping):
        cleaned = {storable(name): storable(value) for name, value in given.items()}
    elif isinstance(given, list):
        cleaned = [storable(item) for item in given]
    return cleaned  # type: ignore[no-any-return]
