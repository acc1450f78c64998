"""Candidates for some phrases among one person's memories, by meaning and by words.

Every memory of the person is looked at, in the columns that the process keeps (index.py): how near
it is to each phrase, and which of the phrases' words it holds. Under row-level security PostgreSQL
would use neither the GIN index (its operator is not leakproof) nor would an approximate vector
index, which knows no owners, find enough of one person's rows: docs/adr/0009-vector-index.md.

A statement fetches what only the candidates are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

from memory import index as indexes
from memory import visibility
from memory.asking import Asked
from memory.constants import (
    CANDIDATES_MIN_PER_LEG,
    CANDIDATES_PER_LEG,
    NEAR_FLOOR,
    SESSION_TOP,
)
from memory.index import Flags, Index, Places
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that is near a phrase or shares words with it; one value a phrase, in their order.

    `similarities` are cosines, 0 without embeddings. `overlaps` are shares of a phrase's words that
    the memory holds, each word weighing more the fewer memories hold it; `words` are those, the
    rarest first. `is_replaced`: another memory that may come up supersedes it.
    """

    id: UUID
    importance: float
    similarities: tuple[float, ...]
    overlaps: tuple[float, ...]
    words: tuple[tuple[str, ...], ...]
    is_replaced: bool
    is_linked: bool

    @property
    def similarity(self) -> float:
        return max(self.similarities, default=0.0)

    @property
    def overlap(self) -> float:
        return max(self.overlaps, default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The candidates, by id. Arrays have a row a candidate; (n, p) has a column a phrase.

    `sessions` is how much of each phrase's words the best of its session hold; `before` and `after`
    are the rows of what was said directly before and after it, -1 where that is no candidate;
    `weights` say how telling each term is; `said_at` are seconds since 1970. `token_vectors` are as
    stored, empty where there are none; `vectors` (n, 384) are those of the texts; `conditions` say
    when a memory holds and whose word it is. `in_all` is how many memories were looked at.
    """

    asked: Asked
    ids: tuple[UUID, ...]
    importance: Floats
    similarities: Floats
    overlaps: Floats
    sessions: Floats
    held: npt.NDArray[np.int64]
    weights: Floats
    before: Places
    after: Places
    said_at: tuple[float, ...]
    speakers: tuple[str, ...]
    texts: tuple[str, ...]
    conditions: tuple[str, ...]
    is_replaced: Flags
    is_linked: Flags
    token_vectors: tuple[bytes, ...]
    vectors: Vectors
    in_all: int

    def __len__(self) -> int:
        return len(self.ids)

    def candidate(self, row: int) -> Candidate:
        held = int(self.held[row])
        words: list[tuple[str, ...]] = []
        for tokens in self.asked.tokens:
            shared = [bit for bit in tokens if held >> bit & 1]
            shared.sort(key=lambda bit: (-self.weights[bit], self.asked.terms[bit]))
            words.append(tuple(tokens[bit] for bit in shared))
        return Candidate(
            id=self.ids[row],
            importance=float(self.importance[row]),
            similarities=tuple(map(float, self.similarities[row])),
            overlaps=tuple(map(float, self.overlaps[row])),
            words=tuple(words),
            is_replaced=bool(self.is_replaced[row]),
            is_linked=bool(self.is_linked[row]),
        )


# `=` for the user would lead PostgreSQL to walk through all rows of the person; see index.py.
_DETAILS = f"""
SELECT m.id, m.importance, extract(epoch FROM m.said_at)::float8, m.speaker, m.text,
       concat_ws(' ', m.happens_at, m.expires_at, m.valid_from, m.valid_until, m.trust),
       m.id IN (
           SELECT l.target_id
           FROM memory_links AS l JOIN memory_memories AS m ON m.id = l.source_id
           WHERE l.user_id = %(user)s AND l.target_id = ANY(%(ids)s::uuid[])
             AND l.link_type = 'supersedes' AND m.user_id = %(user)s AND {visibility.SQL}
       ),
       m.id IN (
           SELECT target_id FROM memory_links
           WHERE user_id = %(user)s AND target_id = ANY(%(ids)s::uuid[])
           UNION ALL SELECT source_id FROM memory_links
           WHERE user_id = %(user)s AND source_id = ANY(%(ids)s::uuid[])
       ),
       t.vectors
FROM memory_memories AS m
LEFT JOIN memory_token_vectors AS t
  ON t.memory_id = m.id AND t.user_id = m.user_id AND t.embedding_model = %(model)s
WHERE m.user_id IS NOT DISTINCT FROM %(user)s AND m.id = ANY(%(ids)s::uuid[])
ORDER BY m.id
"""  # noqa: S608


def candidates(
    user: User,
    asked: Asked,
    *,
    now: datetime,
    past: bool = False,
    wanted: Sequence[UUID] = (),
    excluded: Sequence[UUID] = (),
    wing: str | None = None,
    room: str | None = None,
    include_hidden: bool = False,
) -> Pool:
    """The nearest and the best worded memories for each phrase, and what was said directly before
    and after them if that is near or holds a word too; few of all these are good.

    Only what may come up at `now` (visibility.py), unless `include_hidden`, and stands in the wing
    and the room, if any is given, whatever the case of their letters. The `wanted` are among them
    whatever they hold; the `excluded` take nobody's place. Two statements, and those of index.of.
    """
    index = indexes.of(user)
    seen = _Seen(
        asked,
        index,
        indexes.standing_in(index, wing=wing, room=room)
        & (include_hidden | index.visible(now, past=past)),
    )
    chosen = seen.chosen(wanted=wanted, excluded=excluded)
    ids = seen.hexes(chosen)
    values: dict[str, Any] = {
        "user": user.pk,
        "now": now,
        "past": past,
        # One text is written in a twentieth of the time that a list of ids takes.
        "ids": f"{{{','.join(ids)}}}",
        "model": embeddings.model_id() if asked.vectors else "",
    }
    with connection.bound_cursor(binary=True, prepared=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_DETAILS, values)
        details = cursor.fetchall()
    if len(details) < len(ids):  # some were deleted since the look
        left = {row[0].hex for row in details}
        chosen = chosen[[one in left for one in ids]]
    return seen.pool(chosen, details)


class _Seen:
    """What may come up, in the order of the ids: equal input, equal bytes, wherever the rows lie
    in the table."""

    def __init__(self, asked: Asked, index: Index, may_come: Flags) -> None:
        self._asked, self._index = asked, index
        self._rows = np.flatnonzero(may_come)
        self._in_all = len(self._rows)
        self._place_of = np.full(len(index) + 1, -1, dtype=np.intp)  # of rows; the last is of none
        self._place_of[self._rows] = np.arange(len(self._rows))
        held = np.zeros(len(index), dtype=np.int64)
        for bit, term in enumerate(asked.terms):
            held[index.holding(term)] |= 1 << bit
        self._held = held[self._rows]
        similarities = np.zeros((len(index), len(asked.phrases)), dtype=np.float32)
        if asked.vectors:
            similarities = index.similarities(asked.vectors)
        self._similarities = similarities[self._rows].astype(np.float64)
        self._weights, self._overlaps = self._shares()
        self._before, self._after = self._beside()

    def hexes(self, chosen: Places) -> list[str]:
        """Their ids."""
        packed = self._index.rows.ids[self._rows[chosen]].tobytes().hex()
        return [packed[at : at + 32] for at in range(0, len(packed), 32)]

    def _shares(self) -> tuple[Floats, Floats]:
        terms, phrases = len(self._asked.terms), len(self._asked.phrases)
        few = np.flatnonzero(self._held)
        bits = self._held[few, None] >> np.arange(terms) & 1
        held_by = np.maximum(0.5, bits.sum(axis=0))
        weights: Floats = np.log(1 + self._in_all / held_by)
        of_phrase = np.zeros((terms, phrases))
        for place, tokens in enumerate(self._asked.tokens):
            of_phrase[list(tokens), place] = weights[list(tokens)]
        whole = of_phrase.sum(axis=0)
        shares = np.zeros((len(self._rows), phrases))
        shares[few] = bits @ (of_phrase / np.where(whole > 0, whole, 1))
        return weights, shares

    def _beside(self) -> tuple[Places, Places]:
        """Of each row that of what was said directly before and after it, -1 for none."""
        index = self._index
        ordered = index.by_place[self._place_of[index.by_place] >= 0]
        positions, sessions = index.rows.positions[ordered], index.session_of[ordered]
        is_next = (sessions[1:] == sessions[:-1]) & (positions[1:] == positions[:-1] + 1)
        before = np.full(len(self._rows), -1, dtype=np.intp)
        after = before.copy()
        ordered = self._place_of[ordered]
        earlier, later = ordered[:-1][is_next], ordered[1:][is_next]
        before[later], after[earlier] = earlier, later
        return before, after

    def chosen(self, *, wanted: Sequence[UUID], excluded: Sequence[UUID]) -> Places:
        """Rows of the best of each leg, of what stands beside those, and of the wanted."""
        is_free = np.ones(len(self._rows), dtype=np.bool_)
        out = self._places(excluded)
        is_free[out] = False
        free = np.flatnonzero(is_free)
        legs = len(self._asked.phrases)
        limit = max(CANDIDATES_MIN_PER_LEG, CANDIDATES_PER_LEG // max(1, legs))
        chosen = np.zeros(len(self._rows), dtype=np.bool_)
        for place in range(legs):
            near, worded = self._similarities[:, place], self._overlaps[:, place]
            chosen[_best(free[near[free] >= NEAR_FLOOR], near, worded, limit)] = True
            chosen[_best(free[worded[free] > 0], worded, near, limit)] = True
        of_chosen = np.flatnonzero(chosen)
        beside = np.concatenate([self._before[of_chosen], self._after[of_chosen]])
        beside = beside[beside >= 0]
        is_near = self._similarities[beside].max(axis=1, initial=0) >= NEAR_FLOOR
        chosen[beside[is_near | (self._held[beside] != 0)]] = True
        chosen[self._places(wanted)] = True
        chosen[out] = True
        return np.flatnonzero(chosen)

    def _places(self, ids: Sequence[UUID]) -> Places:
        places = self._place_of[self._index.rows_of(ids)]
        found: Places = places[places >= 0]
        return found

    def _sessions(self, chosen: Places) -> Floats:
        """Of each the mean of the SESSION_TOP best shares of its session, of each phrase."""
        number = self._index.session_of[self._rows]
        is_asked = np.zeros(len(self._index) + 1, dtype=np.bool_)
        is_asked[number[chosen]] = True
        found = np.zeros((len(chosen), self._overlaps.shape[1]))
        for place in range(found.shape[1]):
            values = self._overlaps[:, place]
            few = np.flatnonzero(is_asked[number] & (values > 0))
            few = few[np.lexsort((-values[few], number[few]))]
            starts = np.flatnonzero(np.diff(number[few], prepend=-1))
            rank = np.arange(len(few)) - np.repeat(starts, np.diff(starts, append=len(few)))
            few = few[rank < SESSION_TOP]
            sums = np.bincount(number[few], values[few], minlength=len(is_asked))
            found[:, place] = sums[number[chosen]] / SESSION_TOP
        return found

    def pool(self, chosen: Places, details: Sequence[tuple[Any, ...]]) -> Pool:
        """`details` are the rows of _DETAILS, those of the `chosen` in their order."""
        place_of = np.full(len(self._rows) + 1, -1, dtype=np.intp)
        place_of[chosen] = np.arange(len(chosen))
        columns = list(zip(*details, strict=True)) or [()] * 9
        ids, importance, said_at, speakers, texts, conditions, *flags, vectors = columns
        is_replaced, is_linked = flags
        return Pool(
            asked=self._asked,
            ids=ids,
            importance=np.array(importance, dtype=np.float64),
            similarities=self._similarities[chosen],
            overlaps=self._overlaps[chosen],
            sessions=self._sessions(chosen),
            held=self._held[chosen],
            weights=self._weights,
            before=place_of[self._before[chosen]],
            after=place_of[self._after[chosen]],
            said_at=said_at,
            speakers=tuple(speakers),
            texts=tuple(texts),
            conditions=tuple(conditions),
            is_replaced=np.array(is_replaced, dtype=np.bool_),
            is_linked=np.array(is_linked, dtype=np.bool_),
            token_vectors=tuple(bytes(one) if one else b"" for one in vectors),
            vectors=self._index.rows.vectors[self._rows[chosen]],
            in_all=self._in_all,
        )


def _best(rows: Places, first: Floats, then: Floats, limit: int) -> Places:
    """Of the rows those of the highest values, of equal ones by the second value and the id."""
    if len(rows) <= limit:
        return rows
    values = first[rows]
    rows = rows[values >= np.partition(values, -limit)[-limit]]
    return rows[np.lexsort((-then[rows], -first[rows]))[:limit]]
