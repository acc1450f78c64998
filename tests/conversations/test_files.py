"""A file is what is in it, whatever it is called; what is kept is safe to show and to send."""

from __future__ import annotations

import io
import struct
import threading
import zlib

import openpyxl
import pytest
from PIL import Image

from conversations import files
from conversations.constants import FILE_MAX_BYTES, PDF_SHOWN_PAGES
from conversations.reading import child
from conversations.reading.constants import IMAGE_BYTES_MAX, IMAGE_EDGE_PX, TEXT_MAX_CHARS
from mira_site.errors import BadRequest, LimitReached, TooLarge
from tests.conversations import uploading


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def refusal(content: bytes, name: str = "x") -> str:
    with pytest.raises(BadRequest) as caught:
        files.look(name, content)
    assert caught.value.fields["file"] == str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (uploading.picture("PNG"), "image/png"),
        (uploading.picture("JPEG"), "image/jpeg"),
        (uploading.picture("WEBP"), "image/webp"),
        (uploading.picture("GIF", mode="P"), "image/gif"),
        (uploading.pdf(), "application/pdf"),
        (uploading.document("Hello"), files.DOCX),
        (uploading.sheet([["a", 1]]), files.XLSX),
        (b'{"a": [1, 2]}', "application/json"),
        (b"[]", "application/json"),
        (b"name,age\nAda,36\nBob,7\n", "text/csv"),
        (b"name;age\nAda;36\n", "text/csv"),
        (b"a\tb\n1\t2\n", "text/csv"),
        (b"Hello, you.\nThis is, after all, a letter.\n", "text/plain"),
        (b"Dear Ada, hello\nand again, hello\n", "text/plain"),
        (b"<svg onload='alert(1)'/>", "text/plain"),
        (b"<html><script>alert(1)</script></html>", "text/plain"),
        (b'{"broken": ', "text/plain"),
    ],
)
def test_the_type_is_found_by_what_is_in_the_file(content, media_type):
    for name in ("file", "harmless.txt", "picture.png", "page.html"):
        assert files.look(name, content).media_type == media_type


@pytest.mark.parametrize(
    "content",
    [
        b"MZ\x90\x00\x03\x00\x00\x00",
        b"\x7fELF\x02\x01\x01\x00",
        bytes(range(256)),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
        uploading.rezipped(uploading.document())[:30],
    ],
    ids=["exe", "elf", "noise", "gzip", "torn"],
)
def test_what_is_no_file_of_ours_is_refused_in_words(content):
    refusal(content, "photo.png")


def test_an_empty_file_and_one_that_is_too_large_are_refused():
    assert "empty" in refusal(b"")
    with pytest.raises(TooLarge, match="20 MB"):
        files.look("big.txt", b"a" * (FILE_MAX_BYTES + 1))


class TestNames:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\plan.docx", "plan.docx"),
            ("a\r\nSet-Cookie: x.txt", "a Set-Cookie: x.txt"),
            ("in\u202efdp.exe", "in fdp.exe"),
            ("  spaced   out .txt ", "spaced out .txt"),
            ("", "file"),
            ("...", "file"),
            ("Füße 狐.pdf", "Füße 狐.pdf"),
        ],
    )
    def test_a_name_is_only_a_name(self, given, kept):
        assert files.cleaned(given) == kept

    def test_a_long_name_keeps_its_ending(self):
        name = files.cleaned("x" * 400 + ".pdf")
        assert len(name) <= files.NAME_MAX
        assert name.endswith("….pdf")


class TestPictures:
    def test_a_large_one_is_made_as_small_as_the_provider_would_make_it(self):
        looked = files.look("a.jpg", uploading.picture("JPEG", (3000, 1500)))
        assert (looked.width, looked.height) == (IMAGE_EDGE_PX, IMAGE_EDGE_PX // 2)
        assert opened(looked.content).size == (looked.width, looked.height)

    def test_a_small_one_keeps_its_size(self):
        looked = files.look("a.png", uploading.picture("PNG", (60, 40)))
        assert (looked.width, looked.height) == (60, 40)

    def test_it_is_turned_as_the_camera_was_held_and_what_the_camera_noted_is_gone(self):
        exif = Image.Exif()
        exif[0x0112], exif[0x010F] = 6, "Secret Camera"
        exif.get_ifd(0x8825)[1] = "N"
        looked = files.look("a.jpg", uploading.picture("JPEG", (80, 40), exif=exif))
        assert (looked.width, looked.height) == (40, 80)
        assert not opened(looked.content).getexif()
        assert b"Secret" not in looked.content

    def test_what_is_hidden_behind_the_picture_is_gone(self):
        looked = files.look("a.png", uploading.picture("PNG") + b"<script>alert(1)</script>")
        assert b"script" not in looked.content

    def test_one_that_packs_badly_is_packed_as_jpeg(self):
        looked = files.look("a.png", uploading.noise((1500, 1500)))
        assert looked.media_type == "image/jpeg"
        assert len(looked.content) <= IMAGE_BYTES_MAX

    def test_transparency_stays(self):
        looked = files.look("a.png", uploading.picture("PNG", mode="RGBA"))
        assert opened(looked.content).mode == "RGBA"

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            ("JPEG", "CMYK"),
            ("JPEG", "L"),
            ("PNG", "1"),
            ("PNG", "P"),
            ("PNG", "LA"),
            ("PNG", "I;16"),
        ],
    )
    def test_every_mode_can_be_kept(self, kind, mode):
        looked = files.look("a", uploading.picture(kind, mode=mode))
        assert opened(looked.content).size == (60, 40)

    def test_a_bomb_is_refused_before_it_goes_off(self):
        head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
        chunk = struct.pack(">I", 13) + b"IHDR" + head
        bomb = b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", zlib.crc32(b"IHDR" + head))
        bomb += struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
        assert "million pixels" in refusal(bomb)

    def test_a_broken_one_is_refused(self):
        assert "cannot be read" in refusal(uploading.noise((200, 200))[:5000])


