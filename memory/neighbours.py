"""What is known already near a stretch of conversation, as the reader of it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from pgvector.django import MaxInnerProduct

from memory import asking, rules, short_ids, showing
from memory.constants import KNOWN_FLOOR, KNOWN_RECALLED, KNOWN_SHOWN, QUERIES_MAX, QUERY_MAX_CHARS
from memory.dates import day
from memory.models import Memory
from memory.recall import recall
from memory.types import MemoryView, SourceMessage
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable
from mira_site.prompts import in_quotes, quoted


def near(user: User, messages: Sequence[SourceMessage], *, now: datetime) -> list[MemoryView]:
    """Memories that may come up and are near what the person said, at most KNOWN_SHOWN.

    What a recall finds, and then what is nearest, even if it would be no answer: "I moved to
    Vienna" is far from "Alice lives in Graz".
    """
    phrases = asking.phrases(_phrases(messages))
    if not phrases:
        return []
    recalled = [one.id for one in recall(user, phrases, limit=KNOWN_SHOWN, now=now)]
    nearest = _nearest(user, phrases, now=now)
    ids = [*recalled[:KNOWN_RECALLED], *nearest, *recalled[KNOWN_RECALLED:]]
    chosen = list(dict.fromkeys(ids))[:KNOWN_SHOWN]
    views = showing.shown(user, chosen, now=now)
    return [views[memory_id] for memory_id in chosen if memory_id in views]


def shown(known: Sequence[MemoryView], zone: ZoneInfo) -> str:
    """One element a memory, escaped, with its short id and since when it is known."""
    return "\n".join(_element(one, zone) for one in known)


def by_short_id(known: Sequence[MemoryView]) -> Mapping[str, UUID]:
    """Ids by the eight digits that were shown; two memories that share them have none."""
    digits = [one.id.hex[:8] for one in known]
    return {one.id.hex[:8]: one.id for one in known if digits.count(one.id.hex[:8]) == 1}


def _element(one: MemoryView, zone: ZoneInfo) -> str:
    said_at = one.sources[-1].said_at if one.sources else one.created_at
    origin = f' origin="{in_quotes(one.origin)}"' if one.origin else ""
    opening = f'<memory id="{short_ids.short(one.id)}" said_on="{day(said_at, zone)}"{origin}>'
    return f"{opening}{quoted(one.text)}</memory>"


def _phrases(messages: Sequence[SourceMessage]) -> list[str]:
    """The person's statements, joined in their order to as many phrases as one recall takes.

    Where they stated nothing themselves, what they wrote or pasted.
    """
    texts = [statement.text for statement in rules.statements(messages)]
    texts = texts or [message.text for message in messages if message.role == "user"]
    size = -(-len(texts) // QUERIES_MAX) or 1
    groups = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [" ".join(group)[:QUERY_MAX_CHARS] for group in groups]


def _nearest(user: User, phrases: Sequence[str], *, now: datetime) -> list[UUID]:
    """By cosine to the phrase each is nearest to, from KNOWN_FLOOR on."""
    best: dict[UUID, float] = {}
    with suppress(EmbeddingsUnavailable):
        for vector in embeddings.embed_queries(tuple(phrases)):
            rows = (
                Memory.objects.for_user(user)
                .visible(now)
                .filter(embedding_model=embeddings.model_id())
                .annotate(distance=MaxInnerProduct("embedding", vector))
                .filter(distance__lte=-KNOWN_FLOOR)
                .order_by("distance", "id")
            )
            for memory_id, distance in rows.values_list("id", "distance")[:KNOWN_SHOWN]:
                best[memory_id] = max(best.get(memory_id, 0.0), -distance)
    return sorted(best, key=lambda memory_id: (-best[memory_id], memory_id))
