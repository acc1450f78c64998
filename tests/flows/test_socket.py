"""The WebSocket of a running MIRA, as a program and as a page see it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from conversations import services, stream
from conversations.events import Event, order
from conversations.models import Message, Turn
from mira_site import isolation
from mira_site.accounts import services as accounts
from mira_site.accounts.models import User
from tests.fake_anthropic import FakeAnthropic

ENDS = {"turn.finished", "turn.stopped", "turn.failed"}
WAIT_S = 20
SOME_ID = "6f1c9d3a-0000-4000-8000-000000000000"
MALFORMED = (
    "no json",
    "[" * 50_000,
    "null",
    "[]",
    "7",
    "{}",
    '{"type": "dance"}',
    '{"type": ["send"]}',
    '{"type": "send"}',
    f'{{"type": "send", "text": 7, "client_id": "{SOME_ID}"}}',
    '{"type": "send", "text": "Hi", "client_id": "not a uuid"}',
    f'{{"type": "send", "text": " ", "client_id": "{SOME_ID}"}}',
    f'{{"type": "send", "text": "Hi", "client_id": "{SOME_ID}", "attachments": ["{SOME_ID}"]}}',
    '{"type": "resume"}',
    '{"type": "resume", "after": "yesterday"}',
    '{"type": "resume", "after": "1-2-3"}',
    b"\x00\x01",
)


class Line:
    """An open socket and what came over it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []

    def send(self, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    def say(self, text: str) -> None:
        self.send("send", text=text, client_id=str(uuid.uuid4()), attachments=[])

    def next(self, timeout_s: float = WAIT_S) -> dict[str, Any]:
        self.heard.append(json.loads(self.socket.recv(timeout=timeout_s)))
        return self.heard[-1]

    def until(self, *kinds: str) -> dict[str, Any]:
        while self.next()["type"] not in kinds:
            pass
        return self.heard[-1]

    def is_silent(self, for_s: float = 0.3) -> bool:
        try:
            self.next(for_s)
        except TimeoutError:
            return True
        return False

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.heard if "id" in event]

    @property
    def text(self) -> str:
        return "".join(event["text"] for event in self.heard if event["type"] == "text.delta")


@pytest.fixture
def dial(live_mira: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Line]]:
    """`dial(alice)`: with a token; `dial(alice, origin=…)`: with the session cookie of a page.

    A line may stay silent here without being kept waiting.
    """
    monkeypatch.setattr("conversations.consumers.FIRST_FRAME_S", 0.1)
    with ExitStack() as open_lines:

        def open_one(user: User | None = None, *, origin: str | None = None) -> Line:
            # Whoever leaves before the end does not wait for the rest.
            options: dict[str, Any] = {"origin": origin, "max_queue": None, "close_timeout": 2}
            if user is not None and origin is None:
                token = accounts.issue_token(user=user).token
                options["subprotocols"] = [f"token.{token}"]
            elif user is not None:
                client = Client()
                client.force_login(user)
                cookie = f"sessionid={client.cookies['sessionid'].value}"
                options["additional_headers"] = {"Cookie": cookie}
            address = live_mira.replace("http://", "ws://") + "/ws/chat/"
            return Line(open_lines.enter_context(connect(address, **options)))

        yield open_one


def closed_with(line: Line) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        line.socket.recv(timeout=WAIT_S)
    return closed.value.rcvd.code


