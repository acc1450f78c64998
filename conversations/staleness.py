"""Summaries that tell what was forgotten or changed are gone at once, and written anew.

Their segments are collapsing again: the collapse writes the summary from the messages, without the
forgotten passages, with its claims, its waits and its fallback.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Min, Value
from django.db.models.functions import Coalesce

from conversations import events, stream
from conversations.events import Event
from conversations.models import Segment, SurfacedMemory
from memory import services as memory
from mira_site.accounts.models import User

WHY_FORGOTTEN = "came up for words that were forgotten or changed since"


def make_stale(
    user: User, segment_ids: Collection[UUID], *, at: datetime, titles: Collection[UUID] = ()
) -> int:
    """Take the summaries of these segments away and have them written anew; of `titles` the titles
    too. An active segment has none yet. Returns how many.
    """
    rows = Segment.objects.for_user(user).exclude(status=Segment.Status.ACTIVE)
    rows.filter(id__in=titles).update(title="")
    return int(
        rows.filter(id__in=segment_ids).update(
            status=Segment.Status.COLLAPSING,
            precis="",
            trace="",
            embedding=None,
            embedding_model="",
            summarised_at=None,
            summary_stale_at=Coalesce("summary_stale_at", Value(at)),
            claimed_until=None,
            next_attempt_at=None,
            attempts=0,
            error_code="",
        )
    )


def written_anew(user: User, *, at: datetime) -> None:
    """A stale summary was written anew: what was forgotten before any other is done with."""
    stale = Segment.objects.for_user(user).filter(summary_stale_at__isnull=False)
    oldest = stale.aggregate(oldest=Min("summary_stale_at"))["oldest"]
    before = oldest - timedelta(microseconds=1) if oldest else at
    memory.finish_forgetting(user=user, before=before)


def forget_events(
    user_id: UUID,
    *,
    deleted: Collection[UUID] = (),
    edited: Collection[UUID] = (),
    forgotten: Collection[UUID] = (),
) -> None:
    """The kept events may quote it. Open pages hear which messages and memories to look at anew."""
    stream.forget(user_id)
    body = {
        "level": "resync",
        "text": "Something was forgotten or changed.",
        "deleted": [str(message_id) for message_id in deleted],
        "edited": [str(message_id) for message_id in edited],
        "forgotten": [str(memory_id) for memory_id in forgotten],
    }
    stream.publish(user_id, Event(type=events.NOTICE, turn_id=None, body=body))


def take_back_claims(user: User) -> None:
    """Whoever is writing a summary now has read what is being forgotten: they write nothing."""
    Segment.objects.for_user(user).filter(
        status=Segment.Status.COLLAPSING, claimed_until__isnull=False
    ).update(claimed_until=None, next_attempt_at=None)


def forget_reasons(user: User, surfaced_ids: Collection[UUID]) -> int:
    """Why these memories came up quotes what is gone: only the path stays. Returns how many."""
    rows = list(SurfacedMemory.objects.for_user(user).filter(pk__in=surfaced_ids))
    for row in rows:
        row.why = WHY_FORGOTTEN
        row.parts = {"path": row.parts["path"]} if row.parts.get("path") else {}
    SurfacedMemory.objects.for_user(user).bulk_update(rows, ["why", "parts"])
    return len(rows)
