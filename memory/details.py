"""Which concrete details of some texts another text has lost (pure).

A merge may drop words, never a number, a date, a name or a negation. The test errs on the strict
side: what it demands in vain costs a merge, what it lets through would cost a fact.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

_NUMBER = re.compile(r"[^\W\d_]*\d+(?:[.,:/-]\d+)*[^\W\d_]*")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_SENTENCE_START = re.compile(r"(?:\A|[.!?…:]\s+|\n)[\"“„«‘'(\[]*$")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|\w+n['’]t|nicht|kein\w*|nie|niemals|niemand"
    r"|nichts|ohne|pas|jamais|aucune?|rien|sans|nunca|nada|nadie|sin|ningun[ao]?)\b",
    re.IGNORECASE,
)
# Numbers as words, from two on: "one" and its kin are articles too often.
_NUMERAL = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|thousand"
    r"|million|half|twice|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|dreißig"
    r"|hundert|tausend|halb\w*|deux|trois|quatre|cinq|sept|huit|neuf|dix|vingt|cent|mille"
    r"|dos|tres|cuatro|cinco|siete|ocho|nueve|diez|veinte|cien|mil)\b",
    re.IGNORECASE,
)
# Capitals that only a sentence's beginning gives.
_COMMON = re.compile(
    r"a|an|the|this|that|these|those|my|our|your|his|her|its|their|i|we|you|he|she|it|they"
    r"|there|here|in|on|at|to|for|with|from|by|of|as|and|but|or|if|when|while|since|until"
    r"|after|before|because|is|are|was|were|has|have|had|does|do|did|can|could|will|would|may"
    r"|might|must|should|who|what|where|which|how|both|each|every|all|some|many|most|der|die"
    r"|das|ein|eine|einen|einem|einer|mein|meine|sein|seine|ihr|ihre|ich|wir|du|er|sie|es|im"
    r"|am|auf|zu|für|mit|von|bei|als|und|aber|oder|wenn|weil|seit|nach|vor|wer|wo|wie|alle"
    r"|jede|jeder|le|la|les|un|une|des|mon|ma|mes|son|sa|ses|je|nous|vous|il|elle|ils|elles"
    r"|dans|sur|à|pour|avec|de|et|mais|ou|si|quand|el|los|las|una|mi|mis|su|sus|yo|en|con|por"
    r"|para|y|pero|o|cuando"
)
NEGATION = "a negation"


def lost(sources: Sequence[str], text: str) -> list[str]:
    """Details of the sources that the text lacks, as they are written there, each once.

    Numbers, numerals, capitalised words and whether anything is denied. Case, possessives and the
    order do not matter.
    """
    kept = {_plain(word) for word in (*_WORD.findall(_normal(text)), *_NUMBER.findall(text))}
    missing: dict[str, str] = {}
    for source in map(_normal, sources):
        for detail in _details(source):
            if _plain(detail) not in kept:
                missing.setdefault(_plain(detail), detail)
        if _NEGATION.search(source) and not _NEGATION.search(text):
            missing.setdefault(NEGATION, NEGATION)
    return list(missing.values())


def _details(text: str) -> Iterator[str]:
    yield from _NUMBER.findall(text)
    yield from _NUMERAL.findall(text)
    for match in _WORD.finditer(text):
        word = match.group()
        if word == "I" or not word[0].isupper():
            continue
        starts = _SENTENCE_START.search(text[: match.start()])
        if not (starts and _COMMON.fullmatch(_plain(word))):
            yield _POSSESSIVE.sub("", word)


def _plain(word: str) -> str:
    return _POSSESSIVE.sub("", word).casefold()


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)
