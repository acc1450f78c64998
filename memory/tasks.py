"""Celery entry points."""

from __future__ import annotations

from uuid import UUID

import structlog
from celery import shared_task
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from memory import aging, index, reembedding, upkeep, work
from memory.models import Work
from mira_site.accounts import selectors as accounts
from mira_site.isolation import UserTask, all_users

log = structlog.get_logger(__name__)


@shared_task(base=UserTask)
def run_work(user_id: str) -> None:
    """Do what is due of one person's background work; what fails stays due."""
    upkeep.run_due(accounts.user(user_id))


@shared_task(base=UserTask)
def rescore_dated(user_id: str) -> None:
    """Bring a person's scores due and up to date, because a date has come nearer or gone by."""
    user = accounts.user(user_id)
    work.make_due(user, Work.Kind.RESCORE, upkeep.SCORES, timezone.now(), again=True)
    upkeep.run_due(user)


@shared_task(base=UserTask)
def archive_aged(user_id: str) -> None:
    """Put away a person's notes whose time is over."""
    aging.archive_aged(user=accounts.user(user_id), now=timezone.now())


@shared_task
def hand_out_aged() -> None:
    """One task for each person with notes whose time is over."""
    with all_users("notes whose time is over", routine=True):
        found = aging.users_due(at=timezone.now())
    for user_id in found:
        archive_aged.delay(str(user_id))


@shared_task
def delete_old_changes() -> None:
    """The log by which processes learn which memories changed, where no index asks for it now."""
    with all_users("changes of memories that all have seen", routine=True):
        index.delete_old_changes()


@shared_task
def hand_out_work() -> None:
    """One task for each person with work that is due."""
    with all_users("memory work that is due", routine=True):
        found = upkeep.users_due(at=timezone.now())
    for user_id in found:
        run_work.delay(str(user_id))


@shared_task
def rescore_dates() -> None:
    """One task for each person whose scores hang on a date and are a day old."""
    with all_users("scores tied to a date", routine=True):
        found = upkeep.users_with_dates(at=timezone.now())
    for user_id in found:
        rescore_dated.delay(str(user_id))


@shared_task(base=UserTask)
def reembed(user_id: str) -> None:
    """Bring a person's memories of another embedding model due, and make a start."""
    user = accounts.user(user_id)
    reembedding.make_due(user, at=timezone.now())
    upkeep.run_due(user)


@shared_task
def hand_out_reembedding() -> None:
    """One task for each person with memories of another embedding model."""
    with all_users("memories of another embedding model", routine=True):
        found = reembedding.users_waiting()
    for user_id in found:
        reembed.delay(str(user_id))


def start_work(user_id: UUID) -> None:
    """Have a person's due work done soon, after the commit. Without the queue, beat finds it."""
    # No partial: where a hook fails, Django logs its __qualname__, which a partial has not.
    transaction.on_commit(lambda: _start(str(user_id)), robust=True)


def _start(user_id: str) -> None:
    try:
        run_work.delay(user_id)
    except QueueUnavailable as error:
        log.warning("work.not_queued", reason=type(error).__name__)
