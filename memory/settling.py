"""Facts of a transcript become memories: stored or recognised, and older ones put in their place.

What the facts replace becomes past, what they contradict is kept as an open conflict, what they
repeat is reinforced. Callers hold `storage.lock(user)` in a transaction, with all that belongs to
the same step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import structlog

from memory import accesses, claims, restated, scores, storage, truth
from memory.claims import Claim
from memory.models import Memory, MemoryAccess, MemoryLink
from memory.storage import Fact
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import RequestError

log = structlog.get_logger(__name__)

Author = MemoryLink.Author
BY_MODEL = "A later conversation says so."
BY_RULE = "A later statement of the person says so."


def settle(
    user: User, facts: Sequence[Fact], vectors: Vectors, *, at: datetime, segment_id: UUID
) -> list[UUID]:
    """Store the facts of a segment; ids of new and known memories in order, no repeats."""
    use_day = accounts.use_days(user)
    facts = restated.with_repeats(user, facts)
    ids = storage.place(user, facts, vectors, at=at, use_day=use_day, segment_id=segment_id)
    touched: set[UUID] = set(ids)
    older = _claimed(user, facts, at=at)
    for memory_id, fact in zip(ids, facts, strict=True):
        touched |= _relate(user, memory_id, fact, older, at=at)
    scores.rescore(user, now=at, memory_ids=sorted(touched))
    stored = list(dict.fromkeys(ids))
    _reinforce(user, stored, segment_id=segment_id, at=at)
    return stored


def _reinforce(user: User, memory_ids: Sequence[UUID], *, segment_id: UUID, at: datetime) -> None:
    """What was known before and is said again has been of use."""
    rows = Memory.objects.for_user(user).filter(id__in=memory_ids, created_at__lt=at)
    known = list(rows.order_by("id").values_list("id", flat=True))
    accesses.record(user, known, segment_id=segment_id, kind=MemoryAccess.Kind.USED, at=at)


def _claimed(
    user: User, facts: Sequence[Fact], *, at: datetime
) -> Mapping[UUID, tuple[str, Claim | None]]:
    """What may come up, with what it claims; nothing where no fact was read by rule."""
    if not any(fact.claim for fact in facts):
        return {}
    name = user.get_short_name()
    rows = Memory.objects.for_user(user).visible(at).values_list("id", "text")
    return {memory_id: (text, claims.claim(text, name=name)) for memory_id, text in rows}


def _relate(
    user: User,
    memory_id: UUID,
    fact: Fact,
    older: Mapping[UUID, tuple[str, Claim | None]],
    *,
    at: datetime,
) -> set[UUID]:
    """Put older memories in their place; returns those that changed."""
    replaced, disputed, author, why = fact.replaces, fact.contradicts, Author.MODEL, BY_MODEL
    if fact.claim is not None:
        others = {key: one for key, one in older.items() if key != memory_id}
        found = claims.judged(fact.claim, others)
        if found is not None:
            author, why = Author.RULE, BY_RULE
            replaced, disputed = ((found[0],), ()) if found[1] == "replaced" else ((), (found[0],))
    if not replaced and not disputed:
        return set()
    rows = {
        row.id: row
        for row in Memory.objects.for_user(user)
        .live()
        .filter(id__in=[memory_id, *replaced, *disputed])
        .defer("embedding", "search_vector")
        .prefetch_related("sources")
    }
    newer = rows.pop(memory_id, None)
    if newer is None or newer.quarantined_at is not None:
        return set()  # nothing gives way to what is held back
    changed: set[UUID] = set()
    for other_id, other in rows.items():
        is_replaced = other_id in replaced
        if _settle_pair(user, newer, other, is_replaced=is_replaced, at=at, author=author, why=why):
            changed.add(other_id)
    return changed


def _settle_pair(
    user: User,
    newer: Memory,
    older: Memory,
    *,
    is_replaced: bool,
    at: datetime,
    author: str,
    why: str,
) -> bool:
    """Whether it came to anything. What was said last wins, and hearsay never does."""
    if _said_at(newer) < _said_at(older):  # an old conversation that is read late
        newer, older = older, newer
    try:
        if is_replaced and newer.trust >= older.trust:
            truth.supersede(user, newer.id, older.id, at=at, reasoning=why, author=author)
        else:
            truth.conflict(user, older.id, newer.id, reasoning=why, at=at, author=author)
    except RequestError as error:  # already settled the other way round: that stands
        log.info("memories.left_as_they_are", code=error.code)
        return False
    return True


def _said_at(memory: Memory) -> datetime:
    source = memory.latest_source  # in the order they were said
    return source.said_at if source else memory.created_at  # type: ignore[no-any-return]
