"""What is derived from a memory's text, written with it: fingerprint, passages, token vectors.

Callers hold `storage.lock(user)` in the transaction that writes the text, so that a memory is never
without them, nor with those of an older text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memory.models import Memory
from mira_site.accounts.models import User


def write(user: User, memories: Sequence[Memory], *, at: datetime) -> None:
    """Derive from these memories, stored just now or with a new text, what their texts say."""
