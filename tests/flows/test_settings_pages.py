"""Settings and usage in a real browser: on a phone, without script, and in step with the API."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from mira_site import isolation
from mira_site.accounts import services
from mira_site.accounts.models import User
from mira_site.llm.models import ModelCall

pytestmark = pytest.mark.django_db(transaction=True)

THEME = "document.documentElement.dataset.theme"


def live_a_month(user: User) -> None:
    """Some calls of this and the last month."""
    kinds = [("reply", "claude-sonnet-5-5"), ("subcortical", "claude-haiku-5-5")]
    now = timezone.now()
    with isolation.acting_as(user.pk):
        for day in range(40):
            for job, model in kinds:
                call = ModelCall.objects.create(
                    user=user,
                    job=job,
                    tier="reply",
                    model=model,
                    outcome="ok",
                    input_tokens=900 + 40 * day,
                    cache_read_tokens=21_000,
                    cache_write_tokens=700,
                    output_tokens=350,
                    cost=Decimal(day % 7 + 1) / 10 if job == "reply" else Decimal("0.004"),
                )
                rows = ModelCall.objects.for_user(user).filter(pk=call.pk)
                rows.update(created_at=now - dt.timedelta(days=day))


@pytest.mark.parametrize("looks", ["light", "dark"])
def test_a_person_settles_in_without_script(open_context, alice, settings, looks):
    settings.MIRA_MODELS_ALLOWED = {"reply": ("claude-opus-5-5", "claude-haiku-5-5")}
    context = open_context(alice, phone=True, java_script_enabled=False, color_scheme=looks)
    page = context.new_page()
    page.goto("/settings/")
    page.get_by_label("Name").fill("Ali")
    page.get_by_label("Time zone").fill("atlantis")
    page.locator("#you").get_by_role("button", name="Save").click()
    expect(page.get_by_text("I know no such zone.")).to_be_visible()
    page.get_by_label("Time zone").fill("vienna")
    page.locator("#you").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Vienna")
    page.get_by_label("Effort").select_option("high")
    page.get_by_label("Model: answers").select_option("claude-opus-5-5")
    page.locator("#thinking").get_by_role("button", name="Save").click()
    expect(page.get_by_label("Model: answers")).to_have_value("claude-opus-5-5")
    page.locator("#key").get_by_label("Key").fill("sk-ant-alice-000000000000-A1b2")
    page.get_by_role("button", name="Keep the key").click()
    expect(page.get_by_text("A key that ends in A1b2")).to_be_visible()
    page.get_by_label("What is it for?").fill("Backup script")
    page.get_by_role("button", name="Make a token").click()
    expect(page.get_by_text("This is the token.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Sign out everywhere else").click()
    expect(page.get_by_text("You are signed in on this device only.")).to_be_visible()


@pytest.mark.parametrize("looks", ["light", "dark"])
def test_usage_is_seen_and_capped_without_script(open_context, alice, looks):
    live_a_month(alice)
    context = open_context(alice, phone=True, java_script_enabled=False, color_scheme=looks)
    page = context.new_page()
    page.goto("/settings/usage/")
    expect(page.get_by_role("img", name="Dollars by day")).to_be_visible()
    expect(page.get_by_role("rowheader", name="Answers")).to_be_visible()
    page.get_by_label("Monthly cap").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The cap is reached.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with page.expect_download() as download:
        page.get_by_role("link", name="as CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("at,job,tier,model")
    assert len(lines) == 1 + 2 * timezone.now().day


def test_the_theme_is_one_for_the_menu_the_page_the_api_and_other_devices(
    page: Page, open_context, alice
):
    page.goto("/settings/")
    page.click("[data-menu] > summary")
    with page.expect_response("**/api/v1/me/"):
        page.click("[data-theme-choice='dark']")
    page.reload()
    assert page.evaluate(THEME) == "dark"
    expect(page.get_by_label("Dark", exact=True)).to_be_checked()
    other = open_context(alice).new_page()
    other.goto("/settings/")
    assert other.evaluate(THEME) == "dark"
    services.update_profile(user=alice, chosen={"theme": "light"})
    page.reload()
    assert page.evaluate(THEME) == "light"
    page.get_by_label("Like the device").check()
    page.locator("#looks").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert page.evaluate(THEME) is None


def test_a_choice_that_could_not_be_saved_is_kept_and_saved_later(page: Page, alice):
    page.goto("/settings/")
    page.route("**/api/v1/me/", lambda route: route.abort())
    page.click("[data-menu] > summary")
    page.click("[data-theme-choice='dark']")
    page.unroute("**/api/v1/me/")
    with page.expect_response("**/api/v1/me/"):
        page.reload()
    assert page.evaluate(THEME) == "dark"
    alice.refresh_from_db()
    assert alice.preferences["theme"] == "dark"
