"""What the Messages API takes and gives, as plain JSON: the protocol half of fake_anthropic."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REPLY_MODEL, FAST_MODEL, BACKGROUND_MODEL = "fake-reply", "fake-fast", "fake-background"
_TIERS = {REPLY_MODEL: "reply", FAST_MODEL: "fast", BACKGROUND_MODEL: "background"}
_FAST_NAMES = ("haiku", "fast", "mini")
_ASKED_TOOL = re.compile(r"calling the tool `(\w+)`")
_KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
          404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
          529: "overloaded_error"}  # fmt: skip


def tier(model: str) -> str:
    if model in _TIERS:
        return _TIERS[model]
    return "fast" if any(name in model for name in _FAST_NAMES) else "reply"


def job(body: Mapping[str, Any]) -> str | None:
    """The tool the request orders, or asks for in words where it may not give orders."""
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "tool":
        return str(choice["name"])
    asked = _ASKED_TOOL.search(json.dumps(body.get("system") or ""))
    return asked.group(1) if asked and len(body.get("tools") or ()) == 1 else None


def refusal(body: Mapping[str, Any], refuses_forced_tools: bool) -> str | None:
    said = [block for message in body["messages"] for block in blocks(message)]
    parts = [*_list(body.get("system")), *said]
    marked = [part for part in (*parts, *(body.get("tools") or ())) if "cache_control" in part]
    forced = (body.get("tool_choice") or {}).get("type") in ("tool", "any")
    checks = (
        (bool({"temperature", "top_p", "top_k"} & set(body)), "Extra inputs are not permitted"),
        (len(marked) > 4, "A maximum of 4 blocks with cache_control may be provided."),
        (
            any(part.get("type") == "text" and not part["text"].strip() for part in parts),
            "messages: text content blocks must be non-empty",
        ),
        (not body["messages"], "messages: at least one message is required"),
        (
            bool(body["messages"]) and body["messages"][-1]["role"] != "user",
            "This model does not support assistant message prefill.",
        ),
        (
            forced and refuses_forced_tools,
            'tool_choice: type "tool" and "any" are not supported for this model.',
        ),
        (not _calls_are_answered(body["messages"]), "tool_use ids without tool_result blocks"),
    )
    return next((message for is_wrong, message in checks if is_wrong), None)


def _calls_are_answered(messages: Sequence[Mapping[str, Any]]) -> bool:
    called: set[str] = set()
    for message in messages:
        kinds = [(block["type"], block) for block in blocks(message)]
        answered = {block["tool_use_id"] for kind, block in kinds if kind == "tool_result"}
        if message["role"] == "user":
            if answered != called:
                return False
            called = set()
        else:
            called |= {block["id"] for kind, block in kinds if kind == "tool_use"}
    return not called


def blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _list(message["content"])


def _list(content: Any) -> list[Mapping[str, Any]]:
    if not content:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def text_of(message: Mapping[str, Any]) -> str:
    return "\n".join(
        str(block.get("text") or block.get("content") or "") for block in blocks(message)
    )


def prompt_parts(body: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The prompt in the order in which it is cached, in pieces; is there a breakpoint after it?"""
    tools = [("tool", tool) for tool in body.get("tools") or ()]
    system = [("system", part) for part in _list(body.get("system"))]
    said = [(message["role"], block) for message in body["messages"] for block in blocks(message)]
    for place, part in (*tools, *system, *said):
        plain = {key: value for key, value in part.items() if key != "cache_control"}
        yield json.dumps([place, plain], sort_keys=True), "cache_control" in part


def tokens(text: str) -> int:
    return -(-len(text) // 3)


def prompt_tokens(body: Mapping[str, Any]) -> int:
    return sum(tokens(text) for text, _ in prompt_parts(body))


def smallest(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Any:
    """The smallest value a JSON schema of pydantic allows."""
    known = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return smallest(known[schema["$ref"].rpartition("/")[2]], known)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return smallest(options[0], known)
    if schema.get("type") == "object":
        return {
            name: smallest(schema["properties"][name], known) for name in schema.get("required", ())
        }
    if schema.get("type") == "array":
        return [smallest(schema["items"], known) for _ in range(schema.get("minItems", 0))]
    least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    plain = {"string": "x" * max(1, schema.get("minLength", 1)), "boolean": False}
    return plain.get(schema.get("type", ""), least)


def opened(kind: str, name: str) -> dict[str, Any]:
    match kind:
        case "tool_use":
            call_id = f"toolu_{uuid.uuid4().hex[:20]}"
            return {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case _:
            return {"type": "text", "text": ""}


def delta(kind: str, piece: str) -> dict[str, str]:
    match kind:
        case "tool_use":
            return {"type": "input_json_delta", "partial_json": piece}
        case "thinking":
            return {"type": "thinking_delta", "thinking": piece}
        case _:
            return {"type": "text_delta", "text": piece}


def envelope(model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def error(status: int, message: str) -> dict[str, Any]:
    kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}
