"""Candidates for some phrases among one person's memories, by meaning and by words, in one scan.

Every row of the person is looked at once, through the index on the user, and both its distance to
each phrase and the phrases' words in it are taken from there: reaching the row is what costs, what
is computed on it hardly does. Under row-level security PostgreSQL would use neither the GIN index
(its operator is not leakproof) nor would an approximate vector index, which knows no owners, find
enough of one person's rows. docs/adr/0009-vector-index.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from memory import visibility
from memory.constants import (
    CANDIDATES_PER_LEG,
    NEAR_FLOOR,
    OVERLAP_FLOOR,
    QUERIES_MAX,
    QUERY_MAX_CHARS,
    TERMS_MAX,
)
from memory.storage import literal
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import EmbeddingsUnavailable

log = structlog.get_logger(__name__)


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
class Asked:
    """Phrases made ready for a search. `terms` are their lexemes, one bit each; `tokens[i]` says
    by which word phrase i holds which of them. Without embeddings there are no vectors."""

    phrases: tuple[str, ...]
    vectors: tuple[Vectors, ...]
    terms: tuple[str, ...]
    tokens: tuple[Mapping[int, str], ...]


def phrases(queries: Iterable[str]) -> tuple[str, ...]:
    """What of the queries is searched for: not blank, each once, cut, not too many."""
    texts = (query.replace("\x00", " ").strip()[:QUERY_MAX_CHARS] for query in queries)
    return tuple(dict.fromkeys(filter(None, texts)))[:QUERIES_MAX]


_LEXEMES = """
SELECT place - 1, lexeme, min(parsed.token)
FROM unnest(%(phrases)s::text[]) WITH ORDINALITY AS phrase (text, place),
     ts_parse('default', phrase.text) AS parsed,
     LATERAL unnest(to_tsvector('english', parsed.token)) AS lexemes
GROUP BY place, lexeme
"""


def prepare(queries: Iterable[str]) -> Asked:
    """The phrases' vectors, in one pass of the model, and their lexemes, in one statement."""
    texts = phrases(queries)
    if not texts:
        return Asked(phrases=(), vectors=(), terms=(), tokens=())
    with connection.cursor() as cursor:
        cursor.execute(_LEXEMES, {"phrases": list(texts)})
        found = cursor.fetchall()
    # The longest words say most; further ones would need more than the bits of an integer.
    lexemes = sorted({lexeme for _, lexeme, _ in found}, key=lambda one: (-len(one), one))
    terms = tuple(lexemes[:TERMS_MAX])
    bits = {term: bit for bit, term in enumerate(terms)}
    tokens: list[dict[int, str]] = [{} for _ in texts]
    for place, lexeme, token in found:
        if lexeme in bits:
            tokens[place][bits[lexeme]] = token
    return Asked(phrases=texts, vectors=_vectors(texts), terms=terms, tokens=tuple(tokens))


def _vectors(texts: tuple[str, ...]) -> tuple[Vectors, ...]:
    try:
        return embeddings.embed_queries(texts)
    except EmbeddingsUnavailable:
        log.warning("search.went_without_embeddings")
        return ()


# What a memory is worth by words depends only on which of the terms it holds, the bits of `held`:
# many rows, few combinations.
_SEARCH = """
WITH seen AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT m.id, m.importance, {similarities}, {held} AS held
        FROM memory_memories AS m
        WHERE m.user_id = %(user)s AND {rule} AND {place}
        OFFSET 0
    ) AS every
    WHERE held <> 0 OR {nearest} >= {near_floor} OR id = ANY(%(wanted)s)
),
combinations AS MATERIALIZED (
    SELECT held, count(*) AS memories FROM seen WHERE held <> 0 GROUP BY held
),
weights AS MATERIALIZED (
    SELECT bit, ln(1 + (SELECT count(*) FROM memory_memories WHERE user_id = %(user)s)
                       / greatest(0.5, coalesce(sum(memories), 0)))::float AS weight
    FROM unnest(%(bits)s::int[]) AS bit
    LEFT JOIN combinations ON held & (1::bigint << bit) <> 0
    GROUP BY bit
),
shares AS MATERIALIZED (
    SELECT place, held,
           sum(weight) FILTER (WHERE held & (1::bigint << weights.bit) <> 0) / sum(weight)
               AS overlap
    FROM unnest(%(places)s::int[], %(place_bits)s::int[]) AS asked (place, bit)
    JOIN weights USING (bit)
    CROSS JOIN combinations
    GROUP BY place, held
),
chosen AS (
    {legs}
    UNION SELECT id FROM seen WHERE id = ANY(%(wanted)s)
)
SELECT seen.id, importance, ARRAY[{columns}]::float[], held,
       EXISTS (
           SELECT FROM memory_links AS l JOIN memory_memories AS m ON m.id = l.source_id
           WHERE l.user_id = %(user)s AND l.target_id = seen.id AND l.link_type = 'supersedes'
             AND m.user_id = %(user)s AND {visible}
       ),
       EXISTS (SELECT FROM memory_links WHERE user_id = %(user)s AND target_id = seen.id)
       OR EXISTS (SELECT FROM memory_links WHERE user_id = %(user)s AND source_id = seen.id),
       CASE WHEN row_number() OVER () = 1 THEN
           (SELECT array_agg(weight ORDER BY bit) FROM weights)
       END
FROM chosen JOIN seen USING (id)
"""
_NEAR_LEG = """
    (SELECT id FROM seen WHERE s{place} >= {near_floor} AND NOT id = ANY(%(excluded)s)
     ORDER BY s{place} DESC, id LIMIT {limit})"""
