"""A quiet segment becomes a trace and memories.

Steps: close (new messages open a new segment) → summarise → remember → complete. Each writes its
result in one transaction and can run twice. A step that fails leaves the segment collapsing and
due; nothing of it is lost, since the messages stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Value
from django.db.models.functions import Greatest
from django.db.models.lookups import GreaterThanOrEqual
from django.utils import timezone

from conversations import (
    compaction,
    events,
    file_blocks,
    passages,
    presenting,
    staleness,
    stream,
    summarising,
    threads,
    veil,
)
from conversations.constants import COLLAPSE_CLAIM_S, COLLAPSE_RETRY_S
from conversations.events import Event
from conversations.models import Message, Segment, Turn
from memory import services as memory
from memory.types import SourceMessage
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import MiraError
from mira_site.owned import OwnedQuerySet
from mira_site.webhooks import services as webhooks
from mira_site.webhooks.types import EventType

log = structlog.get_logger(__name__)


def due(*, at: datetime, quiet: bool = True) -> list[tuple[UUID, UUID]]:
    """(user id, segment id) of every segment that should collapse now, over all users.

    Quiet for as long as its person set, or wished for, with no turn open; or left in the middle of
    a collapse and not held back. With quiet=False every active segment counts as quiet. Runs inside
    `all_users`.
    """
    open_turns = Turn.objects.filter(segment=OuterRef("pk"), status__in=Turn.OPEN)
    has_gone_quiet = gone_quiet(at=at) if quiet else Q(status=Segment.Status.ACTIVE)
    was_left = (
        Q(status=Segment.Status.COLLAPSING)
        & (Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=at))
        & (Q(claimed_until__isnull=True) | Q(claimed_until__lte=at))
    )
    rows = Segment.objects.filter(has_gone_quiet | was_left).exclude(Exists(open_turns))
    return list(rows.order_by("opened_at").values_list("user_id", "id"))


def gone_quiet(*, at: datetime) -> Q:
    """Active segments whose person's quiet time is over, or who wished to wrap them up."""
    last_at = Greatest("last_message_at", "reopened_at")  # of PostgreSQL, which leaves out NULL
    is_over = GreaterThanOrEqual(Value(at), last_at + accounts.quiet_time("user"))
    return Q(status=Segment.Status.ACTIVE) & (Q(is_over) | Q(collapse_asked_at__isnull=False))


def is_asked_for(turn: Turn) -> bool:
    """Whether the person wished to wrap the turn's segment up while it ran."""
    rows = Segment.objects.for_user(turn.user_id).filter(pk=turn.segment_id)
    return bool(rows.filter(collapse_asked_at__isnull=False).exists())


def unread(*, at: datetime) -> list[tuple[UUID, UUID]]:
    """(user id, segment id) of every segment left in a collapse before it was read for memories.

    Those held back after a failure too, but none that somebody works on. Runs inside `all_users`.
    """
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=at)
    rows = Segment.objects.filter(
        free, status=Segment.Status.COLLAPSING, remembered_at__isnull=True
    )
    return list(rows.order_by("opened_at").values_list("user_id", "id"))


@transaction.atomic
def close(*, user: User, segment_id: UUID, at: datetime, quiet: bool = False) -> bool:
    """End an active segment: the next message opens a new one. False if it cannot end now.

    With quiet=True it ends only after the person's quiet time, unless they wished it while MIRA
    answered. What was off the record in it is erased first; if that was all, there is none.
    """
    threads.lock_thread(user)
    rows = Segment.objects.for_user(user).filter(pk=segment_id, status=Segment.Status.ACTIVE)
    segment = rows.select_for_update().first()
    if segment is None or segment.turns.filter(status__in=Turn.OPEN).exists():
        return False
    if quiet and segment.collapse_asked_at is None and not _is_quiet(user, segment, at=at):
        return False
    if segment.messages.filter(is_off_record=True).exists():
        veil.lift(user, at=at)  # one that was only drawn is for what comes next
    compaction.forget(user, [segment_id])
    return bool(rows.update(status=Segment.Status.COLLAPSING, collapse_asked_at=None))


def _is_quiet(user: User, segment: Segment, *, at: datetime) -> bool:
    """Nothing was said for the person's quiet time, nor was it opened again."""
    last_at = max(filter(None, (segment.last_message_at, segment.reopened_at)))
    return last_at <= at - timedelta(minutes=accounts.preferences(user).quiet_minutes)


def run(*, user: User, segment_id: UUID, quiet: bool = True) -> Segment | None:
    """Collapse one segment as far as possible; None if it is not due or somebody works on it.

    With quiet=True an active segment is closed only if it is still quiet. Raises MiraError after
    noting when to try again.
    """
    segment = _claim(user, segment_id, at=timezone.now(), quiet=quiet)
    if segment is None:
        return None
    try:
        if segment.summarised_at is None:
            _summarise(user, segment)
        if segment.remembered_at is None:
            _remember(user, segment)
        _reread(user, segment)
    except MiraError as error:
        _postpone(user, segment, error)
        raise
    _complete(user, segment)
    return segment


