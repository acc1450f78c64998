"""The peanut gallery: every few turns somebody looks at the talk from outside, after the answer.

Mostly they say nothing. What they do say is a short advice for the next two turns of the same
segment; it is in no other prompt, changes no message, and the person sees it on the context page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F, Max, QuerySet, Value
from django.db.models.functions import Greatest
from django.utils import timezone
from pydantic import BaseModel, Field

from conversations import file_blocks, ledger, passages, quotations, threads
from conversations.constants import (
    GUIDANCE_TURNS,
    OBSERVED_EVERY_TURNS,
    OBSERVED_MESSAGES_MIN,
    OBSERVED_TURNS,
    OBSERVED_TURNS_LATE,
)
from conversations.models import Message, Observation, Segment, Turn
from mira_site.accounts.models import User
from mira_site.errors import WorkLeftDue
from mira_site.llm.jobs import Job, leave_due
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

log = structlog.get_logger(__name__)

GUIDANCE_MAX_CHARS = 600
FAILURE_MAX_CHARS = 400
PAST_SHOWN = 3
_TAG = re.compile(r"<[^>]{0,200}>")


class ObservationAnswer(BaseModel):
    """What an observer of the conversation advises, or that there is nothing to advise."""

    action: Literal["noop", "concern", "coaching", "initiative"] = "noop"
    severity: Literal["standard", "critical"] = "standard"
    failure: str = Field(
        default="", max_length=2_000, description="What went wrong, in a sentence."
    )
    evidence: list[str] = Field(
        default_factory=list, max_length=20, description="Ids of the messages it rests on: m3, m4."
    )
    guidance: str = Field(
        default="", max_length=2_000, description="What to do in the next answer, at most 80 words."
    )


OBSERVATION = Job(
    "observation", Tier.FAST, prompt=("conversations", "observation"), answer=ObservationAnswer
)


def is_due(turn: Turn) -> bool:
    """After every fifth answered turn of a segment, unless it is off the record or unwanted."""
    return (
        turn.status == Turn.Status.DONE
        and turn.number % OBSERVED_EVERY_TURNS == 0
        and not turn.is_off_record
        and bool(turn.user.preferences.get("observer", True))
    )


def observe(user: User, turn_id: UUID) -> Observation | None:
    """Look at the turns up to this one. None where there is nothing to look at, or nobody looks.

    Looking twice changes nothing, and a look that comes too late is dropped.
    """
    turn: Turn | None = (
        Turn.objects.for_user(user).select_related("segment").filter(pk=turn_id).first()
    )
    if turn is None or not is_due(turn) or not _is_fresh(turn):
        return None
    seen = Observation.objects.for_user(user).filter(segment=turn.segment)
    if seen.filter(turn_number=turn.number).exists():
        return None
    messages = _messages(user, turn)
    if len(messages) < OBSERVED_MESSAGES_MIN:
        return None
    found = ledger.evidence(messages)
    try:
        answer = OBSERVATION.ask(
            {
                "transcript": found.transcript,
                "ledger": found.ledger,
                "before": _before(seen, turn.number),
            },
            otherwise=leave_due,
        )
    except WorkLeftDue:
        log.info("step.skipped", step="peanut_gallery")
        return None
    return _stored(user, turn, _settled(answer, found), read=messages)


def _settled(answer: ObservationAnswer, found: ledger.Evidence) -> ObservationAnswer:
    """Advice that says nothing, or rests on nothing that was seen, is none."""
    guidance = plain(answer.guidance, GUIDANCE_MAX_CHARS)
    evidence = [name for name in answer.evidence if name in found.names]
    if answer.action == "noop" or not guidance or not evidence:
        return ObservationAnswer()
    return ObservationAnswer(
        action=answer.action,
        severity="standard" if answer.action == "initiative" else answer.severity,
        failure=plain(answer.failure, FAILURE_MAX_CHARS),
        evidence=[str(found.names[name].pk) for name in evidence],
        guidance=guidance,
    )


def _stored(
    user: User, turn: Turn, answer: ObservationAnswer, *, read: Sequence[Message]
) -> Observation | None:
    """The observation, unless the talk has gone on without it, or what it read was changed."""
    try:
        with transaction.atomic():
            threads.lock_thread(user)
            quotations.lock(user.pk)
            if not _is_fresh(turn) or _texts(_messages(user, turn)) != _texts(read):
                log.info("observation.dropped", turn=turn.short_id)
                return None
            row: Observation = Observation.objects.create(
                user=user,
                segment=turn.segment,
                turn=turn,
                action=answer.action,
                severity=answer.severity,
                failure=answer.failure,
                guidance=answer.guidance,
                evidence_ids=answer.evidence,
                turn_number=turn.number,
                expires_after_turn=_newest_number(turn.segment) + GUIDANCE_TURNS,
                created_at=timezone.now(),
            )
    except IntegrityError:  # somebody else has looked at this very turn
        return None
    log.info("observation.made", action=row.action, severity=row.severity, turn=turn.short_id)
    return row


def _is_fresh(turn: Turn) -> bool:
    """Whether the segment is still talked in, and not far beyond the turn."""
    segment = Segment.objects.for_user(turn.user_id).filter(pk=turn.segment_id)
    if not segment.filter(status=Segment.Status.ACTIVE).exists():
        return False
    return _newest_number(turn.segment) - turn.number <= OBSERVED_TURNS_LATE


def _newest_number(segment: Segment) -> int:
    return threads.next_number(segment) - 1


def _messages(user: User, turn: Turn) -> list[Message]:
    """Of the last turns, oldest first, without what was forgotten or said off the record."""
    rows = (
        Message.objects.for_user(user)
        .filter(
            segment_id=turn.segment_id,
            turn__number__gt=turn.number - OBSERVED_TURNS,
            turn__number__lte=turn.number,
            is_off_record=False,
        )
        .defer("search_vector")
        .select_related("turn")
        .prefetch_related("turn__tool_calls", "forgotten", "attachments")
        .order_by("position")
    )
    messages = list(rows)
    for message in messages:
        message.text = passages.read(message)
    return [one for one in messages if one.text.strip() or file_blocks.names(one)]


def _texts(messages: Sequence[Message]) -> list[tuple[UUID, str]]:
    return [(message.pk, message.text) for message in messages]


def _before(seen: QuerySet[Observation], number: int) -> str:
    """Its own last advice, so that it does not say the same again."""
    rows = seen.exclude(action=Observation.Action.NOOP).order_by("-turn_number")[:PAST_SHOWN]
    lines = [
        f'<advice turns_ago="{number - row.turn_number}" action="{row.action}">'
        f"{quoted(row.guidance)}</advice>"
        for row in reversed(rows)
    ]
    return "\n".join(lines) or "none so far"


def plain(text: str, most: int) -> str:
    """One line without elements, cut at a word."""
    flat = " ".join(_TAG.sub(" ", text).split())
    return flat if len(flat) <= most else flat[:most].rsplit(" ", 1)[0]


# --- For the prompt ----------------------------------------------------------------------------
def active(turn: Turn) -> list[Observation]:
    """Advice for this turn, oldest first."""
    return list(_advising(turn).order_by("turn_number"))


def count_shown(turn: Turn) -> None:
    """The advice for this turn was in its prompt."""
    _advising(turn).update(shown_count=F("shown_count") + 1)


def newest_numbers(user: User, segment_ids: Collection[UUID]) -> dict[UUID, int]:
    """The number of the last turn of each segment, for `turns_are_gone`."""
    rows = Turn.objects.for_user(user).filter(segment__in=segment_ids).order_by()
    return dict(rows.values_list("segment_id").annotate(newest=Max("number")))


def turns_are_gone(user: User, before: Mapping[UUID, int]) -> None:
    """Turns were erased or deleted; `before` are the last numbers until then.

    The next turns bear the numbers of those that were the last, and advice which was in them has so
    many fewer ahead of it.
    """
    after = newest_numbers(user, before.keys())
    for segment_id, newest in before.items():
        gone = newest - after.get(segment_id, 0)
        if gone > 0:
            rows = Observation.objects.for_user(user).filter(segment=segment_id)
            rows.update(expires_after_turn=Greatest(F("expires_after_turn") - gone, Value(0)))


def _advising(turn: Turn) -> QuerySet[Observation]:
    rows: QuerySet[Observation] = Observation.objects.for_user(turn.user_id).filter(
        segment_id=turn.segment_id,
        turn_number__lt=turn.number,
        expires_after_turn__gte=turn.number,
    )
    return rows.exclude(action=Observation.Action.NOOP)