_WORD_LEG = """
    (SELECT id FROM seen JOIN shares USING (held)
     WHERE place = {place} AND overlap >= {overlap_floor} AND NOT id = ANY(%(excluded)s)
     ORDER BY overlap DESC, s{place} DESC, id LIMIT {limit})"""


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
) -> list[Candidate]:
    """The nearest and the best worded memories for each phrase, by id; few of them are good.

    Only what may come up at `now` (visibility.py), unless `include_hidden`, and stands in the wing
    and the room, if any is given, whatever the case of their letters. The `wanted` are among them
    whatever they hold; the `excluded` take nobody's place. One statement.
    """
    if not asked.phrases:
        return []
    values: dict[str, Any] = {
        "user": user.pk,
        "now": now,
        "past": past,
        "wanted": [*wanted, *excluded],
        "excluded": list(excluded),
        "wing": wing,
        "room": room,
        "bits": list(range(len(asked.terms))),
        "places": [place for place, held in enumerate(asked.tokens) for _ in held],
        "place_bits": [bit for held in asked.tokens for bit in held],
        "any_term": " | ".join(map(_operand, asked.terms)),
        **{f"vector{place}": literal(vector) for place, vector in enumerate(asked.vectors)},
        **{f"term{bit}": _operand(term) for bit, term in enumerate(asked.terms)},
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(asked, _places(wing, room), include_hidden), values)
        rows = cursor.fetchall()
    weights: list[float] = next((row[-1] for row in rows if row[-1] is not None), [])
    return sorted((_candidate(asked, row, weights) for row in rows), key=lambda one: one.id)


def _places(wing: str | None, room: str | None) -> str:
    given = {"wing": wing, "room": room}
    rules = [f"lower(m.{name}) = lower(%({name})s)" for name in given if given[name] is not None]
    return " AND ".join(rules) or "TRUE"


def _statement(asked: Asked, place: str, include_hidden: bool) -> str:
    """The statement for so many phrases and terms; every text of a person's is a parameter."""
    columns = [f"s{place}" for place in range(len(asked.phrases))]
    distances = [f"-(m.embedding <#> %(vector{place})s::vector)" for place in range(len(columns))]
    similarities = distances if asked.vectors else ["0::float"] * len(columns)
    bits = [
        f"CASE WHEN m.search_vector @@ %(term{bit})s::tsquery THEN {1 << bit}::bigint ELSE 0 END"
        for bit in range(len(asked.terms))
    ]
    held = "0::bigint"
    if bits:
        held = (
            f"CASE WHEN m.search_vector @@ %(any_term)s::tsquery THEN {' + '.join(bits)} ELSE 0 END"
        )
    floors = {"near_floor": NEAR_FLOOR, "overlap_floor": OVERLAP_FLOOR}
    legs = [
        leg.format(place=place, limit=CANDIDATES_PER_LEG, **floors)
        for place in range(len(columns))
        for leg in (_NEAR_LEG, _WORD_LEG)
    ]
    return _SEARCH.format(
        similarities=", ".join(
            f"{value} AS {name}" for value, name in zip(similarities, columns, strict=True)
        ),
        held=held,
        rule="TRUE" if include_hidden else visibility.SQL,
        place=place,
        nearest=f"greatest({', '.join(columns)})",
        near_floor=NEAR_FLOOR,
        legs=" UNION ".join(legs),
        columns=", ".join(columns),
        visible=visibility.SQL,
    )


def _operand(lexeme: str) -> str:
    """The lexeme as a tsquery: quoted, so that no sign in it is an operator."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def _candidate(asked: Asked, row: tuple[Any, ...], weights: Sequence[float]) -> Candidate:
    memory_id, importance, similarities, held, is_replaced, is_linked, _ = row
    overlaps: list[float] = []
    words: list[tuple[str, ...]] = []
    for tokens in asked.tokens:
        shared = [bit for bit in tokens if held >> bit & 1]
        shared.sort(key=lambda bit: (-weights[bit], asked.terms[bit]))
        whole = sum(weights[bit] for bit in tokens)
        overlaps.append(sum(weights[bit] for bit in shared) / whole if whole else 0.0)
        words.append(tuple(tokens[bit] for bit in shared))
    return Candidate(
        id=memory_id,
        importance=importance,
        similarities=tuple(similarities),
        overlaps=tuple(overlaps),
        words=tuple(words),
        is_replaced=is_replaced,
        is_linked=is_linked,
    )