def _claim(user: User, segment_id: UUID, *, at: datetime, quiet: bool) -> Segment | None:
    rows = Segment.objects.for_user(user).filter(pk=segment_id)
    segment: Segment | None = rows.first()
    if segment is None or segment.status == Segment.Status.COLLAPSED:
        return None
    is_active = segment.status == Segment.Status.ACTIVE
    if is_active and not close(user=user, segment_id=segment_id, at=at, quiet=quiet):
        return None
    claimed_until = at + timedelta(seconds=COLLAPSE_CLAIM_S)
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=at)
    claimed = rows.filter(free, status=Segment.Status.COLLAPSING).update(
        claimed_until=claimed_until
    )
    if not claimed:
        return None
    segment = rows.get()
    segment.attempts += 1
    if segment.attempts > 1:
        # Whoever breaks or is killed notes nothing: the wait stands before what may be dear.
        segment.next_attempt_at = at + timedelta(seconds=_wait_s(segment.attempts))
    segment.save(update_fields=["attempts", "next_attempt_at"])
    return segment


def _wait_s(attempts: int) -> int:
    return COLLAPSE_RETRY_S[min(attempts, len(COLLAPSE_RETRY_S)) - 1]


def _save_step(user: User, segment: Segment, **values: object) -> None:
    """Write a step's result if the claim is still ours. A late worker writes nothing."""
    if not _claimed(user, segment).update(**values):
        raise summarising.ClaimLost("Another worker has taken this collapse over.")
    for name, value in values.items():
        setattr(segment, name, value)


def _claimed(user: User, segment: Segment) -> OwnedQuerySet:
    """The segment's row as long as the claim is ours; deleting, editing and forgetting take it."""
    rows: OwnedQuerySet = Segment.objects.for_user(user).filter(
        pk=segment.pk, claimed_until=segment.claimed_until, status=Segment.Status.COLLAPSING
    )
    return rows


def _is_ours(user: User, segment: Segment) -> bool:
    return bool(_claimed(user, segment).exists())


def _summarise(user: User, segment: Segment) -> None:
    summary = summarising.summarise(user, segment, passages.readable(user, segment.pk))
    is_anew = segment.summary_stale_at is not None
    with transaction.atomic():
        _save_step(
            user,
            segment,
            title=summary.title,
            precis=summary.precis,
            trace=summary.trace,
            complexity=summary.complexity,
            is_summary_by_model=summary.by_model,
            embedding=summary.embedding,
            embedding_model=embeddings.model_id(),
            summarised_at=timezone.now(),
            summary_stale_at=None,
        )
        if is_anew:
            staleness.written_anew(user, at=timezone.now())


def _remember(user: User, segment: Segment) -> None:
    at = timezone.now()
    messages = _sources(passages.readable(user, segment.pk))
    memory.remember(
        user=user,
        segment_id=segment.pk,
        messages=messages,
        at=at,
        is_current=partial(_is_ours, user, segment),
    )
    _save_step(user, segment, remembered_at=timezone.now())
    _were_read(user, segment, before=at)


def _reread(user: User, segment: Segment) -> None:
    """Messages that were changed since the segment was remembered."""
    at = timezone.now()
    changed = [one for one in passages.readable(user, segment.pk) if one.reread_due_at]
    if changed:
        memory.reread(
            user=user,
            segment_id=segment.pk,
            messages=_sources(changed),
            at=at,
            is_current=partial(_is_ours, user, segment),
        )
    _were_read(user, segment, before=at)


def _were_read(user: User, segment: Segment, *, before: datetime) -> None:
    Message.objects.for_user(user).filter(segment=segment, reread_due_at__lte=before).update(
        reread_due_at=None
    )


def _sources(messages: Sequence[Message]) -> list[SourceMessage]:
    """As memory reads them: what was said, and that files came with it, not what is in those."""
    return [
        SourceMessage(
            message_id=message.pk,
            segment_id=message.segment_id,
            role="user" if message.role == Message.Role.USER else "assistant",
            text="\n\n".join(filter(None, (message.text, file_blocks.mention(message)))),
            said_at=message.created_at,
        )
        for message in messages
    ]


def _postpone(user: User, segment: Segment, error: MiraError) -> None:
    wait_s = _wait_s(segment.attempts)
    log.warning("collapse.postponed", segment=segment.short_id, code=error.code, wait_s=wait_s)
    Segment.objects.for_user(user).filter(
        pk=segment.pk, claimed_until=segment.claimed_until
    ).update(
        claimed_until=None,
        next_attempt_at=timezone.now() + timedelta(seconds=wait_s),
        error_code=error.code,
    )


def _complete(user: User, segment: Segment) -> None:
    with transaction.atomic():
        _save_step(
            user,
            segment,
            status=Segment.Status.COLLAPSED,
            collapsed_at=segment.collapsed_at or timezone.now(),
            claimed_until=None,
            next_attempt_at=None,
            error_code="",
        )
        _tell(user, segment)
    log.info("segment.collapsed", segment=segment.short_id, attempts=segment.attempts)
    stream.publish(
        user.pk,
        Event(
            type=events.SEGMENT_COLLAPSED,
            turn_id=None,
            body={"segment": presenting.segment(segment)},
        ),
    )


def _tell(user: User, segment: Segment) -> None:
    """The person's webhooks: which one and when, not what it was about."""
    webhooks.emit(
        user,
        EventType.SEGMENT_COLLAPSED,
        {
            "segment": str(segment.pk),
            "opened_at": segment.opened_at.isoformat(),
            "last_message_at": segment.last_message_at.isoformat(),
            "is_summary_by_model": segment.is_summary_by_model,
        },
    )
