"""What a reader says of a file."""

from __future__ import annotations

from dataclasses import dataclass


class Unreadable(Exception):
    """The file cannot be taken. The message says why, for the person, and holds nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """content     the file anew, where it is not kept as it came
    media_type  of that
    text        found in it, as far as it is kept
    """

    content: bytes | None = None
    media_type: str = ""
    text: str = ""
    is_text_cut: bool = False
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    is_locked: bool = False
