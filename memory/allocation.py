"""Which memories enter a context, and in how much detail, under a hard budget of tokens (pure).

Each candidate has some renderings, from a header to the verbatim text. At most one
of each candidate is taken, and the sum of their exact costs stays within the budget. A rendering's
cost includes its own frame; what stands once above several of them, such as the date over one
conversation, is the `frame` of a group, and is charged with the first rendering of that group.

What is maximised is

    F(S) = (1 - spread) * sum of w_i * q_r  +  spread * sum over j of w_j * max of q_r * sim(i, j)

over the chosen (i, r), with `w` the probability that a memory is needed, `q` the share of it that
a rendering keeps, and the maximum over those chosen. The first term is modular, the second one is
facility location. F is monotone and submodular.

What is provable, and no more: for the plain problem (one rendering each, no group frames) density
greedy alone can be arbitrarily bad; the better of it and the best single item is at least
1 - 1/sqrt(e) = 0.393 of the optimum (Lin & Bilmes 2010; Khuller, Moss & Naor 1999 give 0.316);
started from each feasible triple it reaches 1 - 1/e = 0.632 (Sviridenko 2004), which nothing that
runs in polynomial time beats in general. With one rendering a memory, upgrades and group frames, as
here, none of these carries over. So each result says how good it is itself: `bound` is no less than
the optimum of this instance, and `quality`, F divided by it, no more than the true share.

What is guaranteed by construction: never a token over the budget, no candidate twice, the same
input gives the same output, whatever the order of the candidates. docs/contexts.md has the figures.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from uuid import UUID

import numpy as np
import numpy.typing as npt

Similarities = npt.NDArray[np.floating]  # (n, n), of the candidates in their order, 0 to 1

MMR_RELEVANCE = 0.7  # Carbonell & Goldstein, SIGIR 1998
TINY = 1e-12  # a gain that is only rounding


class Mode(StrEnum):
    """How much of a memory is shown; from the least to the most."""

    HEADER = "header"
    FINGERPRINT = "fingerprint"
    EXCERPT = "excerpt"
    VERBATIM = "verbatim"


class LeftOut(StrEnum):
    """Why a candidate is not in the context."""

    WORTHLESS = "worth nothing for this question"
    TOO_LONG = "longer than the whole budget"
    NO_ROOM = "did not fit beside what is worth more"
    ENOUGH = "more than were asked for"


class Strategy(StrEnum):
    GREEDY = "greedy"
    MMR = "mmr"
    RANK = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One way to show a memory. `fidelity`: the share of it that is kept; `tokens`: exact cost."""

    mode: Mode
    fidelity: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that could be shown; `weight` from 0, `at` in seconds breaks ties, newer first."""

    id: UUID
    weight: float
    renderings: tuple[Rendering, ...]
    at: float = 0.0
    group: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A memory that is shown. `gain` is what it adds to F, `tokens` what it costs with the frame
    that it opened, in the order of taking."""

    id: UUID
    mode: Mode
    tokens: int
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What is shown, most wanted first, and how near the best possible that is."""

    choices: tuple[Choice, ...]
    left_out: Mapping[UUID, LeftOut]
    tokens: int
    value: float
    bound: float

    @property
    def quality(self) -> float:
        """F as a share of what no choice can exceed: a lower bound of the share of the optimum."""
        return self.value / self.bound if self.bound > TINY else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to choose. `thrift` is the power of the cost that a gain is divided by: at 0 the most
    wanted goes first, at 1 the most wanted per token. `spread` is the share of facility location;
    it and MMR need `similarities`."""

    strategy: Strategy = Strategy.GREEDY
    thrift: float = 0.0
    spread: float = 0.0
    relevance: float = MMR_RELEVANCE


DEFAULT = Plan()


