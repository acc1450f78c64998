"""Who does which background work, and when it comes due.

To add a kind of work: a value of Work.Kind, a function `(user, work, now)` in its job module, and a
line in RUNNERS. The function does its step in one transaction that ends with `work.done(…)`; it may
run twice, and whatever it raises leaves the work due. `make_due` is called where the need arises,
or the line says every how many use-days.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from memory import curation, entities, entity_merging, reembedding, scores, work
from memory.constants import (
    CURATION_USE_DAYS,
    DATED_AHEAD_DAYS,
    DATED_PAST_DAYS,
    DATED_RESCORE_HOURS,
    WORK_PER_RUN,
)
from memory.models import Memory, Work
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import MiraError

log = structlog.get_logger(__name__)

SCORES = "scores"  # the one subject of rescoring: all of the person's memories


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """`run(user, work, now)` does one piece; `every_use_days` brings it due by itself."""

    run: Callable[[User, Work, datetime], None]
    every_use_days: int | None = None


@transaction.atomic
def rescore(user: User, job: Work, now: datetime) -> None:
    """Scores of all the person's memories, and what has faded or expired goes to the archive."""
    changed = scores.rescore(user, now=now)
    archived = scores.archive_faded(user, now=now)
    entities.collect_garbage(user, at=now)
    work.done(job, at=now)
    log.info("memories.rescored", changed=changed, faded=archived.faded, expired=archived.expired)


RUNNERS: dict[str, Runner] = {
    Work.Kind.RESCORE: Runner(run=rescore),
    Work.Kind.ENTITY_MERGE: Runner(run=entity_merging.run),
    Work.Kind.REEMBED: Runner(run=reembedding.run),
    Work.Kind.INTEGRATION: Runner(run=curation.integrate),
    Work.Kind.FLOOR: Runner(run=curation.floor, every_use_days=CURATION_USE_DAYS),
}


def begin_use_day(user: User, *, at: datetime) -> None:
    """A new use-day of the person began: their memories are a day older, and passes come due."""
    work.make_due(user, Work.Kind.RESCORE, SCORES, at, again=True)
    use_day = accounts.use_days(user)
    for kind, runner in RUNNERS.items():
        if runner.every_use_days and use_day % runner.every_use_days == 0:
            work.make_due(user, Work.Kind(kind), f"use-day {use_day}", at)


def users_due(*, at: datetime) -> list[UUID]:
    """Ids of the users with work to do now. Runs inside `all_users`."""
    return work.users_due(at=at, kinds=RUNNERS)


def users_with_dates(*, at: datetime) -> list[UUID]:
    """Ids of the users whose scores are old and hang on a date that is near or just past.

    What does not hang on a date changes on use-days only, and `begin_use_day` sees to that. Runs
    inside `all_users`.
    """
    near = Q(
        happens_at__gt=at - timedelta(days=DATED_PAST_DAYS),
        happens_at__lt=at + timedelta(days=DATED_AHEAD_DAYS),
    )
    dated = Memory.objects.live().filter(near | Q(expires_at__lte=at), user=OuterRef("pk"))
    fresh = Work.objects.filter(
        Q(finished_at__gt=at - timedelta(hours=DATED_RESCORE_HOURS)) | ~Q(status=Work.Status.DONE),
        user=OuterRef("pk"),
        kind=Work.Kind.RESCORE,
    )
    rows = User.objects.filter(~Exists(fresh), Exists(dated), is_active=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def run_due(user: User) -> int:
    """Do the person's work that is due; returns how many pieces were done.

    What fails with an error of ours is put off and the rest goes on. Any other error is a bug: its
    work is put off too, and the error goes on to the log; the rest waits for the next round.
    """
    count = 0
    for work_id in work.due_of(user, at=timezone.now(), kinds=RUNNERS, limit=WORK_PER_RUN):
        claimed = work.claim(user, work_id, at=timezone.now())
        if claimed is not None:
            count += _run(user, claimed)
    return count


def _run(user: User, claimed: Work) -> bool:
    try:
        RUNNERS[claimed.kind].run(user, claimed, timezone.now())
        work.done(claimed, at=timezone.now())
    except work.ClaimLost:
        log.warning("work.lost", kind=claimed.kind, work=claimed.short_id)
        return False
    except MiraError as error:
        return _put_off(claimed, error.code)
    except BaseException:
        _put_off(claimed, "internal")
        raise
    return True


def _put_off(claimed: Work, code: str) -> bool:
    """False: it is not done. A claim that was lost meanwhile is somebody else's to put off."""
    try:
        work.postpone(claimed, at=timezone.now(), error_code=code)
    except work.ClaimLost:
        log.warning("work.lost", kind=claimed.kind, work=claimed.short_id)
    return False
