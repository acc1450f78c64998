"""The index in the process is what the tables are, whoever writes, and whenever that commits.

Two connections: what one of them writes the other one has to see with its next look.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory import asking, forgetting, index, passages, search
from memory.models import Memory, MemoryChange
from mira_site import isolation
from mira_site.accounts.models import User
from tests.factories import MemoryFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    index._kept.clear()
    yield
    index._kept.clear()


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    """A thread with a connection of its own: `submit(in_scope, user, work)`."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(lambda: connection.close()).result()  # its own


def in_scope(user, work):
    with isolation.acting_as(user.pk):
        return work()


def found(user, query="Merula", **kwargs):
    pool = search.candidates(user, asking.prepare([query]), now=NOW, **kwargs)
    return set(pool.ids)


def columns(one):
    """All of an index, the words in no order."""
    rows = one.rows
    words = sorted(zip(rows.words_of.tolist(), rows.words.tolist(), strict=True))
    return words, {
        name: getattr(rows, name).tobytes()
        for name in type(rows).__slots__
        if not name.startswith("words")
    }


def anew(user):
    """What an index would be that was never kept."""
    before = index._kept.pop(user.pk)
    fresh = index.of(user)
    index._kept[user.pk] = before
    return fresh


WRITES = {
    "added": lambda user, one: MemoryFactory(user=user, text="The Merula leaks."),
    "edited": lambda user, one: Memory.objects.filter(pk=one.pk).update(
        text="Ardea is what the boat is called."
    ),
    "archived": lambda user, one: Memory.objects.filter(pk=one.pk).update(archived_at=NOW),
    "quarantined": lambda user, one: Memory.objects.filter(pk=one.pk).update(quarantined_at=NOW),
    "expired": lambda user, one: Memory.objects.filter(pk=one.pk).update(expires_at=NOW),
    "past": lambda user, one: Memory.objects.filter(pk=one.pk).update(valid_until=NOW),
    "deleted": lambda user, one: Memory.objects.filter(pk=one.pk).delete(),
    "forgotten": lambda user, one: forgetting.forget(user, [one.pk], at=NOW),
    "moved": lambda user, one: Memory.objects.filter(pk=one.pk).update(wing="Attic"),
    "by another model": lambda user, one: Memory.objects.filter(pk=one.pk).update(
        embedding_model="another"
    ),
}


def test_what_another_connection_writes_is_seen_by_the_very_next_look(elsewhere):
    for name, write in WRITES.items():
        user = UserFactory()
        with isolation.acting_as(user.pk):
            one = MemoryFactory(user=user, text="The boat is called Merula.", wing="Harbour")
            MemoryFactory(user=user, text="Anna is allergic to nuts.")
            before = index.of(user)
            assert index.of(user) is before  # kept, and nothing new
            assert found(user, wing="harbour") == {one.pk}
            elsewhere.submit(in_scope, user, partial(write, user, one)).result()
            after = index.of(user)
            assert after is not before, name
            assert columns(after) == columns(anew(user)), name
            is_found = one.pk in found(user, wing="harbour")
            assert is_found is (name in {"added", "edited", "by another model"}), name


def test_many_rows_written_at_once_are_seen(alice, elsewhere):
    def write() -> None:
        rows = [MemoryFactory.build(user=alice, text=f"Merula, day {n}.") for n in range(30)]
        Memory.objects.bulk_create(rows)
        for row in rows[:10]:
            row.text = f"Ardea: {row.text}"
        Memory.objects.bulk_update(rows[:10], ["text"])
        Memory.objects.filter(pk__in=[row.pk for row in rows[20:]]).delete()
        passages.store(alice, [MemoryFactory(user=alice, text="A long tale of boats. " * 80)], {})

    with isolation.acting_as(alice.pk):
        MemoryFactory(user=alice)
        index.of(alice)
        elsewhere.submit(in_scope, alice, write).result()
        seen = index.of(alice)
        assert len(seen) == 22
        assert len(seen.rows.passages) > 1
        assert len(seen.holding("ardea")) == 10
        assert columns(seen) == columns(anew(alice))
        Memory.objects.for_user(alice).update(importance=0.9, scored_at=timezone.now())
        assert index.of(alice) is seen  # what nothing is searched by


