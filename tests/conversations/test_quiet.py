"""How long it must be quiet is the person's to say, from half an hour to eight hours."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from conversations import collapse
from conversations.models import Segment
from mira_site import gauges, isolation
from mira_site.accounts import selectors as accounts
from mira_site.accounts.constants import QUIET_MINUTES
from mira_site.accounts.models import User
from tests.conversations.talking import quiet


def prefer(user: User, value: object) -> None:
    User.objects.filter(pk=user.pk).update(preferences={"quiet_minutes": value, "theme": "dark"})
    user.refresh_from_db()


def due() -> list:
    with isolation.all_users("a test of the quiet time"):
        return collapse.due(at=timezone.now())


@pytest.mark.parametrize("minutes", [30, 45, 60, 480])
def test_a_segment_rests_when_the_persons_own_quiet_time_is_over(me, minutes):
    prefer(me, minutes)
    segment = quiet(me, "I moved to Graz.", minutes=0)
    segment.refresh_from_db()
    over = segment.last_message_at + timedelta(minutes=minutes)
    with time_machine.travel(over - timedelta(seconds=1), tick=False):
        assert due() == []
        assert collapse.run(user=me, segment_id=segment.pk) is None
    with time_machine.travel(over, tick=False):
        assert due() == [(me.pk, segment.pk)]
        assert collapse.run(user=me, segment_id=segment.pk) is not None
    segment.refresh_from_db()
    assert segment.status == Segment.Status.COLLAPSED


@pytest.mark.parametrize(
    "stored", [29, 481, 0, -60, 90.5, "90", "soon", "9; DROP", None, True, [90], {"a": 1}, 10**12]
)
def test_what_makes_no_sense_is_as_if_nothing_was_chosen(me, stored):
    prefer(me, stored)
    assert accounts.preferences(me).quiet_minutes == QUIET_MINUTES
    segment = quiet(me, "I moved to Graz.", minutes=0)
    segment.refresh_from_db()
    over = segment.last_message_at + timedelta(minutes=QUIET_MINUTES)
    with time_machine.travel(over - timedelta(seconds=1), tick=False):
        assert due() == []
    with time_machine.travel(over, tick=False):
        assert due() == [(me.pk, segment.pk)]


def test_each_person_has_their_own(me, bob):
    prefer(me, 30)
    prefer(bob, 480)
    mine = quiet(me, "I moved to Graz.", minutes=40)
    with isolation.acting_as(bob.pk):
        his = quiet(bob, "I moved to Linz.", minutes=90)
    assert due() == [(me.pk, mine.pk)]
    prefer(bob, 60)
    assert set(due()) == {(me.pk, mine.pk), (bob.pk, his.pk)}


def test_the_operator_counts_as_due_what_is_due(me):
    def counted() -> float:
        with isolation.all_users("a test of the quiet time"):
            found = {one.name: one for one in gauges.registry().collect()}
        return found["mira_segments_due"].samples[0].value

    quiet(me, "I moved to Graz.", minutes=90)
    prefer(me, 480)
    assert counted() == 0
    prefer(me, 60)
    assert counted() == 1


def test_the_api_takes_it_within_its_bounds(api):
    assert api.get("/api/v1/me/").json()["settings"]["quiet_minutes"] == QUIET_MINUTES
    for minutes in (30, 480):
        answer = api.patch(
            "/api/v1/me/", {"settings": {"quiet_minutes": minutes}}, format="json"
        ).json()
        assert answer["settings"]["quiet_minutes"] == minutes
    for minutes in (29, 481, "soon", None, 45.5):
        answer = api.patch("/api/v1/me/", {"settings": {"quiet_minutes": minutes}}, format="json")
        assert answer.status_code == 400
    assert api.get("/api/v1/me/").json()["settings"]["quiet_minutes"] == 480
