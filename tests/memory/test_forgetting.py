"""Forgetting takes along all that was made of a memory, and says so in counts."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memory import forgetting, links, services, tending, truth
from memory.models import (
    Annotation,
    Entity,
    ForgetReceipt,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemoryRevision,
    MemorySource,
    Merge,
)
from memory.types import Touched
from mira_site.errors import EmbeddingsUnavailable, NotFound, WorkLeftDue
from tests.factories import MemoryFactory
from tests.memory.conftest import SAID_AT

NOW = SAID_AT + timedelta(days=1)
TABLES = (
    ("memory_memories", "id"),
    ("memory_sources", "memory_id"),
    ("memory_entity_links", "memory_id"),
    ("memory_links", "source_id"),
    ("memory_links", "target_id"),
    ("memory_accesses", "memory_id"),
    ("memory_revisions", "memory_id"),
    ("memory_annotations", "memory_id"),
    ("memory_merge_sources", "memory_id"),
    ("memory_merges", "result_id"),
)


def known(user, text, **fields) -> Memory:
    return services.create(user=user, text=text, **fields)


def texts(user) -> list[str]:
    live = Memory.objects.for_user(user).live().order_by("created_at", "id")
    return list(live.values_list("text", flat=True))


def everything(user) -> str:
    """All that the tables of the memory app hold of the person, as one text."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'memory_%'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT to_jsonb(t) - 'embedding' FROM {table} AS t")
            found += [json.dumps(row, default=str) for row in cursor.fetchall()]
    return "\n".join(found)


@pytest.fixture
def boat(as_alice, segment) -> Memory:
    segment.said("My boat is called Merula.")
    (memory_id,) = services.remember(
        user=as_alice, segment_id=segment.id, messages=segment.messages, at=NOW
    ).memory_ids
    return Memory.objects.for_user(as_alice).get(id=memory_id)


def test_everything_that_belongs_to_it_goes_and_is_counted(as_alice, boat):
    other = known(as_alice, "Alice sails on Sundays.")
    links.connect(
        as_alice,
        boat.id,
        other.id,
        link_type=MemoryLink.Type.REFINES,
        reasoning="Sailing needs a boat.",
        author=MemoryLink.Author.PERSON,
        at=NOW,
    )
    services.edit(user=as_alice, memory_id=boat.id, text="Alice's boat is called Merula II.")
    tending.annotate(
        user=as_alice,
        memory_id=boat.id,
        text="A sloop.",
        author=MemoryRevision.Author.PERSON,
        at=NOW,
    )
    tending.touch(user=as_alice, memory_ids=[boat.id], segment_id=None, at=NOW)
    receipt = services.forget(user=as_alice, memory_id=boat.id)
    with connection.cursor() as cursor:
        for table, column in TABLES:
            cursor.execute(f"SELECT count(*) FROM {table} WHERE {column} = %s", [boat.id])
            assert cursor.fetchone() == (0,), table
    assert receipt.counts.items() >= {
        "memories": 1, "sources": 1, "links": 1, "revisions": 1, "notes": 1, "uses": 1,
    }.items()  # fmt: skip
    assert "Merula" not in everything(as_alice)


def test_a_receipt_holds_no_word(as_alice, boat):
    receipt = services.forget(user=as_alice, memory_id=boat.id)
    assert all(isinstance(count, int) for count in receipt.counts.values())
    assert receipt.finished_at == receipt.requested_at


def test_a_name_that_nothing_mentions_any_more_goes_and_others_stay(as_alice, boat):
    sister = known(as_alice, "My sister Anna works for Kastner.")
    known(as_alice, "Anna lives in Graz.")
    assert Entity.objects.for_user(as_alice).filter(name="Merula").exists()
    services.forget(user=as_alice, memory_id=boat.id)
    services.forget(user=as_alice, memory_id=sister.id)
    names = set(Entity.objects.for_user(as_alice).values_list("name", flat=True))
    assert "Anna" in names
    assert not {"Merula", "Kastner"} & names


def test_forgetting_twice_is_not_found(as_alice, boat):
    services.forget(user=as_alice, memory_id=boat.id)
    with pytest.raises(NotFound):
        services.forget(user=as_alice, memory_id=boat.id)
    assert ForgetReceipt.objects.for_user(as_alice).count() == 1


