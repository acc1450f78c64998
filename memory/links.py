"""Links between memories: made and unmade, walked in both directions, and where to look for them.

Every walk and search is one statement, and only sees what may come up (visibility.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import structlog
from django.db import DatabaseError, connection, transaction

from memory import telling, visibility
from memory.constants import LINK_WEIGHT
from memory.models import Memory, MemoryLink
from memory.storage import lock
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound

log = structlog.get_logger(__name__)

REASONING_MIN_CHARS = 5  # spec memory 4.3
REASONING_MAX_CHARS = 500
BOND_MAX_CHARS = 60
TRAVERSAL_DEPTH = 3  # hops; spec memory 4.5
LINKED_PER_PRIMARY = 2  # spec memory 7.6
LINKED_SHARE = 0.7  # of the linked memory's importance in a score; the primary's has the rest
# How much a link of each type says for its other end; spec memory 4.1, the causal three by us.
TYPE_WEIGHTS: Mapping[str, float] = {
    "conflicts": 1.0,
    "corroborates": 0.9,
    "supersedes": 0.9,
    "because": 0.9,
    "triggered": 0.9,
    "resolves": 0.9,
    "refines": 0.8,
    "exemplifies": 0.75,
    "precedes": 0.7,
    "contextualizes": 0.7,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A memory that hangs together with a primary, `depth` hops away, reached from `from_id`.

    `outward` says that the link is read from `from_id` to it. `score` is the weight of the link's
    type times a mean of both importances; it compares the links of one walk.
    """

    primary_id: UUID
    memory_id: UUID
    from_id: UUID
    link_type: str
    reasoning: str
    bond: str
    outward: bool
    depth: int
    score: float


@transaction.atomic
def connect(
    user: User,
    source_id: UUID,
    target_id: UUID,
    *,
    link_type: str,
    reasoning: str,
    bond: str = "",
    author: str,
    at: datetime,
) -> MemoryLink:
    """Say how one live memory bears on another; a second write on the pair replaces the first.

    Only a rule may leave out why. Raises NotFound for an id that is none of the user's live
    memories, BadRequest for anything else that does not fit.
    """
    reasoning, bond = (" ".join(text.replace("\x00", "").split()) for text in (reasoning, bond))
    _check(source_id, target_id, link_type=link_type, reasoning=reasoning, author=author)
    lock(user)
    ends = Memory.objects.for_user(user).live().filter(id__in=(source_id, target_id))
    # Locked in one order, so that the ends cannot be archived meanwhile and two writers cannot
    # wait for each other.
    if len(ends.select_for_update().order_by("id").values_list("id")) != 2:
        raise NotFound("There is no such memory, or it is archived.")
    link, made = MemoryLink.objects.update_or_create(
        user=user,
        source_id=source_id,
        target_id=target_id,
        defaults={
            "link_type": link_type,
            "reasoning": reasoning[:REASONING_MAX_CHARS],
            "bond": bond[:BOND_MAX_CHARS],
            "author": author,
            "weight": LINK_WEIGHT,
            "confirmed_at": at if author == MemoryLink.Author.PERSON else None,
            "created_at": at,
        },
    )
    if made:
        telling.linked(user, [link])
    log.info("memory.linked", link=link.short_id, type=link_type, author=author, replaced=not made)
    return link  # type: ignore[no-any-return]


@transaction.atomic
def disconnect(user: User, source_id: UUID, target_id: UUID) -> None:
    """Take the link from one memory to the other away. Raises NotFound if there is none."""
    lock(user)
    pair = MemoryLink.objects.for_user(user).filter(source=source_id, target=target_id)
    deleted, _ = pair.delete()
    if not deleted:
        raise NotFound("There is no such link.")
    log.info("memory.unlinked", source=source_id.hex[:8], target=target_id.hex[:8])


def _check(
    source_id: UUID, target_id: UUID, *, link_type: str, reasoning: str, author: str
) -> None:
    wrong: dict[str, str] = {}
    if source_id == target_id:
        wrong["target"] = "A memory cannot be linked to itself."
    if link_type not in MemoryLink.Type.values:
        wrong["link_type"] = f"Choose one of {', '.join(MemoryLink.Type.values)}."
    if author != MemoryLink.Author.RULE and len(reasoning) < REASONING_MIN_CHARS:
        wrong["reasoning"] = f"Say why, in {REASONING_MIN_CHARS} characters or more."
    if wrong:
        raise BadRequest("Some fields need another value; see errors.", fields=wrong)


