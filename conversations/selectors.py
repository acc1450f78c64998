"""Reads of the thread."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import (
    Count,
    Exists,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Value,
    prefetch_related_objects,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from conversations import presenting, replay, stream
from conversations.aftermath import what_came_of as what_came_of
from conversations.attachments import file as file
from conversations.attachments import file_content as file_content
from conversations.constants import HISTORY_MESSAGES_MAX, RECENT_SUMMARIES
from conversations.models import (
    Attachment,
    CompactionBrief,
    ComposedContext,
    Message,
    Segment,
    SurfacedMemory,
    Turn,
)
from conversations.types import Summary
from conversations.veil import veil_state as veil_state
from memory import selectors as memory
from memory.types import Memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, EventsUnavailable, NotFound
from mira_site.llm import client

Json = dict[str, Any]


def turn(user: User, turn_id: UUID) -> Turn:
    """One turn with all that presenting it needs. Raises NotFound."""
    found: Turn | None = _whole_turns(user).filter(pk=turn_id).first()
    if found is None:
        raise NotFound("There is no such turn.")
    return found


def open_turn(user: User) -> Turn | None:
    found: Turn | None = _whole_turns(user).filter(status__in=Turn.OPEN).first()
    return found


def _whole_turns(user: User) -> QuerySet[Turn]:
    return Turn.objects.for_user(user).prefetch_related(
        _surfaced(user, "surfaced"),
        "messages__segment",
        _surfaced(user, "messages__turn__surfaced"),
        "messages__turn__tool_calls",
        "messages__attachments",
    )


def _surfaced(user: User, lookup: str) -> Prefetch:
    """Surfaced rows with memories and sources, without the vectors: pages show hundreds of them."""
    rows = SurfacedMemory.objects.for_user(user).select_related("memory")
    rows = rows.prefetch_related("memory__sources")
    return Prefetch(lookup, rows.defer("memory__embedding", "memory__search_vector"))


def messages(user: User) -> QuerySet[Message]:
    """The whole thread, newest first, with all that presenting it needs."""
    return (
        Message.objects.for_user(user)
        .select_related("segment", "turn")
        .defer("search_vector", "segment__embedding")
        .prefetch_related(_surfaced(user, "turn__surfaced"), "turn__tool_calls", "attachments")
        .order_by("-position")
    )


def message(user: User, message_id: UUID) -> Message:
    """Raises NotFound."""
    return _first(messages(user).filter(pk=message_id), "There is no such message.")


def message_at(user: User, at: str) -> Message:
    """The message of this id, or the first one said from this date or time on, on their own clock.

    After the last one it is the last. Only its place is read. Raises BadRequest, or NotFound if it
    is not there or nothing was said yet.
    """
    rows = Message.objects.for_user(user).only("position")
    with suppress(ValueError):
        return _first(rows.filter(pk=UUID(at)), "There is no such message.")
    moment = memory.moment(user, at)
    if moment is None:
        detail = "Give the id of a message, or a date or time such as 2026-12-03."
        raise BadRequest(detail, fields={"at": detail})
    from_then_on = rows.filter(created_at__gte=moment).order_by("created_at", "position")
    return from_then_on.first() or _first(rows.order_by("-position"), "Nothing was said yet.")


def _first(rows: QuerySet[Message], otherwise: str) -> Message:
    found = rows.first()
    if found is None:
        raise NotFound(otherwise)
    return found


def came_up(user: User, turn_id: UUID) -> list[UUID]:
    """The memories that came up for the turn, best first, without what was only linked to them."""
    rows = SurfacedMemory.objects.for_user(user).filter(turn=turn_id).order_by("rank")
    return [
        memory_id
        for memory_id, parts in rows.values_list("memory_id", "parts")
        if parts.get("path") != "link"
    ]


def recalled_for(user: User, turn_id: UUID) -> list[Memory]:
    """The same as memories, as far as they are still there and not archived; without sources."""
    rows = SurfacedMemory.objects.for_user(user).filter(turn=turn_id).order_by("rank")
    rows = rows.filter(memory__archived_at__isnull=True).select_related("memory")
    rows = rows.defer("memory__embedding", "memory__search_vector")
    return [row.memory for row in rows if row.parts.get("path") != "link"]


def segments(user: User) -> QuerySet[Segment]:
    """All segments, newest first, with `message_count`."""
    # Counted for each segment that is shown: a join would count those of the whole thread first.
    inside = Message.objects.filter(segment=OuterRef("pk")).order_by().values("segment")
    counted = Coalesce(Subquery(inside.annotate(n=Count("pk")).values("n")), 0)
    found: QuerySet[Segment] = (
        Segment.objects.for_user(user)
        .defer("embedding")
        .annotate(message_count=counted)
        .order_by("-opened_at", "-id")
    )
    return found


def segment(user: User, segment_id: UUID) -> Segment:
    """Raises NotFound."""
    found: Segment | None = segments(user).filter(pk=segment_id).first()
    if found is None:
        raise NotFound("There is no such segment.")
    return found


def brief(turn: Turn) -> CompactionBrief | None:
    """What tells the older messages of the turn's segment, if they were compacted."""
    found: CompactionBrief | None = getattr(turn.segment, "brief", None)
    return found


