"""A prompt that was too long for the model, in short: by rule, and never without the newest words.

First the older turns lose their length, tools and files; then only the last turns stay, and the
memories go. What the turn itself has done with tools stays, its results shorter: nothing is done
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conversations import replay, tool_results
from conversations.constants import (
    REPLAYED_RESULT_MAX_CHARS,
    SHRUNK_CHARS,
    SHRUNK_HARD_CHARS,
    SHRUNK_HARD_TURNS,
    SHRUNK_TURNS,
)
from conversations.prompt import Composed, hud
from mira_site import tokens
from mira_site.llm.types import (
    Block,
    ChatMessage,
    Document,
    Image,
    Text,
    ToolCall,
    ToolResult,
    without_thinking,
)

TRIES = 2
MEMORIES = "memories"  # the section that goes
NO_FILE = "[A file was here. It was left out because the prompt was too long.]"
CUT = "[…, cut because the prompt was too long]"
Messages = tuple[Sequence[ChatMessage], Sequence[ChatMessage]]


def shorter(
    composed: Composed, said: Sequence[ChatMessage], done: Sequence[ChatMessage], tries: int
) -> Messages | None:
    """What comes before the turn's own steps, and these, after `tries` were too long already.

    None where nothing is left to be shortened.
    """
    for number in range(tries + 1, TRIES + 1):
        made = _soft(said, done) if number == 1 else _hard(composed, said, done)
        if made != (tuple(said), tuple(done)):
            return made
    return None


def is_message_too_long(composed: Composed) -> bool:
    """Whether the newest message alone makes most of the prompt, so that resting will not help."""
    asked = replay.blocks(composed.request.messages[-1])
    asked_tokens = sum(tokens.estimate(block.text) for block in asked if isinstance(block, Text))
    return 2 * asked_tokens > composed.tokens


def _soft(said: Sequence[ChatMessage], done: Sequence[ChatMessage]) -> Messages:
    *before, question = said
    turns = _turns(before)
    older = [one for turn in turns[:-SHRUNK_TURNS] for one in turn]
    newest = [one for turn in turns[-SHRUNK_TURNS:] for one in turn]
    if older:  # results of calls that are left out may begin it
        newest[0] = _without_results(newest[0])
    kept = _joined([*(_bare(one, SHRUNK_CHARS) for one in older), *newest])
    results = [_step(one, REPLAYED_RESULT_MAX_CHARS) for one in done[:-1]]
    return (*kept, question), (*results, *done[-1:])


def _hard(composed: Composed, said: Sequence[ChatMessage], done: Sequence[ChatMessage]) -> Messages:
    *before, question = said
    last = [one for turn in _turns(before)[-SHRUNK_HARD_TURNS:] for one in turn]
    kept = _joined([_bare(one, SHRUNK_HARD_CHARS) for one in last])
    results = [
        _step(one, SHRUNK_CHARS if place < len(done) - 1 else REPLAYED_RESULT_MAX_CHARS)
        for place, one in enumerate(done)
    ]
    return (*kept, _without_memories(question, composed)), tuple(results)


def _turns(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Each begins with something that the person said; results of tools are no such thing."""
    turns: list[list[ChatMessage]] = []
    for message in messages:
        is_said = message.role == "user" and any(
            not isinstance(block, ToolResult) for block in replay.blocks(message)
        )
        if is_said or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _joined(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Roles alternate again, and the last message is the breakpoint."""
    made = replay.joined([one for one in messages if one.content])
    if made:
        made[-1] = replace(made[-1], cached=True)
    return tuple(made)


def _bare(message: ChatMessage, most: int) -> ChatMessage:
    """Only what was said, in short; tools and files become notes."""
    if isinstance(message.content, str):
        return replace(message, content=_cut(message.content, most), cached=False)
    made: list[Block] = []
    used: list[str] = []
    for block in without_thinking(message.content):
        if isinstance(block, Text):
            made.append(Text(text=_cut(block.text, most)))
        elif isinstance(block, Image | Document):
            made.append(Text(text=NO_FILE))
        elif isinstance(block, ToolCall):
            used.append(block.name)
    if used:
        made.append(Text(text=f"[Used {', '.join(dict.fromkeys(used))}; left out here.]"))
    return replace(message, content=tuple(made), cached=False)


def _without_results(message: ChatMessage) -> ChatMessage:
    left = tuple(one for one in replay.blocks(message) if not isinstance(one, ToolResult))
    return message if isinstance(message.content, str) else replace(message, content=left)


def _step(message: ChatMessage, most: int) -> ChatMessage:
    """A message of this turn's own steps; its results shorter, everything else as it was."""
    if isinstance(message.content, str):
        return message
    made = tuple(
        replace(block, text=tool_results.by_rule(block.text, most=most))
        if isinstance(block, ToolResult)
        else block
        for block in message.content
    )
    return replace(message, content=made)


def _without_memories(question: ChatMessage, composed: Composed) -> ChatMessage:
    """The newest message whole; what stands before it of unanswered ones in short."""
    whole = hud(composed.sections)
    made: list[Block] = []
    blocks = replay.blocks(question)
    place = next(
        (at for at, one in enumerate(blocks) if isinstance(one, Text) and one.text == whole), 0
    )
    for at, block in enumerate(blocks):
        if at < place and isinstance(block, Image | Document):
            made.append(Text(text=NO_FILE))
        elif at < place and isinstance(block, Text):
            made.append(Text(text=_cut(block.text, SHRUNK_HARD_CHARS)))
        elif isinstance(block, ToolResult):
            continue  # its call was left out
        elif at == place and isinstance(block, Text) and block.text == whole:
            made.append(Text(text=hud(composed.sections, without=(MEMORIES,))))
        else:
            made.append(block)
    return replace(question, content=tuple(made))


def _cut(text: str, most: int) -> str:
    """The beginning; the end too where there is room for both."""
    if len(text) <= most + len(CUT):
        return text
    if most < SHRUNK_HARD_CHARS:
        return f"{text[:most]} {CUT}"
    head = most * 2 // 3
    return f"{text[:head]} {CUT} {text[-(most - head) :]}"
