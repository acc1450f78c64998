from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from memory import selectors, services
from memory.models import Extraction, Memory, MemorySource
from mira_site import embeddings, isolation
from mira_site.errors import BadRequest, Conflict, EmbeddingsUnavailable, NotFound
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)


def remember(user, segment):
    return services.remember(user=user, segment_id=segment.id, messages=segment.messages, at=NOW)


def texts(user):
    return sorted(Memory.objects.for_user(user).live().values_list("text", flat=True))


# --- remember --------------------------------------------------------------------------------
def test_a_memory_names_the_message_and_the_sentence_it_rests_on(as_alice, segment):
    segment.said("Hello Mira!", "How are you? My boat is called Merula. Nice, isn't it?")
    done = remember(as_alice, segment)
    (memory,) = selectors.made_of_segment(as_alice, segment.id)
    (source,) = memory.sources.all()
    assert done.memory_ids == (memory.id,)
    assert (done.by_model, done.already_done) == (False, False)
    assert source.message_id == segment.messages[1].message_id
    assert source.segment_id == segment.id
    assert source.sentence == "My boat is called Merula."
    assert source.said_at == segment.messages[1].said_at


def test_remembering_twice_stores_once_and_returns_the_same(as_alice, segment):
    segment.said("My boat is called Merula.", "I was born in Leipzig.")
    first, second = remember(as_alice, segment), remember(as_alice, segment)
    assert set(second.memory_ids) == set(first.memory_ids)
    assert second.already_done
    assert len(texts(as_alice)) == 2


def test_memories_of_one_segment_keep_the_order_in_which_they_were_said(as_alice, segment):
    said = ["I was born in Leipzig.", "My boat is called Merula.", "I love rainy days."]
    remember(as_alice, segment.said(*said))
    made = selectors.made_of_segment(as_alice, segment.id)
    assert [memory.text for memory in made] == [f"Alice said: “{text}”" for text in said]
    assert list(selectors.memories(as_alice)) == list(made)[::-1]


def test_a_segment_without_facts_is_done_too(as_alice, segment):
    assert remember(as_alice, segment.said("Hi!", "How are you?")).memory_ids == ()
    assert remember(as_alice, segment).already_done


def test_a_known_fact_said_again_gains_a_source_and_no_second_row(as_alice, new_segment):
    first, second = new_segment(), new_segment()
    made = remember(as_alice, first.said("My boat is called Merula."))
    again = remember(as_alice, second.said("my boat is called Merula"))
    assert again.memory_ids == made.memory_ids
    (memory,) = Memory.objects.for_user(as_alice)
    assert {source.segment_id for source in memory.sources.all()} == {first.id, second.id}
    assert remember(as_alice, second).memory_ids == made.memory_ids


def test_a_fact_said_twice_in_one_segment_is_one_memory(as_alice, segment):
    segment.said("My boat is called Merula.", "As I said: My boat is called Merula!")
    segment.said("My boat is called Merula!")
    remember(as_alice, segment)
    assert texts(as_alice).count("Alice said: “My boat is called Merula.”") == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My dog is 3 years old.", "My dog is 4 years old."),
        ("My best friend is called Anna.", "My best friend is called Annika."),
        ("I like green tea.", "I do not like green tea."),
    ],
)
def test_facts_that_differ_in_substance_are_both_kept(as_alice, new_segment, one, other):
    remember(as_alice, new_segment().said(one))
    remember(as_alice, new_segment().said(other))
    assert len(texts(as_alice)) == 2


def test_a_rephrased_fact_near_by_meaning_is_not_stored_twice(as_alice, new_segment):
    remember(as_alice, new_segment().said("I always prefer a window seat on night trains."))
    remember(as_alice, new_segment().said("I always prefer window seats on night trains."))
    assert len(texts(as_alice)) == 1


def test_what_is_archived_does_not_swallow_what_is_said_anew(as_alice, new_segment):
    (gone,) = remember(as_alice, new_segment().said("My boat is called Merula.")).memory_ids
    services.archive(user=as_alice, memory_id=gone, reason="sold")
    (made,) = remember(as_alice, new_segment().said("My boat is called Merula.")).memory_ids
    assert made != gone


