"""What is in an uploaded file, found by looking into it: its name is only a name."""

from __future__ import annotations

import codecs
import csv
import json
import re
import unicodedata
from dataclasses import dataclass

from conversations.constants import FILE_MAX_BYTES, PDF_SHOWN_BYTES, PDF_SHOWN_PAGES
from conversations.reading import child, office
from conversations.reading.constants import TEXT_MAX_CHARS
from conversations.reading.types import Unreadable
from mira_site.errors import BadRequest, TooLarge

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CSV, JSON, TEXT = "text/csv", "application/json", "text/plain"
IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
TAKEN = "Pictures (PNG, JPEG, WebP, GIF), PDF, text, CSV, JSON, DOCX and XLSX can be attached."

NAME_MAX = 120
PDF_HEAD_BYTES = 1024  # readers look for the mark of a PDF within these
SNIFFED_LINES = 200
# Legacy text is full of letters; what has more of these in it is no text.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = ",;\t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A file as it will be kept. `is_shown_whole`: a model gets it and not its text."""

    name: str
    media_type: str
    content: bytes
    text: str = ""
    is_text_cut: bool = False
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    is_shown_whole: bool = False


def look(name: str, content: bytes) -> Looked:
    """Raises TooLarge, or BadRequest for what is empty, unknown or cannot be read."""
    if len(content) > FILE_MAX_BYTES:
        detail = f"A file may have at most {FILE_MAX_BYTES // 1_000_000} MB."
        raise TooLarge(detail, fields={"file": detail})
    if not content:
        raise _refused("The file is empty.")
    name = cleaned(name)
    try:
        return _looked(name, content)
    except Unreadable as error:
        raise _refused(str(error)) from error


def cleaned(name: str) -> str:
    """A name that can be shown, kept and sent: no folders, nothing invisible, not too long."""
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in name)
    name = " ".join(name.split()).strip(". ")
    if len(name) > NAME_MAX:
        stem, dot, suffix = name.rpartition(".")
        kept = f".{suffix}" if dot and len(suffix) <= 8 else ""
        name = (stem or name)[: NAME_MAX - len(kept) - 1].rstrip() + "…" + kept
    return name or "file"


def _refused(detail: str) -> BadRequest:
    return BadRequest(detail, fields={"file": detail})


def _looked(name: str, content: bytes) -> Looked:
    if _is_image(content):
        return _image(name, content)
    if b"%PDF-" in content[:PDF_HEAD_BYTES]:
        return _pdf(name, content)
    if content.startswith(b"PK\x03\x04"):
        return _office(name, content)
    return _text(name, content)


def _is_image(content: bytes) -> bool:
    return content.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")) or (
        content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    )


def _image(name: str, content: bytes) -> Looked:
    found = child.read("images", content)
    if found.content is None or found.media_type not in IMAGES:
        raise Unreadable(child.BROKEN)
    return Looked(
        name=name,
        media_type=found.media_type,
        content=found.content,
        width=found.width,
        height=found.height,
        is_shown_whole=True,
    )


def _pdf(name: str, content: bytes) -> Looked:
    found = child.read("pdfs", content)
    is_small = (found.pages or 0) <= PDF_SHOWN_PAGES and len(content) <= PDF_SHOWN_BYTES
    return Looked(
        name=name,
        media_type=PDF,
        content=content,
        text=_storable(found.text),
        is_text_cut=found.is_text_cut,
        pages=found.pages,
        # The provider refuses an encrypted one, even if it opens without a password.
        is_shown_whole=is_small and not found.is_locked,
    )


def _office(name: str, content: bytes) -> Looked:
    kind = office.kind(content)
    if kind is None:
        raise Unreadable(f"An archive cannot be attached. {TAKEN}")
    found = child.read("documents" if kind == "docx" else "sheets", content)
    return Looked(
        name=name,
        media_type=DOCX if kind == "docx" else XLSX,
        content=content,
        text=_storable(found.text),
        is_text_cut=found.is_text_cut,
    )


def _text(name: str, content: bytes) -> Looked:
    text = _decoded(content)
    return Looked(
        name=name,
        media_type=_kind_of_text(name, text),
        content=content,
        text=_storable(text[:TEXT_MAX_CHARS]),
        is_text_cut=len(text) > TEXT_MAX_CHARS,
    )


def _decoded(content: bytes) -> str:
    """The text of a text file. Raises Unreadable for what is none."""
    encoding = next((name for bom, name in _BOMS.items() if content.startswith(bom)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        if text.count("�") > len(text) // 100:
            raise Unreadable(f"This kind of file cannot be attached. {TAKEN}") from None
    if _CONTROL.search(text):
        raise Unreadable(f"This kind of file cannot be attached. {TAKEN}")
    return text


def _kind_of_text(name: str, text: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            return JSON
    is_named_so = name.lower().endswith((".csv", ".tsv"))
    return CSV if any(_is_table(text, one, is_named_so) for one in _SEPARATORS) else TEXT


def _is_table(text: str, separator: str, is_named_so: bool) -> bool:
    """Every line has as many cells as the first. Prose puts a space behind a comma, a table not."""
    lines = text.splitlines()[:SNIFFED_LINES]
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return False
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    # The last line of the sample may have been cut within a quoted cell.
    if len({len(row) for row in (rows if len(lines) < SNIFFED_LINES else rows[:-1])}) > 1:
        return False
    return is_named_so or not any(f"{separator} " in line for line in lines)


def _storable(text: str) -> str:
    """NUL and half a surrogate pair cannot be stored."""
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
