"""Which way of finding dialogue turns brings the evidence? An ablation, in numpy, without MIRA.

    python -m benchmarks.recall_ablation [--data DIR] [--cache DIR] [--quick]

Reads LoCoMo dialogues, asks their questions of categories 1 to 4 and prints a line a way: how much
of the evidence is among the first 5, 10, 20 and 50 turns, how many of its sessions among those of
the first 10, and for how many questions all of it stands within 1,000, 2,000 and 4,000 tokens (word
pieces of the lines `(date) speaker: text`, filled in rank order; the last three columns are the
same for lines under one date a session, as MIRA writes them).

Each way is a sum of features. Its weights are fitted by a softmax over the turns of a question, on
four dialogues, and the fifth is asked: no figure comes from a dialogue that the weights have seen.
The row "rounded" has fixed weights: those that the product uses. Needs scipy and snowballstemmer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.recall_turns import CANDIDATES, Array, Dialogue, Model, Reader, read

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo"
CACHE = Path("/tmp/locomo-cache")
DEPTHS = (5, 10, 20, 50)
BUDGETS = (1_000, 2_000, 4_000)
DECAY = 0.02  # of the weights, against fitting to four dialogues
COLUMNS = ("R5", "R10", "R20", "R50", "S10", "1k", "2k", "4k", "d1k", "d2k", "d4k")

LEXICAL = ["bm25 window", "coverage window"]
MEANING = ["cos said", "cos pair"]
SIGNS = ["other speaker", "date"]
SESSIONS = ["session cos said", "session bm25"]
TURN = ["phrases", "length", "asks"]
TOKENS = ["tokens alone", "tokens alone window"]
READ = ["tokens read", "tokens read window"]
CHEAP = [*LEXICAL, *MEANING, *SIGNS, *SESSIONS, *TURN]
FULL = [*CHEAP, *READ]
STEPS: dict[str, list[str]] = {
    "meaning (cosine)": ["cos"],
    "words (BM25, stems)": ["bm25 plain"],
    "known: rank fusion of both": ["rrf"],
    "known: half and half": ["half"],
    "known: half and half, smoothed": ["half smoothed"],
    "words, no stop words, b 0.4": ["bm25"],
    "words of the turn and both beside it": ["bm25 window"],
    "tokens (late interaction)": ["tokens alone window"],
    "tokens read after the turn before": ["tokens read window"],
    "meaning + words": ["cos", "bm25"],
    "meaning + words of the window": ["cos said", *LEXICAL],
    "+ vector of the turn before and it": [*MEANING, *LEXICAL],
    "+ not the speaker asked about": [*MEANING, *LEXICAL, "other speaker"],
    "+ the month that is asked about": [*MEANING, *LEXICAL, *SIGNS],
    "+ the session's best turns": [*MEANING, *LEXICAL, *SIGNS, *SESSIONS],
    "+ phrases, length, is a question": CHEAP,
    "+ tokens": [*CHEAP, *TOKENS],
    "+ tokens, read after the turn before": FULL,
}
TRIED: dict[str, list[str]] = {
    f"full + {name}": [*FULL, name]
    for name in (
        "cos window",
        "cos dated",
        "bm25",
        "coverage",
        "bm25 before",
        "cos said before",
        "opens",
        "session cos pair",
    )
}
WITHOUT: dict[str, list[str]] = {
    f"full - {name}": [one for one in FULL if one != name] for name in FULL
}
# Few features that do as well as all of them; with the shares of the question's words instead of
# BM25, which the product's one scan can count; and what is left of it without token vectors.
LEAN = [
    "bm25 window",
    "cos said",
    *SIGNS,
    "session bm25",
    "asks",
    "tokens read window",
]
SHARES = [
    "coverage window",
    "cos said",
    *SIGNS,
    "session coverage window",
    "asks",
    "tokens read window",
]
ALONE = [*LEAN[:-1], "tokens alone window"]
NO_TOKENS = ["bm25 window", *MEANING, *SIGNS, *SESSIONS, "asks"]
FEW = {
    "few": LEAN,
    "few, words by shares": SHARES,
    "few, tokens read alone": ALONE,
    "few, no tokens": NO_TOKENS,
}
# The fit of "few" on all five, rounded. Only ratios matter for the order; the scale makes
# exp(score) proportional to the probability that a turn is needed.
ROUNDED = {
    "bm25 window": 1.5,
    "cos said": 3.0,
    "other speaker": -2.5,
    "date": 4.0,
    "session bm25": 3.0,
    "asks": -0.5,
    "tokens read window": 9.0,
}


@dataclass(frozen=True)
class Costs:
    """Word pieces of each turn: as a line with its date, without it, and of the date alone."""

    line: npt.NDArray[np.int64]
    said: npt.NDArray[np.int64]
    date: npt.NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of LoCoMo files")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where vectors are kept")
    parser.add_argument("--quick", action="store_true", help="only the steps")
    options = parser.parse_args()
    model = Model(options.cache)
    dialogues = [read(path) for path in sorted(options.data.glob("*.json"))]
    costs = [_costs(one, model) for one in dialogues]
    readers = []
    for dialogue in dialogues:
        print(f"reading {dialogue.name}: {len(dialogue.said)} turns", file=sys.stderr)
        readers.append(Reader(dialogue, model))
    table = _Table(dialogues, costs)
    for only in (False, True):
        fill(dialogues, readers, only_candidates=only)
        if not only:
            table.header("All turns scored; weights from the other four dialogues")
            for name, features in (STEPS | ({} if options.quick else TRIED | WITHOUT)).items():
                table.row(name, table.held_out(features))
        else:
            table.header(
                f"Only the best {CANDIDATES} by meaning and by words, and what stands beside them"
            )
            for name, features in ({"all, no tokens": CHEAP, "all": FULL} | FEW).items():
                table.row(name, table.held_out(features))
            table.row("few, rounded weights", table.fixed(ROUNDED))
            for features in (LEAN, SHARES, NO_TOKENS):
                table.weights(features)
            table.losses(table.fixed(ROUNDED))


def _costs(dialogue: Dialogue, model: Model) -> Costs:
    dates = [f"{day}:" for day in dialogue.written_dates]
    return Costs(model.count(dialogue.lines), model.count(dialogue.said), model.count(dates))


def fill(
    dialogues: Sequence[Dialogue], readers: Sequence[Reader], *, only_candidates: bool
) -> None:
    for dialogue, reader in zip(dialogues, readers, strict=True):
        dialogue.features = [
            reader.features(place, only_candidates=only_candidates)
            for place in range(len(dialogue.questions))
        ]


# --- Weights -----------------------------------------------------------------------------------
def fit(dialogues: Sequence[Dialogue], names: Sequence[str]) -> Array:
    """Weights that make the evidence likely: a softmax over all turns of a question's dialogue."""
    asked = [
        (np.stack([features[name] for name in names], axis=1), evidence)
        for dialogue in dialogues
        for features, (_, _, evidence) in zip(dialogue.features, dialogue.questions, strict=True)
    ]
    spread = np.concatenate([rows for rows, _ in asked]).std(axis=0) + 1e-9
    scaled = [(rows / spread, evidence) for rows, evidence in asked]

    def loss(weights: Array) -> tuple[float, Array]:
        total, slope = 0.0, np.zeros(len(names))
        for rows, evidence in scaled:
            scores = rows @ weights
            scores -= scores.max()
            shares = np.exp(scores)
            total += np.log(shares.sum()) - scores[evidence].mean()
            shares /= shares.sum()
            slope += rows.T @ shares - rows[evidence].mean(axis=0)
        size = len(scaled)
        return total / size + DECAY * weights @ weights / 2, slope / size + DECAY * weights

    found = minimize(
        loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", options={"maxiter": 60}
    )
    return found.x / spread


