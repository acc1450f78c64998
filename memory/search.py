"""Candidates for some phrases among one person's memories, by meaning and by words.

Every row of the person is looked at once, through the index on the user, and both its distance to
each phrase and the phrases' words in it are taken from there: reaching the row is what costs, what
is computed on it hardly does. Under row-level security PostgreSQL would use neither the GIN index
(its operator is not leakproof) nor would an approximate vector index, which knows no owners, find
enough of one person's rows. docs/adr/0009-vector-index.md has the figures.

What is near or holds a word comes back as bytes, some 50 a row, and numpy chooses among it; a
second statement fetches what only the candidates are asked for.
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

from memory import visibility
from memory.asking import Asked
from memory.constants import (
    CANDIDATES_MIN_PER_LEG,
    CANDIDATES_PER_LEG,
    EMBEDDING_DIMENSIONS,
    NEAR_FLOOR,
    SESSION_TOP,
)
from memory.storage import literal
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
_HALFVEC_HEADER = 2  # numbers before the vector: dimensions and flags


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
    stored, empty where there are none; `embeddings` in half precision, see `vectors`; `conditions`
    say when a memory holds and whose word it is. `in_all` is how many memories were looked at.
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
    embeddings: tuple[bytes, ...]
    in_all: int

    def __len__(self) -> int:
        return len(self.ids)

    def vectors(self, rows: Places) -> Vectors:
        """Of these memories, float32 (n, 384), as near to unit length as half precision is."""
        sent = np.frombuffer(b"".join(self.embeddings[row] for row in rows), dtype=">u2")
        table = sent.reshape(len(rows), _HALFVEC_HEADER + EMBEDDING_DIMENSIONS)
        halves = table[:, _HALFVEC_HEADER:].astype(np.uint16)
        vectors: Vectors = halves.view(np.float16).astype(np.float32)
        return vectors

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


# A long text is as near as its nearest passage: those come as rows of their own, and numpy puts
# the two together. Joined to the scan they would cost every row, and few have any.
_SCAN = """
SELECT count(*), string_agg({packed}, ''::bytea) FILTER (
    WHERE held <> 0 OR {nearest} >= {near_floor} OR {wanted}
), (
    SELECT string_agg({packed}, ''::bytea)
    FROM (
        SELECT m.id, m.source_segment_id, m.position, {passages}, 0::bigint AS held
        FROM memory_passages AS p JOIN memory_memories AS m ON m.id = p.memory_id
        WHERE p.user_id = %(user)s AND m.user_id = %(user)s AND {rule} AND {place}
        GROUP BY m.id
    ) AS near
    WHERE {nearest} >= {near_floor}
)
FROM (
    SELECT m.id, m.source_segment_id, m.position, {similarities}, {held} AS held
    FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND {rule} AND {place}
    OFFSET 0
) AS every
"""
_PACKED = """
    uuid_send(id) || uuid_send(coalesce(source_segment_id, id)) || int4send(position)
    || int8send(held) || """
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
       t.vectors, halfvec_send(m.embedding::halfvec)
FROM memory_memories AS m
LEFT JOIN memory_token_vectors AS t ON t.memory_id = m.id AND t.user_id = m.user_id
WHERE m.user_id = %(user)s AND m.id = ANY(%(ids)s::uuid[])
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
    whatever they hold; the `excluded` take nobody's place. Two statements.
    """
    values: dict[str, Any] = {
        "user": user.pk,
        "now": now,
        "past": past,
        "wanted": [*wanted, *excluded],
        "wing": wing,
        "room": room,
        "any_term": " | ".join(map(_operand, asked.terms)),
        **{f"vector{place}": literal(vector) for place, vector in enumerate(asked.vectors)},
        **{f"term{bit}": _operand(term) for bit, term in enumerate(asked.terms)},
    }
    with connection.bound_cursor(binary=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_statement(asked, values, _places(wing, room), include_hidden), values)
        in_all, packed, passages = cursor.fetchone()
        seen = _Seen(asked, packed or b"", passages or b"", in_all)
        chosen = seen.chosen(wanted=values["wanted"], excluded=excluded)
        ids = [one.tobytes().hex() for one in seen.ids[chosen]]
        # One text is written in a twentieth of the time that a list of ids takes.
        few = {"user": user.pk, "now": now, "past": past, "ids": f"{{{','.join(ids)}}}"}
        cursor.cursor.prepared = True
        cursor.execute(_DETAILS, few)
        details = cursor.fetchall()
    if len(details) < len(ids):  # some were deleted since the scan
        left = {row[0].hex for row in details}
        chosen = chosen[[one in left for one in ids]]
    return seen.pool(chosen, details)


