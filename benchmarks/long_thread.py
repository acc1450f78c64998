"""What a thread of 100,000 messages costs over one of 1,000.

Starts a MIRA of its own with both threads and as many messages of other people in the same tables,
and a server that speaks the Messages API and answers at once. Measures, on both threads in turns:
first paint of the conversation in Chromium (from the click to the newest message on the screen),
a page of messages, a page deep in the past, the page at a date, chapters, search, and the time to
the first token of a turn. Prints medians and their ratios.

    .venv/bin/python -m benchmarks.long_thread [--messages 100000] [--rounds 15]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import statistics
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.own_mira import OwnMira, own_mira

PORT = 8791
PASSWORD = "Benchmark-horse-9"
SMALL, LARGE = "short", "long"
SMALL_MESSAGES = 1_000
SEGMENT_MESSAGES = 50
SUBJECTS = ("boat", "sister", "garden", "piano", "office", "doctor", "trip", "book", "dog", "house")
FIRST_PAINT = """async () => {
    const started = performance.timeOrigin;
    const shown = () => document.querySelector("[data-thread] > .entry");
    while (!shown()) await new Promise(requestAnimationFrame);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.timeOrigin + performance.now() - started;
}"""


WORDS = 40_000  # that both say, as often as words of a language are said (Zipf)
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def text_of(number: int) -> str:
    """What a person says shortly and MIRA at length: 66 different words on average."""
    chance = random.Random(number)
    length = chance.randint(5, 25) if number % 2 == 0 else chance.randint(30, 180)
    told = " ".join(chance.choices(_vocabulary(), cum_weights=_shares(), k=length))
    return (
        f"On day {number // 60} the {SUBJECTS[number % 10]} number {number} was about the "
        f"{SUBJECTS[number * 7 % 10]} and cost {number * 13 % 997} euros. "
        + "We spoke of it for a while, and then of the weather. " * (number % 4)
        + told
    )


@cache
def _vocabulary() -> list[str]:
    chance = random.Random(7)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        stem = "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))
        found[stem + chance.choice("bdfgklmnprtvz")] = None
    return [*found]


@cache
def _shares() -> list[float]:
    return [*itertools.accumulate(1 / (rank + 8) for rank in range(WORDS))]


def seed(username: str, messages: int) -> None:
    """Runs inside MIRA: an account and its thread, a pair of messages every ten minutes."""
    import math  # noqa: PLC0415
    from datetime import timedelta  # noqa: PLC0415

    from django.db.models import F  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from conversations.models import Message, Segment, Thread, Turn  # noqa: PLC0415
    from mira_site.accounts.models import User  # noqa: PLC0415
    from mira_site.embeddings import model_id  # noqa: PLC0415
    from mira_site.isolation import acting_as  # noqa: PLC0415

    chance = random.Random(username)
    user = User.objects.create_user(username, f"{username}@example.org", PASSWORD)
    now = timezone.now()

    def direction() -> list[float]:
        raw = [chance.gauss(0, 1) for _ in range(384)]
        length = math.sqrt(sum(value * value for value in raw))
        return [value / length for value in raw]

    with acting_as(user.pk):
        thread = Thread.objects.create(user=user, last_position=messages)
        segments, turns, rows = [], [], []
        for number in range(messages):
            at = now - timedelta(minutes=5) * (messages - number) - timedelta(hours=2)
            if number % SEGMENT_MESSAGES == 0:
                segments.append(
                    Segment(
                        user=user, thread=thread, opened_at=at, status=Segment.Status.COLLAPSED,
                        title=f"The {SUBJECTS[number % 7]} of day {number // 50}",
                        precis="We spoke of costs.", trace="I heard of costs and of the weather.",
                        complexity=1.0, embedding=direction(), embedding_model=model_id(),
                        summarised_at=at, remembered_at=at,
                        collapsed_at=at, last_message_at=at,
                    )
                )  # fmt: skip
            segment = segments[-1]
            segment.last_message_at = at
            asks = number % 2 == 0
            if asks:
                turns.append(
                    Turn(
                        user=user, thread=thread, segment=segment, client_id=uuid.uuid4(),
                        number=number % SEGMENT_MESSAGES // 2 + 1, status=Turn.Status.DONE,
                        queued_at=at, finished_at=at,
                    )
                )  # fmt: skip
            text = text_of(number)
            rows.append(
                Message(
                    user=user, thread=thread, segment=segment, turn=turns[-1], position=number + 1,
                    role=Message.Role.USER if asks else Message.Role.ASSISTANT, text=text,
                    content=[{"type": "text", "text": text}], created_at=at,
                )
            )  # fmt: skip
        Segment.objects.bulk_create(segments, batch_size=500)
        Turn.objects.bulk_create(turns, batch_size=2000)
        Turn.objects.for_user(user).update(created_at=F("queued_at"))
        Message.objects.bulk_create(rows, batch_size=2000)


def session_of(username: str) -> str:
    """Runs inside MIRA: a session cookie."""
    from django.test import Client  # noqa: PLC0415

    from mira_site.accounts.models import User  # noqa: PLC0415

    client = Client()
    client.force_login(User.objects.get(username=username))
    return client.cookies["sessionid"].value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    from tests.fake_anthropic import FakeAnthropic  # noqa: PLC0415

    with FakeAnthropic() as fake:
        fake.on("reply").streams(["Here ", "is ", "an ", "answer."], delay_s=0)
        key = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "benchmark"}
        with own_mira(port=PORT, LOG_FORMAT="json", **key) as mira:
            fill(mira, options.messages)
            measured = measure(mira, options.rounds)
    report(measured, options.messages)
    return 0


def fill(mira: OwnMira, messages: int) -> None:
    others = [(f"other{number}", messages // 4) for number in range(4)]
    for username, count in ((SMALL, SMALL_MESSAGES), (LARGE, messages), *others):
        mira.run(f"from benchmarks.long_thread import seed; seed({username!r}, {count})")
        print(f"  {count:,} messages of {username}", flush=True)
    mira.run("from django.db import connection as c; c.cursor().execute('VACUUM ANALYZE')")


def measure(mira: OwnMira, rounds: int) -> dict[str, dict[str, float]]:
    """Medians in milliseconds: what was measured -> thread -> time."""
    samples: dict[str, dict[str, list[float]]] = {}

    def note(what: str, who: str, ms: float) -> None:
        samples.setdefault(what, {}).setdefault(who, []).append(ms)

    tokens = {who: mira.token(who, PASSWORD) for who in (SMALL, LARGE)}
    middles = {who: middle_of(mira, token) for who, token in tokens.items()}
    for round_number in range(rounds + 1):
        for who, token in tokens.items():
            for what, path in paths_of(*middles[who], round_number).items():
                ms = timed(lambda p=path, t=token: fetch(mira, t, p))
                if round_number:  # the first round warms caches and pools
                    note(what, who, ms)
    for who, ms in first_paints(mira, rounds):
        note("first paint of the conversation", who, ms)
    for who, ms in asyncio.run(first_tokens(mira, tokens, rounds)):
        note("first token of a turn", who, ms)
    return {
        what: {who: statistics.median(values) for who, values in by_thread.items()}
        for what, by_thread in samples.items()
    }


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def fetch(mira: OwnMira, token: str, path: str) -> Any:
    request = urllib.request.Request(
        mira.address + path, headers={"Authorization": f"Token {token}"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def middle_of(mira: OwnMira, token: str) -> tuple[int, str, str]:
    """A position in the middle of the thread, the id of the message there and its day."""
    newest = fetch(mira, token, "/api/v1/messages/?page_size=1")["results"][0]
    last = int(newest["text"].split("number ")[1].split()[0])
    middle = last // 2
    around = fetch(mira, token, f"/api/v1/messages/?before={middle}&page_size=1")["results"][0]
    return middle, around["id"], around["created_at"][:10]


def paths_of(middle: int, message_id: str, day: str, round_number: int) -> dict[str, str]:
    """What to ask of a thread. Each search has a word that nobody searched for before (and nobody
    said), so that each is embedded anew.
    """
    search = "/api/v1/messages/search/?q="
    number = middle + 2 * round_number
    subject, other = SUBJECTS[round_number % 10], SUBJECTS[(round_number + 5) % 10]
    unheard = f"q{number}"
    return {
        "the newest page of messages": "/api/v1/messages/?page_size=50",
        "a page in the middle of the past": f"/api/v1/messages/?before={middle}&page_size=50",
        "the page around a message": f"/api/v1/messages/?at={message_id}&page_size=50",
        "the page at a date": f"/api/v1/messages/?at={day}&page_size=50",
        "chapters": "/api/v1/segments/?page_size=20",
        "search, a rare word": f"{search}{number}",
        "search, a word in each fifth message": f"{search}{subject}+OR+{unheard}",
        "search, a word in every message": f"{search}cost+OR+{unheard}",
        "search, several words": f"{search}{subject}+euros+cost+OR+{unheard}",
        "search, a common and a rare word": f"{search}euros+{number}",
        "search, two words that never meet": f"{search}{subject}+{other}+OR+{unheard}",
        "search, a phrase": f"{search}%22number+{number}%22",
        "search, a word without another": f"{search}{subject}+-weather+OR+{unheard}",
        "search, no hits": f"{search}{unheard}",
    }


def first_paints(mira: OwnMira, rounds: int) -> list[tuple[str, float]]:
    """In a browser that knows the site already; both threads in turns."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    code = "from benchmarks.long_thread import session_of; print(session_of({!r}))"
    cookies = {who: mira.run(code.format(who)).split()[-1] for who in (SMALL, LARGE)}
    measured = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        pages = {}
        for who, value in cookies.items():
            context = browser.new_context(base_url=mira.address)
            context.add_cookies([{"name": "sessionid", "value": value, "url": mira.address}])
            pages[who] = context.new_page()
        for round_number in range(rounds + 2):
            for who, page in pages.items():
                page.goto("/", wait_until="commit")
                ms = page.evaluate(FIRST_PAINT)
                page.wait_for_load_state("networkidle")
                if round_number > 1:
                    measured.append((who, ms))
        browser.close()
    return measured