def allocate(
    candidates: Sequence[Candidate],
    *,
    budget_tokens: int,
    frames: Mapping[Hashable, int] | None = None,
    similarities: Similarities | None = None,
    most: int | None = None,
    plan: Plan = DEFAULT,
) -> Allocation:
    """Fill the budget. `frames` are the tokens of a group's own line, where it has one.

    `most` bounds the number of candidates that are shown; the bound of the value knows nothing of
    it, and so stays a bound.
    The budget is what is left for candidates: the caller takes off what stands around them all.
    Raises ValueError for repeated ids, negative weights or costs below 1, or similarities that are
    missing or do not match.
    """
    _check(candidates, similarities, plan)
    # The order of the candidates must not matter: all that follows goes by this one.
    order = sorted(
        range(len(candidates)),
        key=lambda i: (-candidates[i].weight, -candidates[i].at, candidates[i].id),
    )
    ordered = [candidates[i] for i in order]
    if similarities is not None:
        similarities = np.clip(similarities, 0.0, 1.0)[np.ix_(order, order)]
    filling = _Filling(
        ordered,
        budget_tokens,
        frames or {},
        similarities,
        plan.spread,
        len(ordered) if most is None else most,
    )
    _FILLS[plan.strategy](filling, plan)
    if plan.strategy is Strategy.GREEDY:
        filling = _better_single(filling)
    return filling.result()


def _check(candidates: Sequence[Candidate], similarities: Similarities | None, plan: Plan) -> None:
    if len({one.id for one in candidates}) != len(candidates):
        raise ValueError("A candidate is given twice.")
    if any(one.weight < 0 for one in candidates):
        raise ValueError("A weight is negative.")
    if any(r.tokens < 1 or not 0 <= r.fidelity <= 1 for one in candidates for r in one.renderings):
        raise ValueError("A rendering needs a cost of 1 or more and a fidelity from 0 to 1.")
    if similarities is None and (plan.spread or plan.strategy is Strategy.MMR):
        raise ValueError("This plan needs similarities.")
    if similarities is not None and similarities.shape != (len(candidates),) * 2:
        raise ValueError("One row and one column of similarities a candidate.")


@dataclass
class _Filling:
    """A budget being filled: what is taken so far, and what each further step would bring."""

    candidates: Sequence[Candidate]
    budget: int
    frames: Mapping[Hashable, int]
    similarities: Similarities | None
    spread: float
    most: int
    taken: dict[int, Rendering] = field(default_factory=dict)  # in the order of taking
    opened: set[Hashable] = field(default_factory=set)
    spent: int = 0
    value: float = 0.0
    costs: dict[int, int] = field(default_factory=dict)
    gains: dict[int, float] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        self.weights = np.array([one.weight for one in self.candidates])
        self.covered = np.zeros(len(self.candidates))  # of each, by the nearest one chosen
        self.forms = [  # of each, the fullest first, of equals the cheapest
            sorted(one.renderings, key=lambda form: (-form.fidelity, form.tokens, form.mode))
            for one in self.candidates
        ]

    def cost(self, i: int, rendering: Rendering) -> int:
        """What it takes to show candidate `i` so: the difference where it is shown already."""
        if i in self.taken:
            return rendering.tokens - self.taken[i].tokens
        group = self.candidates[i].group
        return rendering.tokens + (0 if group in self.opened else self.frames.get(group, 0))

    def gain(self, i: int, rendering: Rendering) -> float:
        own = self.candidates[i].weight * (rendering.fidelity - self.shown(i))
        if not self.spread or self.similarities is None:
            return own
        near = rendering.fidelity * self.similarities[i]
        more = float(self.weights @ np.maximum(0.0, near - self.covered))
        return (1 - self.spread) * own + self.spread * more

    def fits(self, i: int, rendering: Rendering) -> bool:
        if i not in self.taken and self.is_full:
            return False
        return self.spent + self.cost(i, rendering) <= self.budget

    @property
    def is_full(self) -> bool:
        return len(self.taken) >= self.most

    def take(self, i: int, rendering: Rendering) -> None:
        cost, gain = self.cost(i, rendering), self.gain(i, rendering)
        self.spent += cost
        self.value += gain
        self.costs[i] = self.costs.get(i, 0) + cost
        self.gains[i] = self.gains.get(i, 0.0) + gain
        self.taken[i] = rendering
        self.steps += 1
        self.opened.add(self.candidates[i].group)
        if self.similarities is not None:
            near = rendering.fidelity * self.similarities[i]
            self.covered = np.maximum(self.covered, near)

    def shown(self, i: int) -> float:
        """The share of candidate `i` that is shown now."""
        return self.taken[i].fidelity if i in self.taken else 0.0

    def moves(self, i: int) -> list[Rendering]:
        """Forms of candidate `i` that show more of it than now, the fullest first."""
        shown = self.shown(i)
        return [one for one in self.forms[i] if one.fidelity > shown]

    def empty(self) -> _Filling:
        return _Filling(
            self.candidates, self.budget, self.frames, self.similarities, self.spread, self.most
        )

    def result(self) -> Allocation:
        choices = [
            Choice(
                id=self.candidates[i].id,
                mode=rendering.mode,
                tokens=self.costs[i],
                gain=self.gains[i],
            )
            for i, rendering in self.taken.items()
        ]
        left_out = {
            one.id: self._reason(one)
            for i, one in enumerate(self.candidates)
            if i not in self.taken
        }
        return Allocation(
            choices=tuple(choices),
            left_out=left_out,
            tokens=self.spent,
            value=self.value,
            bound=_bound(self),
        )

    def _reason(self, one: Candidate) -> LeftOut:
        useful = [r for r in one.renderings if one.weight * r.fidelity > TINY]
        if not useful:
            return LeftOut.WORTHLESS
        frame = self.frames.get(one.group, 0)
        if min(r.tokens for r in useful) + frame > self.budget:
            return LeftOut.TOO_LONG
        return LeftOut.ENOUGH if self.is_full else LeftOut.NO_ROOM


