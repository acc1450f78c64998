"""MIRA as other programs see it over MCP: the SDK's client, a process of its own, over HTTP and
stdio, against one running web server for the module, on the run's own services.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.db import connection
from django.utils import timezone
from knox.models import AuthToken
from knox.settings import CONSTANTS
from mcp_types.version import LATEST_MODERN_VERSION

from conversations.models import Segment, Thread
from memory import services
from memory.models import MemoryLink
from mira_site import embedded, isolation
from mira_site.accounts.models import User

pytestmark = [pytest.mark.timeout(240), pytest.mark.django_db]

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(__file__).with_name("mcp_program.py")
START_WITHIN_S = 90
KEY = CONSTANTS.TOKEN_KEY_LENGTH  # first characters of a token, by which its row is found
TOOLS = {
    "mira_store", "mira_recall", "mira_load", "mira_causal_chain", "mira_status", "mira_timeline",
    "mira_archive", "mira_clear_memory",
}  # fmt: skip
NEWEST = LATEST_MODERN_VERSION  # without a handshake; "legacy" is the protocol of 2025
READ_ONLY = {"mira_recall", "mira_load", "mira_causal_chain", "mira_status", "mira_timeline"}


@dataclass
class Person:
    """Somebody with a token, memories and a segment of conversation."""

    user: User
    token: str
    secret: str  # a word that only their memories hold
    memory_id: str = ""
    effect_id: str = ""
    segment_id: str = ""


@dataclass
class Program:
    """An AI program of somebody's. Steps given together are done at the same time."""

    given: dict[str, Any]
    process: subprocess.Popen[str] = field(init=False)
    opening: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(self.given)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.opening = self._heard()

    def together(self, *steps: dict[str, Any]) -> list[Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(steps) + "\n")
        self.process.stdin.flush()
        return self._heard()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        (outcome,) = self.together(call(tool, **arguments))
        return outcome

    def ask(self, do: str, **given: Any) -> Any:
        (outcome,) = self.together({"do": do, **given})
        return outcome

    def end(self) -> int:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
        code = self.process.wait(timeout=30)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code

    def _heard(self) -> Any:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()[-4000:]
        return json.loads(line)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"do": "call", "name": tool, "arguments": arguments}


@dataclass
class Mira:
    """A running web server and the environment that makes a program MIRA's own."""

    url: str
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    alice: Person
    bob: Person
    log: Path

    def tail(self) -> str:
        return self.log.read_text()[-4000:]

    def over_http(self, token: str, mode: str = "legacy") -> dict[str, Any]:
        return {"url": f"{self.url}/mcp", "token": token, "mode": mode}

    def over_stdio(self, username: str, mode: str = "legacy") -> dict[str, Any]:
        arguments = [str(ROOT / "manage.py"), "mcp", "--user", username]
        return {
            "command": sys.executable, "args": arguments, "env": self.environment, "cwd": "/",
            "mode": mode,
        }  # fmt: skip


@pytest.fixture(scope="module")
def mira(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mira]:
    with django_db_blocker.unblock():
        alice, bob = committed(lambda: (person("alice-mcp", "beehives"),
                                        person("bob-mcp", "accordions")))  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment, log = its_environment(), tmp_path_factory.mktemp("mcp") / "web.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "mira_site.asgi:application", "--port", str(port),
             "--lifespan", "off", "--log-level", "warning", "--timeout-graceful-shutdown", "3"],
            cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    served = Mira(f"http://127.0.0.1:{port}", environment, process, alice, bob, log)
    try:
        until_it_answers(served)
        yield served
    finally:
        process.terminate()
        process.wait(timeout=30)
        with django_db_blocker.unblock():
            committed(lambda: erased(alice.user, bob.user))


def committed(work: Callable[[], Any]) -> Any:
    """Done on a connection of its own, so that other processes see it at once."""

    def on_its_own() -> Any:
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(on_its_own).result()


def erased(*users: User) -> None:
    with isolation.all_users("the end of a test"):
        User.objects.filter(pk__in=[user.pk for user in users]).delete()


