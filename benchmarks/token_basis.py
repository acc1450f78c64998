"""Make memory/data/token_basis.npy: the directions in which token vectors are stored.

    .venv/bin/python -m benchmarks.token_basis [--out FILE]

Every plain word of the embedding model's own vocabulary is read alone; the main directions of
what comes out, 64 of 384, are the basis. No text takes part, so nothing is fitted to any.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mira_site import embeddings

OUT = Path(__file__).resolve().parents[1] / "memory" / "data" / "token_basis.npy"
DIMENSIONS = 64
WORD_MIN_CHARS = 3


def basis() -> np.ndarray:
    words = [
        word
        for word in embeddings.vocabulary()
        if word.isascii() and word.isalpha() and len(word) >= WORD_MIN_CHARS
    ]
    rows = np.concatenate([one.tokens for one in embeddings.embed_with_tokens(words)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, directions = np.linalg.eigh(rows.T @ rows)
    return np.ascontiguousarray(directions[:, ::-1][:, :DIMENSIONS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    np.save(options.out, basis().astype(np.float16))
    print(f"{options.out} is written.")


if __name__ == "__main__":
    main()
