"""Reads of what memories mention and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet

from memory import links, naming
from memory.models import (
    Entity,
    EntityMergeProposal,
    Memory,
    MemoryEntity,
    MemoryLink,
    MemoryQuerySet,
)
from mira_site.accounts.models import User
from mira_site.errors import NotFound

GRAPH_DEPTH_MAX = 4
GRAPH_NODES_MAX = 60  # more is a hairball; the nearest and weightiest are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSeen:
    """A link as one of its ends shows it; `outward` if it is read from that end to the other."""

    id: UUID
    memory_id: UUID
    text: str
    outward: bool
    link_type: str
    reasoning: str
    bond: str
    author: str
    weight: float
    confirmed_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An entity that a memory mentions, and under which name."""

    id: UUID
    name: str
    entity_type: str
    named: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What hangs on a memory directly: its links and the entities it mentions."""

    links: tuple[LinkSeen, ...] = ()
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entity with what a row of a list shows: live memories that mention it, other names."""

    entity: Entity
    memory_count: int
    names: tuple[Entity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    id: UUID
    text: str
    importance: float
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The memories around one, itself among them, and the links between any two of them."""

    nodes: tuple[Node, ...]
    links: tuple[MemoryLink, ...]
    is_cut: bool


def entities(user: User, *, q: str = "", entity_type: str = "") -> QuerySet[Entity]:
    """Roots in use, by name; with `q` those that have a name with these letters."""
    found = Entity.objects.for_user(user).filter(merged_into__isnull=True, archived_at__isnull=True)
    if entity_type:
        found = found.filter(entity_type=entity_type)
    if words := naming.key(q):
        named = Entity.objects.for_user(user).filter(normalised__contains=words)
        roots = {canonical or own for own, canonical in named.values_list("id", "canonical")}
        found = found.filter(id__in=roots)
    ordered: QuerySet[Entity] = found.order_by("normalised", "id")
    return ordered


def entity(user: User, entity_id: UUID) -> Entity:
    """Raises NotFound if the user has no such entity."""
    found: Entity | None = (
        Entity.objects.for_user(user).select_related("canonical").filter(id=entity_id).first()
    )
    if found is None:
        raise NotFound("There is no such entity.")
    return found


def names(user: User, root_ids: Sequence[UUID]) -> dict[UUID, list[Entity]]:
    """The other names of each of these roots, in the order they were merged."""
    found: dict[UUID, list[Entity]] = {root_id: [] for root_id in root_ids}
    merged = Entity.objects.for_user(user).filter(canonical__in=root_ids)
    for one in merged.order_by("merged_at", "name"):
        found[one.root_id].append(one)
    return found


_COUNTS = """
SELECT coalesce(e.canonical_id, e.id) AS root, count(DISTINCT m.id)
FROM memory_entities AS e
JOIN memory_entity_links AS l ON l.user_id = e.user_id AND l.entity_id = e.id
JOIN memory_memories AS m ON m.id = l.memory_id AND m.archived_at IS NULL
WHERE e.user_id = %(user)s AND (e.id = ANY(%(ids)s) OR e.canonical_id = ANY(%(ids)s))
GROUP BY root
"""
_MOST_MENTIONED = """
SELECT root.id
FROM memory_entities AS root
LEFT JOIN (
    SELECT coalesce(e.canonical_id, e.id) AS id, count(DISTINCT m.id) AS memories
    FROM memory_entities AS e
    JOIN memory_entity_links AS l ON l.user_id = e.user_id AND l.entity_id = e.id
    JOIN memory_memories AS m ON m.id = l.memory_id AND m.archived_at IS NULL
    WHERE e.user_id = %(user)s
    GROUP BY 1
) AS counted ON counted.id = root.id
WHERE root.user_id = %(user)s AND root.id = ANY(%(ids)s)
ORDER BY counted.memories DESC NULLS LAST, root.normalised, root.id
LIMIT %(limit)s OFFSET %(offset)s
"""


def counts(user: User, root_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many live memories mention each of these roots under any of its names."""
    if not root_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"user": user.pk, "ids": list(root_ids)})
        counted = dict(cursor.fetchall())
    return {root_id: counted.get(root_id, 0) for root_id in root_ids}


def most_mentioned(user: User, found: QuerySet[Entity], *, limit: int, offset: int) -> list[Entity]:
    """A stretch of `found`, those that most live memories mention first."""
    values: Mapping[str, Any] = {
        "user": user.pk,
        "ids": list(found.values_list("id", flat=True)),
        "limit": limit,
        "offset": offset,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOST_MENTIONED, values)
        ids = [row[0] for row in cursor.fetchall()]
    rows = {row.id: row for row in Entity.objects.for_user(user).filter(id__in=ids)}
    return [rows[entity_id] for entity_id in ids if entity_id in rows]


