"""Background work that is due until it is done, whatever goes wrong (model Work).

A worker claims a piece, does it, and says `done` in the transaction that writes the result; what
fails is put off by growing waits, and a claim that nobody ended runs out.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import Exists, Min, OuterRef, Q

from memory.constants import WORK_CLAIM_S, WORK_RETRY_S
from memory.models import Work
from mira_site.accounts.models import User
from mira_site.errors import MiraError

log = structlog.get_logger(__name__)


class ClaimLost(MiraError):
    """The claim ran out and somebody else has the work: a late worker writes nothing."""

    code = "claim_lost"


def make_due(
    user: User, kind: Work.Kind, subject: str, at: datetime, *, again: bool = False
) -> None:
    """There is work of this kind about this subject, once, however often it is said.

    With `again` it is due anew though it was done before, or runs right now: that run may have
    looked too early. What has failed keeps waiting for its time.
    """
    Work.objects.bulk_create(
        [Work(user=user, kind=kind, subject=subject, created_at=at, next_attempt_at=at)],
        ignore_conflicts=True,
    )
    if again:
        ended = Q(status__in=(Work.Status.DONE, Work.Status.RUNNING))
        Work.objects.for_user(user).filter(ended, kind=kind, subject=subject).update(
            status=Work.Status.DUE, next_attempt_at=at, claimed_until=None, attempts=0
        )


def claim(user: User, work_id: UUID, *, at: datetime) -> Work | None:
    """Take a piece of work that is due; None if somebody else has it or it is not due."""
    rows = Work.objects.for_user(user).filter(pk=work_id)
    claimed_until = at + timedelta(seconds=WORK_CLAIM_S)
    if not rows.filter(_is_due(at)).update(status=Work.Status.RUNNING, claimed_until=claimed_until):
        return None
    work: Work | None = rows.select_related("user").filter(claimed_until=claimed_until).first()
    if work is not None:
        work.attempts += 1
        work.save(update_fields=["attempts"])
    return work


def done(work: Work, *, at: datetime) -> None:
    """Say that it is done; call it in the transaction that writes the result. Once is enough.

    What was put back is not done, and stays due. Raises ClaimLost, which undoes that transaction.
    """
    if work.status != Work.Status.RUNNING:
        return
    _end(work, status=Work.Status.DONE, finished_at=at, error_code="")


def put_back(work: Work, *, at: datetime) -> None:
    """A part of it is done, the rest is due again at once. Raises ClaimLost."""
    _end(work, status=Work.Status.DUE, next_attempt_at=at, attempts=0, error_code="")


def postpone(work: Work, *, at: datetime, error_code: str) -> None:
    """It failed and is due again after a wait that grows with every failure. Raises ClaimLost."""
    wait_s = WORK_RETRY_S[min(work.attempts, len(WORK_RETRY_S)) - 1]
    _end(
        work,
        status=Work.Status.FAILED,
        next_attempt_at=at + timedelta(seconds=wait_s),
        error_code=error_code,
    )
    log.warning(
        "work.postponed", kind=work.kind, work=work.short_id, code=error_code, wait_s=wait_s
    )


def hasten(user: User, work_ids: Collection[UUID], *, at: datetime) -> int:
    """What waits for its next attempt need not wait. Returns how many waited."""
    waiting = (Work.Status.DUE, Work.Status.FAILED)
    rows = Work.objects.for_user(user).filter(pk__in=work_ids, status__in=waiting)
    return int(rows.update(next_attempt_at=at))


def due_of(user: User, *, at: datetime, kinds: Collection[str], limit: int) -> list[UUID]:
    """Ids of the person's work that is due, what has waited longest first."""
    rows = Work.objects.for_user(user).filter(_is_due(at), kind__in=kinds)
    return list(rows.order_by("next_attempt_at", "created_at").values_list("pk", flat=True)[:limit])


def users_due(*, at: datetime, kinds: Collection[str]) -> list[UUID]:
    """Ids of the users with work that is due and none that runs, over all users.

    Runs inside `all_users`.
    """
    running = Work.objects.filter(
        user=OuterRef("user"), status=Work.Status.RUNNING, claimed_until__gt=at
    )
    rows = Work.objects.filter(_is_due(at), ~Exists(running), kind__in=kinds, user__is_active=True)
    waiting = rows.values("user_id").annotate(since=Min("next_attempt_at")).order_by("since")
    return [row["user_id"] for row in waiting]


def _is_due(at: datetime) -> Q:
    waited = Q(status__in=(Work.Status.DUE, Work.Status.FAILED), next_attempt_at__lte=at)
    return waited | Q(status=Work.Status.RUNNING, claimed_until__lte=at)


def _end(work: Work, **values: object) -> None:
    ours = Work.objects.for_user(work.user_id).filter(
        pk=work.pk, status=Work.Status.RUNNING, claimed_until=work.claimed_until
    )
    if not ours.update(claimed_until=None, **values):
        raise ClaimLost("Somebody else has taken this work over.")
    work.claimed_until = None
    for name, value in values.items():
        setattr(work, name, value)
