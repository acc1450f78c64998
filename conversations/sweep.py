"""Turns that fell out of their worker's hands: found, ended or queued again."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Q

from conversations import events, presenting, stream, threads
from conversations.constants import TURN_LOST_S, TURN_REQUEUE_S
from conversations.events import Event
from conversations.models import Turn
from mira_site.isolation import acting_as, all_users

log = structlog.get_logger(__name__)

INTERRUPTED_DETAIL = "The answer broke off on this side. Your message is kept; try again."


def interrupt_lost(*, at: datetime) -> int:
    """End every running turn whose worker has been silent too long. Returns how many."""
    with all_users("sweep of lost turns", routine=True):
        lost = list(
            Turn.objects.filter(status=Turn.Status.RUNNING)
            .filter(
                Q(heartbeat_at__lt=at - timedelta(seconds=TURN_LOST_S))
                | Q(heartbeat_at__isnull=True)
            )
            .select_related("user")
        )
    for turn in lost:
        with acting_as(turn.user_id):
            _interrupt(turn, at)
    return len(lost)


@transaction.atomic
def _interrupt(turn: Turn, at: datetime) -> None:
    threads.lock_thread(turn.user)
    current = threads.lock_turn(turn.user, turn.pk)
    if current.status != Turn.Status.RUNNING or current.heartbeat_at != turn.heartbeat_at:
        return
    threads.close_turn(
        current,
        status=Turn.Status.INTERRUPTED,
        at=at,
        error_code="interrupted",
        error_detail=INTERRUPTED_DETAIL,
    )
    log.warning("turn.interrupted", turn=turn.short_id)
    event = Event(
        type=events.TURN_FAILED, turn_id=str(turn.pk), body={"error": presenting.error(current)}
    )
    transaction.on_commit(lambda: stream.publish(turn.user_id, event), robust=True)


def queued_too_long(*, at: datetime) -> list[tuple[str, str]]:
    """(user id, turn id) of queued turns whose task was lost, or stands in a long queue.

    Queuing a turn twice is harmless: it is claimed once.
    """
    with all_users("sweep of queued turns", routine=True):
        rows = Turn.objects.filter(
            status=Turn.Status.QUEUED, queued_at__lt=at - timedelta(seconds=TURN_REQUEUE_S)
        ).values_list("user_id", "id")
        return [(str(user_id), str(turn_id)) for user_id, turn_id in rows]
