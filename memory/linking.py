"""Links as a person or a model says them: made, confirmed, taken away, with what follows of each.

What follows: a replaced memory is past, a contradiction is a question, and importance changes.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from memory import links, scores, storage, truth
from memory.models import MemoryLink
from mira_site.accounts.models import User
from mira_site.errors import NotFound

log = structlog.get_logger(__name__)

Type = MemoryLink.Type
CONFIRMED = "The person confirmed it."


@transaction.atomic
def link(
    *,
    user: User,
    source_id: UUID,
    target_id: UUID,
    link_type: str,
    reasoning: str,
    bond: str = "",
    author: str,
    at: datetime,
) -> MemoryLink:
    """Say how one memory bears on another. Raises what links.connect raises.

    One that supersedes also ends the other, as truth.supersede does.
    """
    made = None
    if link_type == Type.SUPERSEDES:
        made = truth.supersede(
            user, source_id, target_id, at=at, reasoning=reasoning, bond=bond, author=author
        )
    if made is None:  # also where it was replaced before: then the link alone is said anew
        made = links.connect(
            user,
            source_id,
            target_id,
            link_type=link_type,
            reasoning=reasoning,
            bond=bond,
            author=author,
            at=at,
        )
    scores.rescore(user, now=at, memory_ids=[target_id])
    return made


@transaction.atomic
def confirm(*, user: User, memory_id: UUID, link_id: UUID, at: datetime) -> MemoryLink:
    """The person says that a link at this memory is so. Twice changes nothing.

    With their word what only a cue said comes true: the replaced memory is past, and what
    contradicts is a question to settle. Raises NotFound if the memory has no such link; Conflict
    if the two are settled the other way round.
    """
    storage.lock(user)
    found = _found(user, memory_id, link_id)
    if found.confirmed_at is not None:
        return found
    why = found.reasoning or CONFIRMED
    if found.link_type == Type.SUPERSEDES:
        ends = (found.source_id, found.target_id)
        truth.supersede(user, *ends, at=at, reasoning=why, bond=found.bond, author=found.author)
    elif found.link_type == Type.CONFLICTS:
        ends = (found.target_id, found.source_id)
        truth.conflict(user, *ends, reasoning=why, at=at, author=found.author)
    found.confirmed_at = at
    found.save(update_fields=["confirmed_at", "weight"])  # they may have written the link anew
    scores.rescore(user, now=at, memory_ids=[found.source_id, found.target_id])
    log.info("memory.link_confirmed", link=found.short_id, type=found.link_type)
    return found


@transaction.atomic
def unlink(*, user: User, source_id: UUID, target_id: UUID, at: datetime) -> None:
    """Take a link away; what it said was replaced is true again. Raises NotFound if none is."""
    if not truth.let_go(user, source_id, target_id):
        links.disconnect(user, source_id, target_id)
    scores.rescore(user, now=at, memory_ids=[target_id])


@transaction.atomic
def remove(*, user: User, memory_id: UUID, link_id: UUID, at: datetime) -> None:
    """Take away a link at this memory, named by its own id or by the memory it leads to.

    Raises NotFound if there is none.
    """
    storage.lock(user)
    found = _found(user, memory_id, link_id)
    unlink(user=user, source_id=found.source_id, target_id=found.target_id, at=at)


def _found(user: User, memory_id: UUID, link_id: UUID) -> MemoryLink:
    own = Q(id=link_id) & (Q(source=memory_id) | Q(target=memory_id))
    leads_to = Q(source=memory_id, target=link_id)
    found: MemoryLink | None = MemoryLink.objects.for_user(user).filter(own | leads_to).first()
    if found is None:
        raise NotFound("There is no such link.")
    return found
