"""Low-level writes: rows of memories and their sources, without repeating what is known.

Callers hold `lock(user)` in a transaction, so that two of them never store one fact twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import numpy as np
from django.db import connection

from memory import mentions
from memory.constants import (
    DUPLICATE_COSINE,
    DUPLICATE_NEIGHBOURS,
    IMPORTANCE_AT_BIRTH,
)
from memory.duplicates import says_the_same, text_hash
from memory.models import Memory, MemorySource, Trust
from memory.naming import Named
from memory.types import SourceRef
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A memory that is not stored yet; `named` is None if nobody looked for names yet."""

    text: str
    memory_type: str
    sources: tuple[SourceRef, ...] = ()
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    wing: str = ""
    room: str = ""
    importance: float = IMPORTANCE_AT_BIRTH
    named: tuple[Named, ...] | None = None
    trust: Trust = Trust.SAID


def lock(user: User) -> None:
    """One writer of a person's memories at a time, until the transaction ends."""
    with connection.cursor() as cursor:
        name = f"memory {user.pk}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def store(
    user: User,
    facts: Sequence[Fact],
    vectors: Vectors,
    *,
    at: datetime,
    use_day: int,
    segment_id: UUID | None,
) -> list[UUID]:
    """Store the facts, `vectors[i]` being the embedding of the i-th; ids in order, no repeats.

    What is known already, in the table or among the facts themselves, gets the new sources instead
    of a second row. New rows are stored at `at`, microseconds apart, so that they keep their order.
    """
    known = _Known(user, facts, vectors)
    memories: list[Memory] = []
    sources: list[MemorySource] = []
    stored: list[tuple[UUID, Fact]] = []
    for fact, vector in zip(facts, vectors, strict=True):
        memory_id = known.find(fact, vector)
        if memory_id is None:
            stored_at = at + timedelta(microseconds=len(memories))
            memory = _row(user, fact, vector, at=stored_at, use_day=use_day, segment_id=segment_id)
            memories.append(memory)
            known.add(memory.id, fact, vector)
            memory_id = memory.id
        sources.extend(_source_rows(user, memory_id, fact.sources))
        known.used.setdefault(memory_id)
        stored.append((memory_id, fact))
    Memory.objects.bulk_create(memories)
    MemorySource.objects.bulk_create(sources, ignore_conflicts=True)
    mentions.attach(user, _named(user, stored), at=at)
    return list(known.used)


def _named(user: User, stored: Sequence[tuple[UUID, Fact]]) -> dict[UUID, list[Named]]:
    """What each memory names: as its facts say, or by rule where nobody looked."""
    unread = {memory_id: fact.text for memory_id, fact in stored if fact.named is None}
    named = mentions.spotted(user, unread)
    for memory_id, fact in stored:
        named.setdefault(memory_id, []).extend(fact.named or ())
    return named


class _Known:
    """What is stored that might be one of the facts, and the facts taken so far."""

    def __init__(self, user: User, facts: Sequence[Fact], vectors: Vectors) -> None:
        self.used: dict[UUID, None] = {}  # an ordered set
        hashes = [text_hash(fact.text, fact.happens_at) for fact in facts]
        live = Memory.objects.for_user(user).live()
        self._by_hash: dict[str, UUID] = dict(
            live.filter(text_hash__in=hashes).values_list("text_hash", "id")
        )
        self._texts: list[tuple[UUID, str, datetime | None]] = []
        self._vectors: list[Vectors] = []
        for row in live.filter(id__in=_neighbour_ids(user, vectors)).order_by("created_at", "id"):
            self._texts.append((row.id, row.text, row.happens_at))
            self._vectors.append(np.asarray(row.embedding, dtype=np.float32))

    def find(self, fact: Fact, vector: Vectors) -> UUID | None:
        same = self._by_hash.get(text_hash(fact.text, fact.happens_at))
        if same is not None or not self._vectors:
            return same
        near = np.stack(self._vectors) @ vector
        for index in np.argsort(-near, kind="stable"):
            if near[index] < DUPLICATE_COSINE:
                break
            memory_id, text, happens_at = self._texts[int(index)]
            if says_the_same(
                fact.text, text, new_happens_at=fact.happens_at, old_happens_at=happens_at
            ):
                return memory_id
        return None

    def add(self, memory_id: UUID, fact: Fact, vector: Vectors) -> None:
        self._by_hash[text_hash(fact.text, fact.happens_at)] = memory_id
        self._texts.append((memory_id, fact.text, fact.happens_at))
        self._vectors.append(vector)


_NEIGHBOURS = """
SELECT DISTINCT near.id
FROM unnest(%(vectors)s::vector[]) AS new (embedding)
CROSS JOIN LATERAL (
    SELECT id, embedding <=> new.embedding AS distance
    FROM memory_memories
    WHERE user_id = %(user)s AND archived_at IS NULL
    ORDER BY distance
    LIMIT %(limit)s
) AS near
WHERE near.distance <= %(distance)s
"""


def _neighbour_ids(user: User, vectors: Vectors) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(
            _NEIGHBOURS,
            {
                "vectors": [literal(vector) for vector in vectors],
                "user": user.pk,
                "limit": DUPLICATE_NEIGHBOURS,
                "distance": 1 - DUPLICATE_COSINE,
            },
        )
        return [row[0] for row in cursor.fetchall()]


def literal(vector: Vectors) -> str:
    """The vector as pgvector reads it; shortest exact digits, so nothing is lost."""
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _row(
    user: User,
    fact: Fact,
    vector: Vectors,
    *,
    at: datetime,
    use_day: int,
    segment_id: UUID | None,
) -> Memory:
    return Memory(
        id=uuid4(),
        user=user,
        text=fact.text,
        text_hash=text_hash(fact.text, fact.happens_at),
        embedding=vector,
        memory_type=fact.memory_type,
        wing=fact.wing,
        room=fact.room,
        importance=fact.importance,
        trust=fact.trust,
        happens_at=fact.happens_at,
        expires_at=fact.expires_at,
        created_at=at,
        created_use_day=use_day,
        source_segment_id=segment_id,
    )


def _source_rows(
    user: User, memory_id: UUID, sources: Iterable[SourceRef]
) -> Iterable[MemorySource]:
    for source in sources:
        yield MemorySource(
            user=user,
            memory_id=memory_id,
            segment_id=source.segment_id,
            message_id=source.message_id,
            sentence=source.sentence,
            said_at=source.said_at,
        )
