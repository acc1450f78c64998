"""What a DOCX and an XLSX have in common: a ZIP of XML. Is it safe to unpack, and what is it?"""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import Literal

from conversations.reading.constants import ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, ZIP_RATIO_MAX
from conversations.reading.types import Unreadable

Kind = Literal["docx", "xlsx"]
CONTENT_TYPES = "[Content_Types].xml"
CONTENT_TYPES_MAX = 1_000_000
_MAIN: dict[bytes, Kind] = {
    b"wordprocessingml.document.main+xml": "docx",
    b"spreadsheetml.sheet.main+xml": "xlsx",
}
_WITH_MACROS = (b"macroEnabled", b"vbaProject")
# Office files declare no entities (ECMA-376, part 2, 9.1.2); whoever does wants something else.
_DECLARATIONS = tuple(
    word.encode(encoding)
    for word in ("<!DOCTYPE", "<!ENTITY")
    for encoding in ("ascii", "utf-16-le", "utf-16-be")
)


def kind(content: bytes) -> Kind | None:
    """What the archive says it is; None if it is no office file of ours. Raises Unreadable."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entry = archive.getinfo(CONTENT_TYPES)
            if entry.file_size > CONTENT_TYPES_MAX:
                return None
            declared = archive.read(entry)
    except (zipfile.BadZipFile, KeyError, OSError, ValueError, NotImplementedError, RuntimeError):
        return None
    if any(word in declared for word in _WITH_MACROS):
        raise Unreadable("Office files with macros are not taken. Save it without them.")
    return next((name for word, name in _MAIN.items() if word in declared), None)


def checked(content: bytes) -> BytesIO:
    """The archive, once it is known to be no bomb and to declare no entities. Raises Unreadable.

    zipfile never unpacks more of an entry than its declared size, so what is declared can be
    trusted as an upper bound.
    """
    stream = BytesIO(content)
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        too_big = sum(entry.file_size for entry in entries) > ZIP_BYTES_MAX
        if too_big or len(entries) > ZIP_ENTRIES_MAX or any(map(_is_bomb, entries)):
            raise Unreadable("The file unpacks to far more than it seems. It is not taken.")
        for entry in entries:
            if entry.filename.lower().endswith((".xml", ".rels")):
                text = archive.read(entry)
                if any(word in text for word in _DECLARATIONS):
                    raise Unreadable("The file declares entities, which office files never do.")
    stream.seek(0)
    return stream


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    big = entry.file_size > 1_000_000
    return big and entry.file_size > ZIP_RATIO_MAX * max(1, entry.compress_size)
