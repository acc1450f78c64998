"""How good are the allocator's choices? Real candidates, at what MIRA's own rendering costs.

    python -m benchmarks.allocation [--data FILE…] [--every N] [--keep FOLDER]

Dialogues (LoCoMo) are stored and asked as bench_recall does; what recall finds, up to 200 memories,
are the candidates, and recall's own scores their weights. Five parts:

1. evidence: for how many questions all of it stands in full in a context of 1,000, 2,000 and 4,000
   tokens (mira_site/tokens.py, every frame counted), with a line for each day and with a date on
   each element;
2. value over the optimum, the 18 best candidates in all their forms with the lines of their days;
3. the median of `quality`, what an allocation says of itself;
4. a mixed corpus: every other conversation is one long document of several thousand characters;
5. milliseconds for 200 candidates.

Strategies: MIRA's with several powers of the cost and with facility location; plain rank fill; MMR;
and the reference's greedy, with its wrong prices corrected (spec recall 3.2).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from benchmarks.recall_latency import services
from memory.allocation import Candidate, Mode, Plan, Strategy, allocate

if TYPE_CHECKING:
    from memory.types import Recalled

DATA = Path("../shared/data/locomo")
BUDGETS = (1_000, 2_000, 4_000)
SMALL, SMALL_BUDGET = 18, 600
FRAME_TOKENS = 9  # of <memories> and its end
DOCUMENT_CHARS = 6_000
PLANS = {
    "rank fill": Plan(strategy=Strategy.RANK),
    "greedy, thrift 0": Plan(),
    "greedy, thrift 0.25": Plan(thrift=0.25),
    "greedy, thrift 0.5": Plan(thrift=0.5),
    "greedy, thrift 1": Plan(thrift=1.0),
    "thrift 0, spread 0.2": Plan(spread=0.2),
    "MMR 0.7": Plan(strategy=Strategy.MMR),
    "MMR 0.9": Plan(strategy=Strategy.MMR, relevance=0.9),
}


@dataclass(frozen=True)
class Asked:
    """A question's candidates, best first, with the lines of their days, and all its evidence."""

    candidates: list[Candidate]
    dated: list[Candidate]  # with a date on each element instead
    frames: Mapping[Any, int]
    likeness: np.ndarray
    evidence: frozenset[UUID]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=sorted(DATA.glob("*.json")))
    parser.add_argument("--every", type=int, default=1, help="only each N-th question")
    parser.add_argument("--keep", type=Path, help="use this data directory again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mira-bench-") as temporary:
        folder = options.keep or Path(temporary)
        with services(folder):
            turns = list(questions(options.data, options.every, documents=False))
            mixed = list(questions(options.data, options.every * 2, documents=True))
        if options.keep is None:
            from mira_site import embedded  # noqa: PLC0415

            embedded.remove(folder)
    print(f"{len(turns)} questions")
    evidence(turns)
    over_optimum(turns)
    mixed_corpus(mixed)
    speed(turns)
    return 0


# --- Asking ------------------------------------------------------------------------------------
def questions(paths: Sequence[Path], every: int, *, documents: bool) -> Iterator[Asked]:
    from memory import benchmarking  # noqa: PLC0415

    for path in paths:
        dialogue = benchmarking.read(path)
        print(f"{dialogue.name}: storing and asking", file=sys.stderr, flush=True)
        with benchmarking.passing_person() as user:
            if documents:
                dialogue = as_documents(dialogue)
            ids = benchmarking.store(user, dialogue)
            now = dialogue.turns[-1].said_at
            for question in dialogue.questions[::every]:
                found = benchmarking.recalled(user, question.text, now=now)
                wanted = frozenset(ids[key] for key in question.evidence)
                yield asked(user, found, wanted)


def as_documents(dialogue: Any) -> Any:
    """Every other session as documents of up to DOCUMENT_CHARS, each in the place of its turns."""
    turns, keys = [], {}
    for turn in dialogue.turns:
        last = turns[-1] if turns else None
        joins = turn.session % 2 == 0 and last is not None and last.session == turn.session
        if joins and last is not None and len(last.text) + len(turn.text) < DOCUMENT_CHARS:
            turns[-1] = replace(last, text=f"{last.text}\n{turn.text}")
        else:
            turns.append(turn)
        keys[turn.key] = turns[-1].key
    asked = tuple(
        replace(one, evidence=tuple(dict.fromkeys(keys[key] for key in one.evidence)))
        for one in dialogue.questions
    )
    return replace(dialogue, turns=tuple(turns), questions=asked)