_WEIGHT = (
    "CASE l.link_type "
    + " ".join(f"WHEN '{kind}' THEN {weight}" for kind, weight in TYPE_WEIGHTS.items())
    + " END"
)
# UNION drops what a walk reaches twice at one depth, so that a dense net costs depth × memories
# and never the number of paths; DISTINCT ON then keeps the shortest way: the visited set.
_WALK = f"""
WITH RECURSIVE walk (primary_id, memory_id, depth) AS (
    SELECT m.id, m.id, 0 FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND m.id = ANY(%(ids)s)
    UNION
    SELECT walk.primary_id, m.id, walk.depth + 1
    FROM walk
    CROSS JOIN LATERAL (
        SELECT target_id AS id FROM memory_links
        WHERE user_id = %(user)s AND source_id = walk.memory_id
        UNION ALL
        SELECT source_id FROM memory_links
        WHERE user_id = %(user)s AND target_id = walk.memory_id
    ) AS near
    JOIN memory_memories AS m ON m.id = near.id AND m.user_id = %(user)s
    WHERE walk.depth < %(depth)s AND {visibility.SQL}
),
reached AS MATERIALIZED (
    SELECT DISTINCT ON (primary_id, memory_id) primary_id, memory_id, depth
    FROM walk ORDER BY primary_id, memory_id, depth
)
SELECT DISTINCT ON (reached.primary_id, reached.memory_id)
       reached.primary_id, reached.memory_id, before.memory_id AS from_id,
       l.link_type, l.reasoning, l.bond, l.source_id = before.memory_id AS outward, reached.depth,
       {_WEIGHT} * ({LINKED_SHARE} * other.importance + {1 - LINKED_SHARE:.1f} * own.importance)
FROM reached
JOIN reached AS before
  ON before.primary_id = reached.primary_id AND before.depth = reached.depth - 1
JOIN memory_links AS l ON l.user_id = %(user)s
 AND (l.source_id, l.target_id) IN (
     (before.memory_id, reached.memory_id), (reached.memory_id, before.memory_id))
JOIN memory_memories AS other ON other.id = reached.memory_id
JOIN memory_memories AS own ON own.id = reached.primary_id
WHERE reached.depth > 0
ORDER BY reached.primary_id, reached.memory_id, {_WEIGHT} DESC, l.id
"""  # noqa: S608


