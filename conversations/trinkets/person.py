"""Trinket: whom MIRA talks with."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted


@trinket("person", slot=Slot.SEGMENT, order=10)
def person(turn: TurnContext) -> str:
    return f'<person name="{quoted(turn.person.name)}" timezone="{quoted(turn.person.timezone)}"/>'
