"""Near names: found through keys in an index, judged by likeness, put to the person as a question.

Two names are never merged because they look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection

from memory import likeness, work
from memory.models import Entity, EntityKey, EntityMergeProposal, Work
from mira_site.accounts.models import User

CANDIDATES_MAX = 40  # names judged for each new one, those that share most keys
PROPOSALS_MAX = 3  # questions about one new name
WORK_SUBJECT = "names"  # of the background work in which a model looks at the strong ones

_CANDIDATES = """
SELECT new.id, near.entity_id
FROM unnest(%(ids)s::uuid[]) AS new (id)
CROSS JOIN LATERAL (
    SELECT other.entity_id
    FROM memory_entity_keys AS own
    JOIN memory_entity_keys AS other ON other.user_id = %(user)s AND other.key = own.key
    WHERE own.user_id = %(user)s AND own.entity_id = new.id AND other.entity_id <> new.id
    GROUP BY other.entity_id
    ORDER BY count(*) DESC, other.entity_id
    LIMIT %(limit)s
) AS near
"""


def index(user: User, entities: Sequence[Entity]) -> None:
    """Write the keys by which other names will find these; those of an earlier name go."""
    EntityKey.objects.for_user(user).filter(entity__in=entities).delete()
    EntityKey.objects.bulk_create(
        EntityKey(user=user, entity=entity, key=key)
        for entity in entities
        for key in sorted(likeness.search_keys(entity.name))
    )


def propose(user: User, entities: Sequence[Entity], *, at: datetime) -> None:
    """Ask about names that may be of the same things as these, which are indexed already.

    A pair is asked about once: one that was refused stays refused.
    """
    if not entities:
        return
    pairs = _candidates(user, [entity.id for entity in entities])
    ids = {candidate for _, candidate in pairs}
    stored = Entity.objects.for_user(user).filter(id__in=ids, archived_at__isnull=True)
    others = {entity.id: entity for entity in stored}
    asked = [
        _proposal(user, entity, other, like, at)
        for entity in entities
        for other, like in _alike(
            entity, [others[two] for one, two in pairs if one == entity.id and two in others]
        )
    ]
    EntityMergeProposal.objects.bulk_create(asked, ignore_conflicts=True)
    if any(proposal.similarity >= likeness.STRONG for proposal in asked):
        work.make_due(user, Work.Kind.ENTITY_MERGE, WORK_SUBJECT, at, again=True)


def _candidates(user: User, ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    with connection.cursor() as cursor:
        cursor.execute(_CANDIDATES, {"ids": list(ids), "user": user.pk, "limit": CANDIDATES_MAX})
        return cursor.fetchall()  # type: ignore[no-any-return]


def _alike(entity: Entity, others: Sequence[Entity]) -> list[tuple[Entity, likeness.Likeness]]:
    """The best, one of each tree of merged names."""
    found = [
        (other, like)
        for other in others
        if other.root_id != entity.root_id
        and (like := likeness.alike(entity.name, entity.entity_type, other.name, other.entity_type))
    ]
    found.sort(key=lambda pair: -pair[1].score)
    best: dict[UUID, tuple[Entity, likeness.Likeness]] = {}
    for other, like in found:
        best.setdefault(other.root_id, (other, like))
    return list(best.values())[:PROPOSALS_MAX]


def _proposal(
    user: User, one: Entity, two: Entity, like: likeness.Likeness, at: datetime
) -> EntityMergeProposal:
    first, second = sorted((one, two), key=lambda entity: entity.id)
    return EntityMergeProposal(
        user=user,
        first=first,
        second=second,
        similarity=like.score,
        reason=like.reason,
        created_at=at,
    )
