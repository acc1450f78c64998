"""Memories by the time they were said."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memory import selectors
from memory.models import Fingerprint
from mira_site import isolation
from mira_site.errors import BadRequest
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "/api/v1/memories/timeline/"


def remembered(user, text, *, said_at=NOON, **fields):
    return MemoryFactory(user=user, text=text, said_at=said_at, created_at=NOON, **fields)


def texts(user, **asked):
    page = selectors.timeline(user, now=timezone.now(), **asked)
    return [item.summary for item in page.items]


@pytest.fixture
def three_days(as_alice, embedder):
    for day, text in ((1, "Alice bought a boat."), (2, "Alice sailed."), (3, "Alice rested.")):
        remembered(as_alice, text, said_at=datetime(2026, 11, day, 12, 0, tzinfo=UTC))
    return as_alice


def test_what_was_said_last_comes_first_whenever_it_was_stored(as_alice, embedder):
    remembered(as_alice, "Said last, stored first.", said_at=NOON)
    MemoryFactory(user=as_alice, text="Said first.", said_at=NOON - timedelta(days=1))
    assert texts(as_alice) == ["Said last, stored first.", "Said first."]
    assert texts(as_alice, newest_first=False) == ["Said first.", "Said last, stored first."]


def test_a_date_means_the_whole_day_in_the_persons_zone_at_both_ends(as_alice, embedder):
    remembered(
        as_alice, "The last moment before.", said_at=datetime(2026, 11, 9, 22, 59, tzinfo=UTC)
    )
    remembered(as_alice, "Midnight in Berlin.", said_at=datetime(2026, 11, 9, 23, 0, tzinfo=UTC))
    remembered(
        as_alice, "The end of the day.", said_at=datetime(2026, 11, 10, 22, 59, 59, tzinfo=UTC)
    )
    remembered(as_alice, "The day after.", said_at=datetime(2026, 11, 10, 23, 0, tzinfo=UTC))
    day = ["The end of the day.", "Midnight in Berlin."]
    assert texts(as_alice, since="2026-11-10", until="2026-11-10") == day
    assert texts(as_alice, since=date(2026, 11, 10), until=date(2026, 11, 10)) == day
    assert texts(as_alice, since="2026-11-10T00:00", until="2026-11-10T00:00") == [
        "Midnight in Berlin."
    ]
    assert texts(as_alice, until="2026-11-09T22:59:00Z") == ["The last moment before."]


def test_since_and_until_narrow(three_days):
    assert texts(three_days, since="2026-11-02") == ["Alice rested.", "Alice sailed."]
    assert texts(three_days, until="2026-11-02") == ["Alice sailed.", "Alice bought a boat."]


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_follow_each_other_without_gap_or_repeat_even_within_one_moment(
    as_alice, embedder, newest_first
):
    for number in range(7):
        remembered(as_alice, f"Said at noon, number {number}.")
    whole = texts(as_alice, newest_first=newest_first)
    seen, cursor = [], None
    while True:
        page = selectors.timeline(
            as_alice, limit=3, cursor=cursor, newest_first=newest_first, now=timezone.now()
        )
        seen += [item.summary for item in page.items]
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == whole
    assert len(set(seen)) == 7


def test_what_is_stored_meanwhile_does_not_shift_the_next_page(three_days):
    first = selectors.timeline(three_days, limit=2, now=timezone.now())
    remembered(three_days, "Alice woke up.", said_at=datetime(2026, 11, 4, tzinfo=UTC))
    assert texts(three_days, cursor=first.next_cursor) == ["Alice bought a boat."]


def test_the_last_page_has_no_cursor(three_days):
    assert selectors.timeline(three_days, limit=3, now=timezone.now()).next_cursor == ""


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"memory_type": "rumour"}, "type"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-13-01"}, "until"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(as_alice, asked, field):
    with pytest.raises(BadRequest) as caught:
        selectors.timeline(as_alice, now=timezone.now(), **asked)
    assert list(caught.value.fields) == [field]


def test_a_cursor_of_the_other_order_is_refused(three_days):
    first = selectors.timeline(three_days, limit=1, now=timezone.now())
    with pytest.raises(BadRequest):
        texts(three_days, cursor=first.next_cursor, newest_first=False)


def test_wing_room_and_type_narrow_whatever_their_case(as_alice, embedder):
    remembered(as_alice, "Mast.", wing="Überfahrt", room="Boat", memory_type="decision")
    remembered(as_alice, "Oven.", wing="home", room="Boat")
    assert texts(as_alice, wing="überfahrt") == ["Mast."]
    assert texts(as_alice, wing="ÜBERFAHRT", room="boat") == ["Mast."]
    assert texts(as_alice, room="BOAT", memory_type="fact") == ["Oven."]
    assert texts(as_alice, wing="nowhere") == []


def test_a_line_is_what_was_decided_or_the_beginning_of_the_text(as_alice, embedder):
    long = remembered(as_alice, "Alice thought\nabout it for a long time. " * 5)
    decided = remembered(as_alice, "We talked, and then we chose PostgreSQL.")
    Fingerprint.objects.create(
        user=as_alice,
        memory=decided,
        canonical='{"decision":"PostgreSQL"}',
        sha256="0" * 64,
        fact_count=1,
        author="rule",
        made_at=NOON,
    )
    page = selectors.timeline(as_alice, now=timezone.now())
    lines = {item.id: item.summary for item in page.items}
    assert lines[decided.id] == "PostgreSQL"
    assert lines[long.id].startswith("Alice thought about it")
    assert len(lines[long.id]) <= 80


def test_past_memories_are_in_it_archived_held_back_and_muted_ones_are_not(as_alice, embedder):
    remembered(as_alice, "It was so.", valid_until=NOON)
    for number, field in enumerate(("archived_at", "quarantined_at", "muted_at")):
        remembered(as_alice, f"Not to come up {number}.", **{field: NOON})
    assert texts(as_alice) == ["It was so."]


def test_nobody_sees_anothers_timeline(three_days, bob):
    with isolation.acting_as(bob.pk):
        remembered(bob, "Bob rows.")
        assert texts(bob) == ["Bob rows."]


def test_a_page_takes_few_statements(three_days, django_assert_max_num_queries):
    with django_assert_max_num_queries(3):
        texts(three_days, wing="life")


def test_the_timeline_over_the_api(three_days):
    api = APIClient()
    api.force_login(three_days)
    first = api.get(URL, {"limit": 2, "order": "oldest"}).json()
    assert [item["summary"] for item in first["items"]] == ["Alice bought a boat.", "Alice sailed."]
    assert first["items"][0].keys() == {
        "id", "said_at", "type", "wing", "room", "summary", "reads_like_an_instruction",
    }  # fmt: skip
    query = {"limit": 2, "order": "oldest", "cursor": first["next_cursor"]}
    second = api.get(URL, query).json()
    assert [item["summary"] for item in second["items"]] == ["Alice rested."]
    assert second["next_cursor"] == ""
    refused = api.get(URL, {"type": "rumour"})
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["type"])
