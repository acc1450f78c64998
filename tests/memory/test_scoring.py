"""The arithmetic of importance: the reference's table, the repairs, and what must always hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import scoring
from memory.models import Stakes as StoredStakes
from memory.scoring import ARCHIVE_BELOW, Signals, Stakes, importance, reference

IDLE_5 = Signals(age=60, idle=5, accesses=6, links=5, entity_links=40, mentions=3)

# Spec memory 2.4, row by row.
TABLE = {
    "brand new": (Signals(), 0.500),
    "untouched for 3 use-days": (Signals(age=3, idle=3), 0.385),
    "untouched for 7": (Signals(age=7, idle=7), 0.263),
    "untouched for 10": (Signals(age=10, idle=10), 0.195),
    "untouched for 14": (Signals(age=14, idle=14), 0.132),
    "untouched for 16": (Signals(age=16, idle=16), 0.119),
    "untouched for 200": (Signals(age=200, idle=200), 0.119),
    "one access on day 0": (Signals(accesses=1), 0.843),
    "10 accesses, age 30, idle 0": (Signals(age=30, accesses=10), 0.574),
    "10 accesses, age 30, idle 10": (Signals(age=30, idle=10, accesses=10), 0.417),
    "30 accesses, age 30, idle 0": (Signals(age=30, accesses=30), 0.759),
    "5 accesses, age 100, idle 50": (Signals(age=100, idle=50, accesses=5), 0.128),
    "accessed, linked and mentioned": (IDLE_5, 0.444),
    "new, event within a day": (Signals(happens_in_days=0.5), 0.881),
    "untouched for 40, event within a day": (
        Signals(age=40, idle=40, happens_in_days=0.5),
        0.119,
    ),
    "new, expired 2.5 days ago": (Signals(expires_in_days=-2.5), 0.269),
    "new, expired 5 days ago": (Signals(expires_in_days=-5.0), 0.119),
    "new, expired longer ago": (Signals(expires_in_days=-5.01), 0.0),
}
REPAIRED = {
    "untouched for 200": 0.0,  # neglect: the floor of 0.119 could never be archived
    "untouched for 40, event within a day": 0.5,  # lifted, where a factor of nothing stays nothing
}


@pytest.mark.parametrize(("signals", "expected"), TABLE.values(), ids=TABLE)
def test_the_reference_gives_every_row_of_its_table(signals, expected):
    assert reference(signals) == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize("case", [case for case in TABLE if case not in REPAIRED])
def test_what_needs_no_repair_scores_as_in_the_reference(case):
    signals, expected = TABLE[case]
    assert importance(signals) == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize(("case", "expected"), REPAIRED.items(), ids=REPAIRED)
def test_the_repairs_change_these_rows_and_no_others(case, expected):
    assert importance(TABLE[case][0]) == pytest.approx(expected, abs=0.0006)


def use_days_until_archived(stakes: Stakes, **signals: float) -> int | None:
    return next(
        (
            age
            for age in range(1000)
            if importance(Signals(age=age, idle=age, stakes=stakes, **signals)) < ARCHIVE_BELOW
        ),
        None,
    )


def test_the_idle_sink_as_fast_as_little_is_at_stake():
    assert use_days_until_archived(Stakes.TRIVIAL) == 20
    assert use_days_until_archived(Stakes.ORDINARY) == 40
    assert use_days_until_archived(Stakes.VITAL) is None


def test_the_fame_of_what_it_mentions_does_not_keep_an_idle_memory():
    assert use_days_until_archived(Stakes.TRIVIAL, entity_links=200.0) <= 25
    assert use_days_until_archived(Stakes.ORDINARY, entity_links=200.0) <= 50


def test_what_is_well_linked_is_never_archived():
    assert use_days_until_archived(Stakes.TRIVIAL, links=3) is None


def test_one_use_keeps_a_memory_for_months():
    used = use_days_until_archived(Stakes.ORDINARY, accesses=1.0, mentions=1)
    surfaced = use_days_until_archived(Stakes.ORDINARY, accesses=scoring.SURFACED_WEIGHT)
    assert used is not None
    assert surfaced is not None
    assert used > 100 > surfaced > use_days_until_archived(Stakes.ORDINARY)


def test_being_surfaced_counts_less_than_being_used():
    surfaced = importance(Signals(accesses=scoring.SURFACED_WEIGHT))
    used = importance(Signals(accesses=scoring.USED_WEIGHT, mentions=1))
    assert importance(Signals()) < surfaced < used


def test_a_coming_event_lifts_what_had_sunk_to_nothing():
    sunk = Signals(age=100, idle=100, stakes=Stakes.TRIVIAL)
    assert importance(sunk) == 0.0
    scores = [importance(replace(sunk, happens_in_days=days)) for days in (60, 13, 6, 1, 0)]
    assert scores == sorted(scores)
    assert scores[0] > ARCHIVE_BELOW
    assert scores[-1] == 0.5


def test_after_its_date_an_event_sinks_but_not_overnight():
    event = Signals(age=60, idle=60)
    eve, after, later = (
        importance(replace(event, happens_in_days=days)) for days in (0.0, -1.0, -45.0)
    )
    assert eve > after > ARCHIVE_BELOW > later


def test_the_stored_stakes_are_those_of_the_formula():
    assert {stakes.name: stakes.value for stakes in Stakes} == {
        stakes.name: stakes.value for stakes in StoredStakes
    }


# --- Whatever the signals --------------------------------------------------------------------
DATES = st.none() | st.floats(-400, 400)
SIGNALS = st.builds(
    Signals,
    age=st.integers(0, 20_000),
    idle=st.integers(0, 20_000),
    accesses=st.floats(0, 5_000),
    links=st.integers(0, 500),
    entity_links=st.floats(0, 50_000),
    mentions=st.integers(0, 5_000),
    happens_in_days=DATES,
    expires_in_days=DATES,
    stakes=st.sampled_from(Stakes),
)


@given(SIGNALS)
def test_a_score_is_from_0_to_1(signals):
    assert 0.0 <= importance(signals) <= 1.0
    assert 0.0 <= reference(signals) <= 1.0


@given(
    SIGNALS, st.sampled_from(["accesses", "links", "entity_links", "mentions"]), st.integers(1, 50)
)
def test_what_speaks_for_a_memory_never_lowers_it(signals, name, more):
    raised = replace(signals, **{name: getattr(signals, name) + more})
    assert importance(raised) >= importance(signals)


@given(SIGNALS, st.integers(1, 100))
def test_lying_idle_never_raises_a_memory(signals, days):
    idler = replace(signals, age=signals.age + days, idle=signals.idle + days)
    assert importance(idler) <= importance(signals)


@given(SIGNALS, st.floats(0, 1000))
def test_absence_changes_only_what_is_tied_to_a_date(signals, days):
    """Absence moves calendar days and nothing else, so what has no date has nothing to move."""

    def later(in_days: float | None) -> float | None:
        return None if in_days is None else in_days - days

    away = replace(
        signals,
        happens_in_days=later(signals.happens_in_days),
        expires_in_days=later(signals.expires_in_days),
    )
    undated = signals.happens_in_days is None and signals.expires_in_days is None
    if undated:
        assert importance(away) == importance(signals)
    elif signals.happens_in_days is None:
        assert importance(away) <= importance(signals)


@given(SIGNALS, st.floats(0, 400))
def test_nothing_with_its_day_to_come_falls_under_the_threshold(signals, days):
    coming = replace(signals, happens_in_days=days, expires_in_days=None)
    assert importance(coming) > ARCHIVE_BELOW


@given(SIGNALS)
def test_the_vital_never_fades_unless_it_expired(signals):
    vital = replace(signals, stakes=Stakes.VITAL, expires_in_days=None)
    assert importance(vital) > ARCHIVE_BELOW


@given(SIGNALS)
def test_a_date_to_come_never_lowers_a_memory(signals):
    undated = replace(signals, happens_in_days=None)
    coming = replace(signals, happens_in_days=3.0)
    assert importance(coming) >= importance(undated)
