from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from mira_site import isolation
from mira_site.accounts import selectors, services
from mira_site.accounts.models import User
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def days(user: User) -> list[tuple[str, int]]:
    """Day and number of messages, by raw SQL."""
    with isolation.acting_as(user.pk), connection.cursor() as cursor:
        cursor.execute(
            "SELECT day_on::text, message_count FROM accounts_use_days "
            "WHERE user_id = %s ORDER BY day_on",
            [user.pk],
        )
        return cursor.fetchall()


def talk(user: User, *moments: str) -> None:
    with isolation.acting_as(user.pk):
        for moment in moments:
            services.record_use(user=user, at=at(moment))


def test_messages_of_one_local_day_are_one_use_day():
    user = UserFactory(timezone="America/New_York")
    talk(user, "2026-03-01T14:00", "2026-03-02T03:00")  # 22:00 of the same evening there
    assert days(user) == [("2026-03-01", 2)]


def test_only_the_first_message_of_a_day_begins_one():
    user = UserFactory(timezone="UTC")
    with isolation.acting_as(user.pk):
        moments = ("2026-03-01T08:00", "2026-03-01T23:59", "2026-03-02T00:00", "2026-03-01T12:00")
        assert [services.record_use(user=user, at=at(moment)) for moment in moments] == [
            True, False, True, False,
        ]  # fmt: skip


def test_a_day_turns_at_local_midnight():
    user = UserFactory(timezone="Asia/Tokyo")
    talk(user, "2026-03-01T14:59", "2026-03-01T15:01")
    assert days(user) == [("2026-03-01", 1), ("2026-03-02", 1)]
    with isolation.acting_as(user.pk):
        assert selectors.use_days(user) == 2


def test_flying_west_counts_no_day_twice():
    user = UserFactory(timezone="Pacific/Auckland")
    talk(user, "2026-03-01T20:00")  # 2 March in Auckland
    services.update_profile(user=user, zone_name="Pacific/Honolulu")
    talk(user, "2026-03-01T21:00", "2026-03-02T21:00")  # 1 March, then 2 March in Honolulu
    assert days(user) == [("2026-03-02", 3)]
    talk(user, "2026-03-03T21:00")
    assert days(user) == [("2026-03-02", 3), ("2026-03-03", 1)]


def test_the_zone_is_read_anew_for_each_message():
    user = UserFactory(timezone="UTC")
    services.update_profile(user=user, zone_name="Asia/Tokyo")
    talk(user, "2026-03-01T20:00")
    assert days(user) == [("2026-03-02", 1)]


def test_a_bad_stored_zone_counts_as_utc():
    user = UserFactory(timezone="Mars/Olympus")
    assert selectors.zone(user).key == "UTC"
    talk(user, "2026-03-01T23:30")
    assert days(user) == [("2026-03-01", 1)]


def test_nobody_sees_or_counts_anothers_days(alice, bob):
    talk(alice, "2026-03-01T10:00", "2026-03-02T10:00")
    with isolation.acting_as(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM accounts_use_days")
        assert cursor.fetchone() == (0,)
        cursor.execute("UPDATE accounts_use_days SET message_count = 99")
        assert cursor.rowcount == 0
        assert selectors.use_days(alice) == 0
    assert days(alice) == [("2026-03-01", 1), ("2026-03-02", 1)]


def test_without_a_scope_there_are_no_days(alice):
    talk(alice, "2026-03-01T10:00")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM accounts_use_days")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
def test_messages_at_the_same_moment_make_one_day_and_are_all_counted():
    user = UserFactory()

    def send(_: int) -> None:
        talk(user, "2026-03-01T10:00")
        connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(send, range(12)))
    assert days(user) == [("2026-03-01", 12)]
