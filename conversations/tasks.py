"""Celery entry points."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from conversations import attachments, collapse, compaction, peanut_gallery, selectors, sweep, turn
from conversations.models import Turn
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import UserTask, all_users

log = structlog.get_logger(__name__)


@shared_task(base=UserTask)
def run_turn(user_id: str, turn_id: str) -> None:
    """Answer a turn. Never retried by itself: the person decides."""
    ended = turn.run(user=accounts.user(user_id), turn_id=UUID(turn_id))
    if ended is not None:
        _follow_up(ended)


@shared_task(base=UserTask)
def observe(user_id: str, turn_id: str) -> None:
    """Have the peanut gallery look at the talk up to this turn."""
    peanut_gallery.observe(accounts.user(user_id), UUID(turn_id))


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
def delete_unsent_files() -> None:
    """Files that were uploaded a day ago and never sent."""
    with all_users("deletion of unsent files", routine=True):
        attachments.delete_unsent(at=timezone.now())


@shared_task
def sweep_turns() -> None:
    """End turns of dead workers, queue lost ones again."""
    sweep.interrupt_lost(at=timezone.now())
    for user_id, turn_id in sweep.queued_too_long(at=timezone.now()):
        run_turn.delay(user_id, turn_id)


@shared_task(base=UserTask)
def compact(user_id: str, segment_id: str) -> None:
    """Tell the older part of a segment in short."""
    compaction.compact(accounts.user(user_id), UUID(segment_id))


def _follow_up(ended: Turn) -> None:
    """What a turn leaves to do once its answer is out. Without the queue it is left undone."""
    try:
        if compaction.is_due(ended, selectors.prompt_tokens(ended)):
            compact.delay(str(ended.user_id), str(ended.segment_id))
        if peanut_gallery.is_due(ended):
            observe.delay(str(ended.user_id), str(ended.pk))
    except QueueUnavailable as error:
        log.warning("turn.not_followed_up", reason=type(error).__name__)


def start_collapses(user_id: UUID, segment_ids: Collection[UUID]) -> None:
    """Have segments collapse soon. Without the queue, beat finds them."""
    try:
        for segment_id in segment_ids:
            collapse_segment.delay(str(user_id), str(segment_id), quiet=True)
    except QueueUnavailable as error:
        log.warning("collapse.not_queued", reason=type(error).__name__)
