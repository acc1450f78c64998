"""DOCX: headings, paragraphs, lists and tables as Markdown, in their order."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator

import docx
from docx.document import Document
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError

from conversations.reading import child, office
from conversations.reading.constants import TEXT_MAX_CHARS
from conversations.reading.types import Reading, Unreadable

BROKEN_FILE = (OpcError, LxmlError, zipfile.BadZipFile, KeyError, ValueError, AttributeError,
               TypeError, OSError, IndexError)  # fmt: skip
_HEADING = re.compile(r"(?:heading|überschrift|titre|título) ?([1-6])", re.IGNORECASE)


def read(content: bytes) -> Reading:
    try:
        document = docx.Document(office.checked(content))
        parts: list[str] = []
        length = 0
        for block in _blocks(document):
            parts.append(block)
            length += len(block) + 2
            if length > TEXT_MAX_CHARS:
                break
    except BROKEN_FILE as error:
        raise Unreadable(child.BROKEN) from error
    return Reading(
        text="\n\n".join(parts)[:TEXT_MAX_CHARS], is_text_cut=length > TEXT_MAX_CHARS + 2
    )


def _blocks(document: Document) -> Iterator[str]:
    for item in document.iter_inner_content():
        text = _table(item) if isinstance(item, Table) else _paragraph(item)
        if text.strip():
            yield text


def _paragraph(paragraph: Paragraph) -> str:
    text = paragraph.text.strip()
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    if heading := _HEADING.match(style):
        return f"{'#' * int(heading.group(1))} {text}" if text else ""
    if style.lower().startswith("title") and text:
        return f"# {text}"
    return f"- {text}" if style.lower().startswith("list") and text else text


def _table(table: Table) -> str:
    """Rows as lines. A cell that spans several columns is told once."""
    lines = []
    for row in table.rows:
        cells: list[str] = []
        seen: set[int] = set()
        for cell in row.cells:
            if id(cell._tc) not in seen:
                seen.add(id(cell._tc))
                cells.append(" ".join(cell.text.split()))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    child.serve(read)
