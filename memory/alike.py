"""Do two memories that are near in meaning say the same? Where in doubt, no (pure).

Sentences that differ in a number, a date, a name or a "not" are near in meaning and say something
else; those are never taken together.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

ALIKE_COSINE = 0.88  # from here on they may be; spec recall 4.4

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen twenty thirty
    forty fifty hundred thousand million first second third half twice once both
    null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf
    un deux trois quatre cinq sept huit neuf dix uno dos tres cuatro cinco seis siete ocho diez
"""
_DATES = """
    today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december
    heute morgen gestern montag dienstag mittwoch donnerstag freitag samstag sonntag
    morning evening noon night last next before after
"""
_NEGATIONS = """
    not no never none nobody nothing neither nor without cannot stopped quit former longer
    nicht kein keine keinen nie niemals ohne pas jamais rien sans nunca nada sin
"""
_TELLING = frozenset(f"{_NUMBERS} {_DATES} {_NEGATIONS}".split())


def may_stand_for(one: str, other: str) -> bool:
    """Whether neither text holds a number, a date, a negation or a name that the other lacks."""
    return _telling(one) == _telling(other)


@lru_cache(maxsize=1_024)
def _telling(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for match in _WORD.finditer(text):
        word = match.group().replace("’", "'")
        small = word.casefold()
        if small.endswith("n't"):
            found["not"] += 1
        elif small in _TELLING or any(sign.isdigit() for sign in word) or word[0].isupper():
            found[small.removesuffix("'s")] += 1
    return found
