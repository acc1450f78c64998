"""The whole of MIRA in this process: web server, worker, and a real Chromium in front of it."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from celery.contrib.testing.worker import start_worker
from channels.layers import channel_layers
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from conversations import stream
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.asgi import application
from mira_site.celery import app
from tests.fake_anthropic import FakeAnthropic

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WAIT_MS = 20_000  # the first turn of a run loads the embedding model


@pytest.fixture
def worker(transactional_db: None) -> Iterator[None]:
    """A Celery worker in threads of this process, on the run's own Redis."""
    eager = app.conf.task_always_eager
    app.conf.task_always_eager = False
    # Lost turns are swept by beat in life; nobody beats here.
    with start_worker(
        app,
        pool="threads",
        concurrency=4,
        queues=["turns", "background"],
        perform_ping_check=False,
        shutdown_timeout=20,
    ):
        yield
    app.conf.task_always_eager = eager


@pytest.fixture
def live_mira(worker: None) -> Iterator[str]:
    """The address of a running MIRA: HTTP and WebSocket by uvicorn, turns by a worker."""
    channel_layers.backends.clear()  # a layer's locks belong to the event loop of one server
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(
        application, host="127.0.0.1", port=port, log_level="warning", lifespan="off", ws="auto"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    server.force_exit = True
    thread.join(timeout=10)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One Chromium for a module. Playwright keeps an event loop in this thread, hence the flag."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("The browser tests need Chromium: apt-get install chromium.")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def open_context(live_mira: str, chromium: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """`open_context(alice, phone=True)`: a signed-in browser of its own, as on another device."""
    opened: list[BrowserContext] = []

    def open_one(user: User | None, *, phone: bool = False, **options: object) -> BrowserContext:
        wanted: dict[str, Any] = {
            "viewport": {"width": 1280, "height": 860},
            "timezone_id": "UTC",
            "service_workers": "block",
        }
        if phone:
            wanted |= {
                "viewport": {"width": 390, "height": 844},
                "has_touch": True,
                "is_mobile": True,
            }
        context = chromium.new_context(base_url=live_mira, **(wanted | options))
        context.set_default_timeout(WAIT_MS)
        if user is not None:
            client = Client()
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_mira}])
        opened.append(context)
        return context

    yield open_one
    for context in opened:
        context.close()


@pytest.fixture
def page(open_context: Callable[..., BrowserContext], alice: User) -> Iterator[Page]:
    """Alice's browser. A script error or a broken content policy fails the test."""
    stream.client().delete(stream.key(alice.pk))
    opened = open_context(alice).new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on(
        "console",
        lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None,
    )
    yield opened
    assert errors == []


@pytest.fixture
def fake(live_mira: str, fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    """The provider behind a running MIRA."""
    return fake_anthropic


@pytest.fixture
def me(alice: User) -> Iterator[User]:
    with isolation.acting_as(alice.pk):
        yield alice
