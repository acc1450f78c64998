"""Celery entry points."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import structlog
from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from conversations import (
    attachments,
    collapse,
    compaction,
    peanut_gallery,
    quotations,
    reembedding,
    selectors,
    sweep,
    tool_results,
    turn,
    veil,
)
from conversations.constants import COMPACTION_RAW_TURNS, COMPACTION_RAW_TURNS_HARD
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import UserTask, all_users

log = structlog.get_logger(__name__)


@shared_task(base=UserTask)
def run_turn(user_id: str, turn_id: str) -> None:
    """Answer a turn. Never retried by itself: the person decides."""
    answered = turn.run(user_id=UUID(user_id), turn_id=UUID(turn_id))
    if answered is not None:
        _follow_up(answered)


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


@shared_task(base=UserTask)
def settle_veil(user_id: str) -> None:
    """Lift a person's veil if its hour is over, and erase what was left to erase."""
    veil.settle(accounts.user(user_id), at=timezone.now())


@shared_task
def lift_veils() -> None:
    """One task for each person whose veil is to lift, or left something to erase."""
    with all_users("lifting of veils", routine=True):
        found = veil.due(at=timezone.now())
    for user_id in found:
        settle_veil.delay(str(user_id))


@shared_task
def delete_unsent_files() -> None:
    """Files that were uploaded a day ago and never sent."""
    with all_users("deletion of unsent files", routine=True):
        attachments.delete_unsent(at=timezone.now())


@shared_task
def delete_old_records() -> None:
    """What was composed and observed in segments that came to rest a month ago."""
    with all_users("deletion of old records of turns", routine=True):
        quotations.delete_old(at=timezone.now())


@shared_task(base=UserTask)
def reembed(user_id: str) -> None:
    """Make the vectors of some of a person's segments anew; the next task does the next ones."""
    if reembedding.write(accounts.user(user_id)):
        reembed.delay(user_id)


@shared_task
def hand_out_reembedding() -> None:
    """One task for each person with segments of another embedding model."""
    with all_users("segments of another embedding model", routine=True):
        found = reembedding.users_waiting()
    for user_id in found:
        reembed.delay(str(user_id))


@shared_task
def sweep_turns() -> None:
    """End turns of dead workers, queue lost ones again."""
    sweep.interrupt_lost(at=timezone.now())
    for user_id, turn_id in sweep.queued_too_long(at=timezone.now()):
        run_turn.delay(user_id, turn_id)


@shared_task(base=UserTask)
def compact(user_id: str, segment_id: str, raw_turns: int = COMPACTION_RAW_TURNS) -> None:
    """Tell the older part of a segment in short."""
    compaction.compact(accounts.user(user_id), UUID(segment_id), raw_turns=raw_turns)


@shared_task(base=UserTask)
def compact_results(user_id: str, turn_id: str) -> None:
    """Shorten the long results of a turn's tools for later prompts."""
    tool_results.compact(accounts.user(user_id), UUID(turn_id))


def _follow_up(answered: turn.Answered) -> None:
    """What a turn leaves to do once its answer is out. Without the queue it is left undone."""
    ended = answered.turn
    if ended.is_off_record:  # it may have been stopped because the veil was lifted
        veil.settle(ended.user, at=timezone.now())
    if collapse.is_asked_for(ended):
        start_collapses(ended.user_id, [ended.segment_id])
        return
    try:
        if answered.was_too_long:  # whatever was estimated, the model has had the last word
            compact.delay(str(ended.user_id), str(ended.segment_id), COMPACTION_RAW_TURNS_HARD)
        elif compaction.is_due(ended, selectors.prompt_tokens(ended)):
            compact.delay(str(ended.user_id), str(ended.segment_id))
        if tool_results.are_long(ended) and not ended.is_off_record:
            compact_results.delay(str(ended.user_id), str(ended.pk))
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
