"""A budget is never overrun, and what is chosen is as good as the result says."""

from __future__ import annotations

import itertools
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.allocation import (
    Allocation,
    Candidate,
    LeftOut,
    Mode,
    Plan,
    Rendering,
    Strategy,
    allocate,
)

PLANS = [
    Plan(),
    Plan(thrift=1.0),
    Plan(thrift=0.5, spread=0.3),
    Plan(spread=0.5),
    Plan(strategy=Strategy.RANK),
    Plan(strategy=Strategy.MMR),
]
FRAMES = {"monday": 7, "tuesday": 3}


def verbatim(number: int, weight: float, tokens: int, **further: object) -> Candidate:
    return Candidate(
        id=UUID(int=number),
        weight=weight,
        renderings=(Rendering(mode=Mode.VERBATIM, fidelity=1.0, tokens=tokens),),
        **further,
    )


def in_three_forms(number: int, weight: float, header: int, line: int, text: int) -> Candidate:
    return Candidate(
        id=UUID(int=number),
        weight=weight,
        renderings=(
            Rendering(mode=Mode.HEADER, fidelity=0.05, tokens=header),
            Rendering(mode=Mode.FINGERPRINT, fidelity=0.6, tokens=line),
            Rendering(mode=Mode.VERBATIM, fidelity=1.0, tokens=text),
        ),
    )


@st.composite
def instances(draw: st.DrawFn) -> tuple[list[Candidate], np.ndarray, int]:
    """Candidates of any costs and weights, in groups or none, their likenesses, and a budget."""
    size = draw(st.integers(0, 7))
    candidates = []
    for number in range(size):
        costs = draw(st.lists(st.integers(1, 60), min_size=3, max_size=3))
        one = in_three_forms(number, draw(st.floats(0, 1)), *costs)
        kept = draw(st.lists(st.sampled_from(one.renderings), unique=True))
        group = draw(st.sampled_from([None, "monday", "tuesday"]))
        at = draw(st.sampled_from([0.0, 1.0]))
        candidates.append(
            Candidate(id=one.id, weight=one.weight, renderings=tuple(kept), group=group, at=at)
        )
    cells = draw(st.lists(st.floats(0, 1), min_size=size * size, max_size=size * size))
    likeness = np.array(cells).reshape(size, size)
    likeness = np.maximum(likeness, likeness.T)
    np.fill_diagonal(likeness, 1.0)
    return candidates, likeness, draw(st.integers(0, 150))


def filled(
    instance: tuple[list[Candidate], np.ndarray, int], plan: Plan, budget: int | None = None
) -> Allocation:
    candidates, likeness, given_budget = instance
    return allocate(
        candidates,
        budget_tokens=given_budget if budget is None else budget,
        frames=FRAMES,
        similarities=likeness,
        plan=plan,
    )


def price(candidates: list[Candidate], chosen: dict[UUID, Mode]) -> int:
    """What the chosen renderings cost with their groups' frames, counted from scratch."""
    total, groups = 0, set()
    for one in candidates:
        if one.id in chosen:
            total += next(r.tokens for r in one.renderings if r.mode == chosen[one.id])
            groups.add(one.group)
    return total + sum(FRAMES.get(group, 0) for group in groups)


def worth(candidates: list[Candidate], likeness: np.ndarray, chosen: dict, spread: float) -> float:
    """F as the module defines it, from scratch."""
    shown = {
        i: next(r.fidelity for r in one.renderings if r.mode == chosen[one.id])
        for i, one in enumerate(candidates)
        if one.id in chosen
    }
    own = sum(candidates[i].weight * fidelity for i, fidelity in shown.items())
    covered = sum(
        one.weight * max((likeness[i, j] * f for i, f in shown.items()), default=0.0)
        for j, one in enumerate(candidates)
    )
    return (1 - spread) * own + spread * covered


def best(candidates: list[Candidate], likeness: np.ndarray, budget: int, spread: float) -> float:
    """The optimum, by trying everything."""
    options = [[None, *(r.mode for r in one.renderings)] for one in candidates]
    values = [0.0]
    for modes in itertools.product(*options):
        chosen = {
            one.id: mode for one, mode in zip(candidates, modes, strict=True) if mode is not None
        }
        if price(candidates, chosen) <= budget:
            values.append(worth(candidates, likeness, chosen, spread))
    return max(values)


@given(instances(), st.sampled_from(PLANS))
def test_the_budget_is_never_overrun_by_one_token(instance, plan):
    found = filled(instance, plan)
    chosen = {choice.id: choice.mode for choice in found.choices}
    assert len(chosen) == len(found.choices)
    assert found.tokens == price(instance[0], chosen) <= max(0, instance[2])
    assert found.tokens == sum(choice.tokens for choice in found.choices)


@given(instances(), st.sampled_from(PLANS), st.randoms(use_true_random=False))
def test_the_same_candidates_in_another_order_give_the_same_result(instance, plan, random):
    candidates, likeness, budget = instance
    order = list(range(len(candidates)))
    random.shuffle(order)
    turned = ([candidates[i] for i in order], likeness[np.ix_(order, order)], budget)
    assert filled(instance, plan) == filled(turned, plan)


@settings(max_examples=60)
@given(instances(), st.sampled_from(PLANS))
def test_no_choice_beats_the_bound_and_the_value_is_that_of_what_is_shown(instance, plan):
    candidates, likeness, budget = instance
    candidates, likeness = candidates[:4], likeness[:4, :4]
    found = filled((candidates, likeness, budget), plan)
    chosen = {choice.id: choice.mode for choice in found.choices}
    assert found.value == pytest.approx(worth(candidates, likeness, chosen, plan.spread))
    optimum = best(candidates, likeness, budget, plan.spread)
    assert found.value <= optimum + 1e-9 <= found.bound + 2e-9
    assert 0 <= found.quality <= 1 + 1e-9


