"""The circuit breaker of an endpoint (pure): who fails again and again is left alone for a while.

Closed until 5 failures in a row; open for 30 seconds; then half-open, where one failure opens it
again and two successes close it. Its state is columns of the endpoint, so all workers share it, and
because one worker at a time tells an endpoint (`claimed_until`), half-open lets one probe through.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mira_site.webhooks.constants import BREAKER_FAILURES, BREAKER_OPEN_FOR, BREAKER_SUCCESSES

State = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """`failures` in a row while closed; `successes` of probes since it opened at `opened_at`."""

    failures: int = 0
    successes: int = 0
    opened_at: datetime | None = None

    @property
    def opens_until(self) -> datetime | None:
        return None if self.opened_at is None else self.opened_at + BREAKER_OPEN_FOR

    def state(self, now: datetime) -> State:
        until = self.opens_until
        if until is None:
            return "closed"
        return "open" if now < until else "half_open"

    def after(self, *, succeeded: bool, now: datetime) -> Breaker:
        """How it stands once an attempt has ended."""
        if self.opened_at is None:
            failures = 0 if succeeded else self.failures + 1
            if failures >= BREAKER_FAILURES:
                return Breaker(failures=failures, opened_at=now)
            return Breaker(failures=failures)
        if not succeeded:
            return Breaker(failures=self.failures + 1, opened_at=now)
        successes = self.successes + 1
        if successes >= BREAKER_SUCCESSES:
            return Breaker()
        return Breaker(failures=self.failures, successes=successes, opened_at=self.opened_at)
