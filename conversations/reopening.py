"""The last collapse is taken back: the segment goes on, and what was made of it is withdrawn."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import structlog
from django.db import transaction

from conversations import events, presenting, stream, threads
from conversations.constants import REOPEN_MINUTES
from conversations.events import Event
from conversations.models import Message, Segment, Thread
from memory import services as memory
from mira_site.accounts.models import User
from mira_site.errors import Conflict, NotFound

log = structlog.get_logger(__name__)

REOPENED_TEXT = "This part goes on. What was made of it is withdrawn."
TOO_LATE = (
    f"A part can be opened again for {REOPEN_MINUTES} minutes, and these are over. Go on talking; "
    "the next part follows on from it."
)
MOVED_ON = "Something newer was said already, so this part stays as it is."
AT_WORK = "This part is being remembered right now. Try again in a minute."

# What a collapse writes, and how it is before one.
_BEFORE = {
    "status": Segment.Status.ACTIVE,
    "collapsed_at": None,
    "title": "",
    "precis": "",
    "trace": "",
    "complexity": None,
    "is_summary_by_model": False,
    "embedding": None,
    "embedding_model": "",
    "summarised_at": None,
    "summary_stale_at": None,
    "remembered_at": None,
    "claimed_until": None,
    "attempts": 0,
    "next_attempt_at": None,
    "error_code": "",
    "collapse_asked_at": None,
}


@transaction.atomic
def reopen(user: User, segment_id: UUID, *, at: datetime) -> None:
    """Make a segment active again as it was before its collapse, all or nothing.

    An active one stays as it is. Raises NotFound; Conflict if ten minutes are over, something
    newer was said, or somebody works on it or on what was made of it.
    """
    thread = threads.lock_thread(user)
    rows = Segment.objects.for_user(user).filter(pk=segment_id)
    segment: Segment | None = rows.first()
    if segment is None:
        raise NotFound("There is no such segment.")
    if segment.status == Segment.Status.ACTIVE:
        return
    _refuse(thread, segment, at=at)
    withdrawn = memory.withdraw_segment(user, segment_id)
    # Not locked before: whoever forgets holds the person's memories, and then wants the segment.
    unchanged = rows.filter(status=segment.status, claimed_until=segment.claimed_until)
    if not unchanged.update(**_BEFORE, reopened_at=at):
        raise Conflict(AT_WORK)
    Message.objects.for_user(user).filter(segment=segment_id).update(reread_due_at=None)
    forgotten = [str(memory_id) for memory_id in withdrawn.removed]
    transaction.on_commit(partial(_tell, user, segment_id, forgotten), robust=True)
    log.info("segment.reopened", segment=segment.short_id, memories=len(forgotten))


def _refuse(thread: Thread, segment: Segment, *, at: datetime) -> None:
    if segment.claimed_until is not None and segment.claimed_until > at:
        raise Conflict(AT_WORK)
    since = segment.collapsed_at
    if since is not None and at > since + timedelta(minutes=REOPEN_MINUTES):
        raise Conflict(TOO_LATE)
    if thread.segments.exclude(pk=segment.pk).filter(opened_at__gte=segment.opened_at).exists():
        raise Conflict(MOVED_ON)


def _tell(user: User, segment_id: UUID, forgotten: list[str]) -> None:
    """Open pages: the title goes, and memories that are no more under earlier answers."""
    segment = Segment.objects.for_user(user).get(pk=segment_id)
    body = {
        "level": "resync",
        "text": REOPENED_TEXT,
        "forgotten": forgotten,
        "segment": presenting.segment(segment),
    }
    stream.publish(user.pk, Event(type=events.NOTICE, turn_id=None, body=body))
