"""The causal graph: which links say what led to what, and chains of causes and consequences.

There is one table of links and one vocabulary. Five of its types are causal; of each the two ends
are a cause (upstream) and an effect (downstream), as `CAUSE_END` says. A cause that contradicts or
was replaced is what came first: what is said now is an answer to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from django.db import connection

from memory import visibility
from memory.instructions import reads_like_an_instruction
from memory.models import Memory, MemoryLink
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound

CHAIN_DEPTH = 5  # spec recall 5.2
CHAIN_DEPTH_MAX = 10
CHAIN_NODES_MAX = 200  # of causes, and as many consequences

Type = MemoryLink.Type
End = Literal["source", "target", "older"]
# Which end of a link is the cause; the names of the reference (spec recall 5.1) beside ours.
CAUSE_END: Final[Mapping[str, End]] = {
    Type.BECAUSE.value: "target",  # BECAUSE: source, because of target
    Type.TRIGGERED.value: "source",  # TRIGGERED: source triggered target
    Type.RESOLVES.value: "target",  # RESOLVES: source resolves target
    Type.SUPERSEDES.value: "target",  # UPDATES: source replaces target
    Type.CONFLICTS.value: "older",  # CONTRADICTS: what was said first
}
CAUSAL: Final = tuple(CAUSE_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalNode:
    """A memory of a chain, `depth` links away; reached from `via_id` by the link `link_id`.

    `via_id` is the memory the chain started from, or another node of the same direction.
    `is_past`: it is no longer true. `reads_like_an_instruction`: it asks to be obeyed; it is data.
    """

    id: UUID
    text: str
    memory_type: str
    said_at: datetime
    depth: int
    relation: str
    weight: float
    via_id: UUID
    link_id: UUID
    author: str
    reasoning: str
    confirmed_at: datetime | None
    is_past: bool
    reads_like_an_instruction: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalChain:
    """What led to a memory and, where asked for, what came of it; nearest first, surest first."""

    memory_id: UUID
    causes: tuple[CausalNode, ...] = ()
    consequences: tuple[CausalNode, ...] = ()


def _types(end: End) -> str:
    return ", ".join(f"'{kind}'" for kind, cause in CAUSE_END.items() if cause == end)


# Each link of the frontier with its two ends read as (here, there); one branch an index.
_STEP = """
SELECT DISTINCT ON (m.id)
       m.id, m.text, m.memory_type, m.said_at, l.link_type, l.weight, l.here_id, l.id, l.author,
       l.reasoning, l.confirmed_at,
       m.valid_until IS NOT NULL AND m.valid_until <= %(now)s, m.trust
FROM (
    SELECT source_id AS here_id, target_id AS there_id, id, link_type, weight, author, reasoning,
           confirmed_at, {out} AS fits
    FROM memory_links WHERE user_id = %(user)s AND source_id = ANY(%(frontier)s)
    UNION ALL
    SELECT target_id, source_id, id, link_type, weight, author, reasoning, confirmed_at, {back}
    FROM memory_links WHERE user_id = %(user)s AND target_id = ANY(%(frontier)s)
) AS l
JOIN memory_memories AS here ON here.id = l.here_id AND here.user_id = %(user)s
JOIN memory_memories AS m ON m.id = l.there_id AND m.user_id = %(user)s
WHERE (l.fits OR l.link_type IN ({older}) AND {before})
  AND m.id <> ALL(%(seen)s) AND {visible}
ORDER BY m.id, l.weight DESC, l.id
"""
_EARLIER = "(m.said_at, m.created_at, m.id) < (here.said_at, here.created_at, here.id)"


def _step(*, upstream: bool) -> str:
    to_target, to_source = (
        f"link_type IN ({_types('target')})",
        f"link_type IN ({_types('source')})",
    )
    out, back = (to_target, to_source) if upstream else (to_source, to_target)
    before = _EARLIER if upstream else f"NOT {_EARLIER}"
    return _STEP.format(
        out=out, back=back, older=_types("older"), before=before, visible=visibility.SQL
    )


_CAUSES, _CONSEQUENCES = _step(upstream=True), _step(upstream=False)


def chain(
    user: User,
    memory_id: UUID,
    *,
    max_depth: int = CHAIN_DEPTH,
    include_consequences: bool = False,
    now: datetime,
) -> CausalChain:
    """What led to this memory, and with `include_consequences` what came of it.

    Breadth-first, each memory once for a direction, never the one asked about, at most
    CHAIN_NODES_MAX for a direction; one statement a level. Only what may come up at `now`, what is
    past included and marked. Raises NotFound if the user has no such memory, BadRequest for a depth
    outside 1 to CHAIN_DEPTH_MAX.
    """
    if not 1 <= max_depth <= CHAIN_DEPTH_MAX:
        problem = f"Give a depth from 1 to {CHAIN_DEPTH_MAX}."
        raise BadRequest(problem, fields={"max_depth": problem})
    if not Memory.objects.for_user(user).filter(id=memory_id).exists():
        raise NotFound("There is no such memory.")
    causes = _walk(user, _CAUSES, memory_id, max_depth, now)
    found = _walk(user, _CONSEQUENCES, memory_id, max_depth, now) if include_consequences else ()
    return CausalChain(memory_id=memory_id, causes=causes, consequences=found)


def _walk(
    user: User, step: str, start: UUID, max_depth: int, now: datetime
) -> tuple[CausalNode, ...]:
    nodes: list[CausalNode] = []
    frontier = [start]
    for depth in range(1, max_depth + 1):
        seen = [start, *(node.id for node in nodes)]
        level = [
            _node(row, depth)
            for row in _rows(
                step,
                {"user": user.pk, "frontier": frontier, "seen": seen, "now": now, "past": True},
            )
        ]
        level.sort(key=lambda node: (-node.weight, node.id))
        nodes += level[: CHAIN_NODES_MAX - len(nodes)]
        frontier = [node.id for node in nodes if node.depth == depth]
        if not frontier or len(nodes) >= CHAIN_NODES_MAX:
            break
    return tuple(nodes)


def _rows(step: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(step, values)
        return cursor.fetchall()  # type: ignore[no-any-return]


def _node(row: tuple[Any, ...], depth: int) -> CausalNode:
    names = (
        "id", "text", "memory_type", "said_at", "relation", "weight", "via_id", "link_id",
        "author", "reasoning", "confirmed_at", "is_past", "trust",
    )  # fmt: skip
    found = dict(zip(names, row, strict=True))
    is_suspect = reads_like_an_instruction((found["text"],), found.pop("trust"))
    return CausalNode(depth=depth, reads_like_an_instruction=is_suspect, **found)