def test_without_embeddings_nothing_is_stored_and_the_step_stays_due(
    as_alice, segment, monkeypatch
):
    def away(*args):
        raise EmbeddingsUnavailable("Away.")

    monkeypatch.setattr(embeddings, "_encoder", away)
    with pytest.raises(EmbeddingsUnavailable):
        remember(as_alice, segment.said("My boat is called Merula."))
    assert not Extraction.objects.for_user(as_alice).exists()
    monkeypatch.undo()
    assert len(remember(as_alice, segment).memory_ids) == 1


def test_a_failure_while_storing_leaves_nothing(as_alice, segment, monkeypatch):
    def broken(*args, **kwargs):
        raise IntegrityError

    segment.said("My boat is called Merula.")
    with monkeypatch.context() as patch, pytest.raises(IntegrityError), transaction.atomic():
        patch.setattr(MemorySource.objects, "bulk_create", broken)
        remember(as_alice, segment)
    assert not Extraction.objects.for_user(as_alice).exists()
    assert not Memory.objects.for_user(as_alice).exists()
    assert len(remember(as_alice, segment).memory_ids) == 1


@pytest.mark.django_db(transaction=True)
def test_two_calls_at_once_store_once(alice, new_segment):
    """The same segment by two workers, and the same fact from another segment by a third."""
    shared, other = new_segment(), new_segment()
    for segment in (shared, other):
        segment.said("My boat is called Merula.", "I was born in Leipzig.")
    start = threading.Barrier(3)

    def work(segment):
        try:
            with isolation.acting_as(alice.pk):
                start.wait()
                remember(alice, segment)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as workers:
        list(workers.map(work, [shared, shared, other]))
    with isolation.acting_as(alice.pk):
        assert Memory.objects.for_user(alice).count() == 2
        assert Extraction.objects.for_user(alice).count() == 2
        assert MemorySource.objects.for_user(alice).count() == 4


# --- create, edit ----------------------------------------------------------------------------
def test_a_memory_written_by_hand_is_recalled(as_alice):
    made = services.create(user=as_alice, text="  Alice's boat is called Merula. ")
    assert made.text == "Alice's boat is called Merula."
    found = selectors.recall(as_alice, "What is my boat called?", now=NOW)
    assert [item.id for item in found] == [made.id]


def test_creating_what_is_known_returns_the_known_one(as_alice):
    made = services.create(user=as_alice, text="Alice sails.")
    assert services.create(user=as_alice, text="alice sails").id == made.id


@pytest.mark.parametrize(
    ("field", "value"),
    [("text", "x"), ("text", "x" * 65_537), ("memory_type", "gossip"), ("importance", 1.5)],
)
def test_a_field_that_cannot_be_stored_is_refused_by_name(as_alice, field, value):
    with pytest.raises(BadRequest) as refused:
        services.create(user=as_alice, **{"text": "Alice sails.", field: value})
    assert set(refused.value.fields) == {field}


def test_an_edited_text_is_found_by_its_new_meaning_only(as_alice):
    memory = services.create(user=as_alice, text="Alice's boat is called Merula.")
    before = np.asarray(memory.embedding)
    services.edit(user=as_alice, memory_id=memory.id, text="Alice is allergic to nuts.")
    memory.refresh_from_db()
    assert not np.allclose(before, np.asarray(memory.embedding))
    assert selectors.recall(as_alice, "What is my boat called?", now=NOW) == []
    found = selectors.recall(as_alice, "Which allergy do I have?", now=NOW)
    assert [item.id for item in found] == [memory.id]


def test_an_edit_changes_only_what_is_given_and_can_clear_a_date(as_alice):
    memory = services.create(user=as_alice, text="Alice sails.", happens_at=NOW, wing="home")
    edited = services.edit(user=as_alice, memory_id=memory.id, happens_at=None)
    assert (edited.happens_at, edited.wing, edited.text) == (None, "home", "Alice sails.")