class TestPdfs:
    def test_a_small_one_is_shown_whole_and_its_text_is_known(self):
        looked = files.look("a.pdf", uploading.pdf("First page", "Second page"))
        assert (looked.pages, looked.is_shown_whole) == (2, True)
        assert looked.text == "[page 1]\nFirst page\n\n[page 2]\nSecond page"

    def test_a_long_one_is_shown_as_text(self):
        pages = [f"Line {number}" for number in range(PDF_SHOWN_PAGES + 1)]
        looked = files.look("a.pdf", uploading.pdf(*pages))
        assert not looked.is_shown_whole
        assert f"Line {PDF_SHOWN_PAGES}" in looked.text

    def test_one_with_a_password_is_refused_and_says_so(self):
        assert "password" in refusal(uploading.pdf("x", password="secret"))

    def test_a_broken_one_is_refused(self):
        refusal(b"%PDF-1.7\n" + b"nonsense " * 50)


class TestOffice:
    def test_a_document_is_read_in_its_order(self):
        looked = files.look("plan.docx", uploading.document("The house is white."))
        assert looked.text == ("# Plan\n\nThe house is white.\n\n| what | when |\n| paint | May |")

    def test_a_workbook_is_read_sheet_by_sheet(self):
        looked = files.look("x.xlsx", uploading.sheet([["what", "cost"], ["paint, white", 12.0]]))
        assert looked.text == '## Costs\nwhat,cost\n"paint, white",12'

    def test_formulas_are_not_worked_out_and_hidden_sheets_stay_hidden(self):
        book = openpyxl.Workbook()
        book.active.append(["=1+1", "seen"])
        hidden = book.create_sheet("Hidden")
        hidden.append(["not for you"])
        hidden.sheet_state = "hidden"
        out = io.BytesIO()
        book.save(out)
        text = files.look("x.xlsx", out.getvalue()).text
        assert "seen" in text
        assert "=1+1" not in text
        assert "not for you" not in text

    def test_macros_are_refused(self):
        types = b'<Types><Default ContentType="application/vnd.ms-office.vbaProject"/></Types>'
        infected = uploading.rezipped(uploading.document(), **{"[Content_Types]_xml": types})
        assert "macros" in refusal(infected)

    def test_entities_are_refused_unread(self):
        laughs = (
            b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">'
            b'<!ENTITY f SYSTEM "file:///etc/passwd">]><x>&b;&f;</x>'
        )
        for made in (uploading.document(), uploading.sheet([[1]])):
            assert "entities" in refusal(uploading.rezipped(made, docProps__core_xml=laughs))

    def test_a_zip_bomb_is_refused_unpacked(self):
        bomb = uploading.rezipped(uploading.document(), word__media__a_xml=b"0" * 30_000_000)
        assert "unpacks" in refusal(bomb)

    def test_an_archive_is_no_office_file(self):
        out = io.BytesIO()
        with files.office.zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a.txt", "hello")
        assert "archive" in refusal(out.getvalue(), "x.docx")


class TestTexts:
    @pytest.mark.parametrize(
        "content",
        [
            "Grüße".encode(),
            "Grüße".encode("utf-8-sig"),
            "Grüße".encode("utf-16"),
            "Grüße".encode("latin-1"),
        ],
    )
    def test_old_encodings_are_understood(self, content):
        assert files.look("a.txt", content).text == "Grüße"

    def test_a_long_one_is_kept_whole_and_its_text_cut(self):
        looked = files.look("a.txt", b"word " * 40_000)
        assert len(looked.content) == 200_000
        assert len(looked.text) <= TEXT_MAX_CHARS
        assert looked.is_text_cut


def test_a_reader_that_takes_too_long_is_ended_and_said_so(monkeypatch):
    monkeypatch.setattr(child, "WALL_S", 0.01)
    assert "too long" in refusal(uploading.picture())


def test_too_many_readers_at_once_wait_and_then_say_so(monkeypatch):
    monkeypatch.setattr(child, "WAIT_S", 0.01)
    monkeypatch.setattr(child, "_places", threading.BoundedSemaphore(1))
    with child._places, pytest.raises(LimitReached):
        files.look("a.png", uploading.picture())
    assert files.look("a.png", uploading.picture()).media_type == "image/png"


def test_a_reader_knows_nothing_of_the_environment(monkeypatch):
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    assert files.look("a.png", uploading.picture()).media_type == "image/png"
