"""What MIRA saw in a turn: the prompt section by section, and all that stood around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery

from conversations import selectors
from conversations.models import (
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Message,
    Observation,
    Segment,
    SubcorticalRecord,
    Turn,
)
from memory import selectors as memory
from memory.types import Memory
from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.llm.models import ModelCall


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSection:
    """A section of the prompt; `text` is None where it was deleted since, being forgotten."""

    name: str
    slot: str
    tokens: int
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one job cost in the turn, its calls added up."""

    job: str
    model: str
    calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost: Decimal
    took_ms: int
    failed: int

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cache_share(self) -> float:
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A turn with what was kept of it; `composed` is None where no prompt was kept, or not yet.

    `messages` went along, oldest first. `memories` are those that its subcortical record names.
    `advice` was in force, oldest first; `past` are the segment's other observations up to here,
    newest first. `older` and `newer` are the turns beside it.
    """

    turn: Turn
    asked: Message | None
    reply: Message | None
    composed: ComposedContext | None
    sections: tuple[SeenSection, ...]
    messages: tuple[Message, ...]
    subcortical: SubcorticalRecord | None
    memories: Mapping[UUID, Memory]
    advice: tuple[Observation, ...]
    past: tuple[Observation, ...]
    brief: CompactionBrief | None
    spent: tuple[Spent, ...]
    older: UUID | None
    newer: UUID | None

    @property
    def cost(self) -> Decimal:
        return sum((one.cost for one in self.spent), Decimal(0))

    @property
    def tools_tokens(self) -> int:
        """What describing the tools took, by our estimate: the rest of the whole."""
        if self.composed is None:
            return 0
        told = self.composed.history_tokens + sum(one.tokens for one in self.sections)
        return max(0, self.composed.tokens - told)


def newest(user: User) -> UUID | None:
    """The turn that was asked last, of those that are on the record."""
    rows = Turn.objects.for_user(user).filter(is_off_record=False)
    found: UUID | None = rows.order_by("-created_at").values_list("pk", flat=True).first()
    return found


def seen(user: User, turn_id: UUID) -> Seen:
    """Raises NotFound."""
    turn: Turn | None = (
        Turn.objects.for_user(user).select_related("segment", "user").filter(pk=turn_id).first()
    )
    if turn is None:
        raise NotFound("There is no such turn.")
    said = {one.role: one for one in turn.messages.defer("search_vector", "content")}
    composed = ComposedContext.objects.for_user(user).filter(turn=turn).first()
    subcortical = SubcorticalRecord.objects.for_user(user).filter(turn=turn).first()
    advice, past = _observations(turn)
    older, newer = _beside(turn)
    return Seen(
        turn=turn,
        asked=said.get(Message.Role.USER),
        reply=said.get(Message.Role.ASSISTANT),
        composed=composed,
        sections=_sections(user, composed),
        messages=_messages(turn, composed),
        subcortical=subcortical,
        memories=_memories(user, subcortical),
        advice=advice,
        past=past,
        brief=selectors.brief(turn),
        spent=_spent(turn),
        older=older,
        newer=newer,
    )


def active_brief(user: User) -> tuple[CompactionBrief, UUID] | None:
    """The brief of the segment that is being talked in, and the id of the last message it tells."""
    last = Message.objects.for_user(user).filter(
        segment_id=OuterRef("segment_id"), position__lte=OuterRef("covered_to_position")
    )
    row: CompactionBrief | None = (
        CompactionBrief.objects.for_user(user)
        .filter(segment__status=Segment.Status.ACTIVE)
        .annotate(last_id=Subquery(last.order_by("-position").values("pk")[:1]))
        .exclude(last_id=None)
        .first()
    )
    return (row, row.last_id) if row else None  # type: ignore[attr-defined]  # annotated


def _sections(user: User, composed: ComposedContext | None) -> tuple[SeenSection, ...]:
    if composed is None:
        return ()
    ids = [one["id"] for one in composed.sections]
    rows = ContextSection.objects.for_user(user).filter(pk__in=ids)
    texts = {str(pk): text for pk, text in rows.values_list("pk", "text")}
    return tuple(
        SeenSection(
            name=one["name"], slot=one["slot"], tokens=one["tokens"], text=texts.get(one["id"])
        )
        for one in composed.sections
    )


def _messages(turn: Turn, composed: ComposedContext | None) -> tuple[Message, ...]:
    if composed is None or composed.first_position is None:
        return ()
    rows = Message.objects.for_user(turn.user_id).filter(
        segment_id=turn.segment_id,
        position__gte=composed.first_position,
        position__lte=composed.last_position,
        is_off_record=False,
    )
    return tuple(rows.defer("search_vector", "content").order_by("position"))


def _memories(user: User, record: SubcorticalRecord | None) -> Mapping[UUID, Memory]:
    if record is None or not (record.kept_ids or record.offered_ids):
        return {}
    rows = memory.memories(user, archived=None).filter(
        pk__in=[*record.kept_ids, *record.offered_ids]
    )
    return {row.pk: row for row in rows.prefetch_related(None)}


def _observations(turn: Turn) -> tuple[tuple[Observation, ...], tuple[Observation, ...]]:
    rows = Observation.objects.for_user(turn.user_id).filter(
        segment_id=turn.segment_id, turn_number__lte=turn.number
    )
    advice, past = [], []
    for row in rows.order_by("turn_number"):
        is_in_force = row.turn_number < turn.number <= row.expires_after_turn
        if is_in_force and row.action != Observation.Action.NOOP:
            advice.append(row)
        else:
            past.append(row)
    return tuple(advice), tuple(reversed(past))


def _spent(turn: Turn) -> tuple[Spent, ...]:
    """By job, in the order in which they were begun."""
    rows = ModelCall.objects.for_user(turn.user_id).filter(turn_id=turn.pk).order_by("created_at")
    by_job: dict[str, list[ModelCall]] = {}
    for row in rows:
        by_job.setdefault(row.job, []).append(row)
    return tuple(_added(job, calls) for job, calls in by_job.items())


def _added(job: str, calls: Sequence[ModelCall]) -> Spent:
    return Spent(
        job=job,
        model=calls[-1].model,
        calls=len(calls),
        input_tokens=sum(call.input_tokens for call in calls),
        cache_read_tokens=sum(call.cache_read_tokens for call in calls),
        cache_write_tokens=sum(call.cache_write_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cost=sum((call.cost for call in calls), Decimal(0)),
        took_ms=sum(call.took_ms for call in calls),
        failed=sum(call.outcome != ModelCall.Outcome.OK for call in calls),
    )


def _beside(turn: Turn) -> tuple[UUID | None, UUID | None]:
    """The turns before and after it, on the record."""
    rows = Turn.objects.for_user(turn.user_id).filter(thread_id=turn.thread_id, is_off_record=False)
    at, ids = turn.created_at, rows.exclude(pk=turn.pk).values_list("pk", flat=True)
    before, after = Q(created_at__lt=at), Q(created_at__gt=at)
    return (
        ids.filter(before).order_by("-created_at").first(),
        ids.filter(after).order_by("created_at").first(),
    )
