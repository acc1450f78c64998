"""Does a question ask for what used to be? And how a span of time is written (pure)."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from memory.dates import day

# A question for the past that is missed is answered with the present only; one that is seen in
# vain merely lets past memories in, labelled as past. So the words are taken widely.
_PAST = re.compile(
    r"(?<!\w)(?:"
    # English
    r"used to|(?:just )?before(?! (?:i|we|you|that i can|going|the (?:meeting|trip))(?!\w))"
    r"|previous(?:ly)?|former(?:ly)?|earlier|in the past|back then|back in|at (?:the|that) time"
    r"|once upon|originally|in those days|past (?:jobs?|address(?:es)?|homes?|cars?|employers?)"
    r"|(?:my|our|his|her|their) (?:old|ex|last|past)(?!\w)|ex-\w+|history of"
    r"|no longer|not any ?more|until when|changed? (?:over|since)"
    r"|did (?:i|we) (?:use to|live|work|have|own|drive|like|love|drink|eat|play|prefer|call)"
    r"|(?:was|were) my"
    # German
    r"|früher\w*|vorher\w*|zuvor|damals|einst(?:ig\w*)?|ehemal\w+|vormals|bisher\w*"
    r"|davor|in der vergangenheit|bis wann|nicht mehr"
    r"|(?:mein|unser)\w* (?:alt|letzt|vorig)e[nmrs]?"
    r"|(?:wohnt|lebt|arbeitet|hatt|fuhr|trank|mocht|hieß)e? (?:ich|wir)"
    r"|(?:habe?n?|bin|war(?:en)?) (?:ich|wir)(?: \w+)* (?:gewohnt|gelebt|gearbeitet|gehabt|gefahren"
    r"|besessen|gemocht)"
    # French
    r"|avant(?! (?:de|que|qu['’]|d['’])(?!\w))|autrefois|auparavant|jadis|à l['’]époque"
    r"|ancien(?:ne)?s?|précédent\w*|par le passé|ne \w+ plus"
    r"|(?:habitais|vivais|travaillais|avais|étais|aimais|buvais|conduisais)"
    # Spanish
    r"|antes(?! (?:de|que)(?!\w))|anterior\w*|antigu[oa]s?|antiguamente|en (?:el pasado|aquel)"
    r"|por entonces|ya no|solía\w*|(?:vivía|trabajaba|tenía|conducía|bebía)"
    r")(?!\w)",
    re.IGNORECASE,
)


def asks_for_past(text: str) -> bool:
    """Whether the text asks for, or speaks of, what was and is no more.

    In English, German, French and Spanish. Said too often rather than too seldom.
    """
    return bool(_PAST.search(text.replace("’", "'")))


def span(valid_from: datetime | None, valid_until: datetime | None, zone: ZoneInfo) -> str:
    """From when to when something was true, in the person's zone: "" if neither is known."""
    if valid_from and valid_until:
        return f"from {day(valid_from, zone)} to {day(valid_until, zone)}"
    if valid_until:
        return f"until {day(valid_until, zone)}"
    return f"since {day(valid_from, zone)}" if valid_from else ""
