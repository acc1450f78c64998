"""Trinket: that the last answer met its limit, and the words from which it can go on."""

from __future__ import annotations

from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted

HOW = (
    "Your last answer met the limit of its length and broke off after these words. If the person "
    "wants the rest, go on right after them: say nothing again, begin with no introduction, keep "
    "the form (a list, a table, code) as if there had been no break."
)


@trinket("cut_answer", slot=Slot.HUD, order=60)
def cut_answer(turn: TurnContext) -> str:
    if not turn.last_words:
        return ""
    return f"<cut_answer>\n{HOW}\n<last_words>{quoted(turn.last_words)}</last_words>\n</cut_answer>"
