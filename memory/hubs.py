"""Memories by way of the names they mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory import likeness, naming, visibility
from memory.storage import literal
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

HUB_ENTITIES_MAX = 5  # spec memory 5.5
HUB_MEMORIES_EACH = 15  # the newest of each; spec memory 5.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HubMemory:
    """A memory that mentions `name`; `similarity` is its cosine to the query."""

    id: UUID
    similarity: float
    name: str


# A name that is a key of its own comes before one whose words others contain: "Jana" finds Jana,
# or else Jana Novak. Each leads to the root of its merges, and from there to every name of it.
_HUBS = f"""
WITH asked AS (
    SELECT place, normalised, key
    FROM unnest(%(places)s::int[], %(normalised)s::text[], %(keys)s::text[])
         AS given (place, normalised, key)
),
exact AS (
    SELECT DISTINCT asked.place, coalesce(e.canonical_id, e.id) AS root
    FROM asked JOIN memory_entities AS e
      ON e.user_id = %(user)s AND e.normalised = asked.normalised AND e.archived_at IS NULL
),
loose AS (
    SELECT asked.place, coalesce(e.canonical_id, e.id) AS root
    FROM asked
    JOIN memory_entity_keys AS k ON k.user_id = %(user)s AND k.key = asked.key
    JOIN memory_entities AS e ON e.id = k.entity_id AND e.archived_at IS NULL
    WHERE asked.place NOT IN (SELECT place FROM exact)
    GROUP BY asked.place, e.id
    HAVING count(*) = (SELECT count(*) FROM asked AS every WHERE every.place = asked.place)
),
hubs AS (
    SELECT root, min(rank) AS rank
    FROM (SELECT root, place AS rank FROM exact
          UNION ALL SELECT root, place + 1000 FROM loose) AS found
    GROUP BY root ORDER BY rank, root LIMIT {HUB_ENTITIES_MAX}
),
near AS (
    SELECT DISTINCT ON (newest.id) newest.id, newest.similarity, head.name
    FROM hubs
    JOIN memory_entities AS head ON head.id = hubs.root
    CROSS JOIN LATERAL (
        SELECT m.id, CASE WHEN m.embedding_model = %(model)s
                     THEN -(m.embedding <#> %(vector)s::vector) ELSE 0 END AS similarity
        FROM memory_memories AS m
        WHERE m.user_id = %(user)s AND m.id IN (
            SELECT l.memory_id FROM memory_entity_links AS l
            WHERE l.user_id = %(user)s AND l.entity_id IN (
                SELECT id FROM memory_entities
                WHERE user_id = %(user)s AND (id = hubs.root OR canonical_id = hubs.root)
            )
        ) AND {visibility.SQL}
        ORDER BY m.created_at DESC, m.id
        LIMIT {HUB_MEMORIES_EACH}
    ) AS newest
    ORDER BY newest.id, hubs.rank
)
SELECT id, similarity, name FROM near ORDER BY similarity DESC, id LIMIT %(limit)s
"""  # noqa: S608


def hub_memories(
    user: User,
    names: Sequence[str],
    vector: Vectors,
    *,
    limit: int,
    now: datetime,
    past: bool = False,
) -> list[HubMemory]:
    """The memories that mention the names, or what they are names of, nearest to `vector` first.

    One statement; likeness to the vector (zeros without embeddings) ranks and never rejects. Only
    what may come up at `now`.
    """
    places: list[int] = []
    normalised: list[str] = []
    keys: list[str] = []
    for place, name in enumerate(dict.fromkeys(filter(None, map(naming.cleaned, names)))):
        for key in sorted(likeness.word_keys(name)):
            places.append(place)
            normalised.append(naming.key(name))
            keys.append(key)
    if not places:
        return []
    values: dict[str, Any] = {
        "places": places,
        "normalised": normalised,
        "keys": keys,
        "user": user.pk,
        "vector": literal(vector),
        "model": embeddings.model_id() if vector.any() else "",
        "now": now,
        "past": past,
        "limit": limit,
    }
    # Planning it takes three times as long as doing it.
    with connection.bound_cursor(prepared=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_HUBS, values)
        return [
            HubMemory(id=memory_id, similarity=similarity, name=name)
            for memory_id, similarity, name in cursor.fetchall()
        ]