@given(instances(), st.sampled_from(PLANS))
def test_whatever_is_left_out_has_a_reason(instance, plan):
    found = filled(instance, plan)
    shown = {choice.id for choice in found.choices}
    assert shown | set(found.left_out) == {one.id for one in instance[0]}
    assert not shown & set(found.left_out)


@given(instances(), st.sampled_from([Plan(), Plan(thrift=1.0)]))
def test_nothing_that_is_left_out_would_still_fit(instance, plan):
    found = filled(instance, plan)
    chosen = {choice.id: choice.mode for choice in found.choices}
    alone = len(found.choices) == 1  # then it may be the single one that is worth more than all
    for one in instance[0]:
        for rendering in one.renderings:
            if one.id in chosen or one.weight * rendering.fidelity <= 1e-9 or alone:
                continue
            more = {**chosen, one.id: rendering.mode}
            assert price(instance[0], more) > instance[2]


@given(st.lists(st.floats(0.01, 1), max_size=9), st.integers(0, 200), st.integers(0, 200))
def test_a_larger_budget_never_shows_less_where_all_cost_the_same(weights, one, other):
    candidates = [verbatim(i, weight, 20) for i, weight in enumerate(weights)]
    smaller = allocate(candidates, budget_tokens=min(one, other))
    larger = allocate(candidates, budget_tokens=max(one, other))
    assert {choice.id for choice in smaller.choices} <= {choice.id for choice in larger.choices}
    assert smaller.value <= larger.value + 1e-12


def test_what_is_wanted_most_goes_first_and_small_ones_fill_what_remains():
    found = allocate(
        [verbatim(1, 0.9, 60), verbatim(2, 0.8, 50), verbatim(3, 0.1, 40)], budget_tokens=100
    )
    assert [choice.id.int for choice in found.choices] == [1, 3]
    assert found.left_out == {UUID(int=2): LeftOut.NO_ROOM}


def test_with_thrift_two_short_ones_beat_a_long_one():
    candidates = [verbatim(1, 0.5, 90), verbatim(2, 0.4, 40), verbatim(3, 0.4, 40)]
    found = allocate(candidates, budget_tokens=100, plan=Plan(thrift=1.0))
    assert {choice.id.int for choice in found.choices} == {2, 3}


def test_a_single_long_one_beats_crumbs_that_are_dense():
    candidates = [verbatim(1, 1.0, 100), verbatim(2, 0.05, 1)]
    found = allocate(candidates, budget_tokens=100, plan=Plan(thrift=1.0))
    assert [choice.id.int for choice in found.choices] == [1]


def test_a_memory_that_does_not_fit_in_full_is_shown_in_brief():
    found = allocate([in_three_forms(1, 1.0, 8, 20, 200)], budget_tokens=50)
    assert [choice.mode for choice in found.choices] == [Mode.FINGERPRINT]


def test_what_was_taken_in_brief_is_shown_in_full_where_room_is_left():
    candidates = [in_three_forms(1, 1.0, 8, 20, 60), in_three_forms(2, 0.9, 8, 20, 60)]
    found = allocate(candidates, budget_tokens=80, plan=Plan(thrift=1.0))
    assert [choice.mode for choice in found.choices] == [Mode.VERBATIM, Mode.FINGERPRINT]
    assert found.tokens == 80


def test_the_frame_of_a_group_is_paid_once():
    candidates = [verbatim(i, 0.5, 10, group="monday") for i in range(3)]
    found = allocate(candidates, budget_tokens=37, frames=FRAMES)
    assert found.tokens == 37
    assert [choice.tokens for choice in found.choices] == [17, 10, 10]


def test_of_equals_the_newer_goes_first():
    found = allocate([verbatim(1, 0.5, 10, at=1.0), verbatim(2, 0.5, 10, at=2.0)], budget_tokens=10)
    assert [choice.id.int for choice in found.choices] == [2]


def test_reasons_tell_the_worthless_from_the_too_long():
    found = allocate([verbatim(1, 0.0, 5), verbatim(2, 1.0, 50)], budget_tokens=40)
    assert found.left_out == {UUID(int=1): LeftOut.WORTHLESS, UUID(int=2): LeftOut.TOO_LONG}


def test_mmr_passes_over_what_is_said_already():
    candidates = [verbatim(1, 1.0, 10), verbatim(2, 0.99, 10), verbatim(3, 0.7, 10)]
    likeness = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = allocate(
        candidates, budget_tokens=20, similarities=likeness, plan=Plan(strategy=Strategy.MMR)
    )
    assert [choice.id.int for choice in found.choices] == [1, 3]


@pytest.mark.parametrize(
    ("candidates", "plan"),
    [
        ([verbatim(1, 0.5, 10), verbatim(1, 0.4, 10)], Plan()),
        ([verbatim(1, -0.5, 10)], Plan()),
        ([verbatim(1, 0.5, 0)], Plan()),
        ([verbatim(1, 0.5, 10)], Plan(spread=0.3)),
        ([verbatim(1, 0.5, 10)], Plan(strategy=Strategy.MMR)),
    ],
)
def test_what_makes_no_sense_is_refused(candidates, plan):
    with pytest.raises(ValueError, match=r"\w"):
        allocate(candidates, budget_tokens=100, plan=plan)