def test_forgetting_one_of_several_that_are_not_there_forgets_none(as_alice, boat):
    with pytest.raises(NotFound):
        services.forget_all(user=as_alice, memory_ids=[boat.id, as_alice.pk])
    assert texts(as_alice) == [boat.text]


def test_forgetting_needs_no_embeddings(as_alice, boat, monkeypatch):
    def away(*args: object) -> object:
        raise EmbeddingsUnavailable("Away.")

    monkeypatch.setattr("mira_site.embeddings.embed", away)
    services.forget(user=as_alice, memory_id=boat.id)
    assert texts(as_alice) == []


# --- merged memories ----------------------------------------------------------------------------
def merged(user, *parts: Memory, text: str) -> Merge:
    return services.merge(user=user, memory_ids=[part.id for part in parts], text=text)


def test_what_it_was_merged_into_goes_and_the_other_parts_stand_again(as_alice):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    whole = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    receipt = services.forget(user=as_alice, memory_id=boat.id)
    assert texts(as_alice) == ["Alice sails on Sundays."]
    assert receipt.counts["merged"] == 1
    assert not Memory.objects.for_user(as_alice).filter(id=whole.result_id).exists()
    assert "Merula" not in everything(as_alice)


def test_what_was_merged_from_it_goes_too(as_alice):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    whole = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    receipt = services.forget(user=as_alice, memory_id=whole.result_id)
    assert not Memory.objects.for_user(as_alice).exists()
    assert receipt.counts["memories"] == 3


def test_a_chain_of_merges_is_followed_to_its_end(as_alice):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    tea = known(as_alice, "Alice drinks green tea.")
    first = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    merged(
        as_alice, first.result, tea,
        text="Alice sails on Sundays; her boat is called Merula. Alice drinks green tea.",
    )  # fmt: skip
    services.forget(user=as_alice, memory_id=boat.id)
    assert sorted(texts(as_alice)) == ["Alice drinks green tea.", "Alice sails on Sundays."]
    assert "Merula" not in everything(as_alice)


def test_the_other_parts_of_an_archived_merge_stay_archived_for_its_reason(as_alice):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    whole = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    services.archive(user=as_alice, memory_id=whole.result_id, reason="by hand")
    services.forget(user=as_alice, memory_id=boat.id)
    days.refresh_from_db()
    assert days.archive_reason == "by hand"


def test_a_merge_that_was_undone_is_no_hiding_place(as_alice):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    whole = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    services.undo_merge(user=as_alice, merge_id=whole.id)
    services.forget(user=as_alice, memory_id=boat.id)
    assert texts(as_alice) == ["Alice sails on Sundays."]
    assert "Merula" not in everything(as_alice)


def test_what_the_merged_memory_gained_since_goes_to_the_part_that_stays(as_alice, new_segment):
    boat = known(as_alice, "Alice has a boat called Merula.")
    days = known(as_alice, "Alice sails on Sundays.")
    whole = merged(as_alice, boat, days, text="Alice sails on Sundays; her boat is called Merula.")
    tea = known(as_alice, "Alice drinks tea on board.")
    links.connect(
        as_alice,
        tea.id,
        whole.result_id,
        link_type=MemoryLink.Type.CONTEXTUALIZES,
        reasoning="Both are on board.",
        author=MemoryLink.Author.PERSON,
        at=timezone.now(),
    )
    MemorySource.objects.create(
        user=as_alice,
        memory_id=whole.result_id,
        message_id=tea.id,
        sentence="I sail every Sunday.",
        said_at=NOW,
    )
    services.forget(user=as_alice, memory_id=boat.id)
    assert MemoryLink.objects.for_user(as_alice).get().target_id == days.id
    assert days.sources.get().sentence == "I sail every Sunday."