# --- Ways to fill ------------------------------------------------------------------------------
_Move = tuple[float, int, int, int]  # minus the key, candidate, place of the form, steps before


def _greedy(filling: _Filling, plan: Plan) -> None:
    """The move with the most gain per cost to the power of `thrift`, again and again.

    Lazily: gains only shrink while the context grows, so a key in the heap is no less than the true
    one, and a move that stays on top after its key was renewed is the best. Costs shrink only when
    the frame of a group is paid; then that group's moves are put in anew. Nothing else makes room
    for what did not fit, so in the end nothing that is left fits.
    """
    heap: list[_Move] = []
    put_in: dict[int, int] = {}  # steps before a candidate's moves were last put in; older are void
    of_group: dict[Hashable, list[int]] = {}
    for i, one in enumerate(filling.candidates):
        of_group.setdefault(one.group, []).append(i)
        heap += _moves(filling, i, plan)
        put_in[i] = 0
    heapq.heapify(heap)
    while heap:
        _, i, place, steps = heapq.heappop(heap)
        rendering = filling.forms[i][place]
        if steps < put_in[i] or not filling.fits(i, rendering):
            continue
        if plan.spread and steps != filling.steps:
            key = _key(filling, i, rendering, plan)
            if key > TINY:
                heapq.heappush(heap, (-key, i, place, filling.steps))
            continue
        group = filling.candidates[i].group
        changed = [i] if group in filling.opened else of_group[group]
        filling.take(i, rendering)
        for other in changed:
            put_in[other] = filling.steps
            for move in _moves(filling, other, plan):
                heapq.heappush(heap, move)


def _moves(filling: _Filling, i: int, plan: Plan) -> Iterator[_Move]:
    shown = filling.shown(i)
    for place, rendering in enumerate(filling.forms[i]):
        if rendering.fidelity > shown:
            key = _key(filling, i, rendering, plan)
            if key > TINY:
                yield (-key, i, place, filling.steps)


def _key(filling: _Filling, i: int, rendering: Rendering, plan: Plan) -> float:
    # A fuller rendering may be cheaper than the one that is shown: then it costs nothing.
    cost = max(1, filling.cost(i, rendering))
    return filling.gain(i, rendering) / float(cost**plan.thrift)


