"""Time to first token through MIRA over that of the same call made with the SDK alone.

Starts its own MIRA (embedded services, a data directory that is removed afterwards) and a server
that speaks the Messages API, whose fast model answers at once and whose reply takes as long to its
first word as a provider's does (--first-word, 0 for at once), stores memories, then asks in turns:
through the WebSocket, and with the bare SDK sending the very request that MIRA sent. Prints both
medians, the ratio, and where the difference goes.

    .venv/bin/python -m benchmarks.turn_overhead [--turns 30] [--memories 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = 8765
CHUNK = 250
PASSWORD = "Benchmark-horse-9"
SUBJECTS = ("boat", "sister", "garden", "piano", "office", "doctor", "trip", "book", "dog", "house")


def memory_texts(count: int) -> list[str]:
    return [
        f"On day {number} the {SUBJECTS[number % 10]} number {number} was about the "
        f"{SUBJECTS[(number * 7) % 10]} and cost {number * 13 % 997} euros."
        for number in range(count)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--first-word", type=float, default=0.3, help="seconds of the reply")
    options = parser.parse_args()
    from tests.fake_anthropic import FakeAnthropic  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="mira-bench-") as folder, FakeAnthropic() as fake:
        fake.on("reply").streams(["Here is an answer."], delay_s=options.first_word)
        environment = {
            **os.environ,
            "MIRA_DATA_DIR": folder,
            "PORT": str(PORT),
            "ANTHROPIC_BASE_URL": fake.url,
            "ANTHROPIC_API_KEY": "benchmark",
            "LOG_FORMAT": "json",
        }
        log_path = Path(folder) / "serve.log"
        with log_path.open("w") as log:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
            try:
                wait_ready(log_path, server)
                store(environment, options.memories)
                heard, direct = asyncio.run(measure(fake, options.turns))
            finally:
                server.terminate()
                server.wait(timeout=60)
        report(heard, direct, stages(log_path), options)
    return 0


def wait_ready(log_path: Path, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        if "MIRA is ready" in log_path.read_text():
            return
        time.sleep(0.2)
    raise SystemExit(f"MIRA did not start:\n{log_path.read_text()[-3000:]}")


def store(environment: dict[str, str], count: int) -> None:
    code = f"from benchmarks.turn_overhead import seed; seed({count})"
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT,
        env=environment,
        check=True,
    )


def seed(count: int) -> None:
    """Runs inside MIRA: the account and its memories, embedded as always."""
    from django.utils import timezone  # noqa: PLC0415

    from memory import storage  # noqa: PLC0415
    from mira_site import embeddings  # noqa: PLC0415
    from mira_site.accounts.models import User  # noqa: PLC0415
    from mira_site.isolation import acting_as  # noqa: PLC0415

    user = User.objects.create_user("bench", "bench@example.org", PASSWORD)
    texts = memory_texts(count)
    facts = [storage.Fact(text=text, memory_type="fact") for text in texts]
    with acting_as(user.pk):
        for start in range(0, count, CHUNK):
            chunk = facts[start : start + CHUNK]
            vectors = embeddings.embed([fact.text for fact in chunk])
            storage.store(user, chunk, vectors, at=timezone.now(), use_day=1, segment_id=None)


@dataclass
class Heard:
    """Seconds from sending a message until it was stored and told, and until its first token.

    `hop` is how long ago that token was put into the stream; its id is the time there.
    """

    stored: float
    first: float
    hop: float


async def measure(fake: object, turns: int) -> tuple[list[Heard], list[float]]:
    import anthropic  # noqa: PLC0415, TID251
    from websockets.asyncio.client import connect  # noqa: PLC0415

    sdk = anthropic.Anthropic(base_url=fake.url, api_key="benchmark", max_retries=0)
    token = sign_in()
    through, direct = [], []
    url = f"ws://127.0.0.1:{PORT}/ws/chat/"
    async with connect(url, subprotocols=[f"token.{token}"]) as socket:
        for number in range(turns + 3):
            # Never the same words twice: what was embedded before would be known.
            asked = f"What did the {SUBJECTS[number % 10]} number {number} cost?"
            heard = await one_turn(socket, asked)
            seen = next(seen for seen in reversed(fake.requests) if seen.tier == "reply")
            bare = await asyncio.to_thread(one_call, sdk, dict(seen.json))
            if number >= 3:  # the first ones warm caches and pools on both sides
                through.append(heard)
                direct.append(bare)
    return through, direct


def sign_in() -> str:
    body = json.dumps({"username": "bench", "password": PASSWORD}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/api/v1/auth/token/", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["token"]


async def one_turn(socket: object, text: str) -> Heard:
    started, sent_at = time.perf_counter(), time.time()
    await socket.send(json.dumps({"type": "send", "text": text, "client_id": str(uuid.uuid4())}))
    first = None
    stored = 0.0
    while True:
        event = json.loads(await socket.recv())
        if event["type"] == "turn.started":
            stored = said_at(event) - sent_at
        if event["type"] == "text.delta" and first is None:
            first = Heard(stored, time.perf_counter() - started, time.time() - said_at(event))
        if event["type"] in {"turn.failed", "turn.stopped"} or event.get("level") == "error":
            raise SystemExit(f"A turn did not end well: {event}")
        if event["type"] == "turn.finished":
            return first


def said_at(event: dict) -> float:
    return int(event["id"].split("-")[0]) / 1000


def one_call(sdk: object, body: dict) -> float:
    body["stream"] = True
    started = time.perf_counter()
    first = None
    with sdk.messages.create(**body) as events:
        for event in events:
            if event.type == "content_block_delta" and first is None:
                first = time.perf_counter() - started
    return first


def stages(log_path: Path) -> dict[str, float]:
    """Medians of the worker's own marks: milliseconds since it took the turn (but for `queued`)."""
    marks: dict[str, list[float]] = {}
    for line in log_path.read_text().splitlines():
        found = re.search(r'\{.*"turn\.ended".*\}', line)
        if found:
            for name, value in json.loads(found.group()).items():
                if name.endswith("_ms"):
                    marks.setdefault(name.removesuffix("_ms"), []).append(value)
    return {
        name: statistics.median(values[3:]) for name, values in marks.items() if len(values) > 3
    }


def report(
    through: list[Heard], direct: list[float], marks: dict[str, float], options: object
) -> None:
    def middle(seconds: list[float]) -> float:
        return statistics.median(seconds) * 1000

    mira, bare = middle([one.first for one in through]), middle(direct)
    print(f"turns {len(through)}, memories {options.memories}")
    print(f"time to first token, SDK alone      {bare:8.1f} ms (median)")
    print(f"time to first token, through MIRA   {mira:8.1f} ms (median)")
    print(f"ratio {mira / bare:.2f}, apart {mira - bare:.1f} ms")
    stored, hop = middle([one.stored for one in through]), middle([one.hop for one in through])
    steps = {"heard, stored, told, by the socket": stored, "queued, taken by the worker": 0.0}
    before = 0.0
    for name in ("history", "prepared", "recalled", "composed", "sent", "first_text"):
        steps[name] = marks.get(name, before) - before
        before = marks.get(name, before)
    steps["from the worker to the page"] = hop
    steps["queued, taken by the worker"] = mira - sum(steps.values())
    print("where the time goes (medians):")
    for name, value in steps.items():
        print(f"  {name:34} {value:8.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
