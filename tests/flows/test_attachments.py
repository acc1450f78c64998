"""Files in a real browser: picked, dropped, pasted, sent, seen, downloaded, removed."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import FileChooser, Page, expect

from conversations.models import Attachment
from mira_site import isolation
from mira_site.accounts.models import User
from tests.conversations import uploading
from tests.fake_anthropic import FakeAnthropic
from tests.flows.chatting import open_chat, questions, replies, write

pytestmark = pytest.mark.django_db(transaction=True)

DROP = """([type, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  const target = document.querySelector(type === "paste" ? "#composer-text" : "#main");
  const given = type === "paste"
    ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
    : new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true });
  target.dispatchEvent(given);
}"""


@pytest.fixture
def fake(live_mira: str, fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    fake_anthropic.on("reply").says("A red square, and a note.")
    return fake_anthropic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "square.png").write_bytes(uploading.picture("PNG", (1200, 900)))
    (tmp_path / "note.txt").write_text("Buy milk.")
    (tmp_path / "program.exe").write_bytes(b"MZ\x00\x01\x02")
    return tmp_path


def attach(page: Page, *paths: Path) -> None:
    page.set_input_files("[data-file]", list(paths))


def test_files_are_attached_sent_and_seen(page: Page, fake, folder):
    open_chat(page)
    attach(page, folder / "square.png", folder / "note.txt")
    expect(page.locator(".chip--ready")).to_have_count(2)
    page.fill("#composer-text", "What are these?")
    page.press("#composer-text", "Enter")
    expect(replies(page)).to_contain_text(["A red square"])
    expect(page.locator(".chip")).to_have_count(0)
    picture = page.locator("[data-thread] .file--picture img")
    expect(picture).to_have_attribute("alt", "square.png")
    assert picture.evaluate("(img) => img.complete ? img.naturalWidth : 0") == 1200
    with page.expect_download() as download:
        page.locator("[data-thread] .file", has_text="note.txt").click()
    assert download.value.suggested_filename == "note.txt"
    assert Path(download.value.path()).read_text() == "Buy milk."
    kinds = [block["type"] for block in fake.seen("reply")[-1].json["messages"][-1]["content"]]
    assert kinds == ["text", "text", "image", "text", "text"]
    page.reload()
    expect(page.locator("[data-thread] .files li")).to_have_count(2)


def test_a_message_may_be_a_file_alone(page: Page, fake, folder):
    open_chat(page)
    expect(page.locator("[data-send]")).to_be_disabled()
    attach(page, folder / "note.txt")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.click("[data-send]")
    expect(replies(page)).to_have_count(1)
    expect(page.locator("[data-thread] .file")).to_have_count(1)
    expect(questions(page)).to_have_count(0)


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_files_can_be_dropped_and_pasted(page: Page, fake, way):
    open_chat(page)
    page.evaluate(DROP, [way, "a.txt", base64.b64encode(b"hello").decode()])
    expect(page.locator(".chip--ready .chip__name")).to_have_text("a.txt")


def test_sending_waits_for_a_file_that_is_still_on_its_way(page: Page, fake, folder):
    open_chat(page)
    page.route(
        re.compile("/api/v1/files/$"), lambda route: (page.wait_for_timeout(800), route.continue_())
    )
    attach(page, folder / "note.txt")
    page.fill("#composer-text", "Here")
    page.press("#composer-text", "Enter")
    expect(page.locator("[data-tray-status]")).to_have_text("It goes out once the files are here.")
    expect(replies(page)).to_have_count(1)
    expect(page.locator("[data-thread] .file")).to_have_count(1)


def test_what_cannot_be_taken_says_why_and_can_be_put_away(page: Page, fake, folder):
    open_chat(page)
    attach(page, folder / "program.exe")
    expect(page.locator(".chip--failed")).to_contain_text("This kind of file cannot be attached.")
    expect(page.locator("[data-tray-status]")).to_contain_text("program.exe is not attached.")
    page.get_by_role("button", name="Remove program.exe").click()
    expect(page.locator("[data-tray]")).to_be_hidden()
    attach(page, folder / "program.exe")
    expect(page.locator(".chip--failed")).to_be_in_viewport()
    write(page, "Then without it.")
    expect(page.locator("[data-tray]")).to_be_hidden()


def test_by_keyboard_a_file_is_removed_and_gone_from_the_server(
    page: Page, fake, folder, alice: User
):
    choosers: list[FileChooser] = []
    # Asked for now, it is surely listened for when the key is pressed.
    page.on("filechooser", lambda one: choosers.append(one))
    open_chat(page)
    attach(page, folder / "note.txt")
    expect(page.locator(".chip--ready")).to_have_count(1)
    page.get_by_role("button", name="Remove note.txt").focus()
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        page.keyboard.press("Enter")
    expect(page.locator("#composer-text")).to_be_focused()
    with isolation.acting_as(alice.pk):
        assert not Attachment.objects.for_user(alice).exists()
    page.get_by_role("button", name="Attach files").press("Enter")
    while not choosers:
        page.wait_for_timeout(50)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_holds_files_without_scrolling_sideways(page: Page, fake, folder, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 800})
    open_chat(page)
    attach(page, folder / "square.png", folder / "note.txt", folder / "program.exe")
    expect(page.locator(".chip--ready")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Remove program.exe").click()
    page.press("#composer-text", "Enter")
    expect(replies(page)).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
