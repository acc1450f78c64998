"""Writes of the thread: the front door."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID, uuid5

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from conversations import (
    amending,
    attachments,
    collapse,
    events,
    presenting,
    reopening,
    selectors,
    stream,
    tasks,
    threads,
    veil,
    veil_words,
)
from conversations.constants import MESSAGE_MAX_CHARS, OFFLINE_MODEL
from conversations.events import Event
from conversations.models import Attachment, Message, Segment, Turn
from conversations.types import Afterlife, Deleted, Rederiving
from memory import services as memory
from mira_site.accounts import services as accounts
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, Conflict, EventsUnavailable

log = structlog.get_logger(__name__)

GO_ON = "Please go on."  # what a person says who asks for the rest of an answer


def accept_message(
    *,
    user: User,
    text: str,
    client_id: UUID,
    file_ids: Sequence[UUID] = (),
    off_record: bool = False,
) -> Turn:
    """Store a message of the person, open its turn and queue it. Stored first, whatever follows.

    A message of files alone needs no text. The same `client_id` again returns the turn it made.
    With `off_record`, or with a phrase that asks for it (veil_words.py), the veil is drawn before
    it. Raises BadRequest on empty or oversized text and for files that cannot go with it, Conflict
    while another turn is open.
    """
    text = _clean(text, may_be_blank=bool(file_ids))
    try:
        with transaction.atomic():
            return _accept(user, text, client_id, file_ids, off_record=off_record)
    except IntegrityError:
        # Two sends of one client_id met before either held the lock of a thread that was not there.
        known: Turn | None = Turn.objects.for_user(user).filter(client_id=client_id).first()
        if known is None:
            raise
        return known


def _accept(
    user: User, text: str, client_id: UUID, file_ids: Sequence[UUID], *, off_record: bool
) -> Turn:
    after = _last_event_id(user)
    thread = threads.lock_thread(user)
    in_the_way = Q(client_id=client_id) | Q(thread=thread, status__in=Turn.OPEN)
    turns: list[Turn] = list(Turn.objects.for_user(user).filter(in_the_way))
    for known in turns:
        if known.client_id == client_id:
            return known
    if turns:
        raise Conflict(
            "MIRA is still answering. Wait for the answer or stop it, then send this again."
        )
    now = timezone.now()
    is_off_record = _is_behind_veil(user, text, now, wished=off_record)
    segment, number = threads.active_segment(thread, at=now)
    turn: Turn = Turn.objects.create(
        user=user,
        thread=thread,
        segment=segment,
        client_id=client_id,
        number=number,
        is_off_record=is_off_record,
        queued_at=now,
        resume_after=after,
    )
    message = threads.append(thread, segment, turn=turn, role=Message.Role.USER, text=text, at=now)
    message.has_files = bool(file_ids)
    if file_ids:
        attachments.give(user, message, file_ids)
    if not is_off_record and accounts.record_use(user=user, at=now):
        memory.begin_use_day(user=user, at=now)
    log.info("message.accepted", turn=turn.short_id, characters=len(text), files=len(file_ids))
    transaction.on_commit(partial(_announce_and_queue, turn, message), robust=True)
    return turn


def _is_behind_veil(user: User, text: str, at: datetime, *, wished: bool) -> bool:
    """Draws or lifts the veil as the message asks. Its own words weigh more than the switch."""
    wish = veil_words.wish(text)
    if wish is False:
        veil.lift(user, at=at)
        return False
    if wish or wished:
        veil.draw(user, at=at)
        return True
    return veil.is_drawn(user)


def _clean(text: str, *, may_be_blank: bool = False) -> str:
    """NUL and half a surrogate pair cannot be stored; all else is kept as it was written."""
    text = text.replace("\x00", "").strip()
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not text and not may_be_blank:
        raise BadRequest("Write something first.", fields={"message": "This may not be blank."})
    if len(text) > MESSAGE_MAX_CHARS:
        detail = f"A message may have at most {MESSAGE_MAX_CHARS:,} characters."
        raise BadRequest(f"{detail} Send it in parts.", fields={"message": detail})
    return text


def _last_event_id(user: User) -> str:
    try:
        return stream.last_id(user.pk)
    except EventsUnavailable:
        return stream.START


def _announce_and_queue(turn: Turn, message: Message) -> None:
    body = {
        "client_id": str(turn.client_id),
        "attempt": turn.attempt,
        "message": presenting.message(message),
    }
    stream.publish(turn.user_id, Event(type=events.TURN_STARTED, turn_id=str(turn.pk), body=body))
    queue_turn(turn)


def keep_file(*, user: User, name: str, content: bytes) -> Attachment:
    """Keep an uploaded file until it is sent, for a day at most; see attachments.keep."""
    return attachments.keep(user, name=name, content=content, at=timezone.now())


def discard_file(*, user: User, file_id: UUID) -> None:
    """Delete a file that was not sent. Raises NotFound, Conflict."""
    attachments.discard(user, file_id)


def queue_turn(turn: Turn) -> None:
    """Hand a queued turn to the workers. If Redis is away the sweep queues it later."""
    try:
        tasks.run_turn.delay(str(turn.user_id), str(turn.pk))
    except QueueUnavailable as error:
        log.warning("turn.not_queued", turn=turn.short_id, reason=type(error).__name__)


@transaction.atomic
def stop_turn(*, user: User, turn_id: UUID) -> Turn:
    """Ask a turn to stop. What it has said so far is kept. Stopping an ended turn changes nothing.

    Raises NotFound.
    """
    threads.lock_thread(user)
    turn = threads.lock_turn(user, turn_id)
    now = timezone.now()
    if turn.status == Turn.Status.QUEUED:
        threads.close_turn(turn, status=Turn.Status.STOPPED, at=now)
        event = Event(
            type=events.TURN_STOPPED,
            turn_id=str(turn.pk),
            body={"message": None, "usage": presenting.usage(turn)},
        )
        transaction.on_commit(partial(stream.publish, user.pk, event), robust=True)
    elif turn.status == Turn.Status.RUNNING and turn.stop_requested_at is None:
        turn.stop_requested_at = now
        turn.save(update_fields=["stop_requested_at"])
    return turn


@transaction.atomic
def retry_turn(*, user: User, turn_id: UUID) -> Turn:
    """Answer a message again whose turn failed, was interrupted or stopped, or was only quoted on.

    Raises NotFound; Conflict if it is not the newest turn, was answered, or its segment has
    collapsed. Retrying an open turn changes nothing.
    """
    after = _last_event_id(user)
    thread = threads.lock_thread(user)
    turn = threads.lock_turn(user, turn_id)
    if turn.status in Turn.OPEN:
        return turn
    if turn.status not in Turn.RETRYABLE and turn.model != OFFLINE_MODEL:
        raise Conflict("This message was answered already. Send a new one to go on.")
    if thread.turns.filter(created_at__gt=turn.created_at).exists():
        raise Conflict("The conversation has moved on since. Send the message again instead.")
    if not turn.messages.filter(role=Message.Role.USER).exists():
        raise Conflict("The message was deleted. Send a new one to go on.")
    if turn.is_off_record and not veil.is_drawn(user):
        raise Conflict("What was said off the record is being erased. Send the message again.")
    if turn.segment.status != Segment.Status.ACTIVE:
        raise Conflict(
            "This part of the conversation was put to rest. Send the message again instead."
        )
    turn.messages.filter(role=Message.Role.ASSISTANT).delete()
    turn.attempt += 1
    turn.status, turn.queued_at, turn.resume_after = Turn.Status.QUEUED, timezone.now(), after
    turn.started_at = turn.heartbeat_at = turn.finished_at = turn.stop_requested_at = None
    turn.error_code = turn.error_detail = turn.model = ""
    turn.save()
    message = turn.messages.select_related("segment", "turn").get(role=Message.Role.USER)
    transaction.on_commit(partial(_announce_and_queue, turn, message), robust=True)
    return turn


def draw_veil(*, user: User) -> None:
    """What is said from now on is off the record; see veil.draw. Raises Conflict."""
    veil.draw(user, at=timezone.now())


def lift_veil(*, user: User) -> None:
    """Erase what was said off the record; see veil.lift. Lifting twice changes nothing."""
    veil.lift(user, at=timezone.now())


def continue_turn(*, user: User, turn_id: UUID) -> Turn:
    """Ask for the rest of an answer that met its limit; once, however often it is asked.

    Raises NotFound; Conflict if the answer is whole, or was followed by something else.
    """
    turn = selectors.turn(user, turn_id)
    client_id = uuid5(turn.pk, "continue")
    known: Turn | None = Turn.objects.for_user(user).filter(client_id=client_id).first()
    if known is not None:
        return known
    if not turn.messages.filter(role=Message.Role.ASSISTANT, is_cut=True).exists():
        raise Conflict("This answer is whole. Ask for more in your own words.")
    if turn.thread.turns.filter(created_at__gt=turn.created_at).exists():
        raise Conflict("The conversation has moved on since. Ask for the rest in your own words.")
    if turn.segment.status != Segment.Status.ACTIVE:
        raise Conflict("This part was put to rest. Ask for the rest in your own words.")
    return accept_message(user=user, text=GO_ON, client_id=client_id)


def delete_message(
    *, user: User, message_id: UUID, what_came_of_it: Afterlife | None, with_answer: bool
) -> Deleted:
    """Delete a message for good, with what came of it as the person says; see amending.delete."""
    return amending.delete(
        user, message_id, what_came_of_it=what_came_of_it, with_answer=with_answer
    )


def edit_message(
    *, user: User, message_id: UUID, text: str, what_came_of_it: Rederiving | None
) -> Message:
    """Change what the person said; see amending.edit. Raises BadRequest on empty or long text."""
    return amending.edit(user, message_id, text=_clean(text), what_came_of_it=what_came_of_it)


def collapse_now(*, user: User) -> Segment:
    """Put the active segment to rest without waiting for it to go quiet; queues the work.

    While a turn is open the wish is kept, and done once the turn has ended. Raises Conflict when
    there is nothing to collapse.
    """
    now = timezone.now()
    with transaction.atomic():
        threads.lock_thread(user)
        rows = Segment.objects.for_user(user).filter(status=Segment.Status.ACTIVE)
        segment: Segment | None = rows.first()
        if segment is None:
            raise Conflict("There is nothing to put to rest yet. Say something first.")
        if segment.turns.filter(status__in=Turn.OPEN).exists():
            rows.filter(collapse_asked_at__isnull=True).update(collapse_asked_at=now)
            return selectors.segment(user, segment.pk)
    if not collapse.close(user=user, segment_id=segment.pk, at=now):
        if not Segment.objects.for_user(user).filter(pk=segment.pk).exists():
            raise Conflict(
                "All of this was off the record, and is erased. Nothing is left to keep."
            )
        return collapse_now(user=user)  # a message came in between
    try:
        tasks.collapse_segment.delay(str(user.pk), str(segment.pk))
    except QueueUnavailable as error:
        log.warning("collapse.not_queued", segment=segment.short_id, reason=type(error).__name__)
    return selectors.segment(user, segment.pk)


def reopen_segment(*, user: User, segment_id: UUID) -> Segment:
    """Take the last collapse back, within ten minutes; see reopening.reopen."""
    reopening.reopen(user, segment_id, at=timezone.now())
    return selectors.segment(user, segment_id)


def collapse_again(*, user: User, segment_id: UUID) -> None:
    """Bring a collapse that failed back before its time."""
    Segment.objects.for_user(user).filter(pk=segment_id, status=Segment.Status.COLLAPSING).update(
        next_attempt_at=None
    )
    tasks.collapse_segment.delay(str(user.pk), str(segment_id))