# --- texts elsewhere ------------------------------------------------------------------------------
def test_notes_old_wordings_and_reasons_elsewhere_lose_it(as_alice, boat):
    one = known(as_alice, "Alice sails on Sundays.")
    two = known(as_alice, "Alice has a berth in the harbour.")
    for text in ("With Merula, of course.", "Only in summer."):
        tending.annotate(user=as_alice, memory_id=one.id, text=text, author="curator", at=NOW)
    links.connect(
        as_alice,
        two.id,
        one.id,
        link_type=MemoryLink.Type.CONTEXTUALIZES,
        reasoning="Merula lies there.",
        author=MemoryLink.Author.MODEL,
        at=NOW,
    )
    receipt = services.forget(user=as_alice, memory_id=boat.id)
    assert [note.text for note in Annotation.objects.for_user(as_alice)] == ["Only in summer."]
    assert MemoryLink.objects.for_user(as_alice).get().reasoning == ""
    assert (receipt.counts["notes"], receipt.counts["reasons"]) == (1, 1)


def test_what_it_had_replaced_is_true_again(as_alice):
    old = known(as_alice, "Alice lives in Graz.")
    new = known(as_alice, "Alice lives in Linz.")
    truth.supersede(as_alice, new.id, old.id, at=NOW, reasoning="She moved.")
    services.forget(user=as_alice, memory_id=new.id)
    old.refresh_from_db()
    assert old.valid_until is None


# --- crash and race -------------------------------------------------------------------------------
def test_if_somebody_cannot_put_their_texts_right_nothing_is_forgotten(as_alice, boat):
    def broken(sender: object, **kwargs: object) -> Touched:
        raise RuntimeError

    services.being_forgotten.connect(broken)
    try:
        with pytest.raises(RuntimeError):
            services.forget(user=as_alice, memory_id=boat.id)
    finally:
        services.being_forgotten.disconnect(broken)
    assert texts(as_alice) == [boat.text]
    assert not ForgetReceipt.objects.for_user(as_alice).exists()


def test_a_receipt_is_open_until_all_is_written_anew(as_alice, boat):
    def later(sender: object, **kwargs: object) -> Touched:
        return Touched(counts={"summaries": 2}, is_finished=False)

    services.being_forgotten.connect(later)
    try:
        receipt = services.forget(user=as_alice, memory_id=boat.id)
    finally:
        services.being_forgotten.disconnect(later)
    assert receipt.finished_at is None
    assert receipt.counts["summaries"] == 2
    services.finish_forgetting(user=as_alice, before=receipt.requested_at - timedelta(seconds=1))
    receipt.refresh_from_db()
    assert receipt.finished_at is None
    services.finish_forgetting(user=as_alice, before=receipt.requested_at)
    receipt.refresh_from_db()
    assert receipt.finished_at is not None


def test_a_segment_read_before_the_wish_is_not_remembered_after_it(as_alice, boat, new_segment):
    other = new_segment().said("My boat is called Merula, and she leaks.")
    read_at = timezone.now()
    services.forget(user=as_alice, memory_id=boat.id)
    with pytest.raises(WorkLeftDue):
        services.remember(user=as_alice, segment_id=other.id, messages=other.messages, at=read_at)
    assert texts(as_alice) == []


# --- two people ----------------------------------------------------------------------------------
def test_bob_can_forget_nothing_of_alices_and_loses_nothing(alice, bob, acting):
    with acting(bob):
        his = MemoryFactory(user=bob, text="Bob's boat is called Merula.")
        Annotation.objects.create(
            user=bob, memory=his, text="Merula leaks.", author="person", created_at=NOW
        )
    with acting(alice):
        hers = MemoryFactory(user=alice, text="Alice's boat is called Merula.")
    with acting(bob), pytest.raises(NotFound):
        services.forget(user=bob, memory_id=hers.id)
    with acting(alice):
        services.forget(user=alice, memory_id=hers.id)
        with pytest.raises(NotFound):
            services.forget(user=alice, memory_id=his.id)
        assert not forgetting.since(bob, NOW - timedelta(days=9))
    with acting(bob):
        assert Memory.objects.for_user(bob).get().text == "Bob's boat is called Merula."
        assert Annotation.objects.for_user(bob).count() == 1
        assert not ForgetReceipt.objects.exists()
        assert not MemoryAccess.objects.exists()
        assert not MemoryEntity.objects.exists()