def test_an_edit_that_would_repeat_another_memory_is_refused(as_alice):
    services.create(user=as_alice, text="Alice sails.")
    memory = services.create(user=as_alice, text="Alice rows.")
    with pytest.raises(Conflict):
        services.edit(user=as_alice, memory_id=memory.id, text="Alice sails!")


# --- archive, restore, forget ----------------------------------------------------------------
def test_archiving_and_restoring_twice_change_nothing(as_alice):
    memory = MemoryFactory(user=as_alice, text="Alice sails.")
    first = services.archive(user=as_alice, memory_id=memory.id, reason="over")
    assert services.archive(user=as_alice, memory_id=memory.id, reason="x").archive_reason == "over"
    assert first.archived_at is not None
    for _ in range(2):
        restored = services.restore(user=as_alice, memory_id=memory.id)
        assert (restored.archived_at, restored.archive_reason) == (None, "")


def test_a_memory_whose_twin_lives_cannot_be_restored(as_alice):
    memory = MemoryFactory(user=as_alice, text="Alice sails.")
    services.archive(user=as_alice, memory_id=memory.id, reason="over")
    services.create(user=as_alice, text="Alice sails.")
    with pytest.raises(Conflict):
        services.restore(user=as_alice, memory_id=memory.id)


def test_forgetting_leaves_no_row(as_alice, segment):
    (memory_id,) = remember(as_alice, segment.said("My boat is called Merula.")).memory_ids
    services.forget(user=as_alice, memory_id=memory_id)
    with connection.cursor() as cursor:
        for table, column in (("memory_memories", "id"), ("memory_sources", "memory_id")):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE {column} = %s", [memory_id])
            assert cursor.fetchone() == (0,)
    assert selectors.recall(as_alice, "What is my boat called?", now=NOW) == []
    with pytest.raises(NotFound):
        services.forget(user=as_alice, memory_id=memory_id)


# --- somebody else ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "act",
    [
        lambda user, memory_id: services.archive(user=user, memory_id=memory_id, reason="x"),
        lambda user, memory_id: services.restore(user=user, memory_id=memory_id),
        lambda user, memory_id: services.edit(user=user, memory_id=memory_id, text="Bob was here."),
        lambda user, memory_id: services.forget(user=user, memory_id=memory_id),
        lambda user, memory_id: selectors.memory(user, memory_id),
    ],
    ids=["archive", "restore", "edit", "forget", "read"],
)
def test_what_belongs_to_alice_does_not_exist_for_bob(alice, bob, acting, act):
    with acting(alice):
        memory = MemoryFactory(user=alice, text="Alice sails.")
    with acting(bob), pytest.raises(NotFound):
        act(bob, memory.id)
    with acting(alice):
        memory.refresh_from_db()
        assert memory.text == "Alice sails."


def test_raw_sql_shows_bob_nothing_and_lets_him_write_nothing_of_alices(
    alice, bob, acting, segment
):
    segment.said("My boat is called Merula.")
    with acting(alice):
        remember(alice, segment)
    tables = ("memory_memories", "memory_sources", "memory_extractions")
    with acting(bob), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() == (0,)
            cursor.execute(f"DELETE FROM {table}")
            assert cursor.rowcount == 0
    with acting(alice):
        assert Memory.objects.for_user(alice).count() == 1


def test_the_same_fact_of_two_people_is_two_memories(alice, bob, acting, new_segment):
    for user in (alice, bob):
        with acting(user):
            assert remember(user, new_segment().said("My boat is called Merula.")).memory_ids
            assert Memory.objects.for_user(user).count() == 1


def test_a_source_is_unique_per_message(as_alice, segment):
    (memory_id,) = remember(as_alice, segment.said("My boat is called Merula.")).memory_ids
    with pytest.raises(IntegrityError), transaction.atomic():
        MemorySource.objects.create(
            user=as_alice,
            memory_id=memory_id,
            message_id=segment.messages[0].message_id,
            said_at=NOW,
        )


def test_an_unknown_segment_made_nothing(as_alice):
    assert not selectors.made_of_segment(as_alice, uuid4()).exists()
