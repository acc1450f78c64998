"""How good are the allocator's choices? Real candidates, against the optimum and other allocators.

    python -m benchmarks.allocation [--data DIR] [--cache DIR] [--every N]

The candidates are the turns of LoCoMo that recall finds for a question; their weights are the
probabilities that recall's scores stand for (a softmax, see recall_ablation). Four parts:

1. evidence: for how many questions all of it stands in 1,000, 2,000 and 4,000 tokens;
2. value over the optimum, turns in full only: a dynamic programme over the tokens;
3. the same with header, fingerprint and full text, on the 18 best candidates, and by trying
   everything on 9 with dates above the sessions and facility location;
4. milliseconds for 200 candidates.

Strategies: MIRA's with several powers of the cost; plain rank fill; MMR; and the reference's greedy
(a level of detail by what is left of the budget alone; its prices, which are wrong, corrected).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks import recall_ablation
from benchmarks.recall_ablation import BUDGETS, CACHE, DATA, LEAN
from benchmarks.recall_turns import Array, Dialogue, Model, Reader, read
from memory.allocation import Candidate, Mode, Plan, Rendering, Strategy, allocate

MOST = 200
SMALL = 18
TINY = 9
SMALL_BUDGET, TINY_BUDGET = 400, 200
HEADER_TOKENS, FINGERPRINT_SHARE, FINGERPRINT_KEEPS = 14, 0.6, 0.6  # of a rendering by rule
PLANS = {
    "rank fill": Plan(strategy=Strategy.RANK),
    "greedy, thrift 0": Plan(),
    "greedy, thrift 0.5": Plan(thrift=0.5),
    "greedy, thrift 1": Plan(thrift=1.0),
    "thrift 1, spread 0.2": Plan(thrift=1.0, spread=0.2),
    "MMR 0.7": Plan(strategy=Strategy.MMR),
    "MMR 0.9": Plan(strategy=Strategy.MMR, relevance=0.9),
}


@dataclass(frozen=True)
class Asked:
    """A question's candidates, best first, and all its evidence."""

    candidates: list[Candidate]
    flat: list[Candidate]  # with scores scaled to 0..1 as weights, which MMR is made for
    likeness: Array
    evidence: frozenset[UUID]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--every", type=int, default=1, help="only each N-th question")
    options = parser.parse_args()
    asked = list(questions(options.data, Model(options.cache)))[:: options.every]
    print(f"{len(asked)} questions, {MOST} candidates each")
    evidence(asked)
    in_full(asked)
    in_three_forms(asked)
    speed(asked)


def questions(folder: Path, model: Model) -> Iterator[Asked]:
    """With weights from scores that were fitted on the other dialogues."""
    dialogues = [read(path) for path in sorted(folder.glob("*.json"))]
    readers = [Reader(dialogue, model) for dialogue in dialogues]
    recall_ablation.fill(dialogues, readers, only_candidates=True)
    for dialogue, reader in zip(dialogues, readers, strict=True):
        others = [one for one in dialogues if one is not dialogue]
        weights = dict(zip(LEAN, recall_ablation.fit(others, LEAN), strict=True))
        costs = model.count(dialogue.lines)
        for place, values in enumerate(recall_ablation.scores(dialogue, weights)):
            yield _asked(dialogue, reader, place, values, costs)


def _asked(dialogue: Dialogue, reader: Reader, place: int, values: Array, costs: Array) -> Asked:
    chances = np.exp(values - values.max())
    chances /= chances.sum()
    best = np.argsort(-values, kind="stable")[:MOST]
    vectors = reader.vectors["said"][best]
    scaled = (values - values[best].min()) / (np.ptp(values[best]) + 1e-9)

    def weighted(weights: Array) -> list[Candidate]:
        return [
            Candidate(
                id=UUID(int=int(turn)),
                weight=float(weights[turn]),
                at=dialogue.days[turn].timestamp(),
                renderings=(Rendering(mode=Mode.VERBATIM, fidelity=1.0, tokens=int(costs[turn])),),
            )
            for turn in best
        ]

    return Asked(
        candidates=weighted(chances),
        flat=weighted(scaled),
        likeness=np.clip(vectors @ vectors.T, 0, 1),
        evidence=frozenset(UUID(int=turn) for turn in dialogue.questions[place][2]),
    )