class TestWho:
    def test_a_page_by_its_cookie(self, dial, alice, live_mira):
        line = dial(alice, origin=live_mira)
        line.say("Hello")
        assert line.until(*ENDS)["type"] == "turn.finished"

    def test_a_program_by_its_token(self, dial, alice):
        line = dial(alice)
        assert line.socket.subprotocol.startswith("token.")
        line.say("Hello")
        assert line.until(*ENDS)["type"] == "turn.finished"

    def test_a_foreign_page_is_refused_though_the_cookie_came_along(self, dial, alice):
        with pytest.raises(InvalidStatus) as refused:
            dial(alice, origin="https://elsewhere.example")
        assert refused.value.response.status_code == 403

    def test_somebody_signed_out_is_told_so(self, dial, live_mira):
        assert closed_with(dial(origin=live_mira)) == 4401

    def test_a_bad_token_is_told_so_without_its_echo(self, live_mira):
        address = live_mira.replace("http://", "ws://") + "/ws/chat/"
        with (
            pytest.raises((ConnectionClosed, InvalidStatus)),
            connect(address, subprotocols=["token.mira_bad"]) as socket,
        ):
            socket.recv(timeout=WAIT_S)

    def test_a_closed_account_cannot_go_on_over_an_open_line(self, dial, alice):
        line = dial(alice)
        accounts.set_access(user=alice, is_active=False, is_staff=False, is_superuser=False)
        line.say("Hello")
        assert closed_with(line) == 4401

    def test_a_revoked_token_cannot_go_on_over_an_open_line(self, dial, alice):
        line = dial(alice)
        accounts.revoke_all_tokens(user=alice)
        line.say("Hello")
        assert closed_with(line) == 4401

    def test_a_page_whose_session_was_ended_elsewhere_has_to_dial_again(
        self, dial, alice, live_mira, monkeypatch
    ):
        monkeypatch.setattr("conversations.consumers.SIGN_IN_LOOK_S", 0.2)
        monkeypatch.setattr("conversations.consumers.READ_S", 0.1)
        monkeypatch.setattr("conversations.consumers.FIRST_FRAME_S", 0.1)
        line, silent = dial(alice, origin=live_mira), dial(alice, origin=live_mira)
        accounts.end_sessions(user=alice)
        line.say("Hello")
        assert closed_with(line) == closed_with(silent) == 1012
        assert not Message.objects.for_user(alice).exists()

    def test_a_page_that_signed_out_hears_nothing_more_however_much_is_said(
        self, dial, alice, live_mira, monkeypatch
    ):
        monkeypatch.setattr("conversations.consumers.SIGN_IN_LOOK_S", 0.5)
        line, other = dial(alice, origin=live_mira), dial(alice)
        line.send("resume", after="0")
        signed_in = Session.objects.get()
        signed_in.delete()
        heard_until = time.monotonic() + 10
        with pytest.raises(ConnectionClosed) as closed:
            while time.monotonic() < heard_until:
                stream.publish(alice.pk, Event(type="notice", turn_id=None, body={"text": "Hi"}))
                line.next()
        assert closed.value.rcvd.code == 1012
        assert other.next()["text"] == "Hi"


class TestEvents:
    def test_a_turn_is_told_in_order_with_growing_ids(self, dial, alice, fake_anthropic):
        fake_anthropic.on("reply").streams(["Hello, ", "Alice."], delay_s=0.05)
        line = dial(alice)
        line.say("Hi")
        finished = line.until(*ENDS)
        kinds = [event["type"] for event in line.heard]
        assert kinds[:2] == ["turn.started", "context.ready"]
        assert set(kinds[2:-1]) == {"text.delta"}
        assert line.text == finished["message"]["text"] == "Hello, Alice."
        assert line.ids == sorted(line.ids, key=order)
        assert len({event["turn"] for event in line.heard}) == 1
        assert finished["usage"]["output_tokens"] > 0

    def test_all_lines_of_an_account_hear_the_same_and_others_nothing(
        self, dial, alice, bob, live_mira
    ):
        page, program, other = dial(alice, origin=live_mira), dial(alice), dial(bob)
        page.say("Hello")
        for line in (page, program):
            line.until(*ENDS)
        assert page.heard == program.heard
        assert other.is_silent(0.5)

    def test_a_line_that_comes_back_in_mid_answer_hears_the_rest_once_and_in_order(
        self, dial, alice, fake_anthropic, monkeypatch
    ):
        fake_anthropic.on("reply").streams([f"{n} " for n in range(30)], delay_s=0.05)
        watching, dropped = dial(alice), dial(alice)
        watching.say("Count.")
        dropped.until("text.delta")
        dropped.socket.close()
        watching.until("text.delta")
        monkeypatch.setattr("conversations.consumers.FIRST_FRAME_S", 3)
        back = dial(alice)
        time.sleep(0.3)  # a slow network between the handshake and the first frame
        back.send("resume", after=dropped.ids[-1])
        back.until(*ENDS)
        watching.until(*ENDS)
        assert dropped.ids + back.ids == watching.ids
        assert dropped.text + back.text == watching.text

    def test_resuming_again_in_the_middle_of_a_replay_skips_nothing(self, dial, alice):
        line = dial(alice)
        line.send("resume", after="0")
        ids = [
            stream.publish(alice.pk, Event(type="notice", turn_id=None, body={"text": str(n)}))
            for n in range(800)
        ]
        line.next()
        line.send("resume", after=ids[9])
        while line.next()["id"] != ids[-1]:
            pass
        place = max(n for n, event_id in enumerate(line.ids) if event_id == ids[10])
        assert line.ids[place:] == ids[10:]

    def test_a_program_that_says_nothing_is_told_all_the_same(self, dial, alice):
        line = dial(alice)
        with isolation.acting_as(alice.pk):
            services.accept_message(user=alice, text="Hello", client_id=uuid.uuid4())
        assert line.until(*ENDS)["type"] == "turn.finished"

    def test_a_line_that_already_waits_for_news_can_still_go_back(self, dial, alice, monkeypatch):
        monkeypatch.setattr("conversations.consumers.FIRST_FRAME_S", 0)
        stream.publish(alice.pk, Event(type="notice", turn_id=None, body={"text": "Hello"}))
        line = dial(alice)
        time.sleep(0.2)
        line.send("resume", after="0")
        assert line.next()["text"] == "Hello"

    def test_whoever_was_away_too_long_is_told_to_look_anew(self, dial, alice):
        line = dial(alice)
        line.send("resume", after=f"{round((time.time() - 3600) * 1000)}-0")
        assert line.next()["level"] == "resync"

    def test_closing_the_page_does_not_end_the_turn(self, dial, alice, fake_anthropic):
        fake_anthropic.on("reply").streams(["one ", "two ", "three"], delay_s=0.2)
        line = dial(alice)
        line.say("Count.")
        turn_id = line.until("text.delta")["turn"]
        line.socket.close()
        again = dial(alice)
        again.send("resume", after="0")
        assert again.until(*ENDS)["turn"] == turn_id
        assert again.text == "one two three"


