"""Trinket: that this is off the record, as long as it is."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext

OFF_THE_RECORD = (
    "The person speaks off the record. What is said now is remembered by nobody and is erased an "
    "hour after its last word at the latest; you can look things up and store nothing. Answer as "
    "you always do, promise no later return to it, and if they ask you to remember something, say "
    "that it takes being back on the record."
)


@trinket("veil", slot=Slot.HUD, order=20)
def veil(turn: TurnContext) -> str:
    return f"<off_the_record>{OFF_THE_RECORD}</off_the_record>" if turn.is_off_record else ""
