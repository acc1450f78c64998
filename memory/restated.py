"""What is read a second time in the very sentence that a memory quotes whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from memory.duplicates import normalised
from memory.models import MemorySource
from memory.quoting import meaning
from memory.storage import Fact
from mira_site.accounts.models import User


def with_repeats(user: User, facts: Sequence[Fact]) -> list[Fact]:
    """The facts, each with the memories that quote the sentence it rests on among its `repeats`.

    Such a memory was stored when the person asked for it, and holds all that the sentence says.
    """
    message_ids = {source.message_id for fact in facts for source in fact.sources}
    rows = (
        MemorySource.objects.for_user(user)
        .filter(message_id__in=message_ids, memory__archived_at__isnull=True)
        .order_by("memory_id")
        .values_list("message_id", "memory_id", "memory__text")
    )
    quoting: dict[UUID, list[tuple[UUID, str]]] = {}
    for message_id, memory_id, text in rows:
        quoting.setdefault(message_id, []).append((memory_id, normalised(meaning(text))))
    return [replace(fact, repeats=(*fact.repeats, *_quoted(fact, quoting))) for fact in facts]


def _quoted(fact: Fact, quoting: dict[UUID, list[tuple[UUID, str]]]) -> list[UUID]:
    return [
        memory_id
        for source in fact.sources
        for memory_id, quoted in quoting.get(source.message_id, ())
        if source.sentence.strip() and normalised(source.sentence) in quoted
    ]
