"""Reading changed messages of a segment that was remembered already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from memory import extraction, forgetting, settling, storage, telling
from memory.quoting import meaning
from memory.types import SourceMessage
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import WorkLeftDue

log = structlog.get_logger(__name__)


def read(
    user: User, *, segment_id: UUID, messages: Sequence[SourceMessage], at: datetime
) -> list[UUID]:
    """Store the lasting facts of these messages; what is known already gains a source.

    `at` is from before the messages were read. Raises DependencyError without embeddings,
    WorkLeftDue if something was forgotten since `at`: the messages may hold it.
    """
    found = extraction.extract(user, messages, now=at)
    with telling.embedding(user, segment_id=segment_id):
        vectors = embeddings.embed([meaning(fact.text) for fact in found.facts])
    with transaction.atomic():
        storage.lock(user)
        refuse_forgotten(user, at=at)
        ids = settling.settle(user, found.facts, vectors, at=at, segment_id=segment_id)
    log.info("messages.reread", segment=str(segment_id), memories=len(ids))
    return ids


def refuse_forgotten(user: User, *, at: datetime) -> None:
    """Raises WorkLeftDue if anything was forgotten since `at`; call it under the lock."""
    if forgetting.since(user, at):
        raise WorkLeftDue("Something was forgotten meanwhile. It is read again without that.")
