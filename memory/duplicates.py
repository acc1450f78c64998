"""When do two texts say the same? Losing a fact is worse than keeping it twice, so: rarely."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

# Words whose absence changes nothing. Negations are not among them, nor anything that counts.
_FILLER = re.compile(
    r"a|an|the|my|our|your|his|her|their|its|this|that|is|are|was|were|be|been|am|i|m|s|ve|has"
    r"|have|had|do|does|did|will|of|in|on|at|to|for|with|and|very|really|also|just"
    r"|der|die|das|den|dem|des|eine?|eine[mn]|meine?n?|ist|sind|war|ich|und"
    r"|le|la|les|une?|des|mon|ma|mes|est|sont|je|et|el|los|las|una|mi|mis|es|son|yo|y",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_INFLECTION_MAX = 2  # letters that may differ at the end: seat, seats; prefers, prefer


def normalised(text: str) -> str:
    """The text without what a retelling changes by accident: case, spaces, quotes, punctuation."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+|[^\w\s.,;:!?…“”„\"'‘’«»()\[\]-]", plain))


def text_hash(text: str, happens_at: datetime | None) -> str:
    """SHA-256, in hex, of the normalised text (or the text itself where nothing is left of it) and
    of the time it speaks of: the same words about another day are another fact."""
    when = happens_at.astimezone(UTC).isoformat() if happens_at else ""
    return hashlib.sha256(f"{normalised(text) or text}\n{when}".encode()).hexdigest()


def says_the_same(
    new: str,
    old: str,
    *,
    new_happens_at: datetime | None = None,
    old_happens_at: datetime | None = None,
) -> bool:
    """Whether everything the new text says is said by the old one, in the same order.

    Meant for texts that are near by embedding. A number, a name, a negation or any other word that
    the old text lacks makes them two facts, as do two different times.
    """
    if new_happens_at is not None and new_happens_at != old_happens_at:
        return False
    remaining = iter(_words(old))
    return all(any(_matches(word, other) for other in remaining) for word in _words(new))


def _words(text: str) -> Sequence[str]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))
    return [word for word in words if not _FILLER.fullmatch(word)]


def _matches(new: str, old: str) -> bool:
    if new.casefold() == old.casefold():
        return True
    if not (new.isalpha() and old.isalpha() and new.islower() and old.islower()):
        return False  # a number, or a name: Anna is not Annika
    stem = max(len(new), len(old)) - _INFLECTION_MAX
    return stem >= 3 and new[:stem] == old[:stem]
