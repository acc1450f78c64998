"""The breaker's moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mira_site.webhooks.breaker import Breaker

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=31)


def after(*outcomes: bool, at: datetime = NOW, start: Breaker | None = None) -> Breaker:
    breaker = start or Breaker()
    for succeeded in outcomes:
        breaker = breaker.after(succeeded=succeeded, now=at)
    return breaker


def test_four_failures_leave_it_closed_and_the_fifth_opens_it():
    assert after(*[False] * 4).state(NOW) == "closed"
    assert after(*[False] * 5).state(NOW) == "open"


def test_a_success_in_between_starts_the_count_anew():
    assert after(*[False] * 4, True, *[False] * 4).state(NOW) == "closed"


def test_it_is_half_open_once_thirty_seconds_are_over():
    opened = after(*[False] * 5)
    assert opened.state(NOW + timedelta(seconds=29)) == "open"
    assert opened.state(NOW + timedelta(seconds=30)) == "half_open"


def test_a_failed_probe_opens_it_for_another_thirty_seconds():
    again = after(True, False, at=LATER, start=after(*[False] * 5))
    assert again.state(LATER) == "open"
    assert again.state(LATER + timedelta(seconds=30)) == "half_open"
    assert again.successes == 0


def test_two_successful_probes_close_it():
    opened = after(*[False] * 5)
    assert after(True, at=LATER, start=opened).state(LATER) == "half_open"
    assert after(True, True, at=LATER, start=opened) == Breaker()
