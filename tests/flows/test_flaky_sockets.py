"""Lines that break at random: every page of a person sees every event once, in order."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from conversations import stream
from conversations.events import Event
from conversations.models import Turn
from mira_site import isolation
from mira_site.accounts import services as accounts
from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic
from tests.flows.chatting import open_chat, questions, replies, write

pytestmark = pytest.mark.django_db(transaction=True)

OpenContext = Callable[..., BrowserContext]
BREAKS = 50
SEED = 20261130
TURNS_MAX = 12
PARTS = 100  # of one answer
PART_S = 0.03

# Before any script of the page: its sockets, and a way to break them.
SPY = """
window.lines = { open: [] };
const Real = WebSocket;
window.WebSocket = class extends Real {
  constructor(...args) {
    super(...args);
    window.lines.open.push(this);
  }
};
// The network goes, and another one comes: the line breaks, and the browser says it is online.
window.breakLine = (awayMs) => {
  const alive = window.lines.open.filter((line) => line.readyState === Real.OPEN);
  for (const line of alive) line.close();
  if (alive.length) setTimeout(() => window.dispatchEvent(new Event("online")), awayMs);
  return alive.length > 0;
};
"""


class Device:
    """A program that comes back at once whenever its line breaks, and goes on where it was."""

    def __init__(self, address: str, token: str) -> None:
        self.heard: list[dict[str, Any]] = []
        self.breaks = 0
        self._address, self._token = address, token
        self._socket: Any = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        while not self._ended.is_set():
            with connect(
                self._address, subprotocols=[f"token.{self._token}"], close_timeout=1
            ) as line:
                self._socket = line
                self._listen(line)

    def _listen(self, line: Any) -> None:
        last = self.heard[-1]["id"] if self.heard else stream.START
        try:
            line.send(json.dumps({"type": "resume", "after": last}))
            for frame in line:
                self.heard.append(json.loads(frame))
        except ConnectionClosed:
            return

    def break_line(self) -> None:
        """Without a closing handshake: a tunnel, a dead router."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                self._socket.socket.shutdown(socket.SHUT_RDWR)
            except (AttributeError, OSError):  # it is just coming back
                time.sleep(0.01)
            else:
                self.breaks += 1
                return

    def end(self) -> None:
        self._ended.set()
        if self._socket is not None:
            self._socket.close()
        self._thread.join(timeout=5)


def everything(user: User) -> list[str]:
    """The ids of all events of the person, as the stream holds them."""
    return [entry_id for entry_id, _ in stream.client().xrange(stream.key(user.pk))]


def test_three_devices_with_breaking_lines_hear_every_event_once_and_in_order(
    live_mira: str, alice: User, fake_anthropic: FakeAnthropic
) -> None:
    chance = random.Random(SEED)
    address = live_mira.replace("http://", "ws://") + "/ws/chat/"
    devices = [Device(address, accounts.issue_token(user=alice).token) for _ in range(3)]
    try:
        for number in range(BREAKS):
            for _ in range(chance.randrange(1, 12)):
                stream.publish(
                    alice.pk, Event(type="notice", turn_id=None, body={"text": str(number)})
                )
            chance.choice(devices).break_line()
            time.sleep(chance.uniform(0, 0.08))
        last = stream.publish(alice.pk, Event(type="notice", turn_id=None, body={"text": "end"}))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not all(
            device.heard and device.heard[-1].get("id") == last for device in devices
        ):
            time.sleep(0.05)
    finally:
        for device in devices:
            device.end()
    assert sum(device.breaks for device in devices) == BREAKS
    for device in devices:
        assert [event["id"] for event in device.heard] == everything(alice)


def test_three_browsers_with_breaking_lines_show_every_word_once_and_in_order(
    fake: FakeAnthropic, open_context: OpenContext, alice: User
) -> None:
    chance = random.Random(SEED)
    parts = [f"n{number} " for number in range(PARTS)]
    fake.on("reply").streams(parts, delay_s=PART_S)
    pages = [browser_page(open_context, alice, is_phone) for is_phone in (False, False, True)]
    for page in pages:
        open_chat(page)
    breaks = turns = 0
    while breaks < BREAKS and turns < TURNS_MAX:
        asked = pages[turns % 2]
        write(asked, f"Count for me, {turns}.")
        turns += 1
        expect(questions(asked)).to_have_count(turns)
        while breaks < BREAKS and not has_ended(alice, turns):
            breaks += chance.choice(pages).evaluate(
                "awayMs => window.breakLine(awayMs)", chance.randrange(0, 150)
            )
            asked.wait_for_timeout(chance.randrange(0, 40))
        for page in pages:
            expect(replies(page)).to_have_count(turns)
            expect(page.locator("[data-stop]")).to_be_hidden()
    assert breaks == BREAKS
    whole = " ".join(part.strip() for part in parts)
    for page in pages:
        expect(replies(page).locator(".markdown")).to_have_text([whole] * turns)
        expect(questions(page)).to_have_text([f"Count for me, {turn}." for turn in range(turns)])


def has_ended(user: User, turns: int) -> bool:
    """Whether the turn that runs has ended."""
    with isolation.acting_as(user.pk):
        done = Turn.objects.for_user(user).exclude(status__in=Turn.OPEN)
        return bool(done.count() >= turns)


def browser_page(open_context: OpenContext, user: User, is_phone: bool) -> Page:
    page = open_context(user, phone=is_phone).new_page()
    page.add_init_script(SPY)
    return page
