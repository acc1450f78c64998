"""What the reference system got wrong in ranking (spec recall 12), and is right here."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from memory import asking, recall, search
from memory.constants import CANDIDATES_PER_LEG, NEAR_FLOOR
from memory.models import Memory
from mira_site import embeddings
from mira_site.embeddings import Vectors
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
QUERY = "boat"


def at_cosine(cosine: float, dice: np.random.Generator) -> Vectors:
    """A vector of unit length so near to the question's, and to the others about cosine²."""
    asked = embeddings.embed_one(QUERY)
    aside = dice.normal(size=asked.shape)
    aside -= (aside @ asked) * asked
    aside /= np.linalg.norm(aside)
    found: Vectors = (cosine * asked + np.sqrt(1 - cosine**2) * aside).astype(np.float32)
    return found


def test_the_nearest_of_many_come_all_of_them_and_in_their_order(as_alice):
    """Defect 5: approximate neighbours lost their order, and half of them."""
    dice = np.random.default_rng(7)
    near = [at_cosine(dice.uniform(-0.5, 0.95), dice) for _ in range(400)]
    rows = [
        MemoryFactory.build(user=as_alice, text=f"Note {number}.", embedding=one)
        for number, one in enumerate(near)
    ]
    Memory.objects.bulk_create(rows)
    asked = embeddings.embed_one(QUERY)
    nearest = sorted(rows, key=lambda row: -float(row.embedding @ asked))[:CANDIDATES_PER_LEG]
    assert float(nearest[-1].embedding @ asked) > NEAR_FLOOR
    pool = search.candidates(as_alice, asking.prepare([QUERY]), now=NOW)
    order = sorted(range(len(pool)), key=lambda row: -pool.similarities[row, 0])
    assert [pool.ids[row] for row in order] == [row.id for row in nearest]


@pytest.mark.parametrize("text", ["The boat is new.", "Nothing of the kind."])
def test_a_memory_is_wanted_the_more_the_nearer_it_is_below_zero_too(as_alice, text):
    """Defect 11: a cosine of -0.1 counted more than one of 0.4."""
    at, dice = {}, np.random.default_rng(7)
    for number, cosine in enumerate((-0.9, -0.1, 0.0, 0.2, 0.4, 0.9)):
        row = MemoryFactory(
            user=as_alice, text=text, text_hash=str(number), embedding=at_cosine(cosine, dice)
        )
        at[row.id] = cosine
    found = recall.found(as_alice, QUERY, now=NOW)
    relevance = {at[item.id]: item.why.parts.relevance for item in found.items}
    assert max(relevance) == 0.9
    values = [relevance[one] for one in sorted(relevance)]
    assert values == sorted(values)
    if "boat" in text:  # away is no nearer than beside the point
        assert relevance.keys() == set(at.values())
        assert relevance[-0.9] == pytest.approx(relevance[0.0])


def test_a_word_that_is_shared_lifts_a_memory_over_one_as_near(as_alice):
    """Defect 8: only the cosine counted, whatever full text search had found."""
    near = at_cosine(0.5, np.random.default_rng(7))
    plain = MemoryFactory(user=as_alice, text="She leaks a little.", embedding=near)
    worded = MemoryFactory(user=as_alice, text="The boat leaks a little.", embedding=near)
    items = recall.found(as_alice, QUERY, now=NOW).items
    assert [item.id for item in items] == [worded.id, plain.id]


def test_of_a_cluster_the_one_worth_most_stands_for_the_others(as_alice):
    """Defect 9: the first of a cluster was taken before any had a score."""
    near = at_cosine(0.6, np.random.default_rng(7))
    rows = [
        MemoryFactory(
            user=as_alice, text=f"The boat is called Merula{end}", embedding=near, importance=value
        )
        for end, value in ((".", 0.2), (", yes.", 0.9), (", so.", 0.5))
    ]  # fmt: skip
    (item,) = recall.found(as_alice, QUERY, now=NOW).items
    assert item.id == rows[1].id
    assert set(item.also) == {rows[0].id, rows[2].id}
