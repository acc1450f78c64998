"""Memories in the person's own words: how they are framed, and what of them carries the meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FRAMED = re.compile(
    r"\A[^“”\n]{1,160} (?:said|read): “(?P<statement>.+)”(?: \([^()]*\))?\Z", re.DOTALL
)


NAME_WORDS_MAX = 3  # more words before a colon are no name
_SPEAKER = re.compile(r"(?P<name>[^\W\d_][^“”\n:]{0,118}?)(?: said: “|: (?=\S))")


def speaker(text: str) -> str:
    """Whose words the text quotes, `Alice said: “…”` or `Alice: …`; '' where it quotes nobody's."""
    match = _SPEAKER.match(text)
    if match is None or not match["name"][0].isupper():
        return ""
    return match["name"] if len(match["name"].split()) <= NAME_WORDS_MAX else ""


def framed(name: str, statement: str, notes: Sequence[str]) -> str:
    """`Alice said: “I sail tomorrow.” (“tomorrow” is 29 November 2026)`"""
    said = f"{name} said: “{statement}”"
    return f"{said} ({', '.join(notes)})" if notes else said


def as_read(name: str, text: str) -> str:
    """`Alice read: “The bridge opened today.”`: what a text said that is not the person's."""
    return f"{name} read: “{text}”"


def without_name(text: str, name: str) -> str:
    """The text without the person's name: "Alice's boat" and "my boat" are then alike."""
    if not name:
        return text
    return re.sub(rf"(?<!\w){re.escape(name)}(?:['’]s?)?(?!\w)", "", text).strip()


def meaning(text: str) -> str:
    """What of a memory is embedded: the statement inside the frame, or else the whole text.

    The frame is alike in all and drowns what differs. On 20 questions over 18 statements with
    MiniLM, right answers had a cosine of 0.29 or more without it and 0.20 with it, where 99 % of
    the wrong ones stay under 0.29 and 0.22; two unrelated statements averaged 0.09 and 0.44.
    """
    match = _FRAMED.match(text)
    return match["statement"] if match else text
