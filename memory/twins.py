"""Memories that say the same, found and merged by rule: what curation does without a model.

Storing repeats nothing already, but edits, restored memories and imports make twins, and a later
text may say all that an earlier one does, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from memory import merging
from memory.constants import DUPLICATE_COSINE, DUPLICATE_NEIGHBOURS
from memory.duplicates import says_the_same
from memory.models import Memory, MemoryRevision, Merge
from mira_site.accounts.models import User
from mira_site.errors import RequestError

log = structlog.get_logger(__name__)

_PAIRS = """
SELECT one.id, near.id
FROM memory_memories AS one
CROSS JOIN LATERAL (
    SELECT other.id, other.embedding <=> one.embedding AS distance
    FROM memory_memories AS other
    WHERE other.user_id = %(user)s AND other.archived_at IS NULL AND other.id <> one.id
      AND other.embedding_model = one.embedding_model
    ORDER BY distance
    LIMIT %(limit)s
) AS near
WHERE one.user_id = %(user)s AND one.archived_at IS NULL AND one.id = ANY(%(memories)s)
  AND near.distance <= %(distance)s
ORDER BY near.distance, one.id, near.id
"""
_SAME = ("happens_at", "expires_at", "valid_from", "valid_until", "trust")


def fold(user: User, memory_ids: Sequence[UUID], *, at: datetime) -> list[Merge]:
    """Merge each of these memories with what says the same; the fuller text stays.

    Only where nothing else differs: the word of the person is not lowered to hearsay, and no date
    is guessed. Each merge is a transaction of its own and can be undone.
    """
    merges: list[Merge] = []
    gone: set[UUID] = set()
    for pair in _pairs(user, memory_ids):
        if gone & set(pair):
            continue
        merge = _fold_pair(user, pair, at)
        if merge is not None:
            gone |= set(pair)
            merges.append(merge)
    return merges


def _pairs(user: User, memory_ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    values: dict[str, Any] = {
        "user": user.pk,
        "memories": list(memory_ids),
        "limit": DUPLICATE_NEIGHBOURS,
        "distance": 1 - DUPLICATE_COSINE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PAIRS, values)
        found = [(row[0], row[1]) for row in cursor.fetchall()]
    return list({frozenset(pair): pair for pair in found}.values())


def _fold_pair(user: User, pair: tuple[UUID, UUID], at: datetime) -> Merge | None:
    rows = list(Memory.objects.for_user(user).live().filter(id__in=pair))
    if len(rows) != 2:
        return None
    one, other = rows
    if any(getattr(one, name) != getattr(other, name) for name in _SAME):
        return None
    if says_the_same(one.text, other.text):
        text = other.text
    elif says_the_same(other.text, one.text):
        text = one.text
    else:
        return None
    try:
        staged = merging.stage(user, pair, text)
        return merging.swap(user, staged, author=MemoryRevision.Author.RULE, at=at)
    except RequestError as error:  # they say the same, and yet may not be merged: left as they are
        log.info("twins.left_apart", code=error.code)
        return None