def _mmr(filling: _Filling, plan: Plan) -> None:
    """Maximal marginal relevance: relevant, and unlike what is there; the fullest form that fits.

    Source: Carbonell & Goldstein, SIGIR 1998. Weights are scaled to their largest.
    """
    assert filling.similarities is not None  # noqa: S101  checked by allocate
    relevant = filling.weights / max(TINY, float(filling.weights.max(initial=0.0)))
    nearest = np.zeros(len(filling.candidates))
    remaining = list(range(len(filling.candidates)))
    while remaining:
        scores = plan.relevance * relevant[remaining] - (1 - plan.relevance) * nearest[remaining]
        i = remaining.pop(int(np.argmax(scores)))  # of equals the first
        if _take_fullest(filling, i):
            nearest = np.maximum(nearest, filling.similarities[i])


def _rank(filling: _Filling, plan: Plan) -> None:
    """In the order of the weights, each as full as it fits, skipping what does not."""
    for i in range(len(filling.candidates)):
        _take_fullest(filling, i)


def _take_fullest(filling: _Filling, i: int) -> bool:
    for rendering in filling.moves(i):
        if filling.gain(i, rendering) > TINY and filling.fits(i, rendering):
            filling.take(i, rendering)
            return True
    return False


_FILLS: Mapping[Strategy, Callable[[_Filling, Plan], None]] = {
    Strategy.GREEDY: _greedy,
    Strategy.MMR: _mmr,
    Strategy.RANK: _rank,
}


def _better_single(filling: _Filling) -> _Filling:
    """The filling, or the one candidate that alone is worth more than all of it."""
    alone = filling.empty()
    worth = [
        max((alone.gain(i, one) for one in alone.moves(i) if alone.fits(i, one)), default=0.0)
        for i in range(len(alone.candidates))
    ]
    if max(worth, default=0.0) <= filling.value + TINY:
        return filling
    _take_fullest(alone, worth.index(max(worth)))
    return alone


# --- How good it is ----------------------------------------------------------------------------
_Step = tuple[float, int]  # gain, cost


def _bound(filling: _Filling) -> float:
    """No choice within the budget is worth more than this: what is there and the most that can be
    added, or the most from the start, whichever is less."""
    empty = filling.empty()
    from_start = [_hull(empty, i) for i in range(len(filling.candidates))]
    # Without spread a gain knows of no other candidate: what is not taken brings what it did then.
    changed = range(len(from_start)) if filling.spread else filling.taken
    now = [_hull(filling, i) if i in changed else steps for i, steps in enumerate(from_start)]
    return min(filling.value + _most(now, filling.budget), _most(from_start, filling.budget))


def _most(hulls: Iterable[Sequence[_Step]], budget: int) -> float:
    """No choice within the budget adds more to what is taken than this; `hulls` of all candidates.

    F is submodular, so an optimum adds at most the sum of the gains that its renderings bring now.
    Of such sums this is the maximum under the budget if renderings could be split and groups had no
    frames: a fractional knapsack over the steps of each candidate's concave hull, at full prices,
    as the optimum has to pay for what is already taken too.
    """
    steps = sorted(chain.from_iterable(hulls), key=lambda one: (-one[0] / one[1], -one[0]))
    room, most = float(budget), 0.0
    for gain, cost in steps:
        if cost >= room:
            return most + gain * room / cost
        most += gain
        room -= cost
    return most


def _hull(filling: _Filling, i: int) -> list[_Step]:
    """Steps (gain, cost) of the concave hull over nothing and the candidate's renderings."""
    points = [
        (one.tokens, filling.gain(i, one))
        for one in filling.moves(i)
        if one.tokens <= filling.budget
    ]
    steps: list[_Step] = []
    at_cost, at_gain = 0, 0.0
    while True:
        further = [(gain - at_gain, cost - at_cost) for cost, gain in points if cost > at_cost]
        rising = [step for step in further if step[0] > TINY]
        if not rising:
            return steps
        gain, cost = max(rising, key=lambda step: (step[0] / step[1], step[1]))
        steps.append((gain, cost))
        at_cost, at_gain = at_cost + cost, at_gain + gain
