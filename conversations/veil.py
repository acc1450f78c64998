"""Off the record: what is said under the veil reads memory, never feeds it, and is erased.

The veil is drawn and lifted by the person. It lifts by itself an hour after its last message, and
before its segment collapses. Lifting is two steps that can both run again: the rows go in one
transaction, then the kept events. The row of the veil goes last, so that whatever a crash leaves is
found by it: a veil with `lifted_at` has something left to erase.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Max, Q

from conversations import events, peanut_gallery, presenting, stream, threads
from conversations.constants import VEIL_MINUTES
from conversations.events import Event
from conversations.models import Message, Segment, Thread, Turn, Veil
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import Conflict

log = structlog.get_logger(__name__)

DRAWN_TEXT = "Off the record from here on: nothing of it is remembered."
LIFTED_TEXT = "On the record again. What was said under the veil is erased."
STILL_ERASING = "What was said off the record is still being erased. Try again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    message_ids: tuple[UUID, ...]
    turn_ids: tuple[UUID, ...]


def drawn(user: User) -> Veil | None:
    found: Veil | None = Veil.objects.for_user(user).filter(lifted_at__isnull=True).first()
    return found


def is_drawn(user: User) -> bool:
    return drawn(user) is not None


def veil_state(user: User) -> dict[str, Any]:
    """As clients see it: whether it is drawn, since when, and when it lifts by itself."""
    return _state(drawn(user))


def _state(veil: Veil | None) -> dict[str, Any]:
    return {
        "is_drawn": veil is not None,
        "drawn_at": presenting.iso(veil.drawn_at) if veil else None,
        "lifts_at": presenting.iso(veil.lifts_at) if veil else None,
    }


@transaction.atomic
def draw(user: User, *, at: datetime) -> Veil:
    """What is said from now on is off the record. Drawing twice changes nothing.

    Raises Conflict while the last stretch is still being erased.
    """
    thread = threads.lock_thread(user)
    if there := drawn(user):
        return there
    if Veil.objects.for_user(user).exists():
        raise Conflict(STILL_ERASING)
    lifts_at = at + timedelta(minutes=VEIL_MINUTES)
    veil: Veil = Veil.objects.create(user=user, thread=thread, drawn_at=at, lifts_at=lifts_at)
    body = {"level": "veil", "text": DRAWN_TEXT, "veil": _state(veil)}
    event = Event(type=events.NOTICE, turn_id=None, body=body)
    transaction.on_commit(partial(stream.publish, user.pk, event), robust=True)
    log.info("veil.drawn")
    return veil


@transaction.atomic
def lift(user: User, *, at: datetime) -> bool:
    """End the stretch and erase all of it. False if no veil was drawn.

    A turn that is being answered under it is stopped, and erased when it has ended.
    """
    thread = threads.lock_thread(user)
    veil = drawn(user)
    if veil is None:
        return False
    veil.lifted_at = at
    veil.save(update_fields=["lifted_at"])
    _stop(thread, at=at)
    erased = _erase(user, thread)
    transaction.on_commit(partial(_finish, user, erased), robust=True)
    log.info("veil.lifted", messages=len(erased.message_ids))
    return True


def settle(user: User, *, at: datetime) -> None:
    """Lift the veil if its hour is over, and erase what an earlier lifting had to leave.

    Runs after each answer under it, in the process that answered and keeps what it looked for.
    """
    embeddings.forget_queries()
    with transaction.atomic():
        thread = threads.lock_thread(user)
        veil = drawn(user)
        is_answering = thread.turns.filter(status__in=Turn.OPEN, is_off_record=True).exists()
        if veil is not None and veil.lifts_at <= at and not is_answering:
            lift(user, at=at)
            return
        if Veil.objects.for_user(user).filter(lifted_at__isnull=False).exists():
            erased = _erase(user, thread)
            transaction.on_commit(partial(_finish, user, erased), robust=True)


def due(*, at: datetime) -> list[UUID]:
    """Ids of the users whose veil is to lift, or left something to erase. In `all_users`."""
    rows = Veil.objects.filter(Q(lifted_at__isnull=False) | Q(lifts_at__lte=at))
    return list(rows.order_by("lifts_at").values_list("user_id", flat=True).distinct())


def _stop(thread: Thread, *, at: datetime) -> None:
    """Nobody starts to answer what is being erased; who answers already hears of it."""
    open_ones = thread.turns.filter(is_off_record=True)
    open_ones.filter(status=Turn.Status.QUEUED).update(status=Turn.Status.STOPPED, finished_at=at)
    running = open_ones.filter(status=Turn.Status.RUNNING, stop_requested_at__isnull=True)
    running.update(stop_requested_at=at)


def _erase(user: User, thread: Thread) -> Erased:
    """Messages and turns of the stretch go, with tool calls, surfaced rows and files by cascade.

    What is being answered waits for its end. A segment of which nothing stays leaves no trace; of
    another the last message counts that was on the record.
    """
    turns = thread.turns.filter(is_off_record=True).exclude(status=Turn.Status.RUNNING)
    turn_ids = tuple(turns.values_list("id", flat=True))
    said = Message.objects.for_user(user).filter(thread=thread, is_off_record=True)
    messages = said.filter(Q(turn__in=turn_ids) | Q(turn__isnull=True))
    message_ids = tuple(messages.order_by("position").values_list("id", flat=True))
    segment_ids = set(messages.values_list("segment_id", flat=True))
    segment_ids |= set(turns.values_list("segment_id", flat=True))
    numbers = peanut_gallery.newest_numbers(user, segment_ids)
    Message.objects.for_user(user).filter(id__in=message_ids).delete()
    Turn.objects.for_user(user).filter(id__in=turn_ids).delete()
    peanut_gallery.turns_are_gone(user, numbers)
    _put_right(user, segment_ids)
    return Erased(message_ids=message_ids, turn_ids=turn_ids)


def _put_right(user: User, segment_ids: Collection[UUID]) -> None:
    rows = Segment.objects.for_user(user).filter(id__in=segment_ids)
    rows.filter(messages__isnull=True, turns__isnull=True).delete()
    for segment in rows.annotate(said_at=Max("messages__created_at")).defer("embedding"):
        if segment.said_at is not None:
            segment.last_message_at = segment.said_at
            segment.save(update_fields=["last_message_at"])


def _finish(user: User, erased: Erased) -> None:
    """The kept events go, the open pages hear of it, and the veil's row with its last message.

    Without Redis the row stays, and the sweep comes back to it.
    """
    embeddings.forget_queries()
    if not stream.forget(user.pk):
        return
    body = {
        "level": "resync",
        "text": LIFTED_TEXT,
        "deleted": list(map(str, erased.message_ids)),
        "deleted_turns": list(map(str, erased.turn_ids)),
        "veil": veil_state(user),
    }
    stream.publish(user.pk, Event(type=events.NOTICE, turn_id=None, body=body))
    with transaction.atomic():
        thread = threads.lock_thread(user)
        # As long as a lifted veil is there no other is drawn: whatever is left, is of this one.
        if not thread.turns.filter(is_off_record=True).exists():
            Veil.objects.for_user(user).filter(lifted_at__isnull=False).delete()