def _places(wing: str | None, room: str | None) -> str:
    given = {"wing": wing, "room": room}
    rules = [f"lower(m.{name}) = lower(%({name})s)" for name in given if given[name] is not None]
    return " AND ".join(rules) or "TRUE"


def _statement(asked: Asked, values: dict[str, Any], place: str, include_hidden: bool) -> str:
    """The scan for so many phrases and terms; every text of a person's is a parameter."""
    columns = [f"s{place}" for place in range(len(asked.phrases))]
    distance = "-({of}.embedding <#> %(vector{place})s::vector)"
    similarities, passages = ["0::float"] * len(columns), ["0::float"] * len(columns)
    if asked.vectors:
        similarities = [distance.format(of="m", place=place) for place in range(len(columns))]
        passages = [f"max({distance.format(of='p', place=place)})" for place in range(len(columns))]
    bits = [
        f"CASE WHEN m.search_vector @@ %(term{bit})s::tsquery THEN {1 << bit}::bigint ELSE 0 END"
        for bit in range(len(asked.terms))
    ]
    held = "0::bigint"
    if bits:
        held = (
            f"CASE WHEN m.search_vector @@ %(any_term)s::tsquery THEN {' + '.join(bits)} ELSE 0 END"
        )
    return _SCAN.format(
        passages=_named(passages, columns),
        similarities=_named(similarities, columns),
        packed=_PACKED + " || ".join(f"float4send({name}::float4)" for name in columns),
        wanted="id = ANY(%(wanted)s)" if values["wanted"] else "FALSE",
        nearest=f"greatest({', '.join(columns)})",
        near_floor=NEAR_FLOOR,
        held=held,
        rule="TRUE" if include_hidden else visibility.SQL,
        place=place,
    )


def _named(values: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))


def _operand(lexeme: str) -> str:
    """The lexeme as a tsquery: quoted, so that no sign in it is an operator."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def _together(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Of rows by id, each memory once: a long one is as near as the nearest of its passages."""
    starts = np.flatnonzero(
        np.concatenate(([True], (rows["id"][1:] != rows["id"][:-1]).any(axis=1)))
    )
    once = rows[starts]
    once["held"] = np.maximum.reduceat(rows["held"], starts)
    once["similarities"] = np.maximum.reduceat(rows["similarities"], starts, axis=0)
    return once


