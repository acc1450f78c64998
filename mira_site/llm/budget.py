"""The cap a person may put on what models cost them in a month, and how it lands.

The month is that of the person's own zone. Near the cap they are told once. At the cap background
work stops with the next call and stays due; a reply under way is finished, and the next one is
answered as without a model. So a month costs at most the cap and the turn that reached it.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog
from django.db.models import Q, Sum
from django.utils import timezone

from mira_site import isolation
from mira_site.errors import BadRequest, LLMCapReached
from mira_site.llm import choices
from mira_site.llm.models import ModelCall, ModelSettings
from mira_site.llm.types import Tier

log = structlog.get_logger(__name__)

NEAR = Decimal("0.8")  # share of the cap from which the person is told
CAP_MAX = Decimal("100000")  # dollars; more is a slip of the finger
SUM_FOR_S = 5.0  # calls of other processes may go unnoticed this long
SUMS_MAX = 1_000  # people whose sum a process keeps
_sums: dict[tuple[str, datetime], tuple[float, Decimal]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A person's month: what it cost so far, and the cap if there is one. Dollars."""

    cap: Decimal | None
    spent: Decimal
    starts_at: datetime
    resets_at: datetime

    @property
    def share(self) -> Decimal:
        """Of the cap; 0 without one."""
        return self.spent / self.cap if self.cap else Decimal(0)

    @property
    def is_near(self) -> bool:
        return self.share >= NEAR

    @property
    def is_reached(self) -> bool:
        return self.share >= 1

    @property
    def resets_on(self) -> str:
        """The day it starts anew, in words."""
        return f"{self.resets_at.day} {self.resets_at:%B}"


def month_of(zone: ZoneInfo, at: datetime) -> tuple[datetime, datetime]:
    """First moment of the month that holds `at`, and of the next one, on the zone's clock."""
    start = at.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
    return start, (start + timedelta(days=32)).replace(day=1)


def of(user_id: uuid.UUID | str, *, zone: ZoneInfo, at: datetime) -> Budget:
    """Where the person stands in the month of `at`."""
    return _budget(user_id, choices.of(user_id), zone=zone, at=at)


def check(tier: Tier, row: ModelSettings | None, *, is_under_way: bool) -> None:
    """Raises LLMCapReached if this call of the user in scope shall not be made any more.

    `row` is theirs. `is_under_way`: the call continues a reply, which may come to its end.
    """
    if row is None or row.monthly_cap is None or (tier is Tier.REPLY and is_under_way):
        return
    budget = _budget(row.user_id, row, zone=_zone(row), at=timezone.now())
    if not budget.is_reached:
        return
    log.info("budget.call_refused", tier=str(tier))
    raise LLMCapReached(
        f"Your monthly cap of ${row.monthly_cap} is reached, so no model is asked before"
        f" {budget.resets_on}. You can raise or lift the cap at /settings/usage/."
    )


def take_notice(user_id: uuid.UUID | str) -> Budget | None:
    """The person's budget if it is near its cap and they were not told yet this month."""
    row = choices.of(user_id)
    if row is None or row.monthly_cap is None:
        return None
    budget = _budget(user_id, row, zone=_zone(row), at=timezone.now())
    if not budget.is_near or row.noticed_on == budget.starts_at.date():
        return None
    rows = ModelSettings.objects.for_user(user_id).filter(pk=row.pk)
    untold = Q(noticed_on__isnull=True) | ~Q(noticed_on=budget.starts_at.date())
    # Of two turns that end at once, one tells.
    is_first = rows.filter(untold).update(noticed_on=budget.starts_at.date())
    return budget if is_first else None


def set_cap(*, user_id: uuid.UUID, dollars: Decimal | None) -> None:
    """Set the cap, or lift it with None. Raises BadRequest."""
    if dollars is not None and not Decimal("0.01") <= dollars <= CAP_MAX:
        raise BadRequest(
            f"A cap lies between $0.01 and ${CAP_MAX}.",
            fields={"monthly_cap": f"A cap lies between $0.01 and ${CAP_MAX}."},
        )
    row, _ = ModelSettings.objects.for_user(user_id).get_or_create(user_id=user_id)
    if row.monthly_cap != dollars:  # the new one has a notice of its own
        rows = ModelSettings.objects.for_user(user_id).filter(pk=row.pk)
        rows.update(monthly_cap=dollars, noticed_on=None)
        log.info("budget.cap_changed", account=str(user_id), is_capped=dollars is not None)


def spent_more() -> None:
    """A call of the user in scope was recorded: the sum this process keeps is out of date."""
    user_id = isolation.current().user_id
    for key in [key for key in list(_sums) if key[0] == user_id]:
        _sums.pop(key, None)


def _budget(
    user_id: uuid.UUID | str, row: ModelSettings | None, *, zone: ZoneInfo, at: datetime
) -> Budget:
    start, end = month_of(zone, at)
    cap = row.monthly_cap if row is not None else None
    return Budget(cap=cap, spent=_spent(user_id, start, end), starts_at=start, resets_at=end)


def _spent(user_id: uuid.UUID | str, start: datetime, end: datetime) -> Decimal:
    key = (str(user_id), start)
    until, known = _sums.get(key, (0.0, Decimal(0)))
    now = time.monotonic()
    if now < until:
        return known
    calls = ModelCall.objects.for_user(user_id).filter(created_at__gte=start, created_at__lt=end)
    total: Decimal = calls.aggregate(total=Sum("cost"))["total"] or Decimal(0)
    if len(_sums) >= SUMS_MAX:
        _sums.clear()
    _sums[key] = (now + SUM_FOR_S, total)
    return total


def _zone(row: ModelSettings) -> ZoneInfo:
    """As accounts.zones.zone, which stands above this module."""
    try:
        return ZoneInfo(row.user.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
