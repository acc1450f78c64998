"""What each signal of the product's ranking is worth, and what weights other dialogues would give.

    .venv/bin/python -m benchmarks.recall_signals --keep FOLDER [--data DIR]

Stores each LoCoMo dialogue once through MIRA's own writes, asks its questions as recall does, and
keeps the signals of all candidates in FOLDER as one .npz a dialogue; where a file is there already
it is read. All else takes seconds: the product's weights, each signal left out, and weights fitted
by a softmax on the other dialogues. `manage.py bench_recall` measures the whole; this leaves out
importance and what says nearly the same, which move it by 0.1 points.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from benchmarks.recall_latency import services

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo"
DECAY = 0.02  # of the weights, against fitting to four dialogues
BUDGETS = (1_000, 2_000, 4_000)
DEPTHS = (5, 10, 20, 50)
R10, IN_2K = 1, 5  # of the columns
COLUMNS = ("R5", "R10", "R20", "R50", "1k", "2k", "4k")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Of each candidate a row: its signals, whether it is evidence, its price and whether it is
    good enough to be shown. `wanted` counts all evidence, candidates or not."""

    category: int
    wanted: int
    signals: Floats
    is_evidence: npt.NDArray[np.bool_]
    is_answer: npt.NDArray[np.bool_]
    costs: npt.NDArray[np.int64]


Dialogues = Mapping[str, Sequence[Question]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="where the signals are kept")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of LoCoMo files")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    files = sorted(options.data.glob("*.json"))
    if len(files) < 2:
        parser.error("--data must hold two dialogues or more: one is asked with others' weights.")
    missing = [one for one in files if not _kept(options.keep, one).exists()]
    if missing:
        with tempfile.TemporaryDirectory() as folder, services(Path(folder)):
            for file in missing:
                _keep(file, _kept(options.keep, file))
    names, dialogues = _read([_kept(options.keep, one) for one in files])
    _report(names, dialogues)


def _kept(folder: Path, file: Path) -> Path:
    return folder / f"{file.stem}.npz"


# --- Keeping and reading -----------------------------------------------------------------------
def _keep(file: Path, target: Path) -> None:
    from memory import asking, benchmarking, past, ranking, search  # noqa: PLC0415
    from mira_site.accounts import selectors as accounts  # noqa: PLC0415

    dialogue = benchmarking.read(file)
    price = dict(zip(dialogue.turns, benchmarking.line_costs(dialogue), strict=True))
    rows: dict[str, list[npt.NDArray[np.generic]]] = {}
    with benchmarking.passing_person() as user:
        print(f"storing {dialogue.name}", file=sys.stderr)
        ids = benchmarking.store(user, dialogue)
        costs = {ids[turn.key]: cost for turn, cost in price.items()}
        now = dialogue.turns[-1].said_at + timedelta(days=1)
        for question in dialogue.questions:
            pool = search.candidates(
                user,
                asking.prepare([question.text]),
                now=now,
                past=past.asks_for_past(question.text),
            )
            ranked = ranking.ranked(pool, {}, accounts.zone(user))
            evidence = {ids[key] for key in question.evidence}
            made = {
                "size": np.array([len(pool)]),
                "category": np.array([question.category]),
                "wanted": np.array([len(evidence)]),
                "signals": np.stack([ranked.signals[name] for name in ranking.WEIGHTS], axis=1),
                "is_evidence": np.array([one in evidence for one in pool.ids], dtype=np.bool_),
                "is_answer": ranked.is_answer,
                "costs": np.array([costs[one] for one in pool.ids]),
            }
            for name, values in made.items():
                rows.setdefault(name, []).append(values)
    weights = np.array(list(ranking.WEIGHTS.values()))
    joined = {name: np.concatenate(several) for name, several in rows.items()}
    np.savez(target, names=np.array(list(ranking.WEIGHTS)), weights=weights, **joined)


def _read(files: Sequence[Path]) -> tuple[dict[str, float], Dialogues]:
    """The product's weights by name, and the questions of each dialogue."""
    weights: dict[str, float] = {}
    found: dict[str, list[Question]] = {}
    for file in files:
        kept = np.load(file)
        weights = dict(zip(kept["names"].tolist(), kept["weights"].tolist(), strict=True))
        ends = np.cumsum(kept["size"])[:-1]
        parts = [
            np.split(kept[name], ends) for name in ("signals", "is_evidence", "is_answer", "costs")
        ]
        found[file.stem] = [
            Question(
                category=int(category),
                wanted=int(wanted),
                signals=signals,
                is_evidence=evidence,
                is_answer=answer,
                costs=costs,
            )
            for category, wanted, signals, evidence, answer, costs in zip(
                kept["category"], kept["wanted"], *parts, strict=True
            )
        ]
    return weights, found


