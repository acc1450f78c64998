"""Trinket: advice of the peanut gallery, for two turns."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.models import Observation
from conversations.trinkets.base import Slot, trinket
from conversations.types import TurnContext
from mira_site.prompts import quoted

SILENT = "Put this right in your answer without a word about this notice."
INITIATIVE = "Make this one improvement if it still fits; no lecture, no further questions for it."
OPEN = (
    "This may matter to the person. If it is still unresolved you may say so openly and briefly, "
    "for example: “I had that wrong: …”."
)


@trinket("guidance", slot=Slot.HUD, order=50)
def guidance(turn: TurnContext) -> str:
    if not turn.guidance:
        return ""
    critical = [one for one in turn.guidance if one.severity == Observation.Severity.CRITICAL]
    initiative = [one for one in turn.guidance if one.action == Observation.Action.INITIATIVE]
    standard = [one for one in turn.guidance if one not in critical and one not in initiative]
    parts = [
        *_part("repair", SILENT, standard, turn),
        *_part("initiative", INITIATIVE, initiative, turn),
        *_part("critical", OPEN, critical, turn),
    ]
    return "\n".join(["<guidance>", *parts, "</guidance>"])


def _part(name: str, how: str, advice: Sequence[Observation], turn: TurnContext) -> list[str]:
    if not advice:
        return []
    lines = [
        f'<advice type="{one.action}" turns_left="{one.expires_after_turn - turn.number + 1}">'
        f"{quoted(one.guidance)}</advice>"
        for one in advice
    ]
    return [f"<{name}>", how, *lines, f"</{name}>"]
