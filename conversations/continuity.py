"""What a segment goes on from: traces of the last ones, names of more, and the last words said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Subquery

from conversations.constants import (
    HINTED_MAX,
    MANIFEST_SEGMENTS,
    SUMMARY_WINDOW,
    TAIL_PAIRS,
    TOLD_COMPLEXITY,
    TOLD_MAX,
)
from conversations.models import Message, Segment
from conversations.types import Continuity, Summary
from mira_site.accounts.models import User

_COLUMNS = ("id", "opened_at", "last_message_at", "title", "precis", "trace", "complexity")


def continuity(user: User, *, before: datetime, known_at: datetime) -> Continuity:
    """For a segment that opened at `before`, with the summaries that were written until `known_at`.

    Later ones have arrived while it was talked in: they are told apart, so that the rest stays.
    """
    rows = _summaries(user, before=before)
    known = [one for one, written_at in rows if written_at <= known_at]
    newest = known[:MANIFEST_SEGMENTS]
    told, hinted = chosen(newest[:SUMMARY_WINDOW])
    return Continuity(
        told=tuple(reversed(told)),
        hinted=tuple(reversed(hinted)),
        manifest=tuple(newest),
        arrived=tuple(
            one for one, written_at in reversed(rows[:TOLD_MAX]) if written_at > known_at
        ),
        tail=tuple(_tail(user, before=before)),
    )


def chosen(newest: Sequence[Summary]) -> tuple[list[Summary], list[Summary]]:
    """Of summaries, newest first, those told whole and those told by their precis (pure).

    Whole as long as their complexities together stay in the budget, the first one always; then as
    many more by precis, those without one skipped. Source: spec conversations 3.6.
    """
    told: list[Summary] = []
    weight = 0.0
    for one in newest:
        if told and (len(told) == TOLD_MAX or weight + one.complexity > TOLD_COMPLEXITY):
            break
        told.append(one)
        weight += one.complexity
    hinted = [one for one in newest[len(told) :] if one.precis]
    return told, hinted[:HINTED_MAX]


def _summaries(user: User, *, before: datetime) -> list[tuple[Summary, datetime]]:
    """Newest first, each with the moment at which it was written."""
    rows = (
        Segment.objects.for_user(user)
        .filter(summarised_at__isnull=False, opened_at__lt=before)
        .order_by("-opened_at", "-id")
        .values_list(*_COLUMNS, "summarised_at")[: MANIFEST_SEGMENTS + TOLD_MAX]
    )
    return [
        (
            Summary(
                segment_id=row[0],
                opened_at=row[1],
                last_message_at=row[2],
                title=row[3],
                precis=row[4],
                trace=row[5],
                complexity=2.0 if row[6] is None else row[6],
            ),
            row[7],
        )
        for row in rows
    ]


def _tail(user: User, *, before: datetime) -> list[Message]:
    """The last pairs of the segment before, the very last answer among them."""
    last = (
        Segment.objects.for_user(user)
        .filter(opened_at__lt=before)
        .order_by("-opened_at", "-id")
        .values("id")[:1]
    )
    rows = (
        Message.objects.for_user(user)
        .filter(segment=Subquery(last), is_off_record=False)
        .exclude(text="")
        .defer("search_vector", "content")
        .prefetch_related("forgotten")
        .order_by("-position")[: 2 * TAIL_PAIRS]
    )
    return list(reversed(rows))
