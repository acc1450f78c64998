"""What models cost a person, in their own months."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.utils import timezone

from mira_site.accounts import selectors
from mira_site.accounts.constants import USAGE_MONTHS
from mira_site.accounts.models import User
from mira_site.errors import BadRequest
from mira_site.llm import budget, spending
from mira_site.llm.budget import Budget
from mira_site.llm.spending import Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOfMonth:
    """The months there are, and one of them in parts; `budget` is of the current month."""

    budget: Budget
    months: Sequence[Sums]
    first_on: date
    jobs: Sequence[Sums]
    models: Sequence[Sums]

    @property
    def month(self) -> str:
        return f"{self.first_on:%Y-%m}"

    @property
    def total(self) -> Sums:
        return spending.total(self.jobs)


def month(user: User, said: str) -> date:
    """First day of the month that is named like 2026-11; of the current one for "".

    Raises BadRequest.
    """
    if not said:
        return selectors.local_now(user, timezone.now()).date().replace(day=1)
    try:
        found = datetime.strptime(said, "%Y-%m").date()  # noqa: DTZ007 (a month has no zone)
    except ValueError:
        found = date.min
    if not 2000 <= found.year <= 9000:  # what the database and the calendar can add a month to
        raise BadRequest(
            "A month looks like 2026-11.", fields={"month": "A month looks like 2026-11."}
        )
    return found


def of(user: User, first_on: date) -> UsageOfMonth:
    zone = selectors.zone(user)
    return UsageOfMonth(
        budget=budget.of(user.pk, zone=zone, at=timezone.now()),
        months=spending.months(user.pk, zone, most=USAGE_MONTHS),
        first_on=first_on,
        jobs=spending.jobs(user.pk, zone, first_on),
        models=spending.models(user.pk, zone, first_on),
    )
