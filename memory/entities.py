"""People, places, things by name: merging and unmerging them, correcting and forgetting them.

Merging turns pointers and moves nothing, so unmerging brings back what was. Every write takes the
person's lock, so that two merges at once cannot make a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Q

from memory import naming, near_names
from memory.hubs import HubMemory, hub_memories
from memory.mentions import attach
from memory.models import Entity, EntityMergeProposal
from memory.storage import lock
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, Conflict, NotFound

__all__ = [
    "HubMemory",
    "Merged",
    "attach",
    "collect_garbage",
    "decide",
    "edit",
    "forget",
    "hub_memories",
    "merge",
    "unmerge",
]

log = structlog.get_logger(__name__)

FORGOTTEN_AFTER_USE_DAYS = 45  # spec memory 5.4, in use-days: an absence archives nothing
By = Entity.By


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The root that is left, and the roots that became names of it."""

    root: Entity
    moved: tuple[UUID, ...]


@transaction.atomic
def merge(
    *, user: User, ids: Sequence[UUID], into: UUID, at: datetime, by: str = By.PERSON
) -> Merged:
    """Say that these are names of one thing, known from now on as `into`; twice changes nothing.

    What was merged with any of them before comes along. Raises NotFound for an id that is not the
    user's, Conflict if their kinds cannot be of one thing.
    """
    lock(user)
    wanted = {*ids, into}
    rows = {row.id: row for row in _locked(user, Q(id__in=wanted))}
    if len(rows) != len(wanted):
        raise NotFound("There is no such entity.")
    roots = {row.id: row for row in _locked(user, Q(id__in={r.root_id for r in rows.values()}))}
    target = roots[rows[into].root_id]
    moving = [root for root in roots.values() if root.id != target.id]
    for root in moving:
        if not naming.compatible(root.entity_type, target.entity_type):
            raise Conflict("They are of different kinds. Change the kind of one of them first.")
    moved = [root.id for root in moving]
    every = Entity.objects.for_user(user)
    every.filter(canonical__in=moved).update(canonical=target)
    every.filter(id__in=moved).update(
        merged_into=target, canonical=target, merged_at=at, merged_by=by
    )
    if any(root.archived_at is None for root in moving) and target.archived_at is not None:
        every.filter(id=target.id).update(archived_at=None)
    _close_proposals(user, target.id, at=at, by=by)
    target.refresh_from_db()
    if moved:
        log.info("entity.merged", entity=target.short_id, names=len(moved), by=str(by))
    return Merged(root=target, moved=tuple(moved))


@transaction.atomic
def unmerge(*, user: User, entity_id: UUID, at: datetime, by: str = By.PERSON) -> Entity:
    """Make it a thing of its own again, with all that had been merged into it before.

    A root stays as it is. The pair is not proposed again. Raises NotFound.
    """
    lock(user)
    entity = _one(user, entity_id)
    parent_id = entity.merged_into_id
    if parent_id is None:
        return entity
    below = _below(user, entity)
    every = Entity.objects.for_user(user)
    every.filter(id=entity.id).update(
        merged_into=None, canonical=None, merged_at=None, merged_by=""
    )
    every.filter(id__in=below).update(canonical=entity)
    _refuse_pairs(user, entity, parent_id, {entity.id, *below}, at=at, by=by)
    entity.refresh_from_db()
    log.info("entity.unmerged", entity=entity.short_id, by=str(by))
    return entity


@transaction.atomic
def edit(
    *,
    user: User,
    entity_id: UUID,
    at: datetime,
    name: str | None = None,
    entity_type: str | None = None,
) -> Entity:
    """Correct what it is called, or its kind. The earlier name goes on leading to it.

    Raises NotFound, BadRequest for what is no name or kind, Conflict if another one has both.
    """
    lock(user)
    entity = _one(user, entity_id)
    earlier = entity.name
    if name is not None:
        entity.name = naming.cleaned(name)
        if not entity.name:
            raise BadRequest("Write a name.", fields={"name": "Write at least two letters."})
        entity.normalised = naming.key(entity.name)
    if entity_type is not None:
        if entity_type not in Entity.Type.values:
            kinds = ", ".join(Entity.Type.values)
            raise BadRequest("Choose a kind.", fields={"entity_type": f"One of {kinds}."})
        entity.entity_type = entity_type
    _refuse_twin(user, entity)
    entity.save(update_fields=["name", "normalised", "entity_type"])
    if naming.key(earlier) != entity.normalised:
        _keep_as_name(user, entity, earlier, at)
        near_names.index(user, [entity])
        near_names.propose(user, [entity], at=at)
    log.info("entity.edited", entity=entity.short_id)
    return entity


@transaction.atomic
def forget(*, user: User, entity_id: UUID) -> None:
    """Delete the entity and all that was merged into it. The memories stay. Raises NotFound."""
    lock(user)
    entity = _one(user, entity_id)
    short_id = entity.short_id
    entity.delete()
    log.info("entity.forgotten", entity=short_id)


