"""Trinket: the trace of a part that was finished only after this one had begun."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.trinkets.continuation import as_told
from conversations.types import TurnContext


@trinket("arrived", slot=Slot.HUD, order=25)
def arrived(turn: TurnContext) -> str:
    """It joins the continuation once the cache is cold: until then that stays as it is."""
    zone = turn.now.tzinfo
    return "\n".join(
        as_told("earlier_segment", one, one.trace, zone)
        for one in turn.continuity.arrived
        if one.trace
    )