Scores = list[list[Array]]  # of each dialogue, of each question, a score a turn


class _Table:
    def __init__(self, dialogues: Sequence[Dialogue], costs: Sequence[Costs]) -> None:
        self._dialogues, self._costs = dialogues, costs

    def held_out(self, names: Sequence[str]) -> Scores:
        found = []
        for place, dialogue in enumerate(self._dialogues):
            others = [one for i, one in enumerate(self._dialogues) if i != place]
            weights = fit(others, names) if len(names) > 1 else np.ones(1)
            found.append(scores(dialogue, dict(zip(names, weights, strict=True))))
        return found

    def fitted(self, names: Sequence[str]) -> dict[str, float]:
        return dict(zip(names, fit(self._dialogues, names), strict=True))

    def fixed(self, weights: dict[str, float]) -> Scores:
        return [scores(dialogue, weights) for dialogue in self._dialogues]

    def header(self, title: str) -> None:
        print(
            f"\n{title}\n{'':42}"
            + " ".join(f"{name:>5}" for name in COLUMNS)
            + "  | R10 and 2k of each dialogue"
        )

    def row(self, name: str, scores: Scores) -> None:
        each = [
            np.array(
                [
                    _figures(dialogue, costs, place, values)
                    for place, values in enumerate(of_questions)
                ]
            )
            for dialogue, costs, of_questions in zip(
                self._dialogues, self._costs, scores, strict=True
            )
        ]
        means = np.concatenate(each).mean(axis=0)
        parts = " ".join(f"{one[:, 1].mean():.2f}/{one[:, 6].mean():.2f}" for one in each)
        print(
            f"{name:42}" + " ".join(f"{value:5.3f}" for value in means) + f"  | {parts}", flush=True
        )

    def weights(self, names: Sequence[str]) -> None:
        print("\nWeights fitted on all dialogues, and their spread where one is left out")
        rows = [
            fit([one for i, one in enumerate(self._dialogues) if i != left], names)
            for left in range(len(self._dialogues))
        ]
        spread = np.std(rows, axis=0)
        for name, weight, width in zip(names, fit(self._dialogues, names), spread, strict=True):
            print(f"  {name:24} {weight:6.2f} +- {width:.2f}")

    def losses(self, scores: Scores) -> None:
        """Where the evidence that is not within 2,000 tokens got lost, by category."""
        print(
            "\nEvidence turns by category: in 2,000 tokens, cut by the budget (among the first"
            " 50),\nranked lower, no candidate; and questions with all of it in 1k, 2k, 4k tokens"
        )
        for category in (1, 2, 3, 4):
            counts, whole = np.zeros(4), []
            for dialogue, costs, of_questions in zip(
                self._dialogues, self._costs, scores, strict=True
            ):
                for place, values in enumerate(of_questions):
                    _, asked, evidence = dialogue.questions[place]
                    if asked != category:
                        continue
                    counts += _fates(dialogue, costs, place, values, evidence)
                    whole.append(_figures(dialogue, costs, place, values)[5:8])
            shares = " ".join(
                f"{value:5.3f}" for value in [*counts / counts.sum(), *np.mean(whole, 0)]
            )
            print(f"  {category}: {len(whole):4} questions, {int(counts.sum()):4} turns  {shares}")


