"""What is derived from a memory's text, written with it: fingerprint, passages, token vectors.

Callers hold `storage.lock(user)` in the transaction that writes the text, so that a memory is never
without them, nor with those of an older text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from memory import fingerprint_rows, passages, token_vectors
from memory.fingerprints import Fingerprint
from memory.models import Memory
from memory.passages import Cut
from mira_site.accounts.models import User


def write(
    user: User,
    memories: Sequence[Memory],
    *,
    at: datetime,
    given: Mapping[UUID, Fingerprint] | None = None,
    cuts: Mapping[UUID, Cut | None] | None = None,
) -> None:
    """Derive from these memories, stored just now or with a new text, what their texts say.

    Fingerprint fields that a model gave and passages embedded before the transaction come along, by
    memory; passages of texts that are not in `cuts` are made here. The number of statements does
    not grow with the memories. Raises EmbeddingsUnavailable where a long text cannot be embedded.
    """
    fingerprint_rows.write(user, memories, given=given or {}, at=at)
    passages.store(user, memories, cuts or {})
    token_vectors.write(user, memories)
