"""Latency of a recall over that of its floor: the same embedding and the plain exact vector scan.

Starts its own PostgreSQL and Redis on a data directory that is removed afterwards, fills a database
of 200,000 memories, of which one person has 1,000, one 10,000 and one 100,000 (their rows lie
scattered among all others', as they would after a year), then asks in turns: a context of 4,000
tokens, the same through the API view of `memories/recall/`, what a turn recalls (several phrases,
names, kept memories), and the floor, under the same row-level security, each with no cached vector.
Prints p50 and p95 and the ratios, which are what counts where other work is done.

    .venv/bin/python -m benchmarks.recall_latency [--queries 60] [--rows 200000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import numpy as np

SIZES = (1_000, 10_000, 100_000)
STRANGERS = 200  # among whom the other rows are spread
EMBEDDED_TEXTS = 2_000  # texts with a vector of their own; the others' are these, moved a little
MOVED = 0.5  # length of that move
IN_A_SEGMENT = 20  # memories made of one conversation
CHUNK = 2_000
WARM_UP = 3  # rounds that fill pools and caches on both sides
SEED = 20_261_130

WORDS = {
    "name": """Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Klara Leo Mia Noah Olga Paul
        Rosa Sam Tina Uwe Vera Willi Yara Zoe Marta Nils Petra Ravi Sofia Tom""",
    "kin": "sister brother mother father cousin neighbour boss colleague friend doctor teacher",
    "place": """Lisbon Graz Oslo Berlin Porto Vienna Naples Ghent Prague Zurich Split Turku Galway
        Bergen Lyon Seville Krakow Riga Tallinn Malmo""",
    "thing": """boat piano garden bicycle camera novel telescope kitchen greenhouse violin laptop
        tent sofa kettle motorbike drone kayak loom printer sourdough aquarium guitar passport""",
    "deed": """repaired painted bought sold lost found borrowed cleaned photographed insured moved
        inherited measured replaced hid restored catalogued shipped tuned rented""",
    "like": """hiking chess jazz sushi pottery opera climbing gardening crosswords swimming cycling
        documentaries knitting astronomy poetry baking badminton theatre""",
    "work": """nurse architect plumber teacher biologist carpenter pharmacist translator baker pilot
        librarian surveyor goldsmith electrician""",
    "ill": "nuts pollen penicillin gluten cats wasps latex shellfish dust aspirin",
}
CHOICES = {kind: words.split() for kind, words in WORDS.items()}
TEMPLATES = (
    "{name}, my {kin}, lives in {place} and works as a {work}.",
    "I {deed} the {thing} that {name} gave me in {place} for {number} euros.",
    "My {kin} {name} is allergic to {ill} and carries a pen.",
    "I love {like}, most of all with {name} on Sunday mornings.",
    "{name} {deed} the old {thing} before the trip to {place}.",
    "The appointment with Dr. {name} about {ill} is in room {number}.",
    "In {place} I {deed} a {thing} and met {name}, who is into {like}.",
    "My {thing} stands in the cellar of house {number} in {place}.",
    "{name} and I decided to go {like} every week instead of {other}.",
    "I promised {name} to return the {thing} by the end of week {number}.",
)
QUESTIONS = (
    "Where does my {kin} {name} live?",
    "What did I do with the {thing}?",
    "Who is allergic to {ill}?",
    "How much was the {thing} that {name} gave me in {place}?",
    "What do {name} and I like to do together?",
    "When is my appointment about {ill}?",
    "Who did I meet in {place}, and what are they into?",
    "I was thinking about {like} again. Did {name} not decide something about that with me?",
)


def filled(template: str, dice: random.Random) -> str:
    words = {kind: dice.choice(choices) for kind, choices in CHOICES.items()}
    other = dice.choice(CHOICES["like"])
    return template.format(**words, other=other, number=dice.randrange(2, 400))


@contextmanager
def services(folder: Path) -> Iterator[None]:
    """PostgreSQL and Redis of this run's own, and Django set up on them."""
    os.environ.update(
        MIRA_DATA_DIR=str(folder), DJANGO_SETTINGS_MODULE="mira_site.settings", DATABASE_URL="",
        REDIS_URL="", ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="", LOG_FORMAT="json",
    )  # fmt: skip
    from mira_site import embedded, processes  # noqa: PLC0415

    embedded.prepare_postgres(folder)
    embedded.prepare_redis(folder)
    commands = (embedded.postgres(folder), embedded.redis_server(folder, durable=False))
    with (folder / "services.log").open("wb") as log:
        running = [(command, processes.spawn(command, output=log)) for command in commands]
        try:
            redis_url = embedded.urls(folder).redis_url
            embedded.wait_until(lambda: embedded.postgres_is_up(folder), name="PostgreSQL")
            embedded.wait_until(lambda: embedded.redis_answers(redis_url), name="Redis")
            import django  # noqa: PLC0415
            from django.conf import settings  # noqa: PLC0415
            from django.core.management import call_command  # noqa: PLC0415

            django.setup()
            settings.ALLOWED_HOSTS = ["testserver"]
            call_command("migrate", verbosity=0)
            yield
        finally:
            for command, process in reversed(running):
                processes.end(process, command, grace_s=20)


