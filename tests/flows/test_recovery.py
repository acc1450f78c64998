"""`manage.py serve` under fire: its parts are killed, and nothing that was accepted is lost.

One MIRA for the module, in the order of the file: it has a data directory and a port of its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import uuid
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from mira_site import embedded
from tests import messages_api
from tests.fake_anthropic import FakeAnthropic
from tests.flows.calling import Answer, Caller

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parent.parent.parent
START_WITHIN_S = 120
RECOVERY_WITHIN_S = 60
PASSWORD = "a-long-password-of-alice"


class Mira:
    """A served MIRA, its processes, and Alice's program in front of it."""

    def __init__(self, data_dir: Path, provider: FakeAnthropic) -> None:
        self.data_dir, self.provider = data_dir, provider
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "MIRA_DATA_DIR": str(data_dir),
            "PORT": str(port),
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "",
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "MIRA_MODEL": messages_api.REPLY_MODEL,
            "MIRA_FAST_MODEL": messages_api.FAST_MODEL,
            "MIRA_BACKGROUND_MODEL": messages_api.BACKGROUND_MODEL,
        }
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT, env=self.environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.address = f"http://127.0.0.1:{port}"
        self.caller = Caller(self.address)

    def sign_up(self) -> None:
        names = {"USERNAME": "alice", "EMAIL": "alice@example.org", "PASSWORD": PASSWORD}
        subprocess.run(
            [sys.executable, "manage.py", "createsuperuser", "--noinput"],
            cwd=ROOT, check=True, capture_output=True,
            env=self.environment
            | {f"DJANGO_SUPERUSER_{name}": value for name, value in names.items()},
        )  # fmt: skip
        given = {"username": "alice", "password": PASSWORD}
        token = self.caller.post("auth/token/", **given).json["token"]
        self.caller = Caller(self.address, token)

    def part(self, *marks: str) -> psutil.Process | None:
        """The living process of ours whose command line holds all of these."""
        for child in psutil.Process(self.process.pid).children():
            try:
                line = " ".join(child.cmdline())
            except psutil.NoSuchProcess:  # gone, or killed and not yet waited for (ZombieProcess)
                continue
            if all(mark in line for mark in marks):
                return child
        return None

    def kill(self, *marks: str) -> None:
        part = self.part(*marks)
        assert part is not None, self.tail()
        part.send_signal(signal.SIGKILL)

    def send(self, text: str) -> str:
        """Say it in a thread of its own; returns the client id, by which to ask again."""
        client_id = str(uuid.uuid4())
        threading.Thread(
            target=self.attempt, args=(text, client_id), name="sender", daemon=True
        ).start()
        return client_id

    def attempt(self, text: str, client_id: str) -> Answer | None:
        try:
            return self.caller.post("chat/", message=text, client_id=client_id)
        except (OSError, HTTPException):
            return None

    def turn(self, turn_id: str) -> dict:
        try:
            answered = self.caller.get(f"turns/{turn_id}/")
        except (urllib.error.URLError, OSError, HTTPException):
            return {}
        return answered.json if answered.status == 200 else {}

    def newest_turn(self) -> str:
        rows = self.caller.get("messages/").json["results"]
        return next(row["turn"] for row in rows if row["role"] == "user")

    def said(self) -> list[str]:
        rows = self.caller.get("messages/?page_size=200").json["results"]
        return [row["text"] for row in rows if row["role"] == "user"]

    def until(self, holds: Callable[[], object], timeout_s: float = RECOVERY_WITHIN_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert self.process.poll() is None, self.tail()
            assert time.monotonic() < deadline, self.tail()
            time.sleep(0.2)

    def is_ready(self) -> bool:
        return "MIRA is ready at" in self.log.read_text(errors="replace")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-6000:]


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as fake:
        yield fake


@pytest.fixture(scope="module")
def mira(tmp_path_factory: pytest.TempPathFactory, provider: FakeAnthropic) -> Iterator[Mira]:
    data_dir = tmp_path_factory.mktemp("served") / "data"
    served = Mira(data_dir, provider)
    try:
        served.until(served.is_ready, START_WITHIN_S)
        served.sign_up()
        yield served
    finally:
        served.process.terminate()
        try:
            served.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            served.process.kill()
            served.process.wait()
        embedded.remove(data_dir)


@pytest.fixture(autouse=True)
def unscripted(provider: FakeAnthropic) -> None:
    provider.forget()


def test_it_answers(mira):
    assert mira.caller.say("Hello.")["status"] == "done"


def test_a_killed_worker_leaves_its_turn_interrupted_within_a_minute_and_a_retry_works(mira):
    mira.provider.on("reply").streams(["more "] * 600, delay_s=0.1)
    mira.send("Count to six hundred.")
    mira.until(lambda: mira.provider.seen("reply"))
    turn_id = mira.newest_turn()
    mira.kill("celery", "turns@")
    killed_at = time.monotonic()
    assert mira.said()[0] == "Count to six hundred."
    mira.until(lambda: mira.turn(turn_id).get("status") == "interrupted")
    assert time.monotonic() - killed_at < 60
    assert mira.turn(turn_id)["error"]["retryable"] is True
    mira.provider.forget()
    mira.provider.on("reply").says("Six hundred.")
    assert mira.caller.post(f"turns/{turn_id}/retry/").status == 202
    mira.until(lambda: mira.turn(turn_id).get("status") == "done")
    assert mira.turn(turn_id)["reply"]["text"] == "Six hundred."


def test_a_killed_redis_comes_back_and_a_message_sent_meanwhile_is_answered(mira):
    mira.kill("redis-server")
    client_id = mira.send("Is anybody there?")
    mira.until(lambda: mira.part("redis-server"))
    mira.until(lambda: (mira.attempt("Is anybody there?", client_id) or _none).status == 200)
    answered = mira.attempt("Is anybody there?", client_id)
    assert answered.json["status"] == "done"
    assert mira.said().count("Is anybody there?") == 1


def test_a_killed_postgresql_comes_back_and_an_answer_in_hand_is_not_lost(mira):
    before = mira.said()
    mira.provider.on("reply").streams(["more "] * 20, delay_s=0.2)
    client_id = mira.send("Count to twenty.")
    mira.until(lambda: mira.provider.seen("reply"))
    turn_id = mira.newest_turn()
    mira.kill("bin/postgres", "-D")
    mira.until(lambda: mira.turn(turn_id).get("status") not in (None, "running"))
    turn = mira.turn(turn_id)
    assert (turn["status"], turn["reply"]["text"]) == ("done", "more " * 20)
    assert mira.attempt("Count to twenty.", client_id).json["turn"] == turn_id
    assert mira.said() == ["Count to twenty.", *before]
    mira.provider.forget()
    assert mira.caller.say("And now?")["status"] == "done"


def test_a_signal_to_stop_leaves_no_process_behind(mira):
    everybody = psutil.Process(mira.process.pid).children(recursive=True)
    assert len(everybody) >= 6
    mira.process.terminate()
    assert mira.process.wait(timeout=60) == 0, mira.tail()
    _, alive = psutil.wait_procs(everybody, timeout=5)
    assert alive == []


_none = Answer(0, {}, "")
