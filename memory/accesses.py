"""What came up and what was used: at most one of each kind a memory and segment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import structlog
from django.db import connection, transaction

from memory import scores, storage
from memory.models import MemoryAccess
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

_RECORD = """
WITH known AS (
    SELECT id FROM memory_memories
    WHERE user_id = %(user)s AND id = ANY(%(memories)s)
    ORDER BY id
    FOR KEY SHARE
)
INSERT INTO memory_accesses (id, user_id, memory_id, segment_id, kind, use_day, accessed_at)
SELECT gen_random_uuid(), %(user)s, id, %(segment)s, %(kind)s, %(use_day)s, %(at)s FROM known
ON CONFLICT (memory_id, segment_id, kind) DO NOTHING
RETURNING memory_id
"""


@transaction.atomic
def record(
    user: User,
    memory_ids: Sequence[UUID],
    *,
    segment_id: UUID | None,
    kind: MemoryAccess.Kind,
    at: datetime,
) -> list[UUID]:
    """Note that the memories came up or were used, and score them anew.

    Without a segment (a tap on a page, a look of the curator) it counts once a use-day. What is
    noted already, is gone, or is somebody else's is left out of the answer.
    """
    if not memory_ids:
        return []
    storage.lock(user)
    use_day = accounts.use_days(user)
    values: dict[str, Any] = {
        "user": user.pk,
        "memories": list(memory_ids),
        "segment": segment_id or _outside(user, use_day),
        "kind": MemoryAccess.Kind(kind).value,
        "use_day": use_day,
        "at": at,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, values)
        new = [row[0] for row in cursor.fetchall()]
    if new:
        scores.rescore(user, now=at, memory_ids=new)
        log.info("memories.accessed", kind=values["kind"], memories=len(new))
    return new


def _outside(user: User, use_day: int) -> UUID:
    """Stands for the segment of what happens outside of any, on one use-day."""
    return uuid5(NAMESPACE_OID, f"{user.pk} {use_day}")
