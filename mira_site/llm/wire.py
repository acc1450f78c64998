"""Our values as the JSON of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from mira_site.llm import constants
from mira_site.llm.types import (
    Block,
    ChatMessage,
    Document,
    Image,
    ModelRequest,
    SystemSection,
    Text,
    Thinking,
    ThinkingMode,
    ToolCall,
    ToolResult,
    ToolSpec,
)

JSONObject = dict[str, Any]
_BREAKPOINT: Mapping[str, str] = {"type": "ephemeral"}


def body(
    request: ModelRequest, *, model: str, may_force: bool, takes_effort: bool = False
) -> JSONObject:
    """The request's body. Raises ValueError if it has more breakpoints than the API allows."""
    marked_sections = [section for section in request.system if section.cached]
    marked_messages = [message for message in request.messages if message.cached]
    if len(marked_sections) + len(marked_messages) > constants.MAX_BREAKPOINTS:
        raise ValueError(f"A prompt has at most {constants.MAX_BREAKPOINTS} cache breakpoints.")
    made: JSONObject = {
        "model": model,
        "max_tokens": request.max_tokens,
        "messages": _messages(request),
        "stream": True,
    }
    if system := [_section(section) for section in request.system if section.text.strip()]:
        made["system"] = system
    if request.tools:
        made["tools"] = [_tool(tool) for tool in request.tools]
    if request.tools and request.no_tools:
        made["tool_choice"] = {"type": "none"}
    elif request.forced_tool and may_force:
        made["tool_choice"] = {"type": "tool", "name": request.forced_tool}
    if thinking := _thinking(request.thinking, model):
        made["thinking"] = thinking
    if request.effort and takes_effort:
        made["output_config"] = {"effort": request.effort}
    return made


def _messages(request: ModelRequest) -> list[JSONObject]:
    # The API refuses empty blocks and empty messages: a stopped turn may have left one.
    made = ((message, _content(message)) for message in request.messages)
    return [{"role": message.role, "content": content} for message, content in made if content]


def _content(message: ChatMessage) -> list[JSONObject]:
    blocks = [Text(text=message.content)] if isinstance(message.content, str) else message.content
    made = [wired for block in blocks if (wired := _block(block)) is not None]
    if message.cached:
        markable = [wired for wired in made if not wired["type"].endswith("thinking")]
        if markable:
            markable[-1]["cache_control"] = dict(_BREAKPOINT)
    return made


def _block(block: Block) -> JSONObject | None:
    """The block as JSON, or None for one that may not be sent."""
    match block:
        case Text():
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case Image() | Document():
            return _file(block)
        case Thinking():
            return _thought(block)
        case ToolCall():
            return {
                "type": "tool_use",
                "id": block.id,
                "name": block.name,
                "input": dict(block.input),
            }
        case ToolResult():
            return {
                "type": "tool_result",
                "tool_use_id": block.call_id,
                "content": block.text,
                "is_error": block.is_error,
            }
        case _:
            assert_never(block)


def _file(block: Image | Document) -> JSONObject:
    source = {"type": "base64", "media_type": block.media_type, "data": block.base64}
    if isinstance(block, Image):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **({"title": block.title} if block.title else {})}


def _thought(block: Thinking) -> JSONObject | None:
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.redacted}
    if block.signature:
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return None  # local servers do not sign, and none of them wants its thoughts back


def _section(section: SystemSection) -> JSONObject:
    made: JSONObject = {"type": "text", "text": section.text}
    if section.cached:
        made["cache_control"] = dict(_BREAKPOINT)
    return made


def _tool(tool: ToolSpec) -> JSONObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.input_schema),
    }


def _thinking(mode: ThinkingMode, model: str) -> JSONObject | None:
    if mode is ThinkingMode.SHOWN and model.startswith(constants.THINKING_SHOWN):
        return {"type": "adaptive", "display": "summarized"}
    if mode is ThinkingMode.OFF:
        ways = constants.THINKING_OFF.items()
        return next(({"type": way} for start, way in ways if model.startswith(start)), None)
    return None
