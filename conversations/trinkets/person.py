"""Trinket: whom MIRA talks with."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import in_quotes


@trinket("person", slot=Slot.SEGMENT, order=10)
def person(turn: TurnContext) -> str:
    name, zone = in_quotes(turn.person.name), in_quotes(turn.person.timezone)
    language = f' answers_in="{turn.person.language}"' if turn.person.language else ""
    return f'<person name="{name}" timezone="{zone}"{language}/>'
