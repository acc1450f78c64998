"""Low-level writes: rows of memories and their sources, without repeating what is known.

Callers hold `lock(user)` in a transaction, so that two of them never store one fact twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import numpy as np
from django.db import connection
from django.db.models import Max, OuterRef, Q, Subquery
from django.db.models.functions import Greatest

from memory import causes, derived, mentions, orders, places, spans, telling
from memory.claims import Claim
from memory.constants import (
    DUPLICATE_COSINE,
    DUPLICATE_NEIGHBOURS,
    IMPORTANCE_AT_BIRTH,
    REPEAT_COSINE,
    RESTATED_COSINE,
)
from memory.details import lost
from memory.duplicates import says_the_same, text_hash
from memory.fingerprints import Fingerprint
from memory.instructions import reads_like_an_instruction
from memory.models import Memory, MemorySource, Stakes, Trust
from memory.naming import Named
from memory.passages import Cut
from memory.quoting import meaning, speaker, without_name
from memory.types import SourceRef
from mira_site import embeddings, metrics
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A memory that is not stored yet; `named` is None if nobody looked for names yet.

    `repeats`, `replaces` and `contradicts` are memories as a model judged; `claim` is what the
    statement claims, as read by rule. `said_at` dates what has no sources. `fingerprint` holds the
    fields that a model gave, `cut` the passages of a long text where they are made already.
    """

    text: str
    memory_type: str
    sources: tuple[SourceRef, ...] = ()
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    said_at: datetime | None = None
    wing: str = ""
    room: str = ""
    importance: float = IMPORTANCE_AT_BIRTH
    named: tuple[Named, ...] | None = None
    trust: Trust = Trust.SAID
    stakes: Stakes = Stakes.ORDINARY
    repeats: tuple[UUID, ...] = ()
    replaces: tuple[UUID, ...] = ()
    contradicts: tuple[UUID, ...] = ()
    claim: Claim | None = None
    fingerprint: Fingerprint | None = None
    cut: Cut | None = None


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

    See `place`.
    """
    ids = place(user, facts, vectors, at=at, use_day=use_day, segment_id=segment_id)
    return list(dict.fromkeys(ids))


@metrics.storing()
def place(
    user: User,
    facts: Sequence[Fact],
    vectors: Vectors,
    *,
    at: datetime,
    use_day: int,
    segment_id: UUID | None,
) -> list[UUID]:
    """Store the facts, `vectors[i]` being the embedding of the i-th; `ids[i]` is where it went.

    What is known already, in the table or among the facts themselves, gets the new sources instead
    of a second row, and the better of both words; what is past is not known. What reads like an
    instruction is held back. New rows are stored at `at`, microseconds apart, so that they keep
    their order, in the wing and room that places.py settles on.
    """
    known = _Known(user, facts, vectors, at=at)
    spelt = places.Spellings(user)
    free = _free_position(user, segment_id)
    memories: list[Memory] = []
    stored: dict[UUID, Fact] = {}
    sources: list[MemorySource] = []
    ids: list[UUID] = []
    for fact, vector in zip(facts, vectors, strict=True):
        memory_id = known.find(fact, vector)
        if memory_id is None:
            stored_at = at + timedelta(microseconds=len(memories))
            memory = _row(user, fact, vector, at=stored_at, use_day=use_day, segment_id=segment_id)
            memory.position = free + len(memories)
            memory.wing, memory.room = spelt.settle(fact.wing, fact.room, fact.memory_type)
            memories.append(memory)
            stored[memory.id] = fact
            known.add(memory.id, fact, vector)
            memory_id = memory.id
        if fact.trust >= known.trust[memory_id]:  # hearsay lends nothing to the person's word
            sources.extend(_source_rows(user, memory_id, fact.sources))
        known.trust[memory_id] = max(known.trust[memory_id], fact.trust)
        ids.append(memory_id)
    for memory in memories:
        memory.trust = known.trust[memory.id]
    Memory.objects.bulk_create(memories)
    telling.stored(user, memories)
    known.raise_trust(user, set(ids))
    MemorySource.objects.bulk_create(sources, ignore_conflicts=True)
    spans.bound(user, {source.memory_id for source in sources})
    known.say_again(user, set(ids))
    mentions.attach(user, _named(user, list(zip(ids, facts, strict=True))), at=at)
    derived.write(
        user,
        memories,
        at=at,
        given={key: fact.fingerprint for key, fact in stored.items() if fact.fingerprint},
        cuts={key: fact.cut for key, fact in stored.items() if fact.cut},
    )
    causes.link(user, memories, at=at)
    return ids


def _free_position(user: User, segment_id: UUID | None) -> int:
    """The place after the last memory of the segment; 0 without one."""
    if segment_id is None:
        return 0
    rows = Memory.objects.for_user(user).filter(source_segment_id=segment_id)
    last: int | None = rows.aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


def _named(user: User, stored: Sequence[tuple[UUID, Fact]]) -> dict[UUID, list[Named]]:
    """What each memory names: as its facts say, or by rule where nobody looked."""
    unread = {memory_id: fact.text for memory_id, fact in stored if fact.named is None}
    named = mentions.spotted(user, unread)
    for memory_id, fact in stored:
        named.setdefault(memory_id, []).extend(fact.named or ())
    return named


@dataclass(frozen=True, slots=True)
class _Text:
    """A memory that a fact may repeat."""

    memory_id: UUID
    text: str
    happens_at: datetime | None


class _Known:
    """What is stored and still true that might be one of the facts, and the facts taken so far."""

    def __init__(
        self, user: User, facts: Sequence[Fact], vectors: Vectors, *, at: datetime
    ) -> None:
        self._name = user.get_short_name()
        self._texts: list[_Text] = []
        self._vectors: list[Vectors] = []
        self._by_hash: dict[str, UUID] = {}
        self._stored: dict[UUID, int] = {}
        hashes = [text_hash(fact.text, fact.happens_at) for fact in facts]
        _retire_past(user, hashes, at=at)
        repeated = {memory_id for fact in facts for memory_id in fact.repeats}
        rows = Memory.objects.for_user(user).live().filter(_holds(at))
        near = Q(id__in={*_neighbour_ids(user, vectors), *repeated}) | Q(text_hash__in=hashes)
        for row in rows.filter(near).order_by("created_at", "id"):
            self._by_hash.setdefault(row.text_hash, row.id)
            self._stored[row.id] = row.trust
            self._texts.append(_Text(row.id, row.text, row.happens_at))
            self._vectors.append(np.asarray(row.embedding, dtype=np.float32))
        self.trust = dict(self._stored)

    def find(self, fact: Fact, vector: Vectors) -> UUID | None:
        same = self._by_hash.get(text_hash(fact.text, fact.happens_at))
        if same is not None or not self._vectors:
            return same
        near = np.stack(self._vectors) @ vector
        for index in np.argsort(-near, kind="stable"):
            if near[index] < min(REPEAT_COSINE, RESTATED_COSINE):
                break
            if self._is_same(fact, self._texts[int(index)], float(near[index])):
                return self._texts[int(index)].memory_id
        return None

    def _is_same(self, fact: Fact, known: _Text, near: float) -> bool:
        if fact.happens_at is not None and fact.happens_at != known.happens_at:
            return False
        if near >= DUPLICATE_COSINE and says_the_same(fact.text, known.text):
            return True
        new, old = self._plain(fact.text), self._plain(known.text)
        if near >= RESTATED_COSINE and says_the_same(new, old) and says_the_same(old, new):
            return True
        # A model's word for it is enough where the known memory has every detail of the new text.
        judged = known.memory_id in fact.repeats and near >= REPEAT_COSINE
        return judged and not lost([new], old)

    def _plain(self, text: str) -> str:
        """The statement itself, as the person and as somebody else would put it."""
        return orders.without(without_name(meaning(text), self._name))

    def add(self, memory_id: UUID, fact: Fact, vector: Vectors) -> None:
        self._by_hash[text_hash(fact.text, fact.happens_at)] = memory_id
        self.trust[memory_id] = fact.trust
        self._texts.append(_Text(memory_id, fact.text, fact.happens_at))
        self._vectors.append(vector)

    def raise_trust(self, user: User, used: set[UUID]) -> None:
        """What was hearsay and is now said by the person is their word from then on."""
        for memory_id in used & self._stored.keys():
            if self.trust[memory_id] > self._stored[memory_id]:
                rows = Memory.objects.for_user(user).filter(id=memory_id)
                rows.update(trust=self.trust[memory_id])

    def say_again(self, user: User, used: set[UUID]) -> None:
        """What was known and is said again was said now."""
        newest = MemorySource.objects.filter(memory=OuterRef("id")).order_by("-said_at")
        Memory.objects.for_user(user).filter(id__in=used & self._stored.keys()).update(
            said_at=Greatest("said_at", Subquery(newest.values("said_at")[:1]))
        )


def _holds(at: datetime) -> Q:
    """Neither past nor expired."""
    return (Q(valid_until__isnull=True) | Q(valid_until__gt=at)) & (
        Q(expires_at__isnull=True) | Q(expires_at__gt=at)
    )


def _retire_past(user: User, hashes: Sequence[str], *, at: datetime) -> None:
    """What was true once and is said again is a new memory: the past one leaves it its hash."""
    rows = Memory.objects.for_user(user).live().filter(text_hash__in=hashes).exclude(_holds(at))
    for memory_id, given in rows.values_list("id", "text_hash"):
        retired = hashlib.sha256(f"{given}\n{memory_id}".encode()).hexdigest()
        Memory.objects.for_user(user).filter(id=memory_id).update(text_hash=retired)


_NEIGHBOURS = """
SELECT DISTINCT near.id
FROM unnest(%(vectors)s::vector[]) AS new (embedding)
CROSS JOIN LATERAL (
    SELECT id, embedding <=> new.embedding AS distance
    FROM memory_memories
    WHERE user_id = %(user)s AND archived_at IS NULL AND embedding_model = %(model)s
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
                "model": embeddings.model_id(),
                "limit": DUPLICATE_NEIGHBOURS,
                "distance": 1 - RESTATED_COSINE,
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
        embedding_model=embeddings.model_id(),
        memory_type=fact.memory_type,
        importance=fact.importance,
        trust=fact.trust,
        stakes=fact.stakes,
        quarantined_at=at if _is_held(fact) else None,
        happens_at=fact.happens_at,
        expires_at=fact.expires_at,
        said_at=fact.said_at or max((one.said_at for one in fact.sources), default=at),
        speaker=speaker(fact.text),
        created_at=at,
        created_use_day=use_day,
        source_segment_id=segment_id,
    )


def _is_held(fact: Fact) -> bool:
    texts = [fact.text, *(source.sentence for source in fact.sources)]
    return reads_like_an_instruction(texts, fact.trust)


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
            span=source.span,
            said_at=source.said_at,
        )
