"""PDFs: how many pages, and the text on them."""

from __future__ import annotations

import logging
import time
from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from conversations.reading import child
from conversations.reading.constants import PDF_PAGES_READ, PDF_TEXT_S, TEXT_MAX_CHARS
from conversations.reading.types import Reading, Unreadable

# What pypdf meets in damaged files; it raises plain errors beside its own.
BROKEN_FILE = (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, OSError,
               AssertionError, RecursionError, NotImplementedError, ZeroDivisionError,
               OverflowError)  # fmt: skip


def read(content: bytes) -> Reading:
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(BytesIO(content), strict=False)
        is_locked = reader.is_encrypted
        if is_locked and not reader.decrypt(""):
            raise Unreadable("The PDF is locked with a password. Take it off and send it again.")
        pages = len(reader.pages)
    except BROKEN_FILE as error:
        raise Unreadable(child.BROKEN) from error
    if pages == 0:
        raise Unreadable("The PDF has no pages.")
    text, is_cut = _text(reader, pages)
    return Reading(text=text, is_text_cut=is_cut, pages=pages, is_locked=is_locked)


def _text(reader: PdfReader, pages: int) -> tuple[str, bool]:
    """The text by page, and whether there may be more. A page that cannot be read is left out."""
    parts: list[str] = []
    length, ends_at = 0, time.monotonic() + PDF_TEXT_S
    for number in range(min(pages, PDF_PAGES_READ)):
        if length > TEXT_MAX_CHARS or time.monotonic() > ends_at:
            return _cut(parts), True
        try:
            found = reader.pages[number].extract_text().strip()
        except BROKEN_FILE:
            continue
        if found:
            parts.append(f"[page {number + 1}]\n{found}")
            length += len(parts[-1]) + 2
    return _cut(parts), pages > PDF_PAGES_READ or length > TEXT_MAX_CHARS


def _cut(parts: list[str]) -> str:
    return "\n\n".join(parts)[:TEXT_MAX_CHARS]


if __name__ == "__main__":
    child.serve(read)
