"""Whose words stand in a person's message: their own, an echo of MIRA's, or a text from outside.

A memory rests on the person's own words. What repeats an answer word for word is a quotation, and
what was pasted is something read: neither is said by the person (pure; by rule, no model asked).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memory.duplicates import normalised
from memory.sentences import sentences

Voice = Literal["own", "echo", "outside"]

ECHO_MIN_WORDS = 5  # a shorter sentence is anybody's
PASTE_MIN_WORDS = 120  # of a paragraph in which nobody speaks of themselves
QUOTED_MIN_WORDS = 12  # between quotation marks
INTRODUCED_MIN_WORDS = 12  # behind "here is the article:"


@dataclass(frozen=True, slots=True)
class Part:
    voice: Voice
    text: str


_FENCE = re.compile(r"^(```|~~~)[\s\S]*?(?:^\1[ \t]*$|\Z)", re.MULTILINE)
_QUOTE_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(r"[“„«][^“”„«»]+[”“»]|\"[^\"\n]+\"")
# From here to the end of the message nothing is certain to be the person's again.
_FORWARDED = re.compile(
    r"^(?:-{2,} ?(?:original message|forwarded|ursprüngliche|weitergeleitete|message)"
    r"|(?:from|to|subject|sent|von|an|betreff|gesendet|objet|de|asunto|para) ?: \S"
    r"|(?:on|am|le|el) .{6,120}(?:wrote|schrieb|a écrit|escribió).{0,60}:\s*$"
    r"|<\?xml|<!doctype|<html|\{\s*\")",
    re.IGNORECASE | re.MULTILINE,
)
_INTRODUCED = re.compile(
    r"^.{0,160}\b(?:here(?:['’]s| is| are)|this is what|copied|pasted|article|e-?mail|mail|letter"
    r"|document|website|page|post|wrote|writes|says|reads|text|artikel|schrieb|schreibt|brief"
    r"|dokument|webseite|steht|voici|lettre|écrit|page|aquí|artículo|correo|carta|escribió|dice)\b"
    r".{0,80}:[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|i['’]\w+|my|mine|me|myself|we|our|us|ich|mein\w*|mir|mich|wir|unser\w*|uns"
    r"|je|j['’]\w+|mon|ma|mes|moi|nous|notre|nos|yo|mi|mis|nosotr[oa]s|nuestr[oa]s?)(?!\w)",
    re.IGNORECASE,
)
# In a language whose words for oneself are not known, their absence says nothing.
_KNOWN_LANGUAGE = re.compile(
    r"(?<!\w)(?:the|and|of|der|die|und|nicht|le|les|est|des|el|los|una|que)(?!\w)", re.IGNORECASE
)
_KNOWN_WORDS_MIN = 5


def parts(text: str, answers: Sequence[str] = ()) -> list[Part]:
    """The message in order, cut by voice. `answers` are MIRA's earlier ones in the segment."""
    cut = min((m.start() for m in (_FORWARDED.search(text), _introduced(text)) if m), default=-1)
    own = text if cut < 0 else text[:cut]
    rest = "" if cut < 0 else text[cut:]
    if rest and (line := _introduced(text)) and line.start() == cut:
        own, rest = text[: line.end()], text[line.end() :]
    found = [part for block in _blocks(own) for part in _voiced(block, answers)]
    if rest.strip():
        found.append(Part("outside", rest.strip()))
    return found


def own_words(text: str, answers: Sequence[str] = ()) -> str:
    """What the person says in the message themselves."""
    return "\n".join(part.text for part in parts(text, answers) if part.voice == "own")


def _introduced(text: str) -> re.Match[str] | None:
    for match in _INTRODUCED.finditer(text):
        if len(text[match.end() :].split()) >= INTRODUCED_MIN_WORDS:
            return match
    return None


def _blocks(text: str) -> Iterator[Part]:
    """Code and quoted lines apart from prose; prose by paragraph, a long one of nobody's apart."""
    at = 0
    for match in sorted(
        (*_FENCE.finditer(text), *_QUOTE_LINE.finditer(text)), key=lambda one: one.start()
    ):
        if match.start() < at:
            continue
        yield from _paragraphs(text[at : match.start()])
        yield Part("outside", match.group())
        at = match.end()
    yield from _paragraphs(text[at:])


def _paragraphs(text: str) -> Iterator[Part]:
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.strip():
            continue
        nobodys = (
            len(paragraph.split()) >= PASTE_MIN_WORDS
            and not _FIRST_PERSON.search(paragraph)
            and len(_KNOWN_LANGUAGE.findall(paragraph)) >= _KNOWN_WORDS_MIN
        )
        yield Part("outside" if nobodys else "own", paragraph.strip())


def _voiced(block: Part, answers: Sequence[str]) -> Iterator[Part]:
    """A block of the person's, with long quotations and echoes of answers set apart."""
    if block.voice != "own":
        yield block
        return
    said = [f" {normalised(answer)} " for answer in answers]
    at = 0
    for match in _QUOTED.finditer(block.text):
        if len(match.group().split()) >= QUOTED_MIN_WORDS:
            yield from _sentences(block.text[at : match.start()], said)
            yield Part("outside", match.group())
            at = match.end()
    yield from _sentences(block.text[at:], said)


def _sentences(text: str, said: Sequence[str]) -> Iterator[Part]:
    for sentence in sentences(text):
        plain = normalised(sentence)
        is_echo = len(plain.split()) >= ECHO_MIN_WORDS and any(
            f" {plain} " in answer for answer in said
        )
        yield Part("echo" if is_echo else "own", sentence)
