"""Messages of the thread as a model reads them again, their tool calls and results in place."""

from __future__ import annotations

from collections.abc import Sequence

from conversations import file_blocks, tool_results
from conversations.models import Message, ToolCall
from mira_site import tokens
from mira_site.llm import types as llm


def said_again(message: Message) -> list[llm.ChatMessage]:
    """One message of the thread; several where tools were used, since results are the user's.

    Empty for a message that holds nothing. Expects selectors.history, and file_blocks.load.
    """
    files = file_blocks.blocks(message)
    if files:
        content = (*files, llm.Text(text=message.text)) if message.text else files
        return [llm.ChatMessage(role="user", content=content)]
    if not message.text:
        return []
    role: llm.Role = "user" if message.role == Message.Role.USER else "assistant"
    calls = _calls(message)
    if not calls:
        return [llm.ChatMessage(role=role, content=message.text)]
    made: list[llm.ChatMessage] = []
    said: list[llm.Block] = []
    results: list[llm.Block] = []
    for block in message.content:
        call = calls.get(block.get("id"))
        if call is not None:
            said.append(llm.ToolCall(id=_wire_id(call), name=call.name, input=call.input))
            results.append(_result(call))
        elif block.get("text"):
            if results:
                made += _step(said, results)
                said, results = [], []
            said.append(llm.Text(text=block["text"]))
    return made + _step(said, results)


def cost_tokens(message: Message) -> int:
    """What the message costs in a prompt."""
    used = "".join(
        f"{call.name}{call.input}{tool_results.replayed(call)}" for call in _calls(message).values()
    )
    said = tokens.estimate(message.text) + (tokens.estimate(used) if used else 0)
    return said + file_blocks.cost_tokens(message)


def joined(messages: Sequence[llm.ChatMessage]) -> list[llm.ChatMessage]:
    """Neighbours of one role as one message: roles must alternate. Texts stay apart."""
    made: list[llm.ChatMessage] = []
    for message in messages:
        if made and made[-1].role == message.role:
            made[-1] = _one(made[-1], message)
        else:
            made.append(message)
    return made


def blocks(message: llm.ChatMessage) -> tuple[llm.Block, ...]:
    content = message.content
    return (llm.Text(text=content),) if isinstance(content, str) else tuple(content)


def _one(first: llm.ChatMessage, second: llm.ChatMessage) -> llm.ChatMessage:
    if isinstance(first.content, str) and isinstance(second.content, str):
        return llm.ChatMessage(role=first.role, content=f"{first.content}\n\n{second.content}")
    return llm.ChatMessage(role=first.role, content=(*blocks(first), *blocks(second)))


def _step(said: list[llm.Block], results: list[llm.Block]) -> list[llm.ChatMessage]:
    made = [llm.ChatMessage(role="assistant", content=tuple(said))] if said else []
    return made + ([llm.ChatMessage(role="user", content=tuple(results))] if results else [])


def has_calls(message: Message) -> bool:
    """Whether tools were used for it: its content names each call."""
    return message.role == Message.Role.ASSISTANT and any(
        block.get("type") == "tool_call" for block in message.content
    )


def _calls(message: Message) -> dict[str, ToolCall]:
    if message.turn_id is None or not has_calls(message):
        return {}
    assert message.turn is not None  # noqa: S101 (by its id, one line above)
    return {str(call.pk): call for call in message.turn.tool_calls.all()}


def _wire_id(call: ToolCall) -> str:
    return f"toolu_{call.pk.hex}"


def _result(call: ToolCall) -> llm.ToolResult:
    return llm.ToolResult(
        call_id=_wire_id(call), text=tool_results.replayed(call), is_error=call.is_error
    )
