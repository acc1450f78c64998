"""The chat page as a person uses it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


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