def listed(user: User, rows: Sequence[Entity]) -> list[Listed]:
    """The rows with the numbers and names of what each is a name of, in two statements."""
    roots = [row.root_id for row in rows]
    counted, named = counts(user, roots), names(user, roots)
    return [
        Listed(entity=row, memory_count=counted[row.root_id], names=tuple(named.get(row.id, ())))
        for row in rows
    ]


def mentioning(user: User, entity_id: UUID) -> Q:
    """The memories that mention what this is a name of, as a filter on Memory.

    Raises NotFound if the user has no such entity.
    """
    root_id = entity(user, entity_id).root_id
    tree = Q(entity=root_id) | Q(entity__canonical=root_id)
    mentions = MemoryEntity.objects.for_user(user).filter(tree)
    return Q(id__in=mentions.values("memory"))


def memories_of(user: User, entity_id: UUID) -> MemoryQuerySet:
    """The live memories that mention it under any name, newest first. Raises NotFound."""
    live = Memory.objects.for_user(user).live().filter(mentioning(user, entity_id))
    ordered: MemoryQuerySet = live.defer("embedding", "search_vector").order_by(
        "-created_at", "-id"
    )
    return ordered


def proposals(user: User) -> QuerySet[EntityMergeProposal]:
    """Open questions about names in use, the most alike first."""
    found: QuerySet[EntityMergeProposal] = (
        EntityMergeProposal.objects.for_user(user)
        .filter(
            status=EntityMergeProposal.Status.OPEN,
            first__archived_at__isnull=True,
            second__archived_at__isnull=True,
        )
        .select_related("first", "second")
        .order_by("-similarity", "created_at", "id")
    )
    return found


def around(user: User, memory_ids: Sequence[UUID], *, now: datetime) -> dict[UUID, Around]:
    """Links and mentions of each of the memories, in two statements.

    The other end of a link is one that may come up, even as past.
    """
    seen: dict[UUID, list[LinkSeen]] = {memory_id: [] for memory_id in memory_ids}
    visible = Memory.objects.for_user(user).visible(now, past=True).values("id")
    own = MemoryLink.objects.for_user(user)
    outward = own.filter(source__in=memory_ids, target__in=visible).annotate(
        text=F("target__text"), own_id=F("source"), other_id=F("target")
    )
    inward = own.filter(target__in=memory_ids, source__in=visible).annotate(
        text=F("source__text"), own_id=F("target"), other_id=F("source")
    )
    columns = (
        "id", "link_type", "reasoning", "bond", "author", "weight", "confirmed_at", "created_at",
        "text",
    )  # fmt: skip
    for rows, is_outward in ((outward, True), (inward, False)):
        for row in rows.order_by("created_at", "id").values("own_id", "other_id", *columns):
            row_of, other_id = row.pop("own_id"), row.pop("other_id")
            seen[row_of].append(LinkSeen(memory_id=other_id, outward=is_outward, **row))
    mentions = _mentions(user, memory_ids)
    return {
        memory_id: Around(links=tuple(found), mentions=tuple(mentions[memory_id]))
        for memory_id, found in seen.items()
    }


def _mentions(user: User, memory_ids: Sequence[UUID]) -> dict[UUID, list[Mention]]:
    found: dict[UUID, dict[UUID, Mention]] = {memory_id: {} for memory_id in memory_ids}
    rows = (
        MemoryEntity.objects.for_user(user)
        .filter(memory__in=memory_ids)
        .select_related("entity__canonical")
        .order_by("entity__normalised", "id")
    )
    for row in rows:
        root = row.entity.canonical or row.entity
        mention = Mention(
            id=root.id, name=root.name, entity_type=root.entity_type, named=row.entity.name
        )
        found[row.memory_id].setdefault(root.id, mention)
    return {memory_id: list(mentions.values()) for memory_id, mentions in found.items()}


def graph(user: User, memory_id: UUID, *, depth: int, now: datetime) -> Graph:
    """The memories at most `depth` hops around this one, what is past included.

    Raises NotFound if the user has no such memory.
    """
    columns = ("id", "text", "importance")
    own = Memory.objects.for_user(user).filter(id=memory_id).values(*columns).first()
    if own is None:
        raise NotFound("There is no such memory.")
    walked = links.traverse(
        user, [memory_id], depth=min(depth, GRAPH_DEPTH_MAX), now=now, past=True
    )
    walked.sort(key=lambda linked: (linked.depth, -linked.score))
    kept = walked[: GRAPH_NODES_MAX - 1]
    depths = {memory_id: 0, **{linked.memory_id: linked.depth for linked in kept}}
    rows = Memory.objects.for_user(user).filter(id__in=depths).values(*columns)
    nodes = [Node(depth=depths[row["id"]], **row) for row in rows]
    between = MemoryLink.objects.for_user(user).filter(source__in=depths, target__in=depths)
    return Graph(
        nodes=tuple(sorted(nodes, key=lambda node: (node.depth, -node.importance, node.id))),
        links=tuple(between.order_by("created_at", "id")),
        is_cut=len(walked) > len(kept),
    )