# --- Weights -----------------------------------------------------------------------------------
def fit(questions: Sequence[Question]) -> Floats:
    """Weights that make the evidence likely among the candidates of its question."""
    asked = [one for one in questions if one.is_evidence.any()]
    rows = np.concatenate([one.signals for one in asked])
    spread = rows.std(axis=0) + 1e-9
    rows = rows / spread
    sizes = np.array([len(one.signals) for one in asked])
    starts = np.cumsum([0, *sizes[:-1]])
    of_question = np.repeat(np.arange(len(asked)), sizes)
    wanted = np.concatenate([one.is_evidence / one.is_evidence.sum() for one in asked])
    target = rows.T @ wanted

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        most = np.maximum.reduceat(scores, starts)
        shares = np.exp(scores - most[of_question])
        sums = np.add.reduceat(shares, starts)
        value = ((np.log(sums) + most).sum() - scores @ wanted) / len(asked)
        slope = (rows.T @ (shares / sums[of_question]) - target) / len(asked)
        return value + DECAY * weights @ weights / 2, slope + DECAY * weights

    best = minimize(
        loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 60}
    )
    weights: Floats = best.x / spread
    return weights


# --- Reporting ---------------------------------------------------------------------------------
def _report(weights: Mapping[str, float], dialogues: Dialogues) -> None:
    print(f"{'':24}" + " ".join(f"{one:>5}" for one in COLUMNS) + "  | R10/2k of each dialogue")
    product = np.array(list(weights.values()))
    _row("all", dict.fromkeys(dialogues, product), dialogues)
    for place, name in enumerate(weights):
        left = product.copy()
        left[place] = 0
        _row(f"without {name}", dict.fromkeys(dialogues, left), dialogues)
    others = {
        name: fit([one for other, several in dialogues.items() if other != name for one in several])
        for name in dialogues
    }
    _row("weights of the others", others, dialogues)
    spread = np.std(list(others.values()), axis=0)
    for name, mean, width in zip(
        weights, np.mean(list(others.values()), axis=0), spread, strict=True
    ):
        print(f"  {name:22} product {weights[name]:5.1f}, of the others {mean:6.2f} +- {width:.2f}")
    _losses(product, dialogues)


def _row(title: str, weights: Mapping[str, Floats], dialogues: Dialogues) -> None:
    each = [
        np.array([_figures(one, weights[name]) for one in several])
        for name, several in dialogues.items()
    ]
    means = " ".join(f"{value:.3f}" for value in np.concatenate(each).mean(axis=0))
    parts = " ".join(f"{one[:, R10].mean():.3f}/{one[:, IN_2K].mean():.3f}" for one in each)
    print(f"{title:24}{means}  | {parts}", flush=True)


def _order(question: Question, weights: Floats) -> npt.NDArray[np.intp]:
    order = np.argsort(-(question.signals @ weights), kind="stable")
    return order[question.is_answer[order]]


def _figures(question: Question, weights: Floats) -> list[float]:
    order = _order(question, weights)
    hits = question.is_evidence[order]
    figures = [float(hits[:depth].sum() / question.wanted) for depth in DEPTHS]
    for budget in BUDGETS:
        chosen = _filled(question.costs[order], budget)
        figures.append(float(hits[chosen].sum() == question.wanted))
    return figures


def _filled(costs: npt.NDArray[np.int64], budget: int) -> list[int]:
    """Places that fit, in order, skipping what does not."""
    chosen = []
    for place, cost in enumerate(costs.tolist()):
        if cost <= budget:
            budget -= cost
            chosen.append(place)
    return chosen


def _losses(weights: Floats, dialogues: Dialogues) -> None:
    print("\nEvidence: in 2,000 tokens, cut by the budget, ranked below 50, not good enough to be")
    print("shown, no candidate")
    for category, title in CATEGORIES.items():
        fates = np.zeros(5)
        for question in (one for several in dialogues.values() for one in several):
            if question.category != category:
                continue
            order = _order(question, weights)
            hits = question.is_evidence[order]
            within = hits[_filled(question.costs[order], BUDGETS[1])].sum()
            early = hits[: DEPTHS[-1]].sum()
            found = question.is_evidence.sum()
            early = max(early, within)
            fates += [
                within, early - within, hits.sum() - early, found - hits.sum(),
                question.wanted - found,
            ]  # fmt: skip
        if fates.any():
            print(f"  {title:12}" + " ".join(f"{share:6.3f}" for share in fates / fates.sum()))


if __name__ == "__main__":
    main()
