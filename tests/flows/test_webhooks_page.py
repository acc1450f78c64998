"""The webhooks page in a real browser, on a phone and without script."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect
from pytest_django import Settings

from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("looks", ["light", "dark"])
def test_a_person_adds_tests_and_deletes_a_webhook_without_script(
    open_context, alice, settings: Settings, looks
):
    settings.WEBHOOK_PRIVATE_HOSTS = ["127.0.0.1"]
    context = open_context(alice, phone=True, java_script_enabled=False, color_scheme=looks)
    page = context.new_page()
    with Receiver() as receiver:
        page.goto("/settings/webhooks/")
        page.get_by_label("Address").fill("https://localhost/")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_text("This address is private.")).to_be_visible()
        page.get_by_label("Address").fill(receiver.url)
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_text("whsec_")).to_be_visible()
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_text("A test event is on its way")).to_be_visible()
        page.goto("/settings/webhooks/")
        expect(page.get_by_text("webhook.test", exact=True)).to_be_visible()
        until = time.monotonic() + 10
        while not receiver.heard and time.monotonic() < until:
            time.sleep(0.05)
        assert receiver.heard[0].event["type"] == "webhook.test"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_text("Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("Nobody is told of anything.")).to_be_visible()
