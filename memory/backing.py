"""Did the person themselves say what a model wants to remember?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from memory import details
from memory.dates import written
from memory.sentences import around, best_sentence
from memory.types import SourceMessage, SourceRef
from memory.voices import own_words

_WORD = re.compile(r"\w{3,}")
# Words of framing, in which a memory differs from the sentence it rests on.
_FRAMING = re.compile(
    r"the|and|that|this|has|have|had|are|was|were|his|her|their|user|said|says"
    r"|der|die|das|und|ist|hat|sein|ihr"
)
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|en|st|[sdent])$")
_STEM = 5  # letters by which words of different endings are alike: moved, moves; Boot, Bootes
SHARE = 0.6  # of a memory's words that the person's own must hold


def backing(
    text: str, said: Sequence[SourceMessage], *, names: Sequence[str], days: Sequence[date] = ()
) -> SourceRef | None:
    """The message and sentence of the person that says the text; None if they did not say it.

    Every number, name and denial of the text must be theirs, and most of its words. `names` are
    the person's own, who says "I", and `days` those that a "tomorrow" of theirs was worked out to.
    What they only quoted or pasted is not their word.
    """
    known = {*_known(names), *_written(days)}
    for message in reversed(said):
        own = own_words(message.text)
        if message.role == "user" and _says(own, text, known):
            sentence = best_sentence(own, text)
            return SourceRef(
                message_id=message.message_id,
                segment_id=message.segment_id,
                sentence=sentence,
                span=around(message.text, sentence),
                said_at=message.said_at,
            )
    return None


def _known(names: Sequence[str]) -> set[str]:
    return {part.casefold() for name in names for part in name.split()}


def _written(days: Sequence[date]) -> set[str]:
    """The parts in which a day may be written: 3, december, 2026, 2026-12-03, thursday."""
    return {
        part.casefold()
        for on in days
        for part in (*written(on).split(), on.isoformat(), f"{on:%A}", f"{on:%d}")
    }


def _says(own: str, text: str, known: set[str]) -> bool:
    if any(one.casefold() not in known for one in details.lost([text], own)):
        return False
    wanted = _stems(text) - {_stem(word) for word in known}
    return bool(wanted) and len(wanted & _stems(own)) >= SHARE * len(wanted)


def _stems(text: str) -> set[str]:
    words = {word.casefold() for word in _WORD.findall(text)}
    return {_stem(word) for word in words if not _FRAMING.fullmatch(word)}


def _stem(word: str) -> str:
    if word.endswith("ies"):
        word = f"{word[:-3]}y"
    return _ENDING.sub("", word)[:_STEM]