# --- Filling -----------------------------------------------------------------------------------
def fill(rows: int) -> None:
    """Everybody's memories, in an order as if all had talked in turns."""
    from django.db import connection  # noqa: PLC0415

    from memory import token_vectors  # noqa: PLC0415
    from mira_site import embeddings, isolation  # noqa: PLC0415
    from mira_site.accounts.models import User  # noqa: PLC0415

    dice, noise = random.Random(SEED), np.random.default_rng(SEED)
    texts = [filled(dice.choice(TEMPLATES), dice) for _ in range(EMBEDDED_TEXTS)]
    print(f"embedding {EMBEDDED_TEXTS} texts …", flush=True)
    read = embeddings.embed_with_tokens(texts)
    vectors = np.stack([one.vector for one in read])
    pieces = [token_vectors.stored(one) for one in read]
    everybody = []
    for size in SIZES:
        owner = User.objects.create_user(name_of(size), f"{name_of(size)}@example.org").pk
        everybody += [owner] * size
    strangers = User.objects.bulk_create(
        User(username=f"stranger{number}", email=f"s{number}@example.org")
        for number in range(STRANGERS)
    )
    everybody += [dice.choice(strangers).pk for _ in range(rows - len(everybody))]
    dice.shuffle(everybody)
    print(f"storing {len(everybody):,} memories …", flush=True)
    told: dict[UUID, int] = {}  # memories of each person so far
    with isolation.all_users("benchmark"):
        for start in range(0, len(everybody), CHUNK):
            copy(connection, everybody[start : start + CHUNK], start, vectors, dice, noise, told)
        for size in SIZES:
            read_tokens(User.objects.get(username=name_of(size)), pieces)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE) memory_memories, memory_token_vectors")


def read_tokens(user: Any, pieces: list[bytes]) -> None:
    """Token vectors for the memories of one of those who ask: as many as theirs, of like texts."""
    from memory.models import Memory, TokenVectors  # noqa: PLC0415
    from mira_site import embeddings  # noqa: PLC0415

    ids = list(Memory.objects.filter(user=user).order_by("created_at").values_list("id", flat=True))
    for start in range(0, len(ids), CHUNK):
        TokenVectors.objects.bulk_create(
            TokenVectors(
                user=user,
                memory_id=memory_id,
                vectors=pieces[number % len(pieces)],
                embedding_model=embeddings.model_id(),
            )
            for number, memory_id in enumerate(ids[start : start + CHUNK], start=start)
        )


def name_of(size: int) -> str:
    return f"person{size}"