def given(asked: Asked, plan: Plan) -> list[Candidate]:
    return asked.flat if plan.strategy is Strategy.MMR else asked.candidates


# --- 1 -----------------------------------------------------------------------------------------
def evidence(asked: Sequence[Asked]) -> None:
    print("\n1. All evidence within the budget; median quality (value over bound) at 2,000")
    for name, plan in PLANS.items():
        shares, qualities = [], []
        for budget in BUDGETS:
            hits = []
            for one in asked:
                found = allocate(
                    given(one, plan), budget_tokens=budget, similarities=one.likeness, plan=plan
                )
                hits.append(one.evidence <= {choice.id for choice in found.choices})
                if budget == BUDGETS[1]:
                    qualities.append(found.quality)
            shares.append(np.mean(hits))
        figures = " ".join(f"{share:.3f}" for share in shares)
        print(f"   {name:24} {figures}   {statistics.median(qualities):.3f}", flush=True)
    shares = [
        np.mean([one.evidence <= reference(one, budget).keys() for one in asked])
        for budget in BUDGETS
    ]
    shown = [
        np.mean([_in_full(reference(one, budget), one.evidence) for one in asked])
        for budget in BUDGETS
    ]
    for name, values in (("reference, in any form", shares), ("reference, in full", shown)):
        print(f"   {name:24} " + " ".join(f"{share:.3f}" for share in values), flush=True)


def _in_full(shown: dict[UUID, Mode], wanted: frozenset[UUID]) -> bool:
    return all(shown.get(one) is Mode.VERBATIM for one in wanted)


def reference(asked: Asked, budget: int) -> dict[UUID, Mode]:
    """The greedy loop of the reference (spec 3.2), its prices corrected, its zeros left out.

    The score is relevance times what is not yet covered; under 100 tokens it shows headers, under
    1,000 fingerprints.
    """
    forms = [three_forms(one).renderings for one in asked.candidates]
    scores = np.array([one.weight for one in asked.candidates])
    scores = scores / scores.max()
    covered, left = np.zeros(len(scores)), budget
    shown: dict[UUID, Mode] = {}
    remaining = list(range(len(scores)))
    while remaining and left >= 50:
        adjusted = scores[remaining] * (1 - covered[remaining])
        i = remaining.pop(int(np.argmax(adjusted)))
        first = 2 if left < 100 else 1 if left < 1_000 else 0
        for rendering in forms[i][::-1][first:]:
            if rendering.tokens <= left:
                left -= rendering.tokens
                shown[asked.candidates[i].id] = rendering.mode
                covered = np.maximum(covered, asked.likeness[i])
                break
    return shown


def three_forms(one: Candidate) -> Candidate:
    """With a header and a fingerprint, which is never dearer than the text."""
    text = one.renderings[-1]
    line = max(HEADER_TOKENS + 1, round(text.tokens * FINGERPRINT_SHARE))
    forms = [
        Rendering(mode=Mode.HEADER, fidelity=0.05, tokens=HEADER_TOKENS),
        Rendering(mode=Mode.FINGERPRINT, fidelity=FINGERPRINT_KEEPS, tokens=line),
    ]
    shorter = [form for form in forms if form.tokens < text.tokens]
    return Candidate(
        id=one.id, weight=one.weight, at=one.at, group=one.group, renderings=(*shorter, text)
    )


