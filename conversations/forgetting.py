"""What the conversation does when a memory is forgotten: passages, summaries, kept events."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from conversations import attachments, passages, quotations, staleness, tasks
from conversations.constants import TELLING_WORDS_MAX
from conversations.models import Message, Segment, SurfacedMemory, ToolCall
from conversations.passages import Span
from memory import selectors as memory
from memory.types import Forgotten, Touched
from mira_site.accounts.models import User


def see_to(sender: object, forgotten: Forgotten, **kwargs: Any) -> Touched:
    """Receiver of memory's `being_forgotten`, inside its transaction."""
    user = forgotten.user
    quotations.lock(user.pk)  # an answer that is being stored is looked through, or sees the wish
    said_in = Message.objects.for_user(user).filter(
        id__in=[source.message_id for source in forgotten.sources]
    )
    told_in = _told_in(user, forgotten)
    touched = told_in | set(said_in.values_list("segment_id", flat=True))
    surfaced = SurfacedMemory.objects.for_user(user).filter(memory__in=forgotten.memory_ids)
    counts = {
        "surfaced": surfaced.count(),
        "passages": passages.store(user, _passages(user, forgotten, touched)),
        "reasons": staleness.forget_reasons(user, _quoting_reasons(user, forgotten)),
        "tool_calls": _emptied_calls(user, forgotten),
        "files": attachments.close_telling(user, forgotten.imprint, touched, at=forgotten.at),
        **quotations.forget(user, forgotten, touched),
        "summaries": staleness.make_stale(user, touched, at=forgotten.at, titles=told_in),
    }
    staleness.take_back_claims(user)
    transaction.on_commit(partial(_follow_up, user.pk, touched, forgotten.memory_ids), robust=True)
    return Touched(counts=counts, is_finished=not counts["summaries"])


def _follow_up(user_id: UUID, segment_ids: Collection[UUID], memory_ids: Collection[UUID]) -> None:
    staleness.forget_events(user_id, forgotten=memory_ids)
    tasks.start_collapses(user_id, segment_ids)


def _quoting_reasons(user: User, forgotten: Forgotten) -> list[UUID]:
    """Of other memories that came up for a phrase which says it."""
    rows = SurfacedMemory.objects.for_user(user).exclude(memory__in=forgotten.memory_ids)
    return [
        row_id
        for row_id, why, parts in rows.values_list("id", "why", "parts").iterator()
        if forgotten.imprint.is_in(f"{why}\n{parts.get('phrase', '')}")
    ]


def _emptied_calls(user: User, forgotten: Forgotten) -> int:
    """What tools were asked and answered about it, which later prompts would show again."""
    rows = ToolCall.objects.for_user(user).values_list("id", "input", "result", "summary")
    quoting = [
        call_id
        for call_id, given, result, summary in rows.iterator()
        if forgotten.imprint.is_in(f"{json.dumps(given, ensure_ascii=False)}\n{result}\n{summary}")
    ]
    return int(ToolCall.objects.for_user(user).filter(id__in=quoting).update(**quotations.EMPTIED))


def _told_in(user: User, forgotten: Forgotten) -> set[UUID]:
    """Segments whose title or summary tells it."""
    rows = Segment.objects.for_user(user).exclude(title="", precis="", trace="")
    return {
        segment_id
        for segment_id, *texts in rows.values_list("id", "title", "precis", "trace").iterator()
        if any(map(forgotten.imprint.is_in, texts))
    }


def _passages(
    user: User, forgotten: Forgotten, segment_ids: Collection[UUID]
) -> list[tuple[UUID, Span]]:
    """Where messages say it: in these segments, and wherever a word of it stands that tells."""
    known: dict[UUID, list[str]] = {}
    for source in forgotten.sources:
        known.setdefault(source.message_id, []).append(source.sentence)
    where = Q(segment__in=segment_ids)
    for word in sorted(forgotten.imprint.telling)[:TELLING_WORDS_MAX]:
        where |= Q(text__icontains=word)
    rows = Message.objects.for_user(user).filter(where).values_list("id", "text")
    found: list[tuple[UUID, Span]] = []
    for message_id, text in rows.iterator():
        sentences = [one for one in known.get(message_id, ()) if one]
        spans = passages.quoting(text, forgotten.imprint, known=sentences)
        if not spans and sentences:
            spans = passages.quoting(
                text, forgotten.imprint, known=[memory.best_sentence(text, sentences[0])]
            )
        found.extend((message_id, span) for span in spans)
    return found
