"""The chat page in a real browser, against the whole of MIRA and a scripted provider."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect

from conversations import threads
from conversations.models import Message, Segment, Turn
from memory import services as memory
from mira_site import isolation
from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic

pytestmark = pytest.mark.django_db(transaction=True)

OpenContext = Callable[..., BrowserContext]

RICH = """Here is **Ada**, for $5 and $10, and a formula: $e^{i\\pi} = -1$.

```python
print("ahoy")
```

| Hour | Share |
|---|---|
| 1 | one twelfth |

$$\\frac{1}{2}$$

<img src=x onerror="document.title='pwned'"> [click](javascript:alert(1)) ![spy](https://evil.example/p.png)
"""


@pytest.fixture
def fake(live_mira: str, fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    return fake_anthropic


@pytest.fixture
def me(alice: User) -> Iterator[User]:
    with isolation.acting_as(alice.pk):
        yield alice


def open_chat(page: Page, path: str = "/") -> None:
    page.goto(path)
    expect(page.locator("[data-loading]")).to_be_hidden()


def write(page: Page, text: str) -> None:
    page.fill("#composer-text", text)
    page.press("#composer-text", "Enter")


def replies(page: Page) -> Locator:
    return page.locator("[data-thread] .message--mira")


def questions(page: Page) -> Locator:
    return page.locator("[data-thread] .message--user .said__text")


def slowly(fake: FakeAnthropic, word: str = "word ", count: int = 60, delay_s: float = 0.1) -> None:
    fake.on("reply").streams([word] * count, delay_s=delay_s, times=1)


def told(me: User, count: int, *, segments: int = 1) -> list[Message]:
    """So many messages of long ago, in so many segments, the last of them active."""
    thread = threads.thread_for(me)
    start = timezone.now() - timedelta(days=segments + 1)
    messages = []
    for number in range(segments):
        at = start + timedelta(days=number)
        rested = number < segments - 1
        segment = Segment.objects.create(
            user=me,
            thread=thread,
            opened_at=at,
            last_message_at=at,
            title=f"Chapter {number + 1}" if rested else "",
            status=Segment.Status.COLLAPSED if rested else Segment.Status.ACTIVE,
            summarised_at=at if rested else None,
            remembered_at=at if rested else None,
        )
        for index in range(count // segments // 2):
            turn = Turn.objects.create(
                user=me,
                thread=thread,
                segment=segment,
                client_id=uuid.uuid4(),
                status=Turn.Status.DONE,
                queued_at=at,
            )
            for role in (Message.Role.USER, Message.Role.ASSISTANT):
                at += timedelta(seconds=1)
                text = f"{role} says {number}-{index}. " + "More of it. " * 12
                messages.append(
                    threads.append(thread, segment, turn=turn, role=role, text=text, at=at)
                )
    return messages


def scroll_top(page: Page) -> float:
    top: float = page.evaluate("document.querySelector('[data-scroller]').scrollTop")
    return top


def from_end(page: Page) -> float:
    distance: float = page.evaluate(
        "(box => box.scrollHeight - box.clientHeight - box.scrollTop)"
        "(document.querySelector('[data-scroller]'))"
    )
    return distance


# --- Talking ---------------------------------------------------------------------------------


def test_an_answer_streams_in_and_is_rendered_safely(page: Page, fake: FakeAnthropic) -> None:
    fake.on("reply").streams(re.findall(r"(?s).{1,9}", RICH), delay_s=0.01)
    open_chat(page)
    expect(page.locator("[data-welcome]")).to_be_visible()
    write(page, "Show me everything.")
    expect(page.locator("[data-welcome]")).to_be_hidden()
    answer = replies(page).last
    expect(answer.locator(".message__foot time")).to_be_attached()
    expect(answer).not_to_have_attribute("aria-busy", "true")
    expect(answer.locator("strong")).to_have_text("Ada")
    expect(answer.locator("p").first).to_contain_text("for $5 and $10, and a formula")
    expect(answer.locator(".katex")).to_have_count(2)
    expect(answer.locator("pre code .hljs-string")).to_have_text('"ahoy"')
    expect(answer.get_by_role("button", name="Copy code")).to_be_visible()
    expect(answer.locator(".table-scroll td").last).to_have_text("one twelfth")
    assert answer.locator("img, script, [onerror], a[href^='javascript']").count() == 0
    assert page.title() == "Conversation · MIRA"


def test_a_half_written_answer_shows_its_finished_blocks(page: Page, fake: FakeAnthropic) -> None:
    begun = ["# Title\n\n", "First **bold**.\n\n", "مرحبا بك.\n\n", "And"]
    fake.on("reply").streams(begun + [" on"] * 80, 0.05)
    open_chat(page)
    write(page, "Go on.")
    answer = replies(page).last
    expect(answer.locator("h1")).to_have_text("Title")
    expect(answer.locator("strong")).to_have_text("bold")
    arabic = answer.get_by_text("مرحبا بك.")
    expect(arabic).to_have_css("direction", "rtl")
    assert answer.get_attribute("aria-busy") == "true"
    expect(page.locator("[data-announcer]")).to_contain_text("First bold.")
    page.press("#composer-text", "Escape")
    expect(page.locator("[data-stop]")).to_be_hidden()


def test_stopping_keeps_what_was_said_and_offers_another_try(
    page: Page, fake: FakeAnthropic
) -> None:
    slowly(fake)
    open_chat(page)
    write(page, "Tell me a long story.")
    expect(replies(page).last.locator(".markdown")).to_contain_text("word word")
    page.click("[data-stop]")
    note = replies(page).last.locator(".reply-note")
    expect(note).to_contain_text("Stopped here.")
    expect(page.locator("[data-announcer]")).to_contain_text("Stopped here.")
    expect(replies(page).last.locator(".markdown")).to_contain_text("word word")
    fake.on("reply").says("A short one, then.")
    note.get_by_role("button", name="Try again").press("Enter")
    expect(page.locator("[data-scroller]")).to_be_focused()
    expect(replies(page).last.locator(".markdown")).to_have_text("A short one, then.")
    expect(note).to_be_hidden()
    expect(replies(page)).to_have_count(1)
    expect(questions(page)).to_have_count(1)


def test_a_failed_answer_says_so_also_after_a_reload_and_can_be_tried_again(
    page: Page, fake: FakeAnthropic
) -> None:
    fake.on("reply").errs_midway(500, after=1, times=5)
    open_chat(page)
    write(page, "Are you there?")
    note = replies(page).last.locator(".reply-note--bad")
    expect(note).to_be_visible()
    page.reload()
    expect(note).to_be_visible()
    fake.forget()
    fake.on("reply").says("Here I am.")
    note.get_by_role("button", name="Try again").click()
    expect(replies(page).last.locator(".markdown")).to_have_text("Here I am.")
    expect(questions(page)).to_have_count(1)
    fake.on("reply").fails(529, times=9)
    write(page, "Still there?")
    expect(replies(page).last.locator(".markdown")).to_contain_text("I cannot reach my language")
    fake.forget()
    fake.on("reply").says("Again, yes.")
    replies(page).last.get_by_role("button", name="Try again").click()
    expect(replies(page).last.locator(".markdown")).to_have_text("Again, yes.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_what_is_written_during_an_answer_goes_out_after_it(
    page: Page, fake: FakeAnthropic
) -> None:
    slowly(fake, count=25)
    open_chat(page)
    write(page, "First.")
    expect(replies(page).last.locator(".markdown")).to_contain_text("word")
    fake.on("reply").says("And the second.")
    write(page, "Second.")
    expect(page.locator("[data-outbox]")).to_contain_text("Goes out after this answer")
    expect(replies(page).last.locator(".markdown")).to_have_text("And the second.")
    expect(questions(page)).to_have_text(["First.", "Second."])
    expect(page.locator("[data-outbox] .entry")).to_have_count(0)


# --- More than one page, and lines that break --------------------------------------------------


def test_two_devices_see_the_same_answer_live(
    page: Page, fake: FakeAnthropic, open_context: OpenContext, alice: User
) -> None:
    other = open_context(alice, phone=True).new_page()
    open_chat(page)
    open_chat(other)
    slowly(fake, count=40)
    write(page, "Say it to both of us.")
    for watched in (page, other):
        expect(questions(watched)).to_have_text(["Say it to both of us."])
        expect(replies(watched).last.locator(".markdown")).to_contain_text("word word")
    expect(other.locator("[data-stop]")).to_be_visible()
    other.click("[data-stop]")
    for watched in (page, other):
        expect(replies(watched).last.locator(".reply-note")).to_contain_text("Stopped here.")
    heard = [replies(watched).last.locator(".markdown").inner_text() for watched in (page, other)]
    assert heard[0] == heard[1]


def test_a_page_reloaded_during_an_answer_catches_up_and_goes_on(
    page: Page, fake: FakeAnthropic
) -> None:
    fake.on("reply").streams([f"n{number} " for number in range(50)], delay_s=0.08, times=1)
    fake.on("reply").says("Two hours.")
    open_chat(page)
    tall = "\n".join(["Count for me."] * 60)
    write(page, tall)
    expect(replies(page).last.locator(".markdown")).to_contain_text("n5")
    write(page, "How long is that?")
    state = page.locator(".outbox .message__foot > span")
    expect(state).to_have_text("Goes out after this answer")
    expect(state).to_have_css("opacity", "1")
    page.reload()
    expect(replies(page).first.locator(".markdown")).to_contain_text("n0 n1 n2 n3 n4 n5 n6")
    assert replies(page).first.get_attribute("aria-busy") == "true"
    whole = " ".join(f"n{number}" for number in range(50))
    expect(replies(page).first.locator(".markdown")).to_have_text(whole)
    expect(replies(page).last.locator(".markdown")).to_have_text("Two hours.")
    expect(replies(page)).to_have_count(2)
    expect(questions(page)).to_have_text([tall, "How long is that?"])
    expect(replies(page).last).to_be_in_viewport()
    expect(page.locator("[data-pill]")).to_be_hidden()


def test_a_message_written_offline_is_kept_and_sent_once(page: Page, fake: FakeAnthropic) -> None:
    fake.on("reply").says("It arrived.")
    open_chat(page)
    page.context.set_offline(True)
    expect(page.locator("[data-banner]")).to_contain_text("offline")
    write(page, "Out of the tunnel soon.")
    expect(page.locator("[data-outbox]")).to_contain_text("Waits for the connection")
    page.context.set_offline(False)
    expect(replies(page).last.locator(".markdown")).to_have_text("It arrived.")
    expect(page.locator("[data-banner]")).to_be_hidden()
    expect(questions(page)).to_have_text(["Out of the tunnel soon."])
    page.reload()
    expect(questions(page)).to_have_text(["Out of the tunnel soon."])
    expect(page.locator("[data-outbox] .entry")).to_have_count(0)


def test_a_refused_message_stays_with_its_reason_and_can_be_edited(
    page: Page, fake: FakeAnthropic
) -> None:
    open_chat(page)
    page.evaluate("document.querySelector('#composer-text').value = 'x'.repeat(400000)")
    page.press("#composer-text", "Enter")
    unsent = page.locator("[data-outbox] .message--unsent")
    expect(unsent).to_be_visible()
    expect(unsent.get_by_role("button", name="Send again")).to_be_visible()
    unsent.get_by_role("button", name="Edit").click()
    expect(page.locator("[data-outbox] .entry")).to_have_count(0)
    assert len(page.input_value("#composer-text")) == 400_000


def test_a_page_that_missed_events_shows_them_after_it_comes_back(
    page: Page, fake: FakeAnthropic, open_context: OpenContext, alice: User
) -> None:
    fake.on("reply").says("Said while you were away.")
    open_chat(page)
    page.context.set_offline(True)
    other = open_context(alice).new_page()
    open_chat(other)
    write(other, "From the other device.")
    expect(replies(other).last.locator(".markdown")).to_have_text("Said while you were away.")
    page.context.set_offline(False)
    expect(questions(page)).to_have_text(["From the other device."])
    expect(replies(page).last.locator(".markdown")).to_have_text("Said while you were away.")


def test_an_unsent_draft_survives_a_reload(page: Page, live_mira: str) -> None:
    open_chat(page)
    page.fill("#composer-text", "Half a thought")
    page.wait_for_timeout(400)  # saved a moment after the last key
    page.reload()
    expect(page.locator("#composer-text")).to_have_value("Half a thought")
    page.get_by_label("Menu").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    assert "Half a thought" not in page.evaluate("Object.values(localStorage).join()")


# --- The past ----------------------------------------------------------------------------------


def test_history_loads_upwards_without_moving_what_is_read(page: Page, me: User) -> None:
    told(me, 160)
    open_chat(page)
    expect(page.locator("[data-thread] > .entry")).to_have_count(50)
    assert from_end(page) < 2
    moved = page.evaluate(
        """async () => {
            const box = document.querySelector('[data-scroller]');
            box.scrollTop = 700;
            const mark = [...document.querySelectorAll('.entry article')]
                .find(one => one.getBoundingClientRect().top > 200);
            const before = mark.getBoundingClientRect().top;
            const count = () => document.querySelectorAll('[data-thread] > .entry').length;
            for (let tries = 0; count() <= 50 && tries < 100; tries += 1)
                await new Promise(done => setTimeout(done, 50));
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            return mark.getBoundingClientRect().top - before;
        }"""
    )
    assert abs(moved) < 3
    for _ in range(12):
        page.evaluate("document.querySelector('[data-scroller]').scrollTop = 0")
        page.wait_for_timeout(150)
    expect(page.locator("[data-thread] > .entry")).to_have_count(160)
    expect(questions(page).first).to_contain_text("user says 0-0.")


def test_segments_are_divided_by_their_titles(page: Page, me: User) -> None:
    told(me, 24, segments=3)
    open_chat(page)
    expect(page.locator(".divider__title")).to_have_text(["Chapter 1", "Chapter 2"])


def test_a_source_link_opens_the_past_around_its_message(page: Page, me: User) -> None:
    messages = told(me, 240)
    sought = messages[40]
    open_chat(page, f"/?at={sought.pk}")
    entry = page.locator(f"[data-id='{sought.pk}']")
    expect(entry).to_be_in_viewport()
    assert questions(page).last.inner_text() != messages[-2].text.strip()
    page.click("[data-pill]")
    expect(page.locator(f"[data-id='{messages[-1].pk}']")).to_be_in_viewport()


def test_the_past_opened_in_its_middle_leads_down_to_now(page: Page, me: User) -> None:
    messages = told(me, 160)
    open_chat(page, f"/?at={messages[60].pk}")
    for _ in range(20):
        page.evaluate(
            "(box => box.scrollTop = box.scrollHeight)(document.querySelector('[data-scroller]'))"
        )
        page.wait_for_timeout(120)
    expect(page.locator(f"[data-id='{messages[-1].pk}']")).to_be_in_viewport()


def test_reading_above_is_not_disturbed_by_an_answer_below(
    page: Page, fake: FakeAnthropic, me: User
) -> None:
    told(me, 30)
    slowly(fake, word="one more line of the answer\n\n", count=50, delay_s=0.05)
    open_chat(page)
    write(page, "Write a lot.")
    expect(replies(page).last.locator(".markdown p").first).to_be_visible()
    page.evaluate("document.querySelector('[data-scroller]').scrollTop = 300")
    page.wait_for_timeout(100)
    before = scroll_top(page)
    expect(page.locator("[data-pill]")).to_contain_text("New messages")
    page.wait_for_timeout(600)
    assert abs(scroll_top(page) - before) < 2
    page.click("[data-pill]")
    page.wait_for_timeout(800)
    assert from_end(page) < 60


# --- What came to mind, and rest ---------------------------------------------------------------


def test_memories_that_came_to_mind_hang_on_the_answer_live_and_later(
    page: Page, fake: FakeAnthropic, me: User
) -> None:
    kept = memory.create(user=me, text="Alice keeps her boat Ada in Husum. <b>Bold</b>")
    slowly(fake, count=30)
    open_chat(page)
    write(page, "Where does my boat Ada lie?")
    surfaced = replies(page).last.locator(".surfaced")
    expect(surfaced.locator("summary")).to_have_text("One memory came to mind")
    assert replies(page).last.get_attribute("aria-busy") == "true"
    surfaced.locator("summary").click()
    link = surfaced.locator("a")
    expect(link).to_have_text("Alice keeps her boat Ada in Husum. <b>Bold</b>")
    expect(link).to_have_attribute("href", f"/memories/{kept.pk}/")
    expect(replies(page).last.locator(".message__foot time")).to_be_attached()
    expect(link).to_be_visible()
    page.reload()
    expect(replies(page).last.locator(".surfaced summary")).to_have_text("One memory came to mind")


def test_a_quiet_line_says_what_tools_were_used_live_and_later(
    page: Page, fake: FakeAnthropic
) -> None:
    call = {"operation": "create_memory", "content": "Alice keeps her boat Ada in Husum."}
    fake.on("reply").calls_tool("memory_tool", call, saying="One moment.").says("I have it.")
    open_chat(page)
    write(page, "Remember that I keep my boat Ada in Husum.")
    line = replies(page).last.locator(".tools li")
    expect(line).to_have_text("remembered something")
    expect(replies(page).last.locator(".message__foot time")).to_be_attached()
    expect(replies(page).last).to_contain_text("I have it.")
    page.reload()
    expect(line).to_have_text("remembered something")


def test_a_part_can_be_put_to_rest_from_the_menu(page: Page, fake: FakeAnthropic) -> None:
    fake.on("reply").says("Noted.")
    open_chat(page)
    write(page, "My boat is called Ada and lies in Husum.")
    expect(replies(page).last.locator(".message__foot time")).to_be_attached()
    page.click("[data-menu] > summary")
    page.click("[data-collapse]")
    page.click("[data-wrap-dialog] [value=wrap]")
    expect(page.locator("[data-rest]")).to_contain_text("come to rest")
    page.reload()
    expect(page.locator("[data-rest]")).to_contain_text("come to rest")
    expect(page.locator(".divider__title")).to_have_count(1)


# --- Hands, eyes and places --------------------------------------------------------------------


def test_the_keyboard_is_enough(page: Page, fake: FakeAnthropic) -> None:
    fake.on("reply").says("Two lines, I see.")
    open_chat(page)
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.locator("#composer-text")).to_be_focused()
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(questions(page)).to_have_text(["one\ntwo"])
    expect(replies(page).last.locator(".markdown")).to_have_text("Two lines, I see.")


def test_a_phone_holds_the_page_without_sideways_scrolling(
    fake: FakeAnthropic, open_context: OpenContext, alice: User
) -> None:
    fake.on("reply").says(RICH + "\n\n" + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```")
    phone = open_context(alice, phone=True).new_page()
    open_chat(phone)
    phone.fill("#composer-text", "First line")
    phone.press("#composer-text", "Enter")
    assert phone.input_value("#composer-text") == "First line\n"
    phone.click("[data-send]")
    expect(replies(phone).last.locator(".message__foot time")).to_be_attached()
    widths = phone.evaluate(
        "[document.documentElement, document.querySelector('[data-scroller]')]"
        ".map(box => box.scrollWidth - box.clientWidth)"
    )
    assert widths == [0, 0]
    box = phone.locator("[data-composer]").bounding_box()
    assert box is not None and box["y"] + box["height"] <= 844


def test_a_starter_leaves_the_rest_to_the_person(page: Page, live_mira: str) -> None:
    open_chat(page)
    page.locator("[data-starter]").first.click()
    expect(page.locator("#composer-text")).to_be_focused()
    assert page.input_value("#composer-text").endswith(": ")


def test_the_theme_is_chosen_and_kept(page: Page, live_mira: str) -> None:
    open_chat(page)
    page.click("[data-menu] > summary")
    with page.expect_response("**/api/v1/me/"):
        page.click("[data-theme-choice='dark']")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).colorScheme || 'dark'") == "dark"


def test_the_browsers_time_zone_becomes_the_persons(open_context: OpenContext, alice: User) -> None:
    page = open_context(alice, timezone_id="Europe/Vienna").new_page()
    with page.expect_response("**/api/v1/me/") as told_zone:
        open_chat(page)
    assert told_zone.value.ok
    alice.refresh_from_db()
    assert alice.timezone == "Europe/Vienna"


def test_without_script_the_page_says_what_to_do(open_context: OpenContext, alice: User) -> None:
    page = open_context(alice, java_script_enabled=False).new_page()
    page.goto("/")
    expect(page.get_by_text("The conversation needs JavaScript.")).to_be_visible()


def test_a_stranger_is_asked_to_sign_in(open_context: OpenContext) -> None:
    page = open_context(None).new_page()
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/accounts/login/\?next=/$"))
