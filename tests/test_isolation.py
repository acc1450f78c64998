"""Nobody's rows cross: by raw SQL, through rollbacks, threads and async code."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from asgiref.sync import sync_to_async
from celery import shared_task
from django.apps import apps
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from django.utils import timezone

from conversations.models import Thread
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.owned import Owned

pytestmark = pytest.mark.django_db(transaction=True)

OWNED = [model for model in apps.get_models() if issubclass(model, Owned)]


def threads_seen() -> int:
    """By raw SQL without a WHERE: what row-level security alone lets through."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM conversations_threads")
        return int(cursor.fetchone()[0])


@pytest.fixture
def two_threads(alice, bob):
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            Thread.objects.create(user=user)


def test_the_application_role_is_no_superuser_and_cannot_bypass_policies(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False)


@pytest.mark.parametrize("model", OWNED, ids=lambda model: model._meta.db_table)
def test_every_owned_table_has_forced_row_level_security(db, model):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = %s",
            [model._meta.db_table],
        )
        assert cursor.fetchone() == (True, True)
        cursor.execute(
            "SELECT count(*) FROM pg_policies WHERE tablename = %s", [model._meta.db_table]
        )
        assert cursor.fetchone() == (1,)


def test_every_table_with_a_user_column_of_ours_is_owned():
    ours = {"conversations", "memory", "llm", "accounts", "webhooks"}
    by_field = [
        model
        for model in apps.get_models()
        if model._meta.app_label in ours and any(f.name == "user" for f in model._meta.fields)
    ]
    assert set(by_field) == set(OWNED)


def test_without_a_scope_no_row_is_seen(two_threads):
    assert threads_seen() == 0


def test_a_user_sees_only_their_own_rows(two_threads, alice, bob):
    for user in (alice, bob):
        with isolation.acting_as(user.pk), connection.cursor() as cursor:
            cursor.execute("SELECT user_id FROM conversations_threads")
            assert cursor.fetchall() == [(user.pk,)]
    assert threads_seen() == 0


def test_a_row_for_somebody_else_cannot_be_written(alice, bob):
    with isolation.acting_as(alice.pk), pytest.raises(ProgrammingError, match="row-level security"):
        Thread.objects.create(user=bob)


def test_somebody_elses_row_cannot_be_changed_or_deleted_by_raw_sql(two_threads, alice, bob):
    with isolation.acting_as(alice.pk), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_threads SET last_position = 9 WHERE user_id = %s", [bob.pk]
        )
        assert cursor.rowcount == 0
        cursor.execute("DELETE FROM conversations_threads WHERE user_id = %s", [bob.pk])
        assert cursor.rowcount == 0


def test_all_users_sees_everybody_and_ends_with_its_block(two_threads):
    with isolation.all_users("a test of isolation"):
        assert threads_seen() == 2
    assert threads_seen() == 0


def test_all_users_needs_a_reason():
    with pytest.raises(ValueError), isolation.all_users("  "):
        pass


def test_a_rollback_does_not_bring_back_an_earlier_scope(two_threads, alice, bob):
    with isolation.acting_as(alice.pk):
        assert threads_seen() == 1
        with suppress(RuntimeError), transaction.atomic():
            with isolation.acting_as(bob.pk):
                assert threads_seen() == 1
            raise RuntimeError
        with connection.cursor() as cursor:
            cursor.execute("SELECT user_id FROM conversations_threads")
            assert cursor.fetchall() == [(alice.pk,)]
    assert threads_seen() == 0


def test_a_rollback_to_a_savepoint_does_not_bring_back_an_earlier_scope(two_threads, alice, bob):
    with transaction.atomic():
        with isolation.acting_as(alice.pk):
            assert threads_seen() == 1
            with suppress(RuntimeError), transaction.atomic(), isolation.acting_as(bob.pk):
                assert threads_seen() == 1
                raise RuntimeError
            with connection.cursor() as cursor:
                cursor.execute("SELECT user_id FROM conversations_threads")
                assert cursor.fetchall() == [(alice.pk,)]
        assert threads_seen() == 0


def test_an_error_inside_the_block_ends_the_scope(two_threads, alice):
    with suppress(RuntimeError), isolation.acting_as(alice.pk):
        raise RuntimeError
    assert threads_seen() == 0


def test_a_reused_thread_does_not_keep_the_scope(two_threads, alice):
    with ThreadPoolExecutor(max_workers=1) as pool:

        def as_alice() -> int:
            with isolation.acting_as(alice.pk):
                return threads_seen()

        def then_close() -> int:
            seen = threads_seen()
            connection.close()
            return seen

        assert pool.submit(as_alice).result() == 1
        assert pool.submit(then_close).result() == 0


def test_a_new_thread_does_not_inherit_the_scope(two_threads, alice):
    seen: list[int] = []

    def look() -> None:
        seen.append(threads_seen())
        connection.close()

    with isolation.acting_as(alice.pk):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [0]


def test_a_pooled_connection_does_not_keep_the_scope(two_threads, alice):
    with isolation.acting_as(alice.pk):
        assert threads_seen() == 1
        connection.close()
    assert threads_seen() == 0


def test_tasks_side_by_side_in_one_loop_keep_their_scopes(two_threads, alice, bob):
    def owners() -> list:
        with connection.cursor() as cursor:
            cursor.execute("SELECT user_id FROM conversations_threads")
            return [row[0] for row in cursor.fetchall()]

    async def look(user: User) -> list:
        with isolation.acting_as(user.pk):
            found = []
            for _ in range(20):
                found += await sync_to_async(owners)()
                await asyncio.sleep(0)
            return found

    async def both() -> tuple[list, list, list]:
        ours, theirs = await asyncio.gather(look(alice), look(bob))
        return ours, theirs, await sync_to_async(owners)()

    ours, theirs, nobodys = asyncio.run(both())
    assert set(ours) == {alice.pk}
    assert set(theirs) == {bob.pk}
    assert nobodys == []


def test_a_request_is_scoped_to_its_user_and_leaves_nothing_behind(two_threads, alice, client):
    client.force_login(alice)
    assert client.get("/api/v1/messages/").status_code == 200
    assert isolation.current() == isolation.NOBODY
    assert threads_seen() == 0


def test_a_task_acts_as_the_user_it_names(two_threads, alice):
    @shared_task(base=isolation.UserTask)
    def look(user_id: str) -> int:
        return threads_seen()

    assert look(str(alice.pk)) == 1
    assert threads_seen() == 0


def test_deleting_an_account_takes_every_row_with_it(two_threads, alice, bob):
    with isolation.acting_as(alice.pk):
        alice.delete()
    with isolation.all_users("a test of isolation"):
        assert list(Thread.objects.values_list("user_id", flat=True)) == [bob.pk]


def test_time_zone_of_the_session_is_utc(db):
    with connection.cursor() as cursor:
        cursor.execute("SHOW timezone")
        assert cursor.fetchone() == ("UTC",)
    assert timezone.now().tzinfo is not None
