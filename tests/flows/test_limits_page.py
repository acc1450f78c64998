"""Where a limit was met, the page says so and offers what can be done, by hand and by keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic
from tests.flows.chatting import open_chat, questions, replies, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake(live_mira: str, fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    return fake_anthropic


def test_an_answer_that_met_its_limit_is_continued_from_a_phone_by_keyboard(
    fake: FakeAnthropic, open_context: Callable[..., BrowserContext], alice: User
) -> None:
    fake.on("reply").says("One, two,", times=1, stop_reason="max_tokens")
    fake.on("reply").says("three, four.")
    phone = open_context(alice, phone=True).new_page()
    open_chat(phone)
    phone.fill("#composer-text", "Count.")
    phone.click("[data-send]")
    note = replies(phone).first.locator("[data-limit]")
    expect(note).to_contain_text("The answer reached its limit.")
    phone.reload()
    expect(phone.locator("[data-loading]")).to_be_hidden()
    button = note.get_by_role("button", name="Continue")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    button.focus()
    phone.keyboard.press("Enter")
    expect(replies(phone).last.locator(".markdown")).to_have_text("three, four.")
    expect(questions(phone)).to_have_text(["Count.", "Please go on."])
    expect(button).to_be_hidden()
    expect(note).to_be_visible()
    phone.reload()
    expect(note).to_be_visible()
    expect(button).to_be_hidden()


def test_what_has_grown_too_long_for_the_model_can_be_put_to_rest(
    page: Page, fake: FakeAnthropic
) -> None:
    fake.takes_prompts_up_to(10)
    open_chat(page)
    write(page, "My boat is called Ada and lies in Husum.")
    note = replies(page).last.locator(".reply-note--bad")
    expect(note).to_contain_text("too long for the model")
    expect(note.get_by_role("button", name="Try again")).to_have_count(0)
    note.get_by_role("button", name="Wrap up this part").click()
    page.click("[data-wrap-dialog] [value=wrap]")
    expect(page.locator("[data-rest]")).to_contain_text("come to rest")
    fake.takes_prompts_up_to(10**6)
    fake.on("reply").says("Here we go on.")
    write(page, "And now?")
    expect(replies(page).last.locator(".markdown")).to_have_text("Here we go on.")


def test_why_there_were_no_more_tools_stands_at_the_end_of_the_answer(
    page: Page, fake: FakeAnthropic
) -> None:
    for _ in range(3):
        fake.on("reply").calls_tool("memory_tool", {"operation": "search", "query": "boat"})
    fake.on("reply").says("It is called Ada.")
    open_chat(page)
    write(page, "What is my boat called?")
    expect(replies(page).last.locator(".markdown em")).to_contain_text("stopped using tools")