def copy(
    connection: Any,
    owners: list[UUID],
    start: int,
    vectors: Any,
    dice: random.Random,
    noise: np.random.Generator,
    told: dict[UUID, int],
) -> None:
    from memory.constants import DEFAULT_WING, ROOM_OF_TYPE  # noqa: PLC0415
    from memory.duplicates import text_hash  # noqa: PLC0415
    from memory.models import Memory, Stakes, Trust  # noqa: PLC0415
    from memory.storage import literal  # noqa: PLC0415
    from mira_site import embeddings  # noqa: PLC0415

    first = datetime(2025, 1, 1, tzinfo=UTC)
    memories = []
    for number, owner in enumerate(owners, start=start):
        place = told.setdefault(owner, 0)
        told[owner] += 1
        moved = vectors[number % EMBEDDED_TEXTS] + noise.normal(
            scale=MOVED / vectors.shape[1] ** 0.5, size=vectors.shape[1]
        ).astype(np.float32)
        at = first + timedelta(minutes=number)
        text = f"{filled(TEMPLATES[number % len(TEMPLATES)], dice)} ({number})"
        memories.append(
            {
                "id": uuid4(),
                "user_id": owner,
                "text": text,
                "text_hash": text_hash(text, None),
                "memory_type": "fact",
                "wing": DEFAULT_WING,
                "room": ROOM_OF_TYPE["fact"],
                "importance": round(dice.random(), 3),
                "created_at": at,
                "said_at": at,
                "speaker": "",
                "source_segment_id": uuid5(owner, str(place // IN_A_SEGMENT)),
                "position": place % IN_A_SEGMENT,
                "updated_at": at,
                "created_use_day": number // 500,
                "archive_reason": "",
                "trust": Trust.SAID.value,
                "stakes": Stakes.ORDINARY.value,
                "embedding": literal(moved / np.linalg.norm(moved)),
                "embedding_model": embeddings.model_id(),
            }
        )
    columns, table = ", ".join(memories[0]), Memory._meta.db_table
    with connection.cursor() as cursor:
        # COPY does not write into a table with row-level security.
        cursor.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS batch AS SELECT {columns} FROM {table} LIMIT 0"
        )
        cursor.execute("TRUNCATE batch")
        with cursor.copy(f"COPY batch ({columns}) FROM STDIN") as rows:
            for memory in memories:
                rows.write_row(list(memory.values()))
        cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM batch")


# --- Measuring ---------------------------------------------------------------------------------
class Asking:
    """The ways to ask for one person's memories."""

    def __init__(self, size: int) -> None:
        from rest_framework.test import APIClient  # noqa: PLC0415

        from conversations.models import Message  # noqa: PLC0415
        from mira_site.accounts.models import User  # noqa: PLC0415

        self.user = User.objects.get(username=name_of(size))
        self.client = APIClient()
        self.client.force_login(self.user)
        self.said = [Message(role="user", text="I saw Anna and her boat yesterday.")]
        self.kept: list[UUID] = []

    def floor(self, query: str) -> None:
        from django.db import connection  # noqa: PLC0415

        from memory.storage import literal  # noqa: PLC0415
        from mira_site import embeddings, isolation  # noqa: PLC0415

        vector = embeddings.embed([query])[0]
        with isolation.acting_as(self.user.pk), connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM memory_memories WHERE user_id = %s"
                " ORDER BY embedding <=> %s::vector LIMIT 10",
                [self.user.pk, literal(vector)],
            )
            cursor.fetchall()

    def context(self, query: str) -> None:
        from django.utils import timezone  # noqa: PLC0415

        from memory import selectors  # noqa: PLC0415
        from memory.constants import BUDGET_TOKENS  # noqa: PLC0415
        from mira_site import isolation  # noqa: PLC0415

        with isolation.acting_as(self.user.pk):
            selectors.recall_context(
                self.user, query, budget_tokens=BUDGET_TOKENS, now=timezone.now()
            )

    def recall(self, query: str) -> None:
        answer = self.client.post("/api/v1/memories/recall/", {"query": query}, format="json")
        if answer.status_code != 200 or not answer.json()["items"]:
            raise SystemExit(f"No recall: {answer.status_code} {answer.content[:500]!r}")

    def turn(self, query: str) -> None:
        from django.utils import timezone  # noqa: PLC0415

        from conversations import phrases  # noqa: PLC0415
        from conversations.models import Message  # noqa: PLC0415
        from memory import selectors  # noqa: PLC0415
        from mira_site import isolation  # noqa: PLC0415

        history = [*self.said, Message(role="user", text=query)]
        asked, now = phrases.queries(history), timezone.now()
        with isolation.acting_as(self.user.pk):
            selectors.compared(self.user, self.kept, asked, now=now)
            found = selectors.recall(
                self.user,
                asked,
                now=now,
                names=phrases.names(history),
                kept_ids=self.kept[:3],
            )
        self.kept = [item.id for item in found]


def measure(size: int, queries: int) -> dict[str, list[float]]:
    """Milliseconds of each way, asked in turns, in an order by chance."""
    from mira_site import embeddings  # noqa: PLC0415

    asking, dice = Asking(size), random.Random(SEED + size)
    ways: dict[str, Callable[[str], None]] = {
        "floor": asking.floor,
        "context": asking.context,
        "recall": asking.recall,
        "turn": asking.turn,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(queries + WARM_UP):
        query = filled(QUESTIONS[number % len(QUESTIONS)], dice)
        for name in dice.sample(list(ways), len(ways)):
            embeddings.forget_queries()
            started = time.perf_counter()
            ways[name](query)
            if number >= WARM_UP:
                taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def report(size: int, taken: dict[str, list[float]]) -> None:
    labels = {
        "floor": "embedding and scan",
        "context": "a context",
        "recall": "memories/recall/",
        "turn": "in a turn",
    }
    print(f"\n{size:>7,} memories            p50         p95     ratios")
    points = {
        name: (statistics.median(values), float(np.percentile(values, 95)))
        for name, values in taken.items()
    }
    for name, (p50, p95) in points.items():
        ratios = f"{p50 / points['floor'][0]:8.2f} {p95 / points['floor'][1]:8.2f}"
        print(f"  {labels[name]:22} {p50:8.1f} ms {p95:8.1f} ms {ratios}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--keep", type=Path, help="Fill this folder once, and use it again.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mira-bench-") as temporary:
        folder = options.keep or Path(temporary)
        with services(folder):
            if not (folder / "filled").exists():
                fill(options.rows)
                (folder / "filled").touch()
            for size in SIZES:
                report(size, measure(size, options.queries))
        if options.keep is None:
            from mira_site import embedded  # noqa: PLC0415

            embedded.remove(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
