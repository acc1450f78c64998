from __future__ import annotations

from uuid import UUID

import pytest

from memory.fusion import fuse

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def test_what_both_lists_hold_comes_before_what_leads_one():
    assert [item for item, _ in fuse([[B, A], [C, A]])] == [A, B, C]


def test_a_score_is_the_sum_of_reciprocal_ranks():
    assert fuse([[A], [B, A]]) == [(A, 1 / 61 + 1 / 62), (B, 1 / 61)]


def test_equal_scores_go_by_id():
    assert [item for item, _ in fuse([[B], [A]])] == [A, B]


def test_no_list_gives_nothing():
    assert fuse([]) == []


def test_k_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        fuse([[A]], k=0)


def test_a_list_of_more_weight_counts_more():
    assert [item for item, _ in fuse([[A], [B]], weights=[0.4, 0.6])] == [B, A]
    assert fuse([[A]], weights=[0.5]) == [(A, 0.5 / 61)]


def test_one_weight_a_list_is_needed():
    with pytest.raises(ValueError, match="argument"):
        fuse([[A], [B]], weights=[1.0])
