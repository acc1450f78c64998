"""Small writes on a memory that a model or a person looks after: a note, a sign of use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from memory import accesses, instructions, storage
from memory.constants import ANNOTATION_MAX_CHARS, ANNOTATION_MIN_CHARS
from memory.models import Annotation, Memory, MemoryAccess, MemoryRevision, Trust
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound

log = structlog.get_logger(__name__)


def checked_note(text: str) -> str:
    """The note on one line. Raises BadRequest if it is too short or too long."""
    text = " ".join(text.replace("\x00", "").split())
    if not ANNOTATION_MIN_CHARS <= len(text) <= ANNOTATION_MAX_CHARS:
        detail = f"Write between {ANNOTATION_MIN_CHARS} and {ANNOTATION_MAX_CHARS:,} characters."
        raise BadRequest(detail, fields={"annotation": detail})
    return text


@transaction.atomic
def annotate(
    *, user: User, memory_id: UUID, text: str, author: MemoryRevision.Author, at: datetime
) -> Annotation:
    """Put a note on a live memory; the same note again changes nothing.

    Raises NotFound, BadRequest.
    """
    text = checked_note(text)
    by_model = author == MemoryRevision.Author.CURATOR
    if by_model and instructions.reads_like_an_instruction([text], Trust.INFERRED):
        raise BadRequest("The note reads like an instruction. State what is known, nothing else.")
    storage.lock(user)
    if not Memory.objects.for_user(user).live().filter(id=memory_id).exists():
        raise NotFound("There is no such memory, or it is archived.")
    note: Annotation
    note, made = Annotation.objects.get_or_create(
        user=user, memory_id=memory_id, text=text, defaults={"author": author, "created_at": at}
    )
    if made:
        log.info("memory.annotated", memory=memory_id.hex[:8], author=str(author))
    return note


def touch(*, user: User, memory_ids: Sequence[UUID], segment_id: UUID | None, at: datetime) -> int:
    """Note that these memories were used, once a segment each. Returns how many were new."""
    new = accesses.record(
        user, memory_ids, segment_id=segment_id, kind=MemoryAccess.Kind.USED, at=at
    )
    return len(new)
