"""Composes the request of a turn: trinkets, history window, cache breakpoints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from conversations import file_blocks, replay
from conversations.constants import (
    CACHE_LOOKBACK_BLOCKS,
    HISTORY_BUDGET_TOKENS,
    REPLY_MAX_TOKENS,
)
from conversations.models import Message
from conversations.trinkets.base import Slot, in_order
from conversations.types import TurnContext
from mira_site import tokens
from mira_site.llm.types import (
    Block,
    ChatMessage,
    Effort,
    ModelRequest,
    SystemSection,
    Text,
    ThinkingMode,
    Tier,
    ToolResult,
)
from toolbox import selectors as toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A trinket's text, in its slot."""

    name: str
    slot: Slot
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A request, and what it was made of: sections in order, messages of the thread, estimates."""

    request: ModelRequest
    sections: tuple[Section, ...]
    window: tuple[Message, ...]
    history_tokens: int
    tokens: int


def compose(
    context: TurnContext,
    history: Sequence[Message],
    *,
    effort: Effort = "",
    ratio: float = 1.0,
) -> Composed:
    """The request for the newest message, which is the last of `history` (oldest first).

    `ratio` is by how much the provider counts more tokens than we estimate.

    The prefix up to the newest message stays the same from turn to turn; see `marked`.
    """
    sections = _sections(context)
    system = tuple(
        SystemSection(text="\n\n".join(texts), cached=True)
        for slot in (Slot.CONSTANT, Slot.SEGMENT)
        if (texts := [one.text for one in sections if one.slot == slot])
    )
    kept = window(history, budget=round(HISTORY_BUDGET_TOKENS / ratio))
    file_blocks.load(kept)
    *earlier, newest = kept
    messages = replay.joined([said for message in earlier for said in replay.said_again(message)])
    before: tuple[Block, ...] = ()
    if messages and messages[-1].role == "user":
        # An unanswered message stands before this one, or the result of a tool after which nothing
        # was said; a user turn may not follow a user turn.
        before = replay.blocks(messages.pop())
    files = file_blocks.blocks(newest)
    question = ChatMessage(
        role="user", content=(*before, Text(text=hud(sections)), *files, Text(text=newest.text))
    )
    system, messages = marked(system, messages)
    request = ModelRequest(
        tier=Tier.REPLY,
        system=system,
        messages=(*messages, question),
        tools=toolbox.specs(),
        max_tokens=REPLY_MAX_TOKENS,
        thinking=ThinkingMode.SHOWN,
        effort=effort,
    )
    history_tokens = sum(replay.cost_tokens(message) for message in kept)
    offered = sum(
        tokens.estimate(f"{one.description}{dict(one.input_schema)}") for one in request.tools
    )
    return Composed(
        request=request,
        sections=sections,
        window=tuple(kept),
        history_tokens=history_tokens,
        tokens=history_tokens + offered + sum(tokens.estimate(one.text) for one in sections),
    )


def marked(
    system: Sequence[SystemSection], messages: Sequence[ChatMessage]
) -> tuple[tuple[SystemSection, ...], list[ChatMessage]]:
    """The same with breakpoints, three at most: a fourth is left to the tool loop.

    After the constant sections, after the segment's, and after the last message before the newest,
    so that the whole history is read from the cache next time. A turn of very many calls would put
    the breakpoint of the turn before out of the provider's sight: then it is marked again, in place
    of the constant sections.
    """
    made = list(messages)
    if not made:
        return tuple(system), made
    marks = {len(made) - 1}
    asked = max((place for place, one in enumerate(made) if _is_said(one)), default=0)
    if asked and sum(len(replay.blocks(one)) for one in made[asked:]) > CACHE_LOOKBACK_BLOCKS:
        marks.add(asked - 1)
        system = [replace(one, cached=one is system[-1]) for one in system]
    for place in marks:
        made[place] = replace(made[place], cached=True)
    return tuple(system), made


def _is_said(message: ChatMessage) -> bool:
    """Whether it is the person's own words, and not only what tools returned."""
    return message.role == "user" and any(
        not isinstance(block, ToolResult) for block in replay.blocks(message)
    )


def _sections(context: TurnContext) -> tuple[Section, ...]:
    rendered = ((trinket, trinket.render(context)) for trinket in in_order())
    return tuple(
        Section(name=trinket.name, slot=trinket.slot, text=text)
        for trinket, text in rendered
        if text
    )


def hud(sections: Sequence[Section], *, without: Collection[str] = ()) -> str:
    """The volatile sections, as they stand before the newest words."""
    shown = [one.text for one in sections if one.slot == Slot.HUD and one.name not in without]
    return "\n".join(["<hud>", *shown, "</hud>"])


def window(history: Sequence[Message], *, budget: int = HISTORY_BUDGET_TOKENS) -> list[Message]:
    """The newest messages that fit the budget, beginning with one of the person, oldest first.

    To keep the cached prefix the same from turn to turn, the start moves in steps of a quarter of
    the budget, not with every message.
    """
    total = sum(replay.cost_tokens(message) for message in history)
    kept = list(history)
    if total > budget:
        step = max(1, budget // 4)
        to_drop = -(-(total - budget) // step) * step
        dropped = 0
        while len(kept) > 1 and dropped < to_drop:
            dropped += replay.cost_tokens(kept.pop(0))
    while len(kept) > 1 and kept[0].role != Message.Role.USER:
        kept.pop(0)
    return kept