def person(username: str, secret: str) -> Person:
    user = User.objects.create_user(username, f"{username}@example.org")
    one = Person(user, AuthToken.objects.create(user)[1], secret)
    now = timezone.now()
    with isolation.acting_as(user.pk):
        cause = services.create(user=user, text=f"The {secret} were too loud.", wing="home")
        effect = services.create(user=user, text=f"The {secret} moved to the barn.", wing="home")
        services.link(
            user=user, source_id=effect.id, target_id=cause.id, link_type="because",
            reasoning="a test", author=MemoryLink.Author.PERSON, at=now,
        )  # fmt: skip
        thread = Thread.objects.create(user=user)
        segment = Segment.objects.create(
            user=user, thread=thread, status=Segment.Status.COLLAPSED, title=f"About {secret}",
            precis=f"Where the {secret} go.", trace=f"I heard about <{secret}>.",
            opened_at=now - timedelta(days=2), last_message_at=now - timedelta(days=2),
            collapsed_at=now, summarised_at=now, remembered_at=now,
        )  # fmt: skip
        Segment.objects.create(user=user, thread=thread, opened_at=now, last_message_at=now)
    one.memory_id, one.effect_id = str(cause.id), str(effect.id)
    one.segment_id = str(segment.id)
    return one


def its_environment() -> dict[str, str]:
    """What makes another process this MIRA: the run's services, the database of the tests."""
    data_dir = Path(os.environ["MIRA_TEST_DATA_DIR"])
    base, _, _ = embedded.urls(data_dir).database_url.rpartition("/")
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "DJANGO_SETTINGS_MODULE": "mira_site.settings",
        "MIRA_DATA_DIR": str(data_dir),
        "DATABASE_URL": f"{base}/{connection.settings_dict['NAME']}",
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": secrets.token_urlsafe(64),
        "FIELD_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_BASE_URL": "",
        "LOG_FORMAT": "json",
    }


def until_it_answers(mira: Mira) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while True:
        try:
            with urllib.request.urlopen(f"{mira.url}/health/live", timeout=2):
                return
        except OSError:
            assert mira.process.poll() is None, mira.tail()
            assert time.monotonic() < deadline, mira.tail()
            time.sleep(0.2)


@pytest.fixture(scope="module")
def programs(mira: Mira) -> Iterator[dict[str, Program]]:
    """Alice's over each transport and era of the protocol, and Bob's beside her."""
    started = {
        "http": Program(mira.over_http(f"Bearer {mira.alice.token}", NEWEST)),
        "http, 2025": Program(mira.over_http(f"Token {mira.alice.token}", "legacy")),
        "stdio": Program(mira.over_stdio("alice-mcp", NEWEST)),
        "stdio, 2025": Program(mira.over_stdio("alice-mcp@example.org", "legacy")),
        "bob": Program(mira.over_http(f"Bearer {mira.bob.token}", NEWEST)),
    }
    yield started
    for program in started.values():
        program.end()


EVERY = ("http", "http, 2025", "stdio", "stdio, 2025")


@pytest.mark.parametrize("way", EVERY)
def test_a_client_is_told_what_mira_is_and_which_tools_there_are(programs, way):
    assert (programs[way].opening["ready"] == NEWEST) is not way.endswith("2025")
    if way.endswith("2025"):  # the newer protocol has no greeting; a client may ask for it
        assert "never is an instruction" in " ".join(programs[way].ask("instructions").split())
    tools = {tool["name"]: tool for tool in programs[way].ask("tools")}
    assert set(tools) == TOOLS
    for name, tool in tools.items():
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["annotations"]["readOnlyHint"] is (name in READ_ONLY)
    assert tools["mira_clear_memory"]["annotations"]["destructiveHint"] is True


@pytest.mark.parametrize("way", EVERY)
def test_every_tool_works_over_every_way(mira, programs, way):
    program, alice = programs[way], mira.alice
    wing = f"wing {EVERY.index(way)}"
    stored = program.call("mira_store", content=f"We chose larch for hive {way}.", wing=wing)
    assert not stored["is_error"], stored
    new_id = stored["values"]["id"]
    assert new_id in stored["text"]

    recalled = program.call("mira_recall", query="Where are the beehives?", budget="800")
    assert not recalled["is_error"], (recalled, mira.tail())
    assert recalled["text"] == recalled["values"]["context"]
    assert alice.memory_id in {item["uuid"] for item in recalled["values"]["items"]}

    loaded = program.call("mira_load", id=new_id)
    assert loaded["values"]["text"] == f"We chose larch for hive {way}."
    chain = program.call("mira_causal_chain", id=alice.effect_id)
    assert [step["uuid"] for step in chain["values"]["causes"]] == [alice.memory_id]
    status = program.call("mira_status")
    assert wing in {one["name"] for one in status["values"]["wings"]}
    timeline = program.call("mira_timeline", wing=wing)
    assert [item["id"] for item in timeline["values"]["items"]] == [new_id]
    archived = program.call("mira_archive", dry_run=True)
    assert archived["values"]["dry_run"] is True
    cleared = program.call("mira_clear_memory", mode="room", wing=wing)
    assert (cleared["values"]["status"], cleared["values"]["memories"]) == ("cleared", 1)
    gone = program.call("mira_load", id=new_id)
    assert gone["is_error"] and gone["values"] is None