def test_what_is_rolled_back_leaves_nothing(alice):
    with isolation.acting_as(alice.pk):
        one = MemoryFactory(user=alice, text="The boat is called Merula.")
        before = index.of(alice)
        with transaction.atomic():
            two = MemoryFactory(user=alice, text="The Merula leaks.")
            Memory.objects.filter(pk=one.pk).update(archived_at=NOW)
            assert found(alice) == {two.pk}
            transaction.set_rollback(True)
        assert index.of(alice) is before
        assert found(alice) == {one.pk}


def test_a_commit_that_comes_after_later_ones_is_seen(alice, elsewhere):
    with isolation.acting_as(alice.pk):
        MemoryFactory(user=alice)
        index.of(alice)
        with transaction.atomic():  # the older transaction; it commits last
            late = MemoryFactory(user=alice, text="The boat is called Merula.")

            def write_and_look():
                early = MemoryFactory(user=alice, text="The Merula leaks.")
                return early.pk, found(alice)

            early, seen = elsewhere.submit(in_scope, alice, write_and_look).result()
            assert seen == {early}
        assert found(alice) == {early, late.pk}
        assert index._kept[alice.pk].index is index.of(alice)


def test_indexes_of_two_people_never_mix_and_no_scope_but_the_owners_opens_one(alice, bob, acting):
    with acting(alice):
        mine = MemoryFactory(user=alice, text="The boat is called Merula.")
        assert found(alice) == {mine.pk}
    with acting(bob):
        theirs = MemoryFactory(user=bob, text="The Merula is Bob's.")
        assert found(bob) == {theirs.pk}
        assert index.of(bob).rows.ids.tolist() == [theirs.pk.bytes]
        assert MemoryChange.objects.values_list("memory_id", flat=True).get() == theirs.pk
        with pytest.raises(RuntimeError, match="outside the scope"):
            index.of(alice)
    with isolation.all_users("a test"), pytest.raises(RuntimeError, match="outside the scope"):
        index.of(alice)
    with pytest.raises(RuntimeError, match="outside the scope"):
        index.of(alice)
    with acting(alice):
        assert found(alice) == {mine.pk}


def test_an_account_that_is_deleted_leaves_no_row_of_the_log(alice, bob):
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            MemoryFactory(user=user)
    with isolation.acting_as(alice.pk):
        alice.delete()
    with isolation.all_users("a test"):
        assert set(MemoryChange.objects.values_list("user_id", flat=True)) == {bob.pk}
        assert not User.objects.filter(username="alice").exists()


def test_the_log_is_kept_for_a_day_and_an_index_older_than_half_of_it_is_read_anew(alice):
    with isolation.acting_as(alice.pk):
        MemoryFactory(user=alice)
        kept = index.of(alice)
        MemoryChange.objects.update(at=timezone.now() - index.CHANGES_KEPT)
        new = MemoryFactory(user=alice)
    with isolation.all_users("a test"):
        assert index.delete_old_changes() == 1
    with isolation.acting_as(alice.pk):
        assert MemoryChange.objects.get().memory_id == new.pk
        MemoryChange.objects.all().delete()
        assert index.of(alice) is kept
        index._kept[alice.pk].looked_at -= index.CHANGES_KEPT / 2
        assert len(index.of(alice)) == 2


def test_what_is_long_unused_or_too_much_is_dropped(alice, bob, monkeypatch):
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            MemoryFactory(user=user)
            index.of(user)
    assert list(index._kept) == [alice.pk, bob.pk]
    index._kept[alice.pk].used_at -= index.IDLE_S + 1
    index._drop_idle()
    assert list(index._kept) == [bob.pk]
    monkeypatch.setattr(index, "BYTES_MAX", 1)
    with isolation.acting_as(alice.pk):
        index.of(alice)
    assert list(index._kept) == [alice.pk]  # the last one stays


def test_the_rows_stand_in_the_order_of_their_ids(alice):
    with isolation.acting_as(alice.pk):
        ids = [uuid4() for _ in range(20)]
        for one in ids:
            MemoryFactory(user=alice, id=one)
        assert index.of(alice).rows.ids.tobytes() == b"".join(one.bytes for one in sorted(ids))
        assert index.of(alice).rows_of([ids[3], uuid4()]).tolist() == [sorted(ids).index(ids[3])]


def test_a_time_is_compared_to_the_microsecond(alice):
    with isolation.acting_as(alice.pk):
        MemoryFactory(user=alice, expires_at=NOW)
        seen = index.of(alice)
        step = timedelta(microseconds=1)
        assert np.flatnonzero(seen.visible(NOW - step, past=False)).tolist() == [0]
        assert not seen.visible(NOW, past=False).any()
