"""Files for tests, made here and now."""

from __future__ import annotations

import io
import zipfile

import docx
import openpyxl
import pypdf
from PIL import Image
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from conversations import services
from conversations.models import Attachment
from mira_site.accounts.models import User


def picture(
    kind: str = "PNG", size: tuple[int, int] = (60, 40), mode: str = "RGB", **options: object
) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, "red" if mode.startswith("RGB") else 0).save(out, kind, **options)
    return out.getvalue()


def noise(size: tuple[int, int], kind: str = "PNG") -> bytes:
    """A picture that hardly packs."""
    out = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(out, kind)
    return out.getvalue()


def pdf(*pages: str, password: str = "") -> bytes:
    """A PDF with a line of text on each page."""
    writer = pypdf.PdfWriter()
    for text in pages or ("Hello",):
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def document(*paragraphs: str) -> bytes:
    """A DOCX: a heading, these paragraphs, a small table."""
    made = docx.Document()
    made.add_heading("Plan", 1)
    for text in paragraphs:
        made.add_paragraph(text)
    table = made.add_table(2, 2)
    for row, column, text in ((0, 0, "what"), (0, 1, "when"), (1, 0, "paint"), (1, 1, "May")):
        table.cell(row, column).text = text
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def sheet(rows: list[list[object]], title: str = "Costs") -> bytes:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def rezipped(content: bytes, **entries: bytes) -> bytes:
    """An office file with entries replaced or added; `__` in a name stands for a slash."""
    out = io.BytesIO()
    wanted = {
        name.replace("__", "/").replace("_xml", ".xml"): data for name, data in entries.items()
    }
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            if entry.filename not in wanted:
                new.writestr(entry, old.read(entry))
        for name, data in wanted.items():
            new.writestr(name, data)
    return out.getvalue()


def kept(user: User, content: bytes | str = "Buy milk.", name: str = "note.txt") -> Attachment:
    """A file of the person, uploaded and not sent."""
    data = content.encode() if isinstance(content, str) else content
    return services.keep_file(user=user, name=name, content=data)
