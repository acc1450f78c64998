"""Off the record, wrapping up and taking that back, as a person uses them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from conversations.models import Message, Segment
from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic
from tests.flows.chatting import open_chat, questions, replies, write

pytestmark = pytest.mark.django_db(transaction=True)

VEILED = "[data-thread] .message--veiled"
PICTURES = os.environ.get("MIRA_PICTURES", "")  # a folder to look at the pages in, if wished


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


def answered(page: Page) -> None:
    expect(replies(page).last.locator(".message__foot time")).to_be_attached()


def test_the_switch_draws_the_veil_and_lifting_it_erases_what_was_said(
    page: Page, me: User, fake: FakeAnthropic, open_context: Callable[..., BrowserContext]
) -> None:
    fake.on("reply").says("I see.")
    open_chat(page)
    write(page, "I live in Graz.")
    answered(page)
    other = open_context(me, phone=True).new_page()
    open_chat(other)

    page.get_by_role("button", name="Off the record", exact=True).click()
    expect(page.locator("[data-veil]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-veil-line]")).to_contain_text("Nothing is remembered")
    expect(page.locator("[data-announcer]")).to_contain_text("Off the record")
    expect(other.locator("[data-veil]")).to_have_attribute("aria-pressed", "true")
    write(page, "I am looking for another job.")
    answered(page)
    expect(page.locator(VEILED)).to_have_count(2)
    expect(page.get_by_role("article", name="You, off the record")).to_have_count(1)
    expect(page.get_by_role("article", name="MIRA, off the record")).to_have_count(1)
    expect(other.locator(VEILED)).to_have_count(2)
    page.reload()
    expect(page.locator(VEILED)).to_have_count(2)
    picture(page, "veil-1280-light")
    picture(other, "veil-390-light")
    for one, name in ((page, "veil-1280-dark"), (other, "veil-390-dark")):
        one.emulate_media(color_scheme="dark")
        picture(one, name)
        one.emulate_media(color_scheme="light")

    other.get_by_role("button", name="Back on the record").click()
    picture(other, "veil-dialog-390-light")
    other.get_by_role("button", name="Stay off the record").click()
    expect(other.locator(VEILED)).to_have_count(2)
    page.get_by_role("button", name="Back on the record").click()
    page.get_by_role("button", name="Erase it").click()
    for one in (page, other):
        expect(one.locator("[data-veil]")).to_have_attribute("aria-pressed", "false")
        expect(one.locator(VEILED)).to_have_count(0)
        expect(questions(one)).to_have_text(["I live in Graz."])
        expect(replies(one)).to_have_count(1)
    assert Message.objects.for_user(me).count() == 2
    other.close()


def test_a_phrase_draws_it_and_a_phrase_lifts_it(page: Page, fake: FakeAnthropic) -> None:
    fake.on("reply").says("I see.")
    open_chat(page)
    write(page, "Off the record: I do not like the new office.")
    answered(page)
    expect(page.locator("[data-veil]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(VEILED)).to_have_count(2)
    write(page, "Back on the record: it rains.")
    expect(questions(page)).to_have_text(["Back on the record: it rains."])
    expect(page.locator(VEILED)).to_have_count(0)
    expect(page.locator("[data-veil]")).to_have_attribute("aria-pressed", "false")


def test_a_veil_with_nothing_under_it_lifts_without_a_question(page: Page) -> None:
    open_chat(page)
    page.click("[data-veil]")
    page.get_by_role("button", name="Back on the record").click()
    expect(page.locator("[data-veil]")).to_have_attribute("aria-pressed", "false")


def test_a_part_is_wrapped_up_and_that_is_taken_back(
    page: Page, me: User, fake: FakeAnthropic, open_context: Callable[..., BrowserContext]
) -> None:
    fake.on("reply").says("Noted.")
    open_chat(page)
    write(page, "My boat is called Ada and lies in Husum.")
    answered(page)
    page.click("[data-menu] > summary")
    picture(page, "menu-1280-light")
    page.get_by_role("button", name="Wrap up this part").click()
    expect(page.get_by_role("dialog", name="Wrap up this part?")).to_be_visible()
    picture(page, "wrap-dialog-1280-light")
    page.get_by_role("button", name="Wrap it up").click()
    expect(page.locator("[data-rest]")).to_contain_text("come to rest")
    expect(page.locator("[data-reopen]")).to_contain_text("take this back")
    page.reload()
    expect(page.locator("[data-reopen]")).to_contain_text("take this back")
    picture(page, "rests-1280-light")
    other = open_context(me, phone=True, color_scheme="dark").new_page()
    open_chat(other)
    picture(other, "rests-390-dark")
    page.get_by_role("button", name="Take it back").click()
    for one in (page, other):
        expect(one.locator("[data-rest]")).to_be_hidden()
        expect(one.locator("[data-reopen]")).to_be_hidden()
        expect(one.locator(".divider__title")).to_have_count(0)
    assert Segment.objects.for_user(me).get().status == Segment.Status.ACTIVE
    other.close()


def test_wrapping_up_while_an_answer_is_written_waits_for_it(
    page: Page, me: User, fake: FakeAnthropic
) -> None:
    fake.on("reply").streams(["word "] * 30, delay_s=0.1, times=1)
    open_chat(page)
    write(page, "My boat is called Ada and lies in Husum.")
    expect(replies(page).last).to_contain_text("word")
    page.click("[data-menu] > summary")
    page.get_by_role("button", name="Wrap up this part").click()
    page.get_by_role("button", name="Wrap it up").click()
    expect(page.locator("[data-toasts]")).to_contain_text("once the answer is there")
    expect(page.locator("[data-rest]")).to_contain_text("come to rest")
    expect(replies(page)).to_have_count(1)