def asked(user: Any, found: Sequence[Recalled], wanted: frozenset[UUID]) -> Asked:
    from memory import contexts, rendering  # noqa: PLC0415
    from memory.models import Memory  # noqa: PLC0415
    from mira_site.accounts import selectors as accounts  # noqa: PLC0415

    zone = accounts.zone(user)
    candidates = contexts.candidates(found, zone=zone)
    frames = contexts.frames(found, zone=zone)
    longer = {
        one.id: rendering.line_tokens(rendering.element(one, zone=zone, dated=True))
        - rendering.line_tokens(rendering.element(one, zone=zone))
        for one in found
    }
    dated = [
        replace(
            one,
            group=None,
            renderings=tuple(
                replace(form, tokens=form.tokens + longer[one.id]) for form in one.renderings
            ),
        )
        for one in candidates
    ]
    rows = dict(
        Memory.objects.for_user(user)
        .filter(id__in=[one.id for one in found])
        .values_list("id", "embedding")
    )
    vectors = np.array([rows[one.id] for one in found], dtype=np.float32).reshape(len(found), -1)
    return Asked(
        candidates=candidates,
        dated=dated,
        frames=frames,
        likeness=np.clip(vectors @ vectors.T, 0, 1),
        evidence=wanted,
    )


# --- 1, 3 --------------------------------------------------------------------------------------
def evidence(asked: Sequence[Asked]) -> None:
    print("\n1. All evidence in full, and (2,000) in any form; 3. median quality at 2,000")
    for name, plan in PLANS.items():
        _line(name, [_contexts(asked, budget, plan) for budget in BUDGETS])
    _line("reference's greedy", [_references(asked, budget) for budget in BUDGETS])
    dated = [replace(one, candidates=one.dated, frames={}) for one in asked]
    for name in ("rank fill", "greedy, thrift 0"):
        _line(f"{name}, dated", [_contexts(dated, budget, PLANS[name]) for budget in BUDGETS])


Shown = tuple[Mapping[UUID, Mode], float]  # what is shown and how, and the quality


def _contexts(asked: Sequence[Asked], budget: int, plan: Plan) -> list[tuple[Asked, Shown]]:
    shown = []
    for one in asked:
        found = allocate(
            one.candidates,
            budget_tokens=budget - FRAME_TOKENS,
            frames=one.frames,
            similarities=one.likeness,
            plan=plan,
        )
        shown.append((one, ({item.id: item.mode for item in found.choices}, found.quality)))
    return shown


def _references(asked: Sequence[Asked], budget: int) -> list[tuple[Asked, Shown]]:
    return [(one, (reference(one, budget - FRAME_TOKENS), float("nan"))) for one in asked]


def _line(name: str, of_budgets: Sequence[Sequence[tuple[Asked, Shown]]]) -> None:
    full = [
        np.mean(
            [all(shown.get(i) is Mode.VERBATIM for i in one.evidence) for one, (shown, _) in it]
        )
        for it in of_budgets
    ]
    middle = of_budgets[1]
    any_form = np.mean([one.evidence <= shown.keys() for one, (shown, _) in middle])
    quality = statistics.median(quality for _, (_, quality) in middle)
    figures = " ".join(f"{share:.3f}" for share in full)
    print(f"   {name:24} {figures}   any {any_form:.3f}   quality {quality:.3f}", flush=True)


def reference(asked: Asked, budget: int) -> dict[UUID, Mode]:
    """The greedy loop of the reference (spec 3.2), its prices corrected, its zeros left out.

    The score is relevance times what is not yet covered; under 100 tokens it shows headers, under
    1,000 fingerprints.
    """
    weights = np.array([one.weight for one in asked.candidates])
    scores = weights / weights.max(initial=1e-9)
    covered, left = np.zeros(len(scores)), budget
    shown: dict[UUID, Mode] = {}
    opened: set[Any] = set()
    remaining = list(range(len(scores)))
    while remaining and left >= 50:
        adjusted = scores[remaining] * (1 - covered[remaining])
        i = remaining.pop(int(np.argmax(adjusted)))
        one = asked.candidates[i]
        frame = 0 if one.group in opened else asked.frames.get(one.group, 0)
        allowed = {Mode.HEADER} if left < 100 else {Mode.HEADER, Mode.FINGERPRINT}
        allowed |= {Mode.VERBATIM} if left >= 1_000 else set()
        for rendering in reversed([form for form in one.renderings if form.mode in allowed]):
            if rendering.tokens + frame <= left:
                left -= rendering.tokens + frame
                opened.add(one.group)
                shown[one.id] = rendering.mode
                covered = np.maximum(covered, asked.likeness[i])
                break
    return shown