def scores(dialogue: Dialogue, weights: dict[str, float]) -> list[Array]:
    return [
        sum(weight * features[name] for name, weight in weights.items())
        for features in dialogue.features
    ]


def _figures(dialogue: Dialogue, costs: Costs, place: int, values: Array) -> list[float]:
    evidence = dialogue.questions[place][2]
    order = np.argsort(-values, kind="stable")
    ranks = np.empty(len(order), int)
    ranks[order] = np.arange(len(order))
    figures = [float(np.mean(ranks[evidence] < depth)) for depth in DEPTHS]
    seen = {dialogue.sessions[turn] for turn in order[:10]}
    figures.append(float(np.mean([dialogue.sessions[turn] in seen for turn in evidence])))
    wanted = set(evidence)
    figures += [float(wanted <= _filled(costs.line, order, budget)) for budget in BUDGETS]
    for budget in BUDGETS:
        figures.append(float(wanted <= _under_dates(dialogue, costs, order, budget)))
    return figures


def _filled(costs: npt.NDArray[np.int64], order: Array, budget: int) -> set[int]:
    chosen = set()
    for turn in order:
        if costs[turn] <= budget:
            budget -= costs[turn]
            chosen.add(int(turn))
    return chosen


def _under_dates(dialogue: Dialogue, costs: Costs, order: Array, budget: int) -> set[int]:
    chosen, dated = set(), set()
    for turn in order:
        session = dialogue.sessions[turn]
        cost = costs.said[turn] + (0 if session in dated else costs.date[turn])
        if cost <= budget:
            budget -= cost
            dated.add(session)
            chosen.add(int(turn))
    return chosen


def _fates(
    dialogue: Dialogue, costs: Costs, place: int, values: Array, evidence: Sequence[int]
) -> Array:
    order = np.argsort(-values, kind="stable")
    shown, first = _filled(costs.line, order, 2_000), set(order[:50].tolist())
    missing = dialogue.features[place]["cos said"] == 0
    fates = np.zeros(4)
    for turn in evidence:
        if turn in shown:
            fates[0] += 1
        elif missing[turn]:
            fates[3] += 1
        else:
            fates[1 if turn in first else 2] += 1
    return fates


if __name__ == "__main__":
    main()
