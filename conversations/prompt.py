"""Composes the request of a turn: trinkets, history window, cache breakpoints."""

from __future__ import annotations

from collections.abc import Sequence

from conversations import replay
from conversations.constants import HISTORY_BUDGET_TOKENS, REPLY_MAX_TOKENS
from conversations.models import Message
from conversations.trinkets.base import Slot, in_order
from conversations.types import TurnContext
from mira_site.llm.types import Block, ChatMessage, ModelRequest, SystemSection, Text, Tier
from toolbox import selectors as toolbox


def compose(context: TurnContext, history: Sequence[Message]) -> ModelRequest:
    """The request for the newest message, which is the last of `history` (oldest first).

    Breakpoints: after the constant sections, after the segment's sections, and after the last
    message before the newest, so that the whole history is read from the cache next time.
    """
    rendered = {slot: _sections(slot, context) for slot in Slot}
    system = tuple(
        SystemSection(text="\n\n".join(rendered[slot]), cached=True)
        for slot in (Slot.CONSTANT, Slot.SEGMENT)
        if rendered[slot]
    )
    hud = "\n".join(["<hud>", *rendered[Slot.HUD], "</hud>"])
    *earlier, newest = window(history)
    messages = replay.joined([said for message in earlier for said in replay.said_again(message)])
    before: tuple[Block, ...] = ()
    if messages and messages[-1].role == "user":
        # An unanswered message stands before this one, or the result of a tool after which nothing
        # was said; a user turn may not follow a user turn.
        before = replay.blocks(messages.pop())
    question = ChatMessage(role="user", content=(*before, Text(text=hud), Text(text=newest.text)))
    if messages:
        last = messages[-1]
        messages[-1] = ChatMessage(role=last.role, content=last.content, cached=True)
    return ModelRequest(
        tier=Tier.REPLY,
        system=system,
        messages=(*messages, question),
        tools=toolbox.specs(),
        max_tokens=REPLY_MAX_TOKENS,
    )


def _sections(slot: Slot, context: TurnContext) -> list[str]:
    texts = (trinket.render(context) for trinket in in_order() if trinket.slot == slot)
    return [text for text in texts if text]


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
