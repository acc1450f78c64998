"""Long texts: cut into overlapping passages, each found by its own meaning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from memory import deriving, passages, services
from memory.models import Memory, Passage
from mira_site import embeddings, isolation
from mira_site.errors import BadRequest
from tests.factories import MemoryFactory

SENTENCE = "The harbour was quiet that morning and nobody spoke of the storm, number {}. "
LONG = "".join(SENTENCE.format(number) for number in range(40))


def rows(user, memory_id):
    return list(Passage.objects.for_user(user).filter(memory=memory_id).order_by("position"))


@pytest.mark.parametrize("text", ["", "I sail.", "word " * 200])
def test_a_text_that_is_read_at_once_is_not_cut(text):
    assert passages.spans(text) == []


def test_passages_cover_the_text_overlap_and_are_short_enough():
    found = passages.spans(LONG)
    assert found[0][0] == 0
    assert found[-1][1] == len(LONG.rstrip())
    for (_, end), (start, _) in pairwise(found):
        assert start < end
        overlap = len(embeddings.word_pieces(LONG[start:end]))
        assert abs(overlap - passages.PIECES_OVERLAP) <= 1
    assert all(
        len(embeddings.word_pieces(LONG[start:end])) <= passages.PIECES_MAX for start, end in found
    )


def test_of_a_framed_text_the_statement_is_cut():
    text = f"Alice said: “{LONG.strip()}”"
    start, end = passages.spans(text)[0]
    assert start == len("Alice said: “")
    assert text[start:end].startswith("The harbour")


def test_a_long_text_is_stored_with_a_vector_for_each_passage(as_alice):
    memory = services.create(user=as_alice, text=LONG)
    found = rows(as_alice, memory.id)
    assert [(row.start, row.end) for row in found] == passages.spans(memory.text)
    for row in found:
        expected = embeddings.embed([memory.text[row.start : row.end]])[0]
        assert np.dot(row.embedding, expected) > 0.999
    assert np.allclose(memory.embedding, found[0].embedding)


def test_an_edit_replaces_them(as_alice):
    memory = services.create(user=as_alice, text=LONG)
    services.edit(user=as_alice, memory_id=memory.id, text="The harbour was quiet.")
    assert rows(as_alice, memory.id) == []
    services.edit(user=as_alice, memory_id=memory.id, text=LONG + "And then it rained.")
    memory.refresh_from_db()
    assert np.allclose(memory.embedding, rows(as_alice, memory.id)[0].embedding)


def test_the_longest_text_is_kept_whole_and_a_longer_one_refused(as_alice):
    text = ("sail " * 13_108)[:65_535] + "."
    memory = services.create(user=as_alice, text=text)
    assert memory.text == text
    assert rows(as_alice, memory.id)[-1].end == len(text)
    with pytest.raises(BadRequest) as refused:
        services.create(user=as_alice, text=text + "x")
    assert "65,536" in refused.value.fields["text"]


def test_the_same_text_again_is_the_same_memory(as_alice):
    made = services.create(user=as_alice, text=LONG)
    assert services.create(user=as_alice, text=LONG).id == made.id
    assert len(rows(as_alice, made.id)) == len(passages.spans(made.text))


def test_passages_go_with_their_memory_and_are_nobody_elses(as_alice, bob):
    memory = services.create(user=as_alice, text=LONG)
    with isolation.acting_as(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_passages")
        assert cursor.fetchone() == (0,)
    services.forget(user=as_alice, memory_id=memory.id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_passages")
        assert cursor.fetchone() == (0,)


def test_word_pieces_are_those_of_the_model_and_untruncated():
    text = "Unaffable Zürich! " * 300
    pieces = embeddings.word_pieces(text)
    assert len(pieces) > embeddings.MAX_WORD_PIECES
    assert text[slice(*pieces[0])] == "Una"
    assert all(end > start for start, end in pieces)


def test_what_was_stored_before_gets_its_forms_once(as_alice):
    old = MemoryFactory(user=as_alice, text=LONG)
    MemoryFactory(user=as_alice, text="I like green tea.")
    assert deriving.missing(as_alice) == deriving.Underived(
        fingerprints=2, passages=1, token_vectors=2
    )
    done = deriving.write_missing(as_alice, at=timezone.now())
    assert done == deriving.Underived(fingerprints=2, passages=1, token_vectors=2)
    assert deriving.missing(as_alice) == deriving.Underived(
        fingerprints=0, passages=0, token_vectors=0
    )
    assert len(rows(as_alice, old.id)) == len(passages.spans(LONG))
    assert Memory.objects.for_user(as_alice).filter(fingerprint__isnull=True).count() == 0