def prompt_tokens(turn: Turn) -> int:
    """How long the turn's prompt was: as counted by the provider, or as estimated."""
    rows = ComposedContext.objects.for_user(turn.user_id).filter(turn=turn)
    counted, estimated = rows.values_list("counted_tokens", "tokens").first() or (0, 0)
    return counted or estimated


def history(turn: Turn, told: CompactionBrief | None) -> list[Message]:
    """The messages of the turn's segment up to and including the one it answers, oldest first,
    without those that its brief tells. What is off the record is told off the record only.

    Each with its files and the effort of its turn; with the turn and its calls only where it has
    any. What Django would attach to hundreds of messages for a few takes longer than to read them.
    Raises NotFound if the message was deleted.
    """
    is_asked = Q(turn=turn, role=Message.Role.USER)
    untold = Q(position__gt=told.covered_to_position) | is_asked if told else Q()
    rows = Message.objects.for_user(turn.user_id).filter(untold)
    newest = list(
        rows.filter(segment_id=turn.segment_id, is_off_record__in={False, turn.is_off_record})
        .defer("search_vector")
        .annotate(  # type: ignore[no-redef]  # the model says what they are, and has no such fields
            turn_effort=Coalesce(F("turn__effort"), Value("")),
            has_files=Exists(Attachment.objects.filter(message=OuterRef("pk"))),
        )
        .order_by("-position")[:HISTORY_MESSAGES_MAX]
    )
    asked_at = next((place for place, one in enumerate(newest) if _is_asked(one, turn)), None)
    if asked_at is None:
        raise NotFound("The message was deleted. Send a new one to go on.")
    found = newest[asked_at:][::-1]
    prefetch_related_objects([one for one in found if replay.has_calls(one)], "turn__tool_calls")
    prefetch_related_objects([one for one in found if one.has_files], "attachments")
    return found


def _is_asked(message: Message, turn: Turn) -> bool:
    return message.turn_id == turn.pk and message.role == Message.Role.USER


def summaries(
    user: User, *, before: datetime, limit: int = RECENT_SUMMARIES
) -> tuple[Summary, ...]:
    """The last summarised segments that opened before `before`, oldest first."""
    rows = (
        Segment.objects.for_user(user)
        .filter(summarised_at__isnull=False, opened_at__lt=before)
        .order_by("-opened_at", "-id")
        .values_list("id", "opened_at", "last_message_at", "title", "precis", "trace")[:limit]
    )
    return tuple(
        Summary(
            segment_id=row[0],
            opened_at=row[1],
            last_message_at=row[2],
            title=row[3],
            precis=row[4],
            trace=row[5],
        )
        for row in reversed(rows)
    )


def _reopenable(user: User) -> Json | None:
    """The last segment, if its collapse may still be taken back."""
    last = segments(user).first()
    until = presenting.reopenable_until(last) if last else None
    return presenting.segment(last) if last and until and until > timezone.now() else None


def chat_state(user: User) -> Json:
    """What the chat page starts from.

    The event id is taken before the turn is read, so nothing can fall between page and socket: with
    a turn open it is the one just before the turn's first event, and replaying rebuilds the answer.
    """
    try:
        last_event_id = stream.last_id(user.pk)
    except EventsUnavailable:
        last_event_id = stream.START
    running = open_turn(user)
    return {
        "user": {"id": str(user.pk), "username": user.username, "timezone": user.timezone},
        "open_turn": presenting.turn(running) if running else None,
        "veil": veil_state(user),
        "reopenable": _reopenable(user),
        "has_model": client.is_configured(),
        "last_event_id": running.resume_after if running else last_event_id,
    }
