"""How much is remembered, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, FloatField, Func, QuerySet, Sum, Value
from django.db.models.functions import Ceil

from memory import places, reembedding
from memory.models import Entity, Fingerprint, Memory, MemoryLink, Passage
from memory.places import Wing
from mira_site import tokens
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`memories` and what is counted by type and wing are not archived; `tokens` of their texts.

    An entity under several names counts once. Those `by_another_model` wait to be embedded anew and
    are found by words and names alone till then; None while the model is away.
    """

    memories: int
    archived: int
    fingerprints: int
    passages: int
    by_another_model: int | None
    entities: int
    tokens: int
    types: Mapping[str, int]
    links: Mapping[str, int]
    wings: tuple[Wing, ...]


def status(user: User) -> Status:
    rows = Memory.objects.for_user(user)
    types = _counts(rows.live(), "memory_type")
    return Status(
        memories=sum(types.values()),
        archived=rows.filter(archived_at__isnull=False).count(),
        fingerprints=Fingerprint.objects.for_user(user).count(),
        passages=Passage.objects.for_user(user).count(),
        by_another_model=_by_another_model(rows),
        entities=Entity.objects.for_user(user).filter(merged_into__isnull=True).count(),
        tokens=_tokens(rows.live()),
        types=types,
        links=_counts(MemoryLink.objects.for_user(user), "link_type"),
        wings=places.wings(user),
    )


def _by_another_model(rows: QuerySet[Any]) -> int | None:
    try:
        return int(rows.filter(reembedding.of_another_model()).count())
    except EmbeddingsUnavailable:
        return None


def _counts(rows: QuerySet[Any], field: str) -> dict[str, int]:
    """How many rows there are of each value, by value."""
    found = rows.order_by(field).values_list(field).annotate(rows=Count("id"))
    return dict(found)


def _tokens(rows: QuerySet[Any]) -> int:
    """As tokens.estimate, of each text by itself; the texts stay in the database."""
    size = Func("text", function="octet_length", output_field=FloatField())
    cost = Ceil(size / Value(tokens.BYTES_PER_TOKEN, FloatField()))
    return int(rows.aggregate(tokens=Sum(cost))["tokens"] or 0)
