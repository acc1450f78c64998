"""What goes to a model and what comes back, in our own words: no name of the SDK crosses here."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from mira_site.llm import constants

Role = Literal["user", "assistant"]
Effort = Literal["", "low", "medium", "high"]


class Tier(StrEnum):
    """What a call is for; settings say which model serves it."""

    REPLY = "reply"
    FAST = "fast"
    BACKGROUND = "background"


class ThinkingMode(StrEnum):
    """DEFAULT leaves it to the model; OFF answers at once; SHOWN also streams what it thinks.

    A wish: models whose way of saying it is not known to us are left at their default.
    """

    DEFAULT = "default"
    OFF = "off"
    SHOWN = "shown"


# --- Blocks of a message ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    media_type: str
    base64: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A PDF. It may stand in a user message only."""

    base64: str
    title: str = ""
    media_type: str = "application/pdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """What the model thought. It is valid only unchanged, after the very prompt it came from.

    Within the tool loop of one turn it goes back; from history it must be taken out, see
    `without_thinking`. `redacted` is the provider's ciphertext where the text is withheld.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model wants a tool. `malformed`: its arguments were no JSON object, and `input` is {}."""

    id: str
    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    malformed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The answer to a ToolCall; it stands in the user message that follows the call."""

    call_id: str
    text: str
    is_error: bool = False


Block = Text | Image | Document | Thinking | ToolCall | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message. `cached`: the provider may keep the prompt up to its end (a breakpoint)."""

    role: Role
    content: str | Sequence[Block]
    cached: bool = False

    @property
    def text(self) -> str:
        """What was said in it, without thoughts, tools and files."""
        return self.content if isinstance(self.content, str) else text_of(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSection:
    """A part of the system prompt. `cached` on the last stable one: the prefix ends there."""

    text: str
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, or of several added up. `input_tokens` are those no cache served."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model. At most four breakpoints (`cached`) in all.

    no_tools     the tools stay described, so that earlier calls are valid, and may not be called
    forced_tool  the model must call this tool, where it takes orders, and is asked to elsewhere
    job          what the call is recorded as
    max_tokens   of the answer, thinking included
    effort       how hard the model should try, where it takes such a word; "" is its own default
    deadline_s   give up after this long, retries included; None waits as long as bytes come
    """

    tier: Tier
    messages: Sequence[ChatMessage]
    system: Sequence[SystemSection] = ()
    tools: Sequence[ToolSpec] = ()
    no_tools: bool = False
    forced_tool: str | None = None
    job: str = "reply"
    max_tokens: int = constants.REPLY_MAX_TOKENS
    thinking: ThinkingMode = ThinkingMode.DEFAULT
    effort: Effort = ""
    deadline_s: float | None = None
    tries: int = constants.MAX_TRIES


# --- What a stream brings ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The request is on its way, and nothing has come yet: time for what need not precede it.

    It comes again with each try.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted:
    """The model has named a tool; its arguments are still coming."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished:
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The whole answer; the last event of a stream that did not fail.

    stop_reason is the provider's ("end_turn", "tool_use", "max_tokens", "refusal", …), or
    "stopped" if `should_stop` ended it: then `content` is what had come, without unfinished calls.
    call_id is the ModelCall row, None where nobody's scope was set.
    """

    content: tuple[Block, ...]
    stop_reason: str
    usage: Usage
    model: str
    call_id: uuid.UUID | None = None

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))


StreamEvent = (
    RequestSent | TextDelta | ThinkingDelta | ToolCallStarted | ToolCallFinished | Finished
)


def text_of(content: Sequence[Block]) -> str:
    return "".join(block.text for block in content if isinstance(block, Text))


def without_thinking(content: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks that may be said again in a later turn."""
    return tuple(block for block in content if not isinstance(block, Thinking))