# --- 2 -----------------------------------------------------------------------------------------
def over_optimum(asked: Sequence[Asked]) -> None:
    print(f"\n2. Value over the optimum, {SMALL} candidates, {SMALL_BUDGET} tokens:")
    print("   median, fifth percentile, least")
    few = [
        replace(one, candidates=one.candidates[:SMALL], likeness=one.likeness[:SMALL, :SMALL])
        for one in asked
        if one.candidates
    ]
    best = [optimum(one.candidates, one.frames, SMALL_BUDGET) for one in few]
    for name, plan in PLANS.items():
        values = []
        for one in few:
            found = allocate(
                one.candidates,
                budget_tokens=SMALL_BUDGET,
                frames=one.frames,
                similarities=one.likeness,
                plan=plan,
            )
            values.append(_modular(one, {item.id: item.mode for item in found.choices}))
        _shares(name, values, best)
    _shares("reference", [_modular(one, reference(one, SMALL_BUDGET)) for one in few], best)


def _modular(asked: Asked, shown: Mapping[UUID, Mode]) -> float:
    """The value without facility location: by it all are compared."""
    return sum(
        one.weight * form.fidelity
        for one in asked.candidates
        for form in one.renderings
        if shown.get(one.id) is form.mode
    )


def optimum(candidates: Sequence[Candidate], frames: Mapping[Any, int], budget: int) -> float:
    """The exact optimum, one form each and the groups' frames paid: a programme over tokens.

    Within a group the best value for each cost, nothing being one of the choices; then the same
    over the groups.
    """
    best = np.zeros(budget + 1)
    groups: dict[Any, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.group, []).append(candidate)
    for group, members in groups.items():
        inside = _within(members, budget)
        frame = frames.get(group, 0)
        taken = np.zeros(budget + 1)
        taken[frame:] = inside[: budget + 1 - frame]
        before = best
        best = before.copy()
        for cost in np.flatnonzero(np.diff(taken, prepend=0.0) > 0):
            best[cost:] = np.maximum(best[cost:], before[: budget + 1 - cost] + taken[cost])
    return float(best[-1])


def _within(members: Sequence[Candidate], budget: int) -> np.ndarray:
    best = np.zeros(budget + 1)
    for member in members:
        before = best.copy()
        for form in member.renderings:
            if form.tokens <= budget:
                moved = before[: budget + 1 - form.tokens] + member.weight * form.fidelity
                best[form.tokens :] = np.maximum(best[form.tokens :], moved)
    return best


def _shares(name: str, values: Sequence[float], best: Sequence[float]) -> None:
    shares = [value / most for value, most in zip(values, best, strict=True) if most > 0]
    low = float(np.quantile(shares, 0.05))
    print(f"   {name:24} {statistics.median(shares):.4f} {low:.4f} {min(shares):.4f}", flush=True)


# --- 4, 5 --------------------------------------------------------------------------------------
def mixed_corpus(asked: Sequence[Asked]) -> None:
    print("\n4. Mixed corpus: all evidence in full at 1,000, 2,000, 4,000; in any form at 2,000")
    for name, plan in PLANS.items():
        _line(name, [_contexts(asked, budget, plan) for budget in BUDGETS])
    _line("reference's greedy", [_references(asked, budget) for budget in BUDGETS])
    print("   forms shown at 2,000 by thrift 0:", end=" ")
    counts: Counter[str] = Counter()
    for _, (shown, _) in _contexts(asked, BUDGETS[1], PLANS["greedy, thrift 0"]):
        counts.update(shown.values())
    print(", ".join(f"{count} {mode}" for mode, count in counts.most_common()))


def speed(asked: Sequence[Asked]) -> None:
    print("\n5. Milliseconds at 4,000 tokens (median)")
    for name, plan in PLANS.items():
        took = []
        for one in asked[:20]:
            started = time.perf_counter()
            allocate(
                one.candidates,
                budget_tokens=BUDGETS[2],
                frames=one.frames,
                similarities=one.likeness,
                plan=plan,
            )
            took.append((time.perf_counter() - started) * 1000)
        print(f"   {name:24} {statistics.median(took):.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