class _Seen:
    """The rows that are near or hold a word, in the order of their ids: equal input, equal bytes,
    wherever the rows lie in the table."""

    def __init__(self, asked: Asked, packed: bytes, passages: bytes, in_all: int) -> None:
        self._asked, self._in_all = asked, in_all
        row = np.dtype(
            [
                ("id", ">u8", 2),
                ("session", ">u8", 2),
                ("position", ">i4"),
                ("held", ">i8"),
                ("similarities", ">f4", (len(asked.phrases),)),
            ]
        )
        rows = np.frombuffer(packed + passages, row)
        rows = rows[np.lexsort((rows["id"][:, 1], rows["id"][:, 0]))]
        if passages:
            rows = _together(rows)
        self.ids = np.ascontiguousarray(rows["id"])
        self._similarities = rows["similarities"].astype(np.float64)
        self._held = rows["held"].astype(np.int64)
        session, position = rows["session"].astype(np.uint64), rows["position"].astype(np.int64)
        self._by_place = np.lexsort((position, session[:, 1], session[:, 0]))
        ordered, places = session[self._by_place], position[self._by_place]
        self._is_same = (ordered[1:] == ordered[:-1]).all(axis=1)
        self._is_next = self._is_same & (places[1:] == places[:-1] + 1)
        self._weights, self._overlaps = self._shares()

    def _shares(self) -> tuple[Floats, Floats]:
        terms, phrases = len(self._asked.terms), len(self._asked.phrases)
        bits = self._held[:, None] >> np.arange(terms) & 1
        held_by = np.maximum(0.5, bits.sum(axis=0))
        weights: Floats = np.log(1 + self._in_all / held_by)
        of_phrase = np.zeros((terms, phrases))
        for place, tokens in enumerate(self._asked.tokens):
            of_phrase[list(tokens), place] = weights[list(tokens)]
        whole = of_phrase.sum(axis=0)
        shares: Floats = bits @ (of_phrase / np.where(whole > 0, whole, 1))
        return weights, shares

    def chosen(self, *, wanted: Sequence[UUID], excluded: Sequence[UUID]) -> Places:
        """Rows of the best of each leg, of what stands beside those, and of the wanted."""
        is_free = ~self._are(excluded)
        legs = len(self._asked.phrases)
        limit = max(CANDIDATES_MIN_PER_LEG, CANDIDATES_PER_LEG // max(1, legs))
        chosen = np.zeros(len(self.ids), dtype=np.bool_)
        for place in range(legs):
            near, worded = self._similarities[:, place], self._overlaps[:, place]
            best = np.lexsort((-worded, -near))
            best = best[is_free[best] & (near[best] >= NEAR_FLOOR)]
            chosen[best[:limit]] = True
            best = np.lexsort((-near, -worded))
            best = best[is_free[best] & (worded[best] > 0)]
            chosen[best[:limit]] = True
        placed = chosen[self._by_place]
        beside = placed.copy()
        beside[1:] |= placed[:-1] & self._is_next
        beside[:-1] |= placed[1:] & self._is_next
        chosen[self._by_place] = beside
        return np.flatnonzero(chosen | self._are(wanted))

    def _are(self, ids: Sequence[UUID]) -> Flags:
        found = np.zeros(len(self.ids), dtype=np.bool_)
        for one in np.frombuffer(b"".join(one.bytes for one in ids), dtype=">u8").reshape(-1, 2):
            found |= (self.ids == one).all(axis=1)
        return found

    def _sessions(self) -> Floats:
        """Of each row the mean of the SESSION_TOP best shares of its session, of each phrase."""
        starts = np.flatnonzero(np.concatenate(([True], ~self._is_same)))
        number = np.cumsum(np.concatenate(([0], ~self._is_same)))
        found = np.zeros_like(self._overlaps)
        for place in range(found.shape[1]):
            values = self._overlaps[self._by_place, place]
            order = np.lexsort((-values, number))
            rank = np.arange(len(order)) - starts[number]
            best = np.where(rank < SESSION_TOP, values[order], 0.0)
            means = np.add.reduceat(best, starts) / SESSION_TOP
            found[self._by_place, place] = means[number]
        return found

    def pool(self, chosen: Places, details: Sequence[tuple[Any, ...]]) -> Pool:
        """`details` are the rows of _DETAILS, those of the `chosen` in their order."""
        place_of = np.full(len(self.ids) + 1, -1, dtype=np.intp)
        place_of[chosen] = np.arange(len(chosen))
        before = np.full(len(self.ids), -1, dtype=np.intp)
        after = before.copy()
        earlier, later = self._by_place[:-1][self._is_next], self._by_place[1:][self._is_next]
        before[later], after[earlier] = earlier, later
        columns = list(zip(*details, strict=True)) or [()] * 10
        ids, importance, said_at, speakers, texts, conditions, *flags, vectors, halves = columns
        is_replaced, is_linked = flags
        sessions = self._sessions() if len(self.ids) else self._overlaps
        return Pool(
            asked=self._asked,
            ids=ids,
            importance=np.array(importance, dtype=np.float64),
            similarities=self._similarities[chosen],
            overlaps=self._overlaps[chosen],
            sessions=sessions[chosen],
            held=self._held[chosen],
            weights=self._weights,
            before=place_of[before[chosen]],
            after=place_of[after[chosen]],
            said_at=said_at,
            speakers=tuple(speakers),
            texts=tuple(texts),
            conditions=tuple(conditions),
            is_replaced=np.array(is_replaced, dtype=np.bool_),
            is_linked=np.array(is_linked, dtype=np.bool_),
            token_vectors=tuple(bytes(one) if one else b"" for one in vectors),
            embeddings=tuple(map(bytes, halves)),
            in_all=self._in_all,
        )
