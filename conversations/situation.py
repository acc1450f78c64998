"""Everything a prompt is composed of, gathered before it and kept after it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid5

from django.db import transaction
from django.utils import timezone

from conversations import (
    continuity,
    counting,
    file_blocks,
    peanut_gallery,
    quotations,
    subcortical,
    warmth,
)
from conversations.constants import LAST_WORDS_CHARS
from conversations.models import (
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Message,
    Observation,
    Turn,
)
from conversations.prompt import Composed, Section
from conversations.types import Continuity, PersonView, Prepared, TurnContext
from memory import selectors as memory
from memory.types import OpenQuestion, Recalled
from mira_site import tokens
from mira_site.accounts import selectors as accounts

REPLACED = [
    "sections",
    "tools",
    "first_position",
    "last_position",
    "history_tokens",
    "tokens",
    "counted_tokens",
    "effort",
    "composed_at",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What stands around a turn whatever the message is; `ratio` is that of counting.py."""

    continuity: Continuity
    open_question: OpenQuestion | None
    guidance: tuple[Observation, ...]
    ratio: float


def around(turn: Turn, history: Sequence[Message], *, now: datetime) -> Surroundings:
    """Of the turn that answers the last of `history`; can be read while a model is asked."""
    return Surroundings(
        continuity=continuity.continuity(
            turn.user, before=turn.segment.opened_at, known_at=warmth.since(history)
        ),
        open_question=_open_question(turn, accounts.local_now(turn.user, now)),
        guidance=tuple(peanut_gallery.active(turn)),
        ratio=counting.ratio(turn),
    )


def gather(
    turn: Turn,
    history: Sequence[Message],
    recalled: Sequence[Recalled],
    prepared: Prepared,
    brief: CompactionBrief | None,
    surroundings: Surroundings,
    *,
    now: datetime,
) -> TurnContext:
    """What trinkets may look at, for the newest message, which is the last of `history`."""
    local = accounts.local_now(turn.user, now)
    person = PersonView(
        name=turn.user.first_name or turn.user.username,
        timezone=str(accounts.zone(turn.user)),
        language=accounts.language(turn.user),
    )
    before = surroundings.continuity
    previous = history[-2].created_at if len(history) > 1 else None
    if previous is None and before.tail:
        previous = before.tail[-1].created_at
    return TurnContext(
        person=person,
        now=local,
        question=history[-1].text,
        files=tuple(file_blocks.names(history[-1])),
        continuity=before,
        surfaced=tuple(recalled),
        previous_message_at=previous,
        open_question=surroundings.open_question,
        complexity=prepared.complexity,
        number=turn.number,
        guidance=surroundings.guidance,
        brief=brief,
        last_words=_last_words(history),
        is_off_record=turn.is_off_record,
    )


def _open_question(turn: Turn, now: datetime) -> OpenQuestion | None:
    """The question of the day. Off the record nothing is asked whose answer would be kept."""
    if turn.is_off_record:
        return None
    return memory.open_question(turn.user, today=now.date(), now=now)


def _last_words(history: Sequence[Message]) -> str:
    """The end of the answer before the newest message, if it was cut."""
    before = history[-2] if len(history) > 1 else None
    return before.text[-LAST_WORDS_CHARS:] if before is not None and before.is_cut else ""


@transaction.atomic
def record(
    turn: Turn, *, prepared: Prepared | None, composed: Composed | None, counted_tokens: int
) -> None:
    """Keep what was understood and what was sent, for the page that shows it.

    `counted_tokens` is what the provider counted of the first request, 0 if it did not come to it.
    Nothing is kept of what is off the record; of what was forgotten or changed while the answer was
    written the shapes are kept, not the words.
    """
    if turn.is_off_record or (prepared is None and composed is None):
        return
    quotations.lock(turn.user_id)
    may_be_kept = quotations.may_be_kept(turn, composed.window if composed else ())
    if may_be_kept is None:
        return
    if prepared is not None and may_be_kept:
        subcortical.record(turn, prepared)
    if composed is not None:
        rows = [_row(turn, one) for one in composed.sections]
        if may_be_kept:
            ContextSection.objects.bulk_create(rows, ignore_conflicts=True)
        _store(turn, composed, rows, counted_tokens)


def _row(turn: Turn, section: Section) -> ContextSection:
    """A section alike in many turns of a segment is kept once: its id is made of what it is."""
    digest = hashlib.sha256(section.text.encode()).hexdigest()
    return ContextSection(
        pk=uuid5(turn.segment_id, f"{section.name} {digest}"),
        user_id=turn.user_id,
        segment_id=turn.segment_id,
        name=section.name,
        sha256=digest,
        text=section.text,
        tokens=tokens.estimate(section.text),
    )


def _store(
    turn: Turn, composed: Composed, rows: Sequence[ContextSection], counted_tokens: int
) -> None:
    """A retry replaces it."""
    positions = [one.position for one in composed.window if one.position is not None]
    context = ComposedContext(
        turn=turn,
        user_id=turn.user_id,
        sections=[
            {
                "id": str(row.pk),
                "name": row.name,
                "slot": section.slot.name.lower(),
                "tokens": row.tokens,
            }
            for row, section in zip(rows, composed.sections, strict=True)
        ],
        tools=[tool.name for tool in composed.request.tools],
        first_position=min(positions, default=None),
        last_position=max(positions, default=None),
        history_tokens=composed.history_tokens,
        tokens=composed.tokens,
        counted_tokens=counted_tokens,
        effort=composed.request.effort,
        composed_at=timezone.now(),
    )
    ComposedContext.objects.bulk_create(
        [context], update_conflicts=True, unique_fields=["turn"], update_fields=REPLACED
    )
    if any(row.name == "guidance" for row in rows):
        peanut_gallery.count_shown(turn)