@transaction.atomic
def decide(
    *,
    user: User,
    proposal_id: UUID,
    same: bool,
    at: datetime,
    by: str = By.PERSON,
    into: UUID | None = None,
) -> EntityMergeProposal:
    """Answer a proposal: merge the two, under the fuller name or `into`, or never ask again.

    A proposal that is decided already stays as it is. Raises NotFound, BadRequest if `into` is
    neither of the two, Conflict if their kinds do not fit any more.
    """
    lock(user)
    found = EntityMergeProposal.objects.for_user(user).select_related("first", "second")
    proposal: EntityMergeProposal | None = found.filter(id=proposal_id).first()
    if proposal is None:
        raise NotFound("There is no such question.")
    pair = (proposal.first_id, proposal.second_id)
    if into is not None and into not in pair:
        raise BadRequest("Choose one of the two.", fields={"into": "Neither of the two."})
    if proposal.status != EntityMergeProposal.Status.OPEN:
        return proposal
    if same:
        head = into or _fuller(proposal.first, proposal.second).id
        merge(user=user, ids=pair, into=head, at=at, by=by)
        proposal.refresh_from_db()
        return proposal
    proposal.status = EntityMergeProposal.Status.REFUSED
    proposal.decided_at, proposal.decided_by = at, by
    proposal.save(update_fields=["status", "decided_at", "decided_by"])
    return proposal


_GARBAGE = """
UPDATE memory_entities SET archived_at = %(at)s
WHERE user_id = %(user)s AND archived_at IS NULL AND coalesce(canonical_id, id) IN (
    SELECT coalesce(e.canonical_id, e.id)
    FROM memory_entities AS e
    LEFT JOIN memory_entity_links AS l ON l.entity_id = e.id AND l.user_id = e.user_id
    LEFT JOIN memory_memories AS m ON m.id = l.memory_id AND m.archived_at IS NULL
    WHERE e.user_id = %(user)s
    GROUP BY 1
    HAVING count(m.id) = 0 AND max(e.named_use_day) <= %(before)s
)
"""


def collect_garbage(user: User, *, at: datetime) -> int:
    """Archive what no live memory has named for many use-days; how many names. Naming it again
    brings it back."""
    before = accounts.use_days(user) - FORGOTTEN_AFTER_USE_DAYS
    with transaction.atomic(), connection.cursor() as cursor:
        lock(user)
        cursor.execute(_GARBAGE, {"user": user.pk, "at": at, "before": before})
        archived: int = cursor.rowcount
    if archived:
        log.info("entities.archived", names=archived)
    return archived


def _locked(user: User, which: Q) -> list[Entity]:
    return list(Entity.objects.for_user(user).select_for_update().filter(which).order_by("id"))


def _one(user: User, entity_id: UUID) -> Entity:
    found = _locked(user, Q(id=entity_id))
    if not found:
        raise NotFound("There is no such entity.")
    return found[0]


def _below(user: User, entity: Entity) -> set[UUID]:
    """Everything that was merged into it, or into what was."""
    tree = Entity.objects.for_user(user).filter(canonical=entity.root_id)
    pointers = list(tree.values_list("id", "merged_into"))
    below: set[UUID] = set()
    fringe = {entity.id}
    while fringe:
        fringe = {child for child, parent in pointers if parent in fringe}
        below |= fringe
    return below


def _fuller(first: Entity, second: Entity) -> Entity:
    """The name to go by: more words, then more letters, then the older one."""
    return max(
        (first, second),
        key=lambda one: (
            len(one.normalised.split()),
            len(one.normalised),
            -one.created_at.timestamp(),
        ),
    )


def _refuse_twin(user: User, entity: Entity) -> None:
    same = Entity.objects.for_user(user).filter(
        normalised=entity.normalised, entity_type=entity.entity_type
    )
    if same.exclude(id=entity.id).exists():
        raise Conflict("Another one has this name and kind already. Merge the two instead.")


def _keep_as_name(user: User, entity: Entity, earlier: str, at: datetime) -> None:
    """The earlier name as one more name of it, so that who uses it still means this."""
    alias = Entity.objects.create(
        user=user,
        name=earlier,
        normalised=naming.key(earlier),
        entity_type=entity.entity_type,
        merged_into=entity,
        canonical_id=entity.root_id,
        merged_at=at,
        merged_by=By.PERSON,
        created_at=at,
        named_use_day=entity.named_use_day,
    )
    near_names.index(user, [alias])


def _close_proposals(user: User, root_id: UUID, *, at: datetime, by: str) -> None:
    """Open questions about two names of one thing have their answer."""
    tree = Entity.objects.for_user(user).filter(Q(id=root_id) | Q(canonical=root_id))
    EntityMergeProposal.objects.for_user(user).filter(
        first__in=tree, second__in=tree, status=EntityMergeProposal.Status.OPEN
    ).update(status=EntityMergeProposal.Status.MERGED, decided_at=at, decided_by=by)


def _refuse_pairs(
    user: User, entity: Entity, parent_id: UUID, apart: set[UUID], *, at: datetime, by: str
) -> None:
    """Remember that `entity`, as it was before, and what is below it are not of its old tree."""
    refused = {
        "status": EntityMergeProposal.Status.REFUSED,
        "decided_at": at,
        "decided_by": by,
    }
    tree = Q(id=entity.root_id) | Q(canonical=entity.root_id)
    rest = Entity.objects.for_user(user).filter(tree).exclude(id__in=apart)
    between = Q(first__in=apart, second__in=rest) | Q(first__in=rest, second__in=apart)
    EntityMergeProposal.objects.for_user(user).filter(between).update(**refused)
    first, second = sorted((entity.id, parent_id))
    EntityMergeProposal.objects.get_or_create(
        user=user,
        first_id=first,
        second_id=second,
        defaults={**refused, "similarity": 0.0, "created_at": at},
    )
