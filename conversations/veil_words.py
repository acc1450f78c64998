"""Words at the start of a message that draw the veil, or lift it (pure).

A phrase counts as a whole message, or as its beginning with a mark behind it: "Off the record: …",
"Entre nous, …". Without a mark it is the beginning of a sentence ("Unter uns wohnt eine Familie"),
and inside a sentence, in quotes or in a list it is talked about, not wished for.
"""

from __future__ import annotations

import re

DRAWS = (
    "off the record",
    "just between us",
    "unter uns",
    "unter uns gesagt",
    "ganz unter uns",
    "entre nous",
    "entre nous soit dit",
    "entre nosotros",
    "tra noi",
    "detto tra noi",
)
LIFTS = (
    "back on the record",
    "on the record again",
    "wieder offiziell",
    "ab jetzt wieder offiziell",
    "de nouveau officiel",
    "de nuevo oficial",
    "di nuovo ufficiale",
)


def _leading(phrases: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(r"\s+".join(map(re.escape, one.split())) for one in phrases)
    return re.compile(rf"\s*(?:{words})\s*(?:$|[:,;.!…\n]|[-–—]+(?=\s|$))", re.IGNORECASE)


_DRAWS, _LIFTS = _leading(DRAWS), _leading(LIFTS)


def wish(text: str) -> bool | None:
    """True where the message asks for the veil, False where it lifts it, None where neither."""
    if _DRAWS.match(text):
        return True
    return False if _LIFTS.match(text) else None
