"""Late interaction: of each word of a question its best answer among the word pieces of a memory.

The embedding model gives a vector of each word piece in the pass that makes the embedding. Stored
are those that say something, in the 64 main directions of the model's own vocabulary and in eight
bits: a turn of 21 pieces takes 1.3 kB, which PostgreSQL still keeps beside the row.
After Khattab & Zaharia, ColBERT, SIGIR 2020; docs/recall.md has what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from django.db.models import QuerySet

from memory.models import Memory, TokenVectors
from memory.quoting import meaning
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Read, Vectors

DIMENSIONS = 64
BESIDE_SHARE = 0.85  # of the answer of the memory said just before or after; docs/recall.md
BESIDE_STEPS = 2  # so far what was said around a memory speaks for it, less at each step
_TINY = 1e-9

# float16 (384, 64): the main directions of the vocabulary's plain words, each read alone. No text
# is fitted; `python -m benchmarks.token_basis` makes it anew.
_BASIS = Path(__file__).parent / "data" / "token_basis.npy"

# Words that say nothing by themselves, and signs.
_EMPTY_WORDS = """
    a an the of in on at to for with and or is are was were be been do does did has have had
    what which who whose whom when where why how that this it its their his her he she they i
    you we my your by from as about into would could can will might may should s t not
"""
_SIGNS = "?'\",.!-:;()[]&“”‘’„…–—"


# --- Writing -----------------------------------------------------------------------------------
def write(user: User, memories: Sequence[Memory]) -> None:
    """Store the token vectors of the memories, in place of those of an older text."""
    read = embeddings.read_again([meaning(memory.text) for memory in memories])
    model = embeddings.model_id()
    TokenVectors.objects.bulk_create(
        [
            TokenVectors(user=user, memory=memory, vectors=stored(one), embedding_model=model)
            for memory, one in zip(memories, read, strict=True)
        ],
        update_conflicts=True,
        unique_fields=["memory"],
        update_fields=["vectors", "embedding_model"],
    )


def missing(user: User) -> QuerySet[Memory]:
    """The person's memories that have none yet; recall scores them by everything else."""
    found: QuerySet[Memory] = Memory.objects.for_user(user).filter(token_vectors__isnull=True)
    return found


def stored(read: Read) -> bytes:
    """int8 (n, 64), row by row, of the pieces that say something; of all if none does."""
    empty = _empty_pieces()
    says = [place for place, piece in enumerate(read.pieces) if piece not in empty]
    rows = reduced(read.tokens[says] if says else read.tokens)
    steps = np.abs(rows).max(axis=1, keepdims=True) / 127 + _TINY
    written: bytes = np.round(rows / steps).astype(np.int8).tobytes()
    return written


@lru_cache(maxsize=1)
def _empty_pieces() -> frozenset[int]:
    return embeddings.piece_numbers([*_EMPTY_WORDS.split(), *_SIGNS])


@lru_cache(maxsize=1)
def _basis() -> Vectors:
    basis: Vectors = np.load(_BASIS).astype(np.float32)
    return basis


def reduced(tokens: Vectors) -> Vectors:
    """Token vectors in 64 dimensions, unit length."""
    return _unit(tokens @ _basis())


def _unit(rows: Vectors) -> Vectors:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    unit: Vectors = rows / (lengths + _TINY)
    return unit


# --- Asking ------------------------------------------------------------------------------------
def answers(question: Vectors, memories: Sequence[bytes]) -> Vectors:
    """How well each memory answers each word piece of a question, 0 to 1: float32 (m, q).

    `question` is (q, 64), unit length; a memory without token vectors (`b""`) has zeros. An answer
    is the cosine to the best of the memory's pieces, floored at 0, squared.
    """
    counts = np.array([len(one) for one in memories], dtype=np.intp) // DIMENSIONS
    found = np.zeros((len(memories), len(question)), dtype=np.float32)
    if not counts.any() or not len(question):
        return found
    flat = np.frombuffer(b"".join(memories), dtype=np.int8)
    rows = _unit(flat.reshape(-1, DIMENSIONS).astype(np.float32))
    filled = counts > 0
    starts = np.concatenate(([0], np.cumsum(counts[filled])[:-1]))
    best = np.maximum.reduceat(rows @ question.T, starts, axis=0)
    found[filled] = np.square(np.clip(best, 0, 1))
    return found


def with_beside(
    found: Vectors, before: npt.NDArray[np.intp], after: npt.NDArray[np.intp]
) -> Vectors:
    """The answers, those of the memories said around each counting less the further away.

    `before[i]` is the row of the memory before the i-th, -1 where there is none.
    """
    best = found
    for _ in range(BESIDE_STEPS):
        padded = np.vstack([best, np.zeros((1, found.shape[1]), dtype=np.float32)]) * BESIDE_SHARE
        best = np.maximum(best, np.maximum(padded[before], padded[after]))
    return best
