"""The chain of causes on a memory's page: on a phone, without script, in light and dark."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from memory import services
from memory.models import Memory, MemoryLink

TOLD = (
    "There was a hard frost in the night to Sunday.",
    "A pipe in the cellar burst because of the hard frost in the night to Sunday.",
    "The cellar with the archive of the club was flooded because the pipe in the cellar burst.",
    "Following the flood in the cellar the club moved its archive to the attic.",
)


@pytest.fixture
def flood(me):
    """Four memories, each told after the other; their own words join them."""
    made = []
    for days_ago, text in zip((4, 3, 2, 1), TOLD, strict=True):
        memory = services.create(user=me, text=text)
        when = timezone.now() - timedelta(days=days_ago)
        Memory.objects.for_user(me).filter(id=memory.id).update(said_at=when, created_at=when)
        made.append(memory)
    return made[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_causes_are_read_and_confirmed_on_a_phone_without_script(
    open_context, me, flood, scheme, tmp_path
):
    context = open_context(me, phone=True, java_script_enabled=False, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"/memories/{flood.id}/")
    causes = page.get_by_role("region", name="What led to it")
    expect(causes.get_by_role("listitem")).to_have_count(2)
    expect(causes.get_by_role("listitem").last).to_contain_text("hard frost")
    consequences = page.get_by_role("region", name="What came of it")
    expect(consequences.get_by_role("listitem")).to_contain_text("attic")
    page.screenshot(path=tmp_path / f"chain-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    causes.get_by_role("button", name="It is so").last.click()
    expect(page.get_by_role("region", name="What led to it")).to_contain_text("confirmed by you")
    page.get_by_role("region", name="What came of it").get_by_role(
        "button", name="Remove the link"
    ).click()
    expect(page.get_by_role("region", name="What came of it")).to_have_count(0)
    (confirmed,) = MemoryLink.objects.for_user(me).filter(confirmed_at__isnull=False)
    assert confirmed.author == "rule"