# --- 2 and 3 -----------------------------------------------------------------------------------
def in_full(asked: Sequence[Asked]) -> None:
    print(
        "\n2. Value over the optimum, texts in full, 1,000 tokens: median, fifth percentile, least"
    )
    budget = BUDGETS[0]
    best = [_knapsack(a.candidates, budget) for a in asked]
    for name, plan in PLANS.items():
        if not plan.spread:
            values = [_value(a, given(a, plan), budget, plan) for a in asked]
            _shares(name, values, best)


def in_three_forms(asked: Sequence[Asked]) -> None:
    print(f"\n3. In three forms, {SMALL} candidates, {SMALL_BUDGET} tokens")
    best = [
        _knapsack([three_forms(one) for one in a.candidates[:SMALL]], SMALL_BUDGET) for a in asked
    ]
    for name, plan in PLANS.items():
        if not plan.spread:
            values = [
                _value(a, [three_forms(one) for one in given(a, plan)[:SMALL]], SMALL_BUDGET, plan)
                for a in asked
            ]
            _shares(name, values, best)
    print(f"   and with spread 0.2, {TINY} candidates, {TINY_BUDGET} tokens, texts in full")
    plan = PLANS["thrift 1, spread 0.2"]
    few = asked[:: max(1, len(asked) // 100)]
    values = [_value(a, a.candidates[:TINY], TINY_BUDGET, plan) for a in few]
    _shares("thrift 1, spread 0.2", values, [_exhaustive(a, plan.spread) for a in few])


def _knapsack(candidates: Sequence[Candidate], budget: int) -> float:
    """The optimum of the modular case, at most one rendering each: a programme over the tokens."""
    best = np.zeros(budget + 1)
    for candidate in candidates:
        before = best.copy()
        for one in candidate.renderings:
            if one.tokens <= budget:
                moved = before[: budget + 1 - one.tokens] + candidate.weight * one.fidelity
                np.maximum(best[one.tokens :], moved, out=best[one.tokens :])
    return float(best[-1])


def _exhaustive(asked: Asked, spread: float) -> float:
    few = asked.candidates[:TINY]
    likeness, weights = asked.likeness[:TINY, :TINY], np.array([one.weight for one in few])
    costs = np.array([one.renderings[-1].tokens for one in few])
    best = 0.0
    for bits in itertools.product((False, True), repeat=len(few)):
        taken = np.array(bits)
        if taken.any() and costs[taken].sum() <= TINY_BUDGET:
            own = weights[taken].sum()
            covered = weights @ likeness[taken].max(axis=0)
            best = max(best, float((1 - spread) * own + spread * covered))
    return best


def _value(asked: Asked, candidates: Sequence[Candidate], budget: int, plan: Plan) -> float:
    size = len(candidates)
    likeness = asked.likeness[:size, :size]
    found = allocate(candidates, budget_tokens=budget, similarities=likeness, plan=plan)
    if plan.strategy is not Strategy.MMR:
        return found.value
    forms = {one.id: {form.mode: form.fidelity for form in one.renderings} for one in candidates}
    weights = {one.id: one.weight for one in asked.candidates}
    return sum(weights[one.id] * forms[one.id][one.mode] for one in found.choices)


def _shares(name: str, values: Sequence[float], best: Sequence[float]) -> None:
    shares = [value / most for value, most in zip(values, best, strict=True) if most > 0]
    low = float(np.quantile(shares, 0.05))
    print(f"   {name:24} {statistics.median(shares):.4f} {low:.4f} {min(shares):.4f}", flush=True)


# --- 4 -----------------------------------------------------------------------------------------
def speed(asked: Sequence[Asked]) -> None:
    print(f"\n4. Milliseconds for {MOST} candidates in three forms, 4,000 tokens (median)")
    for name, plan in PLANS.items():
        took = []
        for one in asked[:20]:
            several = [three_forms(candidate) for candidate in one.candidates]
            started = time.perf_counter()
            allocate(several, budget_tokens=4_000, similarities=one.likeness, plan=plan)
            took.append((time.perf_counter() - started) * 1000)
        print(f"   {name:24} {statistics.median(took):.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
