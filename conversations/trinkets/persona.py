"""Trinket: who MIRA is and how she behaves."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site import prompts


@trinket("persona", slot=Slot.CONSTANT, order=10)
def persona(turn: TurnContext) -> str:
    """The same text for everybody, so that it is cached for everybody."""
    return prompts.fill("conversations", "reply", "system", {})