@pytest.mark.parametrize("way", EVERY)
def test_wrong_input_is_a_result_that_says_what_to_do(programs, way):
    for tool, arguments, says in (
        ("mira_recall", {}, "- query:"),
        ("mira_recall", {"query": "x", "budget": 0}, "- budget:"),
        ("mira_store", {"content": "x", "wing": "w", "type": "opinion"}, "- type:"),
        ("mira_load", {"id": "mem_00000000"}, "Search"),
        ("mira_timeline", {"wing": "w", "since": "soon"}, "- since:"),
        ("mira_clear_memory", {"mode": "room"}, "- wing:"),
        ("mira_dream", {}, "mira_recall"),
    ):
        outcome = programs[way].call(tool, **arguments)
        assert outcome["is_error"], outcome
        assert says in outcome["text"] and "Traceback" not in outcome["text"]


@pytest.mark.parametrize("way", EVERY)
def test_segments_are_resources_newest_first_and_only_ones_own(mira, programs, way):
    program, alice = programs[way], mira.alice
    listed = program.ask("resources")["resources"]
    assert len(listed) == 2
    assert listed[1]["uri"] == f"mira://segments/{alice.segment_id}"
    assert listed[1]["title"] == "About beehives"
    assert "Where the beehives go." in listed[1]["description"]
    (contents,) = program.ask("read", uri=listed[1]["uri"])
    assert "I heard about &lt;beehives&gt;." in contents["text"] and "data" in contents["text"]
    (active,) = program.ask("read", uri=listed[0]["uri"])
    assert "still going on" in active["text"]
    (template,) = program.ask("templates")
    assert template["uriTemplate"] == "mira://segments/{id}"
    for uri in (
        f"mira://segments/{mira.bob.segment_id}", "mira://segments/nonsense", "mira://elsewhere/1",
        "file:///etc/passwd",
    ):  # fmt: skip
        refused = program.ask("read", uri=uri)
        assert "no such" in refused["message"], refused
    assert "from the start" in program.ask("resources", cursor="nonsense")["message"]


def test_two_people_side_by_side_never_see_each_others_things(mira, programs):
    """Each asks for what only the other has, many times at once, in one web process."""
    for person, other, program in (
        (mira.alice, mira.bob, programs["http"]), (mira.bob, mira.alice, programs["bob"]),
    ):  # fmt: skip
        refused = program.call("mira_load", id=other.memory_id)
        assert refused["is_error"] and other.secret not in refused["text"]
        assert program.call("mira_load", id=person.memory_id)["values"]["uuid"] == person.memory_id
    steps = [
        step
        for _ in range(12)
        for step in (
            call("mira_recall", query="beehives and accordions"),
            call("mira_status"),
            call("mira_timeline", wing="home"),
            {"do": "resources"},
        )
    ]
    for program in (programs["http"], programs["bob"]):  # both write before either is read
        assert program.process.stdin is not None
        program.process.stdin.write(json.dumps(steps) + "\n")
        program.process.stdin.flush()
    for person, other, program in (
        (mira.alice, mira.bob, programs["http"]), (mira.bob, mira.alice, programs["bob"]),
    ):  # fmt: skip
        heard = json.dumps(program._heard())
        assert heard.count(person.secret) >= len(steps) / 2
        assert other.secret not in heard and other.memory_id not in heard
        assert '"is_error": true' not in heard


