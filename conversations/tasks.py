"""Celery entry points."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from conversations import collapse, sweep, turn
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import UserTask, all_users

log = structlog.get_logger(__name__)


@shared_task(base=UserTask)
def run_turn(user_id: str, turn_id: str) -> None:
    """Answer a turn. Never retried by itself: the person decides."""
    turn.run(user=accounts.user(user_id), turn_id=UUID(turn_id))


@shared_task(base=UserTask, throws=(MiraError,))
def collapse_segment(user_id: str, segment_id: str, quiet: bool = False) -> None:
    """Collapse one segment; after a failure it stays due and beat brings it back."""
    collapse.run(user=accounts.user(user_id), segment_id=UUID(segment_id), quiet=quiet)


@shared_task
def collapse_due_segments() -> None:
    """One task for each segment that is due."""
    with all_users("collapse of quiet segments", routine=True):
        found = collapse.due(at=timezone.now())
    for user_id, segment_id in found:
        collapse_segment.delay(str(user_id), str(segment_id), quiet=True)


@shared_task
def sweep_turns() -> None:
    """End turns of dead workers, queue lost ones again."""
    sweep.interrupt_lost(at=timezone.now())
    for user_id, turn_id in sweep.queued_too_long(at=timezone.now()):
        run_turn.delay(user_id, turn_id)


def start_collapses(user_id: UUID, segment_ids: Collection[UUID]) -> None:
    """Have segments collapse soon. Without the queue, beat finds them."""
    try:
        for segment_id in segment_ids:
            collapse_segment.delay(str(user_id), str(segment_id), quiet=True)
    except QueueUnavailable as error:
        log.warning("collapse.not_queued", reason=type(error).__name__)
