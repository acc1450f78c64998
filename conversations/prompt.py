"""Composes the request of a turn: trinkets, history window, cache breakpoints."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.constants import HISTORY_BUDGET_TOKENS, REPLY_MAX_TOKENS
from conversations.models import Message
from conversations.trinkets.base import Slot, in_order
from conversations.types import TurnContext
from mira_site import tokens
from mira_site.llm.types import ChatMessage, ModelRequest, SystemSection, Text, Tier


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
    messages = _alternating(earlier)
    question = ChatMessage(role="user", content=(Text(text=hud), Text(text=newest.text)))
    if messages and messages[-1].role == "user":
        # An unanswered message stands before this one; a user turn may not follow a user turn.
        unanswered = messages.pop()
        question = ChatMessage(
            role="user",
            content=(Text(text=unanswered.text), Text(text=hud), Text(text=newest.text)),
        )
    if messages:
        last = messages[-1]
        messages[-1] = ChatMessage(role=last.role, content=last.content, cached=True)
    return ModelRequest(
        tier=Tier.REPLY,
        system=system,
        messages=(*messages, question),
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
    total = sum(tokens.estimate(message.text) for message in history)
    kept = list(history)
    if total > budget:
        step = max(1, budget // 4)
        to_drop = -(-(total - budget) // step) * step
        dropped = 0
        while len(kept) > 1 and dropped < to_drop:
            dropped += tokens.estimate(kept.pop(0).text)
    while len(kept) > 1 and kept[0].role != Message.Role.USER:
        kept.pop(0)
    return kept


def _alternating(history: Sequence[Message]) -> list[ChatMessage]:
    """Messages with the texts of neighbours of one role joined: roles must alternate."""
    joined: list[ChatMessage] = []
    for message in history:
        if not message.text:
            continue
        role: str = message.role
        if joined and joined[-1].role == role:
            joined[-1] = ChatMessage(
                role=joined[-1].role, content=f"{joined[-1].text}\n\n{message.text}"
            )
        elif role == Message.Role.USER:
            joined.append(ChatMessage(role="user", content=message.text))
        else:
            joined.append(ChatMessage(role="assistant", content=message.text))
    return joined