async def first_tokens(
    mira: OwnMira, tokens: dict[str, str], rounds: int
) -> list[tuple[str, float]]:
    from websockets.asyncio.client import connect  # noqa: PLC0415

    url = mira.address.replace("http", "ws") + "/ws/chat/"
    measured = []
    async with (
        connect(url, subprotocols=[f"token.{tokens[SMALL]}"]) as short,
        connect(url, subprotocols=[f"token.{tokens[LARGE]}"]) as long,
    ):
        for round_number in range(rounds + 3):
            for who, socket in ((SMALL, short), (LARGE, long)):
                ms = await one_turn(socket, f"What did the {SUBJECTS[round_number % 10]} cost?")
                if round_number > 2:
                    measured.append((who, ms))
    return measured


async def one_turn(socket: Any, text: str) -> float:
    started = time.perf_counter()
    await socket.send(json.dumps({"type": "send", "text": text, "client_id": str(uuid.uuid4())}))
    first = 0.0
    while True:
        event = json.loads(await socket.recv())
        if event["type"] == "text.delta" and not first:
            first = (time.perf_counter() - started) * 1000
        if event["type"] in {"turn.failed", "turn.stopped"} or event.get("level") == "error":
            raise SystemExit(f"A turn did not end well: {event}")
        if event["type"] == "turn.finished":
            return first


def report(measured: dict[str, dict[str, float]], messages: int) -> None:
    print(f"\n{'median, ms':40} {SMALL_MESSAGES:>9,} {messages:>9,} {'ratio':>7}")
    for what, by_thread in measured.items():
        short, long = by_thread[SMALL], by_thread[LARGE]
        print(f"{what:40} {short:9.1f} {long:9.1f} {long / short:7.2f}")


if __name__ == "__main__":
    sys.exit(main())
