"""Texts longer than the embedding model reads, cut into passages with a vector each.

The model reads the first 256 word pieces of a text: what comes after would never be found by
meaning. Passages overlap, so that what stands at a cut is whole in one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory.models import Memory, Passage
from memory.quoting import meaning
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

PIECES_MAX = 200  # word pieces of a passage; spec recall 1.1
PIECES_OVERLAP = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A text in passages: (start, end) of each in characters, `vectors[i]` the i-th one's."""

    spans: tuple[tuple[int, int], ...]
    vectors: Vectors


def spans(text: str) -> list[tuple[int, int]]:
    """Where the passages of a memory's text stand; [] if the model reads all of it at once.

    Of a text in a frame (`Alice said: “…”`) it is the statement that is cut.
    """
    if len(text) <= PIECES_MAX:  # a piece has a character at least
        return []
    statement = meaning(text)
    pieces = embeddings.word_pieces(statement)
    if len(pieces) <= PIECES_MAX:
        return []
    offset = text.find(statement)
    found: list[tuple[int, int]] = []
    for first in range(0, len(pieces), PIECES_MAX - PIECES_OVERLAP):
        last = min(first + PIECES_MAX, len(pieces))
        found.append((offset + pieces[first][0], offset + pieces[last - 1][1]))
        if last == len(pieces):
            break
    return found


def cut(text: str) -> Cut | None:
    """The passages of the text with their vectors; None if it needs none."""
    return cut_all([text])[0]


def cut_all(texts: Sequence[str]) -> list[Cut | None]:
    """The passages of each text, all embedded together."""
    found = [tuple(spans(text)) for text in texts]
    vectors = embeddings.embed(
        [text[start:end] for text, several in zip(texts, found, strict=True)
         for start, end in several]
    )  # fmt: skip
    cuts: list[Cut | None] = []
    first = 0
    for several in found:
        last = first + len(several)
        cuts.append(Cut(spans=several, vectors=vectors[first:last]) if several else None)
        first = last
    return cuts


def embed(texts: Sequence[str]) -> tuple[Vectors, list[Cut | None]]:
    """One vector a text, of what it means or of its first passage; and the passages."""
    cuts = cut_all(texts)
    vectors = embeddings.embed([meaning(text) for text in texts])
    for row, one in enumerate(cuts):
        if one is not None:
            vectors[row] = one.vectors[0]
    return vectors, cuts


def store(user: User, memories: Sequence[Memory], given: Mapping[UUID, Cut | None]) -> None:
    """Write the passages of the memories in the place of older ones; the first one's vector is the
    memory's. Those that are not `given` are embedded now. Four statements at most."""
    cuts = dict(given)
    unread = [one for one in memories if one.id not in cuts]
    cuts |= zip([one.id for one in unread], cut_all([one.text for one in unread]), strict=True)
    Passage.objects.for_user(user).filter(memory__in=[one.id for one in memories]).delete()
    long = [(one, found) for one in memories if (found := cuts[one.id]) is not None]
    model = embeddings.model_id()
    Passage.objects.bulk_create(
        Passage(
            user=user,
            memory=memory,
            position=place,
            start=start,
            end=end,
            embedding=vector,
            embedding_model=model,
        )
        for memory, found in long
        for place, ((start, end), vector) in enumerate(zip(found.spans, found.vectors, strict=True))
    )
    for memory, found in long:
        memory.embedding, memory.embedding_model = found.vectors[0], model
    Memory.objects.for_user(user).bulk_update(
        [memory for memory, _ in long], ["embedding", "embedding_model"]
    )
