"""Sentences of what a person wrote, and which of them says a given thing."""

from __future__ import annotations

import re

SPAN_MAX_CHARS = 8_192  # of the stretch of one message that is kept around a sentence

_FENCE = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_QUOTE = re.compile(r"^\s*>.*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|#{1,6})\s+")
_END = re.compile(r"([.!?…]+[\"”’»)\]]*)\s+(?=[\"“„«¿¡(\[]*[^\W_a-zß-öø-ÿ])|([。！？]+)")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|(?:(?<!\bi )am|vom|zum|den|der|dem|bis)\s\d{1,2}"
    r"|dr|mr|mrs|ms|prof|st|nr|vs|etc|e\.g|i\.e|z\.B|d\.h|bzw|ca|usw|sr|sra|mme|av"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|okt|oct|nov|dez|dec)\.$",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{3,}")


def prose(text: str) -> str:
    """The text without code blocks and without lines quoted from elsewhere."""
    for pattern in (_FENCE, _INDENTED, _QUOTE):
        text = pattern.sub("\n", text)
    return text


def sentences(text: str) -> list[str]:
    """The sentences in order, trimmed, without bullets. A line break ends a sentence.

    After an abbreviation, an initial or a short number ("am 3. Mai") a full stop ends nothing.
    """
    found: list[str] = []
    for line in text.splitlines():
        found.extend(_of_line(_BULLET.sub("", line).strip()))
    return found


def _of_line(line: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for match in _END.finditer(line):
        end = match.end(1) if match.group(1) else match.end(2)
        part = line[start:end].strip()
        if _ABBREVIATED.search(part):
            continue
        parts.append(part)
        start = match.end()
    parts.append(line[start:].strip())
    return [part for part in parts if part]


def shared_words(text: str, claim: str) -> int:
    """How many different words of three letters or more the two have in common."""
    return len(_words(text) & _words(claim))


def best_sentence(text: str, claim: str) -> str:
    """The sentence of the text that shares most words with the claim; of equals the first."""
    found = sentences(text)
    return max(found, key=lambda one: shared_words(one, claim)) if found else text.strip()


def around(text: str, sentence: str, *, most: int = SPAN_MAX_CHARS) -> str:
    """The text, or of a longer one whole sentences before and behind the given one, `most` in all.

    A sentence that is not in it leaves the beginning.
    """
    text = text.strip()
    if len(text) <= most:
        return text
    places = _places(text)
    wanted = max(text.find(sentence), 0)
    middle = next((i for i, (_, end) in enumerate(places) if end > wanted), 0)
    first, last = middle, middle
    while True:
        grown = False
        if first > 0 and places[last][1] - places[first - 1][0] <= most:
            first, grown = first - 1, True
        if last + 1 < len(places) and places[last + 1][1] - places[first][0] <= most:
            last, grown = last + 1, True
        if not grown:
            return text[places[first][0] : places[last][1]][:most]


def _places(text: str) -> list[tuple[int, int]]:
    """Where the sentences stand."""
    found: list[tuple[int, int]] = []
    end = 0
    for sentence in sentences(text):
        start = text.find(sentence, end)
        if start >= 0:
            end = start + len(sentence)
            found.append((start, end))
    return found or [(0, len(text))]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
