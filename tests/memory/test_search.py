"""Candidates: what is near or shares words, for each phrase, and nothing that may not come up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memory import asking, search, services
from memory.constants import CANDIDATES_PER_LEG, QUERIES_MAX, TERMS_MAX
from memory.models import MemoryLink
from mira_site import embeddings
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
HIDDEN = {
    "archived": {"archived_at": NOW},
    "quarantined": {"quarantined_at": NOW},
    "muted": {"muted_at": NOW},
    "expired": {"expires_at": NOW},
    "past": {"valid_until": NOW},
}


def candidates(user, *queries, **kwargs):
    pool = search.candidates(user, asking.prepare(queries), now=NOW, **kwargs)
    return {pool.ids[row]: pool.candidate(row) for row in range(len(pool))}


def test_each_phrase_has_its_own_values(as_alice):
    boat = MemoryFactory(user=as_alice, text="Alice's boat is called Merula.")
    nuts = MemoryFactory(user=as_alice, text="Anna is allergic to nuts.")
    found = candidates(as_alice, "What is the boat called?", "allergic to nuts")
    assert found[boat.id].similarities[0] > 0.5 > found[boat.id].similarities[1]
    assert found[boat.id].overlaps == (1.0, 0.0)
    assert found[nuts.id].overlaps == (0.0, 1.0)
    assert set(found[boat.id].words[0]) == {"boat", "called"}
    assert found[boat.id].words[1] == ()


def test_one_of_many_words_is_enough(as_alice):
    boat = MemoryFactory(user=as_alice, text="The Merula lies in Trieste.")
    found = candidates(as_alice, "merula anchorage yesterday")
    assert 0 < found[boat.id].overlap < 0.5


def test_words_weigh_more_the_fewer_memories_hold_them(as_alice):
    for number in range(9):
        MemoryFactory(user=as_alice, text=f"The garden has bed number {number}.")
    rare = MemoryFactory(user=as_alice, text="The quince is old, and so is the garden wall.")
    common = MemoryFactory(user=as_alice, text="The garden gate is green.")
    found = candidates(as_alice, "quince garden")
    assert found[rare.id].words[0] == ("quince", "garden")
    assert found[rare.id].overlap == 1.0
    assert found[common.id].overlap < 0.3


@pytest.mark.parametrize("state", HIDDEN)
def test_what_may_not_come_up_is_no_candidate(as_alice, state):
    hidden = MemoryFactory(user=as_alice, text="Alice's boat is called Merula.", **HIDDEN[state])
    assert candidates(as_alice, "Merula") == {}
    assert candidates(as_alice, "Merula", wanted=[hidden.id], excluded=[hidden.id]) == {}
    assert set(candidates(as_alice, "Merula", include_hidden=True)) == {hidden.id}


def test_what_is_past_is_one_only_if_the_past_is_asked_for(as_alice):
    past = MemoryFactory(user=as_alice, text="Alice lived in Graz.", valid_until=NOW)
    assert candidates(as_alice, "Graz") == {}
    assert set(candidates(as_alice, "Graz", past=True)) == {past.id}
    future = MemoryFactory(
        user=as_alice, text="Alice lives in Linz.", valid_until=NOW + timedelta(days=1)
    )
    assert future.id in candidates(as_alice, "Linz")


def test_an_excluded_one_takes_nobodys_place(as_alice):
    memories = [
        MemoryFactory(user=as_alice, text=f"Sailing trip number {number}.")
        for number in range(CANDIDATES_PER_LEG + 5)
    ]
    first = candidates(as_alice, "sailing trip")
    taken = list(first)[:5]
    then = candidates(as_alice, "sailing trip", excluded=taken)
    assert set(taken) <= set(then)
    assert len(set(then) - set(taken)) >= len(set(first) - set(taken)) + 1
    assert {memory.id for memory in memories} >= set(then)


def test_a_wanted_one_is_there_whatever_it_holds(as_alice):
    other = MemoryFactory(user=as_alice, text="Rhubarb needs shade.")
    assert set(candidates(as_alice, "Merula", wanted=[other.id])) == {other.id}


def test_only_a_memory_that_may_come_up_replaces_another(as_alice):
    old = MemoryFactory(user=as_alice, text="The boat is red.")
    new = MemoryFactory(user=as_alice, text="The boat is blue.")
    MemoryLink.objects.create(
        user=as_alice, source=new, target=old, link_type="supersedes", author="rule",
        created_at=NOW,
    )  # fmt: skip
    found = candidates(as_alice, "boat")
    assert (found[old.id].is_replaced, found[new.id].is_replaced) == (True, False)
    assert found[old.id].is_linked
    assert found[new.id].is_linked
    new.muted_at = NOW
    new.save()
    assert not candidates(as_alice, "boat")[old.id].is_replaced


def test_phrases_are_cut_and_counted():
    given = ["", "  ", "a", "a ", *(f"phrase {number}" for number in range(20)), "\x00"]
    assert asking.phrases(given)[:2] == ("a", "phrase 0")
    assert len(asking.phrases(given)) == QUERIES_MAX


def test_of_too_many_words_the_longest_count(as_alice):
    words = [f"{'word' * (number % 9 + 1)}{chr(97 + number)}" for number in range(26)]
    asked = asking.prepare([" ".join(words), " ".join(word + "s" * 3 for word in words)])
    assert len(asked.terms) == TERMS_MAX
    assert min(map(len, asked.terms)) >= 9


def test_no_row_of_another_person_is_looked_at(as_alice, bob, acting):
    mine = MemoryFactory(user=as_alice, text="The boat is called Merula.")
    with acting(bob):
        theirs = MemoryFactory(user=bob, text="The boat is called Merula.")
        wanted = [mine.id, theirs.id]
        assert set(candidates(bob, "Merula", wanted=wanted)) == {theirs.id}
        with pytest.raises(RuntimeError, match="outside the scope"):
            candidates(as_alice, "Merula", wanted=wanted)
    assert set(candidates(as_alice, "Merula", wanted=[mine.id, theirs.id])) == {mine.id}


def test_a_words_share_does_not_depend_on_another_persons_memories(as_alice, bob, acting):
    boat = MemoryFactory(user=as_alice, text="The Merula is blue.")
    before = candidates(as_alice, "merula sails")[boat.id].overlap
    with acting(bob):
        for number in range(5):
            MemoryFactory(user=bob, text=f"The Merula sails {number}.")
    assert candidates(as_alice, "merula sails")[boat.id].overlap == before


def test_a_long_text_is_as_near_as_its_nearest_passage(as_alice):
    filler = "The committee met again and the minutes were read, item {}, without objection. "
    text = "".join(filler.format(number) for number in range(60))
    end = "Our tortoise Tank eats dandelions in the greenhouse."
    long = services.create(user=as_alice, text=text[: 1_900 - len(end)] + end)
    query = "What does the tortoise eat?"
    found = candidates(as_alice, query)[long.id]
    own = float(embeddings.embed_one(query) @ np.asarray(long.embedding))
    assert found.similarity > own + 0.1
    assert found.words[0]
