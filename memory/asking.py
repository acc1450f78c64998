"""Phrases made ready for a search: their vectors, their words, and what they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import structlog
from django.db import connection

from memory import months, token_vectors
from memory.constants import QUERIES_MAX, QUERY_MAX_CHARS, TERMS_MAX
from memory.months import Months
from mira_site import embeddings, metrics
from mira_site.embeddings import Read, Vectors
from mira_site.errors import EmbeddingsUnavailable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Phrases made ready for a search. `terms` are their lexemes, one bit each; `tokens[i]` says
    by which word phrase i holds which of them. Without embeddings there are no vectors.

    `pieces` are the token vectors, (n, 64), of the words that have a lexeme, of all phrases in
    their order; `piece_terms[j]` is the bit of the j-th one's lexeme, `piece_places[j]` its phrase.
    """

    phrases: tuple[str, ...]
    vectors: tuple[Vectors, ...]
    terms: tuple[str, ...]
    tokens: tuple[Mapping[int, str], ...]
    pieces: Vectors
    piece_terms: npt.NDArray[np.intp]
    piece_places: npt.NDArray[np.intp]
    months: tuple[Months, ...]

    def words(self, place: int) -> frozenset[str]:
        """The words of a phrase in small letters, stop words too."""
        return frozenset(_WORD.findall(self.phrases[place].casefold()))


_WORD = re.compile(r"[^\W_]+")
_LEXEMES = """
SELECT place - 1, lexeme, array_agg(DISTINCT parsed.token ORDER BY parsed.token)
FROM unnest(%(phrases)s::text[]) WITH ORDINALITY AS phrase (text, place),
     ts_parse('default', phrase.text) AS parsed,
     LATERAL unnest(to_tsvector('english', parsed.token)) AS lexemes
GROUP BY place, lexeme
"""


def phrases(queries: Iterable[str]) -> tuple[str, ...]:
    """What of the queries is searched for: not blank, each once, cut, not too many."""
    texts = (query.replace("\x00", " ").strip()[:QUERY_MAX_CHARS] for query in queries)
    return tuple(dict.fromkeys(filter(None, texts)))[:QUERIES_MAX]


def prepare(queries: Iterable[str]) -> Asked:
    """The phrases' vectors, in one pass of the model, and their lexemes, in one statement."""
    texts = phrases(queries)
    with metrics.stage("prepare"):
        terms, held = _lexemes(texts) if texts else ((), [])
    with metrics.stage("embed"):
        read = _read(texts) if texts else ()
    rows, piece_terms, piece_places = _pieces(texts, read, held)
    return Asked(
        phrases=texts,
        vectors=tuple(one.vector for one in read),
        terms=terms,
        tokens=tuple({bit: words[0] for bit, words in one.items()} for one in held),
        pieces=rows,
        piece_terms=np.array(piece_terms, dtype=np.intp),
        piece_places=np.array(piece_places, dtype=np.intp),
        months=tuple(map(months.named, texts)),
    )


def _lexemes(texts: Sequence[str]) -> tuple[tuple[str, ...], list[dict[int, list[str]]]]:
    """The terms, and of each phrase the words by which it holds which of them."""
    with connection.bound_cursor(prepared=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_LEXEMES, {"phrases": list(texts)})
        found = cursor.fetchall()
    # The longest words say most; further ones would need more than the bits of an integer.
    lexemes = sorted({lexeme for _, lexeme, _ in found}, key=lambda one: (-len(one), one))
    terms = tuple(lexemes[:TERMS_MAX])
    bits = {term: bit for bit, term in enumerate(terms)}
    held: list[dict[int, list[str]]] = [{} for _ in texts]
    for place, lexeme, words in found:
        if lexeme in bits:
            held[place][bits[lexeme]] = words
    return terms, held


def _read(texts: tuple[str, ...]) -> tuple[Read, ...]:
    try:
        return embeddings.read_queries(texts)
    except EmbeddingsUnavailable:
        log.warning("search.went_without_embeddings")
        return ()


def _pieces(
    texts: Sequence[str], read: Sequence[Read], held: Sequence[Mapping[int, Sequence[str]]]
) -> tuple[Vectors, list[int], list[int]]:
    """Word pieces of words that have a lexeme: the others say nothing by themselves."""
    rows: list[Vectors] = []
    terms: list[int] = []
    places: list[int] = []
    for place, one in enumerate(read):
        term_at = _term_at(texts[place], held[place])
        for row, (start, _) in zip(one.tokens, one.spans, strict=True):
            if start in term_at:
                rows.append(row)
                terms.append(term_at[start])
                places.append(place)
    if not rows:
        return np.empty((0, token_vectors.DIMENSIONS), dtype=np.float32), [], []
    return token_vectors.reduced(np.stack(rows)), terms, places


def _term_at(text: str, held: Mapping[int, Sequence[str]]) -> dict[int, int]:
    """Of each character of a word that has a lexeme the lexeme's bit; a longer word wins."""
    words = sorted(((word, bit) for bit, several in held.items() for word in several),
                   key=lambda pair: (len(pair[0]), pair))  # fmt: skip
    found: dict[int, int] = {}
    for word, bit in words:
        for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            found |= dict.fromkeys(range(*match.span()), bit)
    return found
