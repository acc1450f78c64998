"""A message of the past is deleted or changed, and what came of it with it, as the person says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from conversations import passages, peanut_gallery, quotations, staleness, tasks, threads
from conversations.aftermath import what_came_of
from conversations.models import (
    ForgottenPassage,
    Message,
    Segment,
    SurfacedMemory,
    Thread,
    ToolCall,
    Turn,
)
from conversations.passages import Span
from conversations.types import Afterlife, Deleted, Rederiving
from memory import services as memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, Conflict

log = structlog.get_logger(__name__)

EDITED = "message edited"


@transaction.atomic
def delete(
    user: User, message_id: UUID, *, what_came_of_it: Afterlife | None, with_answer: bool
) -> Deleted:
    """Delete a message, and MIRA's answer to it if wanted.

    Memories that rest on it alone are forgotten or kept; others only lose it as a source. Raises
    NotFound; Conflict while MIRA answers, or if there are such memories and nobody said which.
    """
    thread = _quiet_thread(user)
    came = what_came_of(user, message_id)
    alone = came.resting.alone
    if alone and what_came_of_it is None:
        raise Conflict(
            "Memories rest on this message alone. Say with what_came_of_it whether to forget or "
            "to keep them."
        )
    doomed = [came.message, *([came.answer] if came.answer and with_answer else [])]
    ids = tuple(one.pk for one in doomed)
    is_forgotten = bool(alone) and what_came_of_it == "forget"
    receipt = None
    if is_forgotten:
        receipt = memory.forget_all(user=user, memory_ids=[one.pk for one in alone])
    memory.drop_sources(user=user, message_ids=ids)
    _forget_reasons(user, came.message)
    for one in doomed:
        quotations.message_changed(user, one, one.text)
    if any(one.role == Message.Role.ASSISTANT for one in doomed):
        ToolCall.objects.for_user(user).filter(turn=came.message.turn_id).delete()
    Message.objects.for_user(user).filter(pk__in=ids).delete()
    _leave_no_husk(user, came.message)
    _settle(user, thread, came.message.segment, at=timezone.now(), deleted=ids)
    log.info("messages.deleted", messages=len(ids), forgotten=len(alone) if is_forgotten else 0)
    return Deleted(
        message_ids=ids,
        forgotten=len(alone) if is_forgotten else 0,
        kept=len(came.resting.among_others) + (0 if is_forgotten else len(alone)),
        receipt=receipt,
    )


@transaction.atomic
def edit(user: User, message_id: UUID, *, text: str, what_came_of_it: Rederiving | None) -> Message:
    """Change what the person said; the text is clean already. The same text changes nothing.

    Memories that rest on it alone are archived and derived anew, forgotten and derived anew, or
    kept. Raises NotFound; BadRequest for a message of MIRA's; Conflict while MIRA answers, or if
    there are such memories and nobody said which.
    """
    thread = _quiet_thread(user)
    came = what_came_of(user, message_id)
    message = came.message
    if message.role != Message.Role.USER:
        raise BadRequest("Only your own messages can be edited.")
    if message.text == text:
        return message
    alone = [one for one in came.resting.alone if one.archived_at is None]
    if alone and what_came_of_it is None:
        raise Conflict(
            "Memories rest on this message alone. Say with what_came_of_it whether to derive them "
            "anew, forget or keep them."
        )
    before = _forgotten_texts(message)
    if what_came_of_it == "forget" and came.resting.alone:
        memory.forget_all(user=user, memory_ids=[one.pk for one in came.resting.alone])
    elif what_came_of_it == "derive":
        for one in alone:
            memory.archive(user=user, memory_id=one.pk, reason=EDITED)
    now = timezone.now()
    said_before = message.text
    message.text, message.edited_at = text, now
    message.content = [{"type": "text", "text": text}]
    if message.segment.remembered_at is not None and what_came_of_it != "keep":
        message.reread_due_at = now
    message.save(update_fields=["text", "content", "edited_at", "reread_due_at"])
    _carry_over(user, message, before)
    memory.message_changed(user=user, message_id=message.pk, text=passages.read(message))
    _forget_reasons(user, message)
    quotations.message_changed(user, message, said_before)
    _settle(user, thread, message.segment, at=now, edited=[message.pk])
    log.info("message.edited", message=message.short_id, came_of_it=what_came_of_it)
    return message


def _quiet_thread(user: User) -> Thread:
    """The thread, locked, and the person's memories: what is being stored of a message counts too.

    Raises Conflict while a turn is open: its prompt holds the thread.
    """
    thread = threads.lock_thread(user)
    if thread.turns.filter(status__in=Turn.OPEN).exists():
        raise Conflict("MIRA is still answering. Wait for the answer or stop it first.")
    memory.hold(user)
    return thread


def _forget_reasons(user: User, message: Message) -> None:
    """Memories came up for its words, in its own turn and in those that looked back at it."""
    rows = SurfacedMemory.objects.for_user(user).filter(
        turn__segment=message.segment,
        turn__messages__position__gte=message.position,
    )
    staleness.forget_reasons(user, list(rows.values_list("pk", flat=True).distinct()))


def _leave_no_husk(user: User, message: Message) -> None:
    """A turn without messages goes, and a segment without messages, with all that told of it."""
    if message.turn_id is not None:
        turns = Turn.objects.for_user(user).filter(pk=message.turn_id)
        numbers = peanut_gallery.newest_numbers(user, [message.segment_id])
        turns.filter(messages__isnull=True).delete()
        peanut_gallery.turns_are_gone(user, numbers)
    segments = Segment.objects.for_user(user).filter(pk=message.segment_id)
    segments.filter(messages__isnull=True).delete()


def _settle(
    user: User,
    thread: Thread,
    segment: Segment,
    *,
    at: datetime,
    deleted: Collection[UUID] = (),
    edited: Collection[UUID] = (),
) -> None:
    """The segment's summary is written anew, and open pages hear what changed."""
    ids = [segment.pk]
    touched = ids if staleness.make_stale(user, ids, at=at, titles=ids) else []

    def follow_up() -> None:
        staleness.forget_events(thread.user_id, deleted=deleted, edited=edited)
        tasks.start_collapses(thread.user_id, touched)

    transaction.on_commit(follow_up, robust=True)


def _forgotten_texts(message: Message) -> list[str]:
    return [message.text[row.start : row.end] for row in message.forgotten.all()]


def _carry_over(user: User, message: Message, forgotten: Sequence[str]) -> None:
    """What was forgotten of the message before stays so where the new text still says it."""
    ForgottenPassage.objects.for_user(user).filter(message=message).delete()
    starts = ((message.text.find(passage), passage) for passage in forgotten)
    passages.store(
        user,
        [
            (message.pk, Span(start, start + len(passage)))
            for start, passage in starts
            if start >= 0
        ],
    )