class TestFrames:
    def test_the_same_client_id_is_said_once(self, dial, alice):
        line, client_id = dial(alice), str(uuid.uuid4())
        for _ in range(2):
            line.send("send", text="Hello", client_id=client_id)
        line.until(*ENDS)
        assert line.is_silent()
        with isolation.acting_as(alice.pk):
            assert Message.objects.for_user(alice).filter(role="user").count() == 1

    def test_stop_is_heard_in_mid_answer(self, dial, alice, fake_anthropic):
        fake_anthropic.on("reply").streams(["more "] * 200, delay_s=0.1)
        line = dial(alice)
        line.say("Count.")
        line.until("text.delta")
        line.send("stop")
        stopped = line.until(*ENDS)
        assert stopped["type"] == "turn.stopped"
        assert stopped["message"]["is_partial"]
        assert stopped["message"]["text"] == line.text

    def test_stop_with_nothing_to_stop_is_fine(self, dial, alice):
        line = dial(alice)
        line.send("stop")
        assert line.is_silent()

    def test_a_second_message_during_a_turn_is_answered_by_a_notice_to_that_page_alone(
        self, dial, alice, fake_anthropic
    ):
        fake_anthropic.on("reply").streams(["more "] * 20, delay_s=0.05)
        line, other = dial(alice), dial(alice)
        line.say("Count.")
        line.until("text.delta")
        client_id = str(uuid.uuid4())
        line.send("send", text="And?", client_id=client_id)
        notice = line.until("notice")
        assert (notice["level"], notice["client_id"]) == ("error", client_id)
        assert "id" not in notice
        other.until(*ENDS)
        assert "notice" not in [event["type"] for event in other.heard]

    def test_a_malformed_frame_gets_a_notice_and_the_line_stays_open(self, dial, alice):
        line = dial(alice)
        for frame in MALFORMED:
            line.socket.send(frame)
            notice = line.next()
            assert (notice["type"], notice["level"]) == ("notice", "error"), frame[:80]
        line.say("Hello")
        assert line.until(*ENDS)["type"] == "turn.finished"
        with isolation.acting_as(alice.pk):
            assert Turn.objects.for_user(alice).count() == 1


def test_a_failure_is_told_with_its_reason(dial, alice, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("reply").fails(401)
    line = dial(alice)
    line.say("Hello")
    failed = line.until(*ENDS)
    assert failed["error"] == {
        "code": "model_bad_key",
        "detail": "The model's provider does not accept the key: check ANTHROPIC_API_KEY.",
        "retryable": False,
    }
