"""Reading changed messages of a segment that was remembered already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    user: User,
    *,
    segment_id: UUID,
    messages: Sequence[SourceMessage],
    at: datetime,
    is_current: Callable[[], bool],
) -> list[UUID]:
    """Store the lasting facts of these messages; what is known already gains a source.

    `at` is from before the messages were read. Raises DependencyError without embeddings,
    WorkLeftDue as `refuse_outdated` does.
    """
    found = extraction.extract(user, messages, now=at)
    with telling.embedding(user, segment_id=segment_id):
        vectors = embeddings.embed([meaning(fact.text) for fact in found.facts])
    with transaction.atomic():
        storage.lock(user)
        refuse_outdated(user, at=at, is_current=is_current)
        ids = settling.settle(user, found.facts, vectors, at=at, segment_id=segment_id)
    log.info("messages.reread", segment=str(segment_id), memories=len(ids))
    return ids


def refuse_outdated(user: User, *, at: datetime, is_current: Callable[[], bool]) -> None:
    """Raises WorkLeftDue if what was read since `at` must not be stored; call it under the lock.

    Something may have been forgotten that it holds, or whoever keeps the messages says that they
    were changed or deleted meanwhile.
    """
    if forgetting.since(user, at):
        raise WorkLeftDue("Something was forgotten meanwhile. It is read again without that.")
    if not is_current():
        raise WorkLeftDue("What was read was changed meanwhile. It is read again.")
