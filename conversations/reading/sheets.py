"""XLSX: the values of each sheet as CSV, under its name. Formulas are never worked out."""

from __future__ import annotations

import csv
import warnings
import zipfile
from datetime import date, datetime, time
from io import StringIO
from typing import Any
from xml.etree.ElementTree import ParseError

import openpyxl
from defusedxml.common import DefusedXmlException
from lxml.etree import LxmlError
from openpyxl.utils.exceptions import InvalidFileException

from conversations.reading import child, office
from conversations.reading.constants import (
    COLUMNS_MAX,
    EMPTY_ROWS_MAX,
    SHEETS_MAX,
    TEXT_MAX_CHARS,
)
from conversations.reading.types import Reading, Unreadable

BROKEN_FILE = (InvalidFileException, ParseError, DefusedXmlException, LxmlError,
               zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, IndexError,
               OSError)  # fmt: skip


def read(content: bytes) -> Reading:
    """The values as the file holds them; a formula whose result was never stored is empty."""
    warnings.simplefilter("ignore")
    out = StringIO()
    try:
        book = openpyxl.load_workbook(
            office.checked(content), read_only=True, data_only=True, keep_links=False
        )
        for sheet in book.worksheets[:SHEETS_MAX]:
            if sheet.sheet_state == "visible":
                _write(sheet, out)
            if out.tell() > TEXT_MAX_CHARS:
                break
        left_out = len(book.worksheets) > SHEETS_MAX
    except BROKEN_FILE as error:
        raise Unreadable(child.BROKEN) from error
    text = out.getvalue()
    return Reading(
        text=text[:TEXT_MAX_CHARS].strip(), is_text_cut=left_out or len(text) > TEXT_MAX_CHARS
    )


def _write(sheet: Any, out: StringIO) -> None:
    rows = csv.writer(out, lineterminator="\n")
    out.write(f"## {' '.join(str(sheet.title).split())}\n")
    empty = 0
    for row in sheet.iter_rows(max_col=COLUMNS_MAX, values_only=True):
        values = [_shown(value) for value in row]
        while values and not values[-1]:
            values.pop()
        empty = 0 if values else empty + 1
        if values:
            rows.writerow(values)
        if out.tell() > TEXT_MAX_CHARS or empty > EMPTY_ROWS_MAX:
            break
    out.write("\n")


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        is_day = value.time() == time()
        return value.date().isoformat() if is_day else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


if __name__ == "__main__":
    child.serve(read)
