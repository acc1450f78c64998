"""Causal links by rule, made as memories are stored: a cue proposes, likeness decides.

Callers hold `storage.lock(user)` in the transaction that stores the memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from memory import telling, visibility
from memory.causality import CAUSE_END
from memory.cues import Cue, cues
from memory.models import Memory, MemoryLink, Stakes
from memory.quoting import meaning
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

LOOK_BACK = 50  # memories of the wing before the new one; spec recall 5.1
LOOK_BACK_DAYS = 30
LIKENESS_MIN = 0.45  # spec recall 5.1
LIKENESS_MIN_AGAINST = 0.6  # of what replaces or contradicts
# "Because of that" names nothing: only what is plainly about the same thing can be meant.
LIKENESS_MIN_POINTING = 0.6
SHARED_NAME = 0.05  # added to the cosine for each entity that both mention
SHARED_NAMES_MAX = 3
_AGAINST: Final = (MemoryLink.Type.SUPERSEDES.value, MemoryLink.Type.CONFLICTS.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A memory that a new one may be linked with; `likeness` from 0 to 1."""

    memory_id: UUID
    text: str
    trust: int
    stakes: int
    likeness: float


def link(user: User, memories: Sequence[Memory], *, at: datetime) -> list[MemoryLink]:
    """Link these memories, stored just now, with earlier ones as their own words say.

    The target is the most alike of the LOOK_BACK visible memories of the same wing that were said
    before, at most LOOK_BACK_DAYS ago, and hold what the cue is about; each at most once for a new
    memory. Nothing is written below the least likeness, which also is the weight. A link that
    supersedes makes nothing past: the older is ranked down and labelled, and never if it is vital
    or more to be trusted than the newer. Returns what was written; a few statements if there
    are cues, none otherwise.
    """
    proposed = {one.id: (one, found) for one in memories if (found := cues(one.text))}
    if not proposed:
        return []
    earlier = _earlier(user, list(proposed), at=at)
    made = [
        made
        for memory, found in proposed.values()
        for made in _of(user, memory, found, earlier.get(memory.id, []), at=at)
    ]
    if made:
        MemoryLink.objects.bulk_create(made, ignore_conflicts=True)
        telling.linked(user, made)
        log.info("causes.detected", links=len(made), types=sorted({one.link_type for one in made}))
    return made


def _of(
    user: User, memory: Memory, found: Sequence[Cue], earlier: Sequence[_Earlier], *, at: datetime
) -> Iterator[MemoryLink]:
    taken: set[UUID] = set()
    for cue in found:
        fitting = (one for one in earlier if one.memory_id not in taken and _fits(memory, cue, one))
        target = next(fitting, None)
        if target is None:
            continue
        taken.add(target.memory_id)
        ends = (memory.id, target.memory_id)
        if CAUSE_END[cue.relation] == "source":  # what came before is the cause
            ends = (target.memory_id, memory.id)
        yield MemoryLink(
            user=user,
            source_id=ends[0],
            target_id=ends[1],
            link_type=cue.relation,
            reasoning=f"It says “{cue.cue}”.",
            author=MemoryLink.Author.RULE,
            weight=round(target.likeness, 3),
            created_at=at,
        )


def _fits(memory: Memory, cue: Cue, earlier: _Earlier) -> bool:
    least = LIKENESS_MIN
    if cue.relation in _AGAINST:
        least = LIKENESS_MIN_AGAINST
        if memory.trust < earlier.trust:  # hearsay never speaks against the person's word
            return False
    if cue.relation == MemoryLink.Type.SUPERSEDES and earlier.stakes == Stakes.VITAL:
        return False
    if not cue.words:
        return earlier.likeness >= max(least, LIKENESS_MIN_POINTING)
    return earlier.likeness >= least and cue.is_about(meaning(earlier.text))


# The vectors are compared after the newest are chosen, by the index on said_at.
_EARLIER = f"""
WITH new AS MATERIALIZED (
    SELECT m.id, m.embedding, m.embedding_model, m.wing, m.said_at, m.created_at,
           ARRAY(SELECT coalesce(e.canonical_id, e.id) FROM memory_entity_links AS l
                 JOIN memory_entities AS e ON e.id = l.entity_id AND e.user_id = %(user)s
                 WHERE l.user_id = %(user)s AND l.memory_id = m.id) AS names
    FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND m.id = ANY(%(ids)s) AND {visibility.SQL}
)
SELECT new.id, near.id, near.text, near.trust, near.stakes,
       least(1, greatest(0, -(near.embedding <#> new.embedding)) + %(bonus)s * least(%(most)s, (
           SELECT count(DISTINCT coalesce(e.canonical_id, e.id)) FROM memory_entity_links AS l
           JOIN memory_entities AS e ON e.id = l.entity_id AND e.user_id = %(user)s
           WHERE l.user_id = %(user)s AND l.memory_id = near.id
             AND coalesce(e.canonical_id, e.id) = ANY(new.names)
       ))) AS likeness
FROM new
CROSS JOIN LATERAL (
    SELECT m.id, m.text, m.trust, m.stakes, m.embedding
    FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND m.wing = new.wing AND {visibility.SQL}
      AND m.embedding_model = new.embedding_model
      AND m.said_at >= new.said_at - make_interval(days => {LOOK_BACK_DAYS})
      AND (m.said_at, m.created_at) < (new.said_at, new.created_at) AND m.id <> new.id
    ORDER BY m.said_at DESC, m.created_at DESC, m.id
    LIMIT {LOOK_BACK}
) AS near
ORDER BY new.id, likeness DESC, near.id
"""  # noqa: S608


def _earlier(
    user: User, memory_ids: Sequence[UUID], *, at: datetime
) -> Mapping[UUID, list[_Earlier]]:
    """What each of the memories may be linked with, the most alike first."""
    values: dict[str, Any] = {
        "user": user.pk,
        "ids": list(memory_ids),
        "now": at,
        "past": False,
        "bonus": SHARED_NAME,
        "most": SHARED_NAMES_MAX,
    }
    found: dict[UUID, list[_Earlier]] = {}
    names = ("memory_id", "text", "trust", "stakes", "likeness")
    with connection.cursor() as cursor:
        cursor.execute(_EARLIER, values)
        for new_id, *row in cursor.fetchall():
            found.setdefault(new_id, []).append(_Earlier(**dict(zip(names, row, strict=True))))
    return found
