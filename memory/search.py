"""Candidates for a query among one person's memories: by meaning and by words, in one statement.

Both legs read the person's rows exactly, through the index on the user: under row-level
security PostgreSQL uses neither the GIN index (its operator is not leakproof) nor would an
approximate vector index, which knows no owners, find enough of one person's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from memory.constants import CANDIDATES_PER_LEG, QUERIES_MAX, QUERY_MAX_CHARS, TERMS_MAX
from memory.storage import literal
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import EmbeddingsUnavailable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that is near a query or shares words with it.

    `similarity` is the cosine to the nearest query, 0 without embeddings. `overlap` is the share of
    the queries' words that it holds, each word weighing more the fewer memories hold it; `words`
    are those, the rarest first.
    """

    id: UUID
    similarity: float
    overlap: float
    words: tuple[str, ...]


# A lexeme as a tsquery operand: quoted, so that no sign in it is an operator.
_OPERAND = r"""('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')"""
_SEARCH = """
WITH words AS MATERIALIZED (
    SELECT 1::bigint << (row_number() OVER (ORDER BY length(lexeme) DESC, lexeme) - 1)::int AS bit,
           lexeme, min(token) AS token, {operand}::tsquery AS term
    FROM ts_parse('default', %(text)s) AS parsed,
         LATERAL unnest(to_tsvector('english', parsed.token)) AS lexemes
    GROUP BY lexeme
    ORDER BY bit
    LIMIT %(terms)s
),
near AS MATERIALIZED (
    SELECT id, {similarity} AS similarity
    FROM memory_memories
    WHERE {recallable}
    ORDER BY similarity DESC, id
    LIMIT %(limit)s
),
hits AS MATERIALIZED (
    SELECT id, {similarity} AS similarity,
           (SELECT bit_or(bit) FROM words WHERE search_vector @@ term) AS held
    FROM memory_memories
    WHERE {recallable}
      AND search_vector @@ (SELECT string_agg({operand}, ' | ')::tsquery FROM words)
),
-- What a memory is worth depends only on which of the words it holds: few combinations, many rows.
combinations AS MATERIALIZED (
    SELECT held, count(*) AS memories FROM hits GROUP BY held
),
weights AS MATERIALIZED (
    SELECT bit, token,
           ln(1 + (SELECT count(*) FROM memory_memories WHERE user_id = %(user)s)
                  / greatest(0.5, coalesce(sum(memories), 0))) AS weight
    FROM words LEFT JOIN combinations ON held & bit <> 0
    GROUP BY bit, token
),
scored AS MATERIALIZED (
    SELECT held, sum(weight) / (SELECT sum(weight) FROM weights) AS overlap,
           array_agg(token ORDER BY weight DESC, token) AS tokens
    FROM combinations JOIN weights ON held & bit <> 0
    GROUP BY held
),
worded AS MATERIALIZED (
    SELECT id, similarity
    FROM hits JOIN scored USING (held)
    ORDER BY overlap DESC, similarity DESC, id
    LIMIT %(limit)s
)
SELECT id, similarity, coalesce(overlap, 0)::float, coalesce(tokens, '{{}}')
FROM (SELECT * FROM near UNION SELECT * FROM worded) AS chosen
LEFT JOIN (SELECT id, held FROM hits) AS holding USING (id)
LEFT JOIN scored USING (held)
"""
_RECALLABLE = """user_id = %(user)s
      AND archived_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s)"""
_ALL = "user_id = %(user)s"


def candidates(
    user: User, queries: Sequence[str], *, now: datetime, include_hidden: bool = False
) -> list[Candidate]:
    """The nearest and the best worded memories, unordered; a few dozen at most, few of them good.

    Archived and expired ones only with `include_hidden`. Without embeddings words alone decide.
    """
    texts = [text for query in queries if (text := query.strip()[:QUERY_MAX_CHARS])][:QUERIES_MAX]
    if not texts:
        return []
    vectors = _vectors(texts)
    names = [f"vector_{index}" for index in range(len(vectors))]
    near = [f"-(embedding <#> %({name})s::vector)" for name in names]
    statement = _SEARCH.format(
        operand=_OPERAND,
        similarity=f"greatest({', '.join(near)})" if near else "0::float",
        recallable=_ALL if include_hidden else _RECALLABLE,
    )
    values: dict[str, Any] = {
        "text": " ".join(texts).replace("\x00", " "),
        "terms": TERMS_MAX,
        "user": user.pk,
        "now": now,
        "limit": CANDIDATES_PER_LEG,
        **dict(zip(names, map(literal, vectors), strict=True)),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [
            Candidate(id=id_, similarity=similarity, overlap=overlap, words=tuple(words))
            for id_, similarity, overlap, words in cursor.fetchall()
        ]


def _vectors(texts: Sequence[str]) -> list[Vectors]:
    try:
        return [embeddings.embed_one(text) for text in texts]
    except EmbeddingsUnavailable:
        log.warning("search.went_without_embeddings")
        return []
