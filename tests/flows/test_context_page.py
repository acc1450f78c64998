"""What MIRA sees, in a real browser: without script, on a phone, light and dark; and the thread."""

from __future__ import annotations

import os

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from conversations.models import CompactionBrief, Message, Observation, Turn
from tests.conversations.talking import know, put_to_rest, said, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]


@pytest.fixture
def talk(me, fake_anthropic) -> list[Turn]:
    """An evening at rest and a morning with memories, advice and a brief.

    Asked for first: it is told in this process, before there is a worker that would answer, too.
    """
    fake = fake_anthropic
    fake.on("reply").says("She is called Merula, and she lies at berth 14 in Piran.")
    fake.on("subcortical").answers(
        {"phrases": ["name of the boat"], "entities": ["Merula"], "complexity": "complex"}
    )
    know(me, "Alice's boat is called Merula.")
    know(me, "Merula lies at berth 14 in Piran.")
    say(me, "Good evening! I painted Merula today.")
    put_to_rest(me)
    turns = [say(me, "How is my boat called, and where does she lie?"), say(me, "Since when?")]
    first = turns[0]
    Observation.objects.create(
        user=me,
        segment=first.segment,
        turn=first,
        action="concern",
        failure="The year of the move to Piran was asked for and not told.",
        guidance="Say since when she lies there, or that you do not know it.",
        evidence_ids=[str(said(first).pk)],
        turn_number=first.number,
        expires_after_turn=first.number + 3,
        created_at=timezone.now(),
    )
    CompactionBrief.objects.create(
        user=me,
        segment=first.segment,
        text="Where it stands: the boat.\n\nIn short: we spoke of Merula and of Piran.",
        covered_to_position=said(first).position,
        covered_from_at=first.created_at,
        covered_to_at=first.created_at,
        updated_at=timezone.now(),
    )
    return [*turns, say(me, "And what does the berth cost?")]


@pytest.mark.parametrize("looks", ["light", "dark"])
def test_the_context_of_an_answer_is_read_without_script_on_a_phone(
    talk, open_context, alice, looks
):
    context = open_context(alice, phone=True, java_script_enabled=False, color_scheme=looks)
    page = context.new_page()
    page.goto("/context/")
    expect(page.get_by_role("heading", name="What MIRA sees")).to_be_visible()
    expect(page.get_by_role("blockquote")).to_have_text("And what does the berth cost?")
    expect(page.locator("[data-toast]")).to_have_count(0)
    page.get_by_text("What came to mind", exact=True).click()
    expect(page.get_by_label("What came to mind, word for word")).to_contain_text("Merula")
    advised = page.locator(".context-advised")
    expect(advised.get_by_text("Say since when she lies there")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if shots := os.environ.get("MIRA_SHOTS"):
        page.screenshot(path=f"{shots}/context-{looks}.png", full_page=True)
    page.get_by_role("link", name="The answer before").click()
    expect(page.get_by_role("blockquote")).to_have_text("Since when?")
    advised.get_by_role("link", name="message 1").click()
    page.wait_for_url("**/?at=*")


def test_an_answer_leads_to_what_was_seen_and_the_thread_shows_where_the_brief_ends(talk, page):
    page.goto("/")
    line = page.get_by_text("Earlier in this part, in MIRA’s words")
    expect(line).to_be_visible()
    entry = page.locator(f'[data-id="{said(talk[0]).pk}"]')
    expect(entry.locator("details.brief")).to_have_count(1)
    line.click()
    expect(page.get_by_text("we spoke of Merula and of Piran")).to_be_visible()
    if shots := os.environ.get("MIRA_SHOTS"):
        page.screenshot(path=f"{shots}/thread-brief.png")
    answer = page.locator(f'[data-id="{said(talk[-1]).pk}"]')
    answer.hover()
    answer.get_by_role("link", name="What MIRA saw").click()
    page.wait_for_url(f"**/context/{talk[-1].pk}/")
    if shots := os.environ.get("MIRA_SHOTS"):
        page.screenshot(path=f"{shots}/context-wide.png", full_page=True)


def test_the_line_goes_when_what_it_tells_is_gone(talk, page, me):
    page.goto("/")
    expect(page.locator("details.brief")).to_have_count(1)
    question = Message.objects.for_user(me).get(turn=talk[0], role=Message.Role.USER)
    entry = page.locator(f'[data-id="{question.pk}"]')
    entry.hover()
    entry.get_by_role("button", name="Delete this message").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("details.brief")).to_have_count(0)
