"""A long conversation in the browser: a window of it on the page, and ways to any place in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from conversations import threads
from conversations.models import Message, Segment, Turn
from mira_site import isolation
from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic
from tests.flows.chatting import open_chat, questions, replies, write

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGES, SEGMENT = 1_200, 40
FIRST_DAY = datetime(2025, 1, 1, 12, tzinfo=UTC)
ON_PAGE_MAX = 300  # elements of messages, however far one scrolls
SCROLLER = "document.querySelector('[data-scroller]')"


@pytest.fixture
def thread(me: User) -> Iterator[list[Message]]:
    """A segment of forty messages a day, for a month."""
    thread = threads.thread_for(me)
    segments, turns, rows = [], [], []
    for number in range(MESSAGES):
        at = FIRST_DAY + timedelta(days=number // SEGMENT, minutes=number % SEGMENT)
        if number % SEGMENT == 0:
            segments.append(
                Segment(
                    user=me,
                    thread=thread,
                    opened_at=at,
                    last_message_at=at,
                    collapsed_at=at,
                    title=f"Chapter {len(segments) + 1}",
                    status=Segment.Status.COLLAPSED,
                    summarised_at=at,
                    remembered_at=at,
                )
            )
        if number % 2 == 0:
            turns.append(
                Turn(
                    user=me,
                    thread=thread,
                    segment=segments[-1],
                    client_id=uuid.uuid4(),
                    status=Turn.Status.DONE,
                    queued_at=at,
                )
            )
        rows.append(
            Message(
                user=me,
                thread=thread,
                segment=segments[-1],
                turn=turns[-1],
                position=number + 1,
                role=Message.Role.ASSISTANT if number % 2 else Message.Role.USER,
                text=f"Word number {number}. " + "And more of it. " * (number % 7),
                content=[],
                created_at=at,
            )
        )
    Segment.objects.bulk_create(segments)
    Turn.objects.bulk_create(turns)
    Message.objects.bulk_create(rows)
    thread.last_position = MESSAGES
    thread.save()
    with isolation.acting_as(me.pk):
        yield rows


def entries(page: Page) -> int:
    return page.locator("[data-thread] > .entry").count()


def entry(page: Page, message: Message) -> Locator:
    return page.locator(f"[data-id='{message.pk}']")


def scroll_until(page: Page, message: Message, step: int) -> int:
    """Scroll by `step` until the message is on the page; the most elements that were on it."""
    most: int = page.evaluate(
        f"""async ([id, step]) => {{
            const box = {SCROLLER};
            const count = () => document.querySelectorAll('[data-thread] > .entry').length;
            let most = count();
            for (let tries = 0; tries < 900; tries += 1) {{
                if (document.querySelector(`[data-id='${{id}}']`)) break;
                box.scrollTop += step;
                await new Promise(done => setTimeout(done, 20));
                most = Math.max(most, count());
            }}
            return most;
        }}""",
        [str(message.pk), step],
    )
    return most


def test_the_page_holds_a_window_however_far_one_scrolls(page: Page, thread: list[Message]) -> None:
    open_chat(page)
    assert entries(page) == 50
    assert scroll_until(page, thread[300], -1500) <= ON_PAGE_MAX
    expect(entry(page, thread[-1])).to_have_count(0)
    expect(page.locator("[data-pill]")).to_be_visible()
    assert scroll_until(page, thread[-1], 1500) <= ON_PAGE_MAX
    numbers = page.locator("[data-thread] > .entry").evaluate_all(
        "all => all.map(one => Number(/number (\\d+)/.exec(one.textContent)[1]))"
    )
    assert numbers == list(range(numbers[0], MESSAGES))


def test_what_is_read_stays_where_it_is_while_pages_come_and_go(
    page: Page, thread: list[Message]
) -> None:
    open_chat(page, f"/?at={thread[600].pk}")
    moved = page.evaluate(
        f"""async () => {{
            const box = {SCROLLER};
            let worst = 0;
            for (let step = 0; step < 60; step += 1) {{
                const by = step < 30 ? -500 : 500;
                box.scrollTop += by;
                const view = box.getBoundingClientRect();
                const mark = [...box.querySelectorAll('.entry article')]
                    .find(one => one.getBoundingClientRect().top > view.top + 200);
                const before = mark.getBoundingClientRect().top;
                await new Promise(done => setTimeout(done, 60));
                worst = Math.max(worst, Math.abs(mark.getBoundingClientRect().top - before));
            }}
            return worst;
        }}"""
    )
    assert moved < 3


def test_one_jumps_to_a_day_and_back_to_now(page: Page, thread: list[Message]) -> None:
    open_chat(page)
    page.click("[data-lookback-open]")
    page.fill("#lookback-day", "2025-01-11")
    page.press("#lookback-day", "Enter")
    expect(entry(page, thread[10 * SEGMENT])).to_be_in_viewport()
    expect(page.locator("[data-lookback]")).to_be_hidden()
    expect(page.locator(".divider__title", has_text="Chapter 11")).to_be_in_viewport()
    page.click("[data-pill]")
    expect(entry(page, thread[-1])).to_be_in_viewport()
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_chapters_stand_by_month_and_lead_to_their_beginning(
    page: Page, thread: list[Message]
) -> None:
    open_chat(page)
    page.keyboard.press("Control+k")
    expect(page.locator("#lookback-words")).to_be_focused()
    expect(page.locator(".lookback__month").first).to_have_text("January 2025")
    expect(page.locator(".chapter")).to_have_count(MESSAGES // SEGMENT)
    page.locator(".chapter", has_text="Chapter 5").first.click()
    expect(page.locator(".divider__title", has_text="Chapter 5")).to_be_in_viewport()
    assert page.url.endswith("/")


def test_what_a_search_finds_is_shown_in_its_place(page: Page, thread: list[Message]) -> None:
    open_chat(page)
    page.click("[data-lookback-open]")
    page.fill("#lookback-words", '"word number 123"')
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit mark").first).to_have_text("Word")
    page.locator(".hit").click()
    expect(entry(page, thread[123])).to_be_in_viewport()
    expect(entry(page, thread[123]).locator("article")).to_be_focused()


@pytest.mark.parametrize("form", ["/?at={0.pk}", "/#{0.pk}", "/?at=2025-01-03"])
def test_a_deep_link_opens_its_place(page: Page, thread: list[Message], form: str) -> None:
    sought = thread[2 * SEGMENT]
    open_chat(page, form.format(sought))
    expect(entry(page, sought)).to_be_in_viewport()
    assert page.url.endswith("/")


def test_a_deep_link_to_what_is_gone_opens_now_and_says_so(
    page: Page, thread: list[Message]
) -> None:
    open_chat(page, f"/?at={uuid.uuid4()}")
    expect(page.locator("[data-toasts]")).to_contain_text("not here any more")
    expect(entry(page, thread[-1])).to_be_in_viewport()


def test_keys_lead_to_the_ends_and_page_through(page: Page, thread: list[Message]) -> None:
    open_chat(page)
    page.focus("[data-scroller]")
    page.keyboard.press("Home")
    expect(entry(page, thread[0])).to_be_in_viewport()
    page.keyboard.press("End")
    expect(entry(page, thread[-1])).to_be_in_viewport()
    page.focus("#composer-text")
    page.keyboard.press("PageUp")
    expect(entry(page, thread[-1])).not_to_be_in_viewport()
    page.keyboard.press("Control+End")
    expect(entry(page, thread[-1])).to_be_in_viewport()


def test_an_answer_that_is_written_while_the_past_is_read_is_whole_when_one_comes_back(
    page: Page, fake: FakeAnthropic, thread: list[Message]
) -> None:
    fake.on("reply").streams([f"n{number} " for number in range(60)], delay_s=0.05)
    open_chat(page)
    write(page, "Count for me.")
    expect(replies(page).last.locator(".markdown")).to_contain_text("n2")
    page.click("[data-lookback-open]")
    page.click("[data-lookback-start]")
    expect(entry(page, thread[0])).to_be_in_viewport()
    expect(page.locator("[data-stop]")).to_be_visible()
    expect(page.locator("[data-pill]")).to_contain_text("New messages")
    page.click("[data-pill]")
    expect(questions(page).last).to_have_text("Count for me.")
    expect(page.locator("[data-stop]")).to_be_hidden()
    whole = " ".join(f"n{number}" for number in range(60))
    expect(replies(page).last.locator(".markdown")).to_have_text(whole)
    assert page.locator("[data-thread] .message--user", has_text="Count for me.").count() == 1


def test_what_is_written_in_the_past_is_said_now(
    page: Page, fake: FakeAnthropic, thread: list[Message]
) -> None:
    fake.on("reply").says("Here and now.")
    open_chat(page, f"/?at={thread[100].pk}")
    write(page, "Back again.")
    expect(replies(page).last.locator(".markdown")).to_have_text("Here and now.")
    expect(questions(page).last).to_have_text("Back again.")


def test_an_old_message_without_an_answer_says_so(
    page: Page, fake: FakeAnthropic, thread: list[Message]
) -> None:
    answer = thread[-3]
    answer.delete()
    Turn.objects.filter(pk=thread[-4].turn_id).update(
        status="failed", error_code="llm_unavailable", error_detail="The model was away."
    )
    open_chat(page)
    expect(page.locator(".reply-note--bad")).to_have_text("The model was away.")
    expect(page.locator("[data-retry]")).to_have_count(0)