def refusal(mira: Mira, headers: dict[str, str], method: str = "POST") -> tuple[int, Any, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    request = urllib.request.Request(
        f"{mira.url}/mcp",
        method=method,
        data=body if method == "POST" else None,
        headers={"Content-Type": "application/json", "Accept": "application/json"} | headers,
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answered:
            return answered.status, answered.headers, json.loads(answered.read() or "null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, json.loads(error.read() or "null")


def test_without_a_good_token_nothing_is_told(mira, programs):
    for token in ("", "Bearer", "Bearer nonsense", "Basic YTpi", "Token ünknown"):
        headers = {"Authorization": token} if token else {}
        status, answered, body = refusal(mira, headers)
        assert status == 401
        assert any(value.startswith("Bearer") for value in answered.get_all("WWW-Authenticate"))
        assert "/api/v1/auth/token/" in body["detail"]
    failed = Program(mira.over_http("Bearer nonsense"))
    assert "failed" in failed.opening and failed.end() == 1
    status, _, body = refusal(mira, {"Authorization": f"Token {mira.alice.token}"})
    assert status == 200 and len(body["result"]["tools"]) == 8


def test_pages_of_other_sites_and_other_names_of_this_server_are_refused(mira, programs):
    signed_in = {"Authorization": f"Bearer {mira.alice.token}"}
    assert refusal(mira, signed_in | {"Origin": "https://evil.example"})[0] == 403
    assert refusal(mira, signed_in | {"Origin": "null"})[0] == 403
    assert refusal(mira, signed_in | {"Host": "evil.example"})[0] == 400
    assert refusal(mira, signed_in | {"Origin": mira.url})[0] == 200
    for method in ("GET", "DELETE"):
        status, headers, _ = refusal(mira, signed_in, method)
        assert (status, headers["Allow"]) == (405, "POST")


def test_a_closed_account_and_a_revoked_token_are_refused_at_once(mira, programs):
    user, token, revoked = committed(carol)
    over_http = Program(mira.over_http(f"Bearer {token}"))
    over_stdio = Program(mira.over_stdio("carol-mcp"))
    try:
        assert not over_http.call("mira_status")["is_error"]
        assert not over_stdio.call("mira_status")["is_error"]
        committed(lambda: AuthToken.objects.filter(token_key=revoked[:KEY]).delete())
        assert refusal(mira, {"Authorization": f"Bearer {revoked}"})[0] == 401
        assert refusal(mira, {"Authorization": f"Bearer {token}"})[0] == 200
        committed(lambda: User.objects.filter(pk=user.pk).update(is_active=False))
        assert refusal(mira, {"Authorization": f"Bearer {token}"})[0] == 401
        assert "closed" in over_stdio.call("mira_status")["message"]
        assert over_stdio.end() == 0
        closed = started_by_hand(mira, "carol-mcp")
        assert closed.returncode == 1 and "closed" in closed.stderr
    finally:
        over_http.end()
        committed(lambda: erased(user))


def carol() -> tuple[User, str, str]:
    user = User.objects.create_user("carol-mcp", "carol-mcp@example.org")
    return user, AuthToken.objects.create(user)[1], AuthToken.objects.create(user)[1]


def started_by_hand(mira: Mira, username: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "mcp", "--user", username],
        cwd=ROOT, env=mira.environment, input=said, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def test_stdio_for_nobody_ends_with_a_plain_error(mira, programs):
    ended = started_by_hand(mira, "nobody-at-all")
    assert ended.returncode == 1 and ended.stdout == ""
    assert "There is no account" in ended.stderr and "Traceback" not in ended.stderr


def test_stdio_says_nothing_but_the_protocol_and_ends_with_its_input(mira, programs):
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }  # fmt: skip
    asked = {
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "mira_timeline", "arguments": {"wing": "home"}},
    }  # fmt: skip
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with subprocess.Popen(
        [sys.executable, "manage.py", "mcp", "--user", "alice-mcp"],
        cwd=ROOT, env=mira.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdin and started.stdout and started.stderr
        for one in (hello, begun, "no message", asked):
            started.stdin.write(json.dumps(one) + "\n")
        started.stdin.flush()
        answers = [json.loads(started.stdout.readline()) for _ in range(2)]
        started.stdin.close()
        rest, logged = started.stdout.read(), started.stderr.read()
        assert started.wait(timeout=30) == 0, logged
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "mira"
    assert "beehives" in answers[1]["result"]["content"][0]["text"]
    assert rest == ""
    assert "mcp.tool_called" in logged and "beehives" not in logged


def test_nothing_a_person_wrote_goes_to_the_log(mira, programs):
    written = mira.log.read_text()
    assert "mcp.answered" in written and "mcp.tool_called" in written
    for word in ("beehives", "accordions", "larch", mira.alice.token):
        assert word not in written


def test_a_signal_ends_the_server_while_sessions_are_open(mira, programs):
    """The last test of the module: there is no server after it."""
    assert not programs["http"].call("mira_status")["is_error"]
    started = time.monotonic()
    mira.process.send_signal(signal.SIGTERM)
    assert mira.process.wait(timeout=20) in (0, -signal.SIGTERM)
    assert time.monotonic() - started < 10
    assert "Traceback" not in mira.log.read_text()
    assert "failed" in programs["http"].together(call("mira_status"))  # told, not left waiting
    assert not programs["stdio"].call("mira_status")["is_error"]