def traverse(
    user: User, memory_ids: Sequence[UUID], *, depth: int, now: datetime, past: bool = False
) -> list[Linked]:
    """What is at most `depth` hops from each of the memories, in either direction, best first.

    Each once for a primary, by the shortest way; depth below 1 gives nothing. What may not come up
    at `now` (with `past`: even as past) is neither given nor walked through.
    """
    if depth < 1 or not memory_ids:
        return []
    values: dict[str, Any] = {
        "user": user.pk,
        "ids": list(memory_ids),
        "depth": depth,
        "now": now,
        "past": past,
    }
    names = (
        "primary_id", "memory_id", "from_id", "link_type", "reasoning", "bond", "outward",
        "depth", "score",
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_WALK, values)
        found = [Linked(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
    return sorted(found, key=lambda linked: (-linked.score, linked.depth, linked.memory_id))


def beside(
    user: User,
    memory_ids: Sequence[UUID],
    *,
    now: datetime,
    past: bool = False,
    depth: int = TRAVERSAL_DEPTH,
    per_primary: int = LINKED_PER_PRIMARY,
) -> dict[UUID, list[Linked]]:
    """The few linked memories to show with each primary: no primary, and each only once in all."""
    taken = set(memory_ids)
    chosen: dict[UUID, list[Linked]] = {memory_id: [] for memory_id in memory_ids}
    for linked in traverse(user, memory_ids, depth=depth, now=now, past=past):
        mine = chosen[linked.primary_id]
        if linked.memory_id not in taken and len(mine) < per_primary:
            taken.add(linked.memory_id)
            mine.append(linked)
    return chosen


# --- Where to look for links -------------------------------------------------------------------
# With MiniLM, over 701 statements of two LoCoMo conversations: above 0.65 pairs are about one thing
# and there are 1.5 for each statement, below they share a topic, and there are 2 in each step of
# 0.05. The spec's 0.75 leaves 0.2. A shared name is evidence of its own, so less will do there.
NEAR_COSINE = 0.65
NEAR_MAX = 20  # spec memory 4.2
ENTITY_COSINE = 0.40
ENTITY_MAX = 20
WORDS_COSINE = 0.20  # of the weighted words; spec memory 4.2
WORDS_MAX = 10

Signal = Literal["vector", "entity", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A memory that may be linked to another, and what says so; no link exists between them."""

    memory_id: UUID
    signal: Signal
    similarity: float


# A link that only a cue made (causes.py) settles nothing: a model looks at the pair all the same.
_UNLINKED = """
    NOT EXISTS (SELECT 1 FROM memory_links AS l WHERE l.user_id = %(user)s AND (
        l.source_id = new.id AND l.target_id = m.id
        OR l.source_id = m.id AND l.target_id = new.id)
        AND (l.author <> 'rule' OR l.confirmed_at IS NOT NULL OR l.link_type = 'conflicts'))
"""
_NEW = """
    SELECT id, embedding, embedding_model FROM memory_memories
    WHERE user_id = %(user)s AND id = ANY(%(ids)s)
"""
_BY_VECTOR = f"""
SELECT new.id, near.id, near.similarity
FROM ({_NEW}) AS new
CROSS JOIN LATERAL (
    SELECT m.id, -(m.embedding <#> new.embedding) AS similarity
    FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND m.id <> new.id AND {visibility.SQL} AND {_UNLINKED}
      AND m.embedding_model = new.embedding_model
    ORDER BY m.embedding <#> new.embedding, m.id
    LIMIT {NEAR_MAX}
) AS near
WHERE near.similarity >= {NEAR_COSINE}
ORDER BY near.similarity DESC
"""  # noqa: S608
_BY_ENTITY = f"""
SELECT new.id, near.id, near.similarity
FROM ({_NEW}) AS new
CROSS JOIN LATERAL (
    SELECT m.id, -(m.embedding <#> new.embedding) AS similarity
    FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND m.id <> new.id AND {visibility.SQL} AND {_UNLINKED}
      AND m.embedding_model = new.embedding_model AND m.id IN (
        SELECT shared.memory_id
        FROM memory_entity_links AS own
        JOIN memory_entities AS named ON named.id = own.entity_id
        JOIN memory_entities AS same ON same.user_id = %(user)s
         AND coalesce(same.canonical_id, same.id) = coalesce(named.canonical_id, named.id)
        JOIN memory_entity_links AS shared
          ON shared.user_id = %(user)s AND shared.entity_id = same.id
        WHERE own.user_id = %(user)s AND own.memory_id = new.id
      )
    ORDER BY m.embedding <#> new.embedding, m.id
    LIMIT {ENTITY_MAX}
) AS near
WHERE near.similarity >= {ENTITY_COSINE}
ORDER BY near.similarity DESC
"""  # noqa: S608
# Words weigh ln(1 + n / df): with one or two memories they still weigh something.
_BY_WORDS = f"""
WITH words AS MATERIALIZED (
    SELECT m.id, w.lexeme FROM memory_memories AS m, unnest(m.search_vector) AS w
    WHERE m.user_id = %(user)s AND (m.id = ANY(%(ids)s) OR {visibility.SQL})
),
weights AS MATERIALIZED (
    SELECT lexeme, ln(1 + (SELECT count(DISTINCT id) FROM words)::float / count(*)) AS weight
    FROM words GROUP BY lexeme
),
lengths AS MATERIALIZED (
    SELECT id, sqrt(sum(weight * weight)) AS length
    FROM words JOIN weights USING (lexeme) GROUP BY id
),
alike AS (
    SELECT one.id AS new_id, two.id,
           sum(weight * weight) / (min(a.length) * min(b.length)) AS similarity
    FROM words AS one
    JOIN words AS two ON two.lexeme = one.lexeme AND two.id <> one.id
    JOIN weights ON weights.lexeme = one.lexeme
    JOIN lengths AS a ON a.id = one.id
    JOIN lengths AS b ON b.id = two.id
    WHERE one.id = ANY(%(ids)s)
    GROUP BY one.id, two.id
),
ranked AS (
    SELECT new.id AS new_id, m.id, alike.similarity,
           row_number() OVER (PARTITION BY new.id ORDER BY alike.similarity DESC, m.id) AS place
    FROM alike
    JOIN ({_NEW}) AS new ON new.id = alike.new_id
    JOIN memory_memories AS m ON m.id = alike.id
    WHERE alike.similarity >= {WORDS_COSINE} AND {visibility.SQL} AND {_UNLINKED}
)
SELECT new_id, id, similarity FROM ranked WHERE place <= {WORDS_MAX} ORDER BY similarity DESC
"""  # noqa: S608
_AXES: tuple[tuple[Signal, str], ...] = (
    ("vector", _BY_VECTOR),
    ("entity", _BY_ENTITY),
    ("words", _BY_WORDS),
)


def hints(user: User, memory_ids: Sequence[UUID], *, now: datetime) -> dict[UUID, list[Hint]]:
    """For each of the memories, those that may be linked to it: near, of one name, of like words.

    One statement an axis, whatever the number of memories. An axis that fails is logged and left
    out, and takes nothing from the others. A candidate is given once, by its first axis.
    """
    found: dict[UUID, dict[UUID, Hint]] = {memory_id: {} for memory_id in memory_ids}
    if not found:
        return {}
    values = {"user": user.pk, "ids": list(found), "now": now, "past": False}
    for signal, statement in _AXES:
        for new_id, memory_id, similarity in _axis(signal, statement, values):
            hint = Hint(memory_id=memory_id, signal=signal, similarity=similarity)
            found[new_id].setdefault(memory_id, hint)
    return {memory_id: list(candidates.values()) for memory_id, candidates in found.items()}


def _axis(
    signal: Signal, statement: str, values: Mapping[str, Any]
) -> list[tuple[UUID, UUID, float]]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()  # type: ignore[no-any-return]
    except DatabaseError as error:
        log.warning("hints.axis_failed", axis=signal, error=type(error).__name__)
        return []
