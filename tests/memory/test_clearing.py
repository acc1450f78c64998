"""Notes that age into the archive, and clearing a room, a wing or everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from memory import services, tasks
from memory.models import Fingerprint, ForgetReceipt, Memory, MemoryAccess, Passage, Stakes
from mira_site import isolation, tokens
from mira_site.celery import app
from mira_site.errors import BadRequest, ConfirmationNeeded
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db
URL = "/api/v1/memories/"
NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)
FLAT = [1.0] + [0.0] * 383


def api_of(user):
    client = APIClient()
    client.force_login(user)
    return client


def aged(user, days, memory_type="session_note", **fields):
    """A memory that was said so many days ago."""
    said_at = NOW - timedelta(days=days)
    return MemoryFactory(
        user=user, said_at=said_at, created_at=said_at, memory_type=memory_type, embedding=FLAT,
        **fields,
    )  # fmt: skip


def live(user) -> set:
    return set(Memory.objects.for_user(user).live().values_list("id", flat=True))


# --- What ages ------------------------------------------------------------------------------------


def test_old_notes_and_old_logs_go_and_everything_else_stays(as_alice):
    note, log = aged(as_alice, 40), aged(as_alice, 10, "debug_log")
    kept = [
        aged(as_alice, 29),
        aged(as_alice, 6, "debug_log"),
        aged(as_alice, 4000, "decision"),
        aged(as_alice, 4000, "fact"),
        aged(as_alice, 4000, "preference"),
    ]
    done = services.archive_aged(user=as_alice, now=NOW)
    assert done.counts == {"session_note": 1, "debug_log": 1}
    assert done.tokens == tokens.estimate(note.text) + tokens.estimate(log.text)
    assert live(as_alice) == {memory.id for memory in kept}


def test_exactly_at_its_limit_a_note_stays(as_alice):
    note = aged(as_alice, 30)
    services.archive_aged(user=as_alice, now=NOW)
    assert live(as_alice) == {note.id}


@pytest.mark.parametrize("kind", MemoryAccess.Kind)
def test_what_came_up_or_was_used_lately_stays_until_that_is_long_ago_too(as_alice, kind):
    note = aged(as_alice, 40)
    MemoryAccess.objects.create(
        user=as_alice, memory=note, segment_id=note.id, kind=kind, use_day=1,
        accessed_at=NOW - timedelta(days=20),
    )  # fmt: skip
    services.archive_aged(user=as_alice, now=NOW)
    assert live(as_alice) == {note.id}
    services.archive_aged(user=as_alice, now=NOW + timedelta(days=11))
    assert live(as_alice) == set()


def test_what_the_person_confirmed_or_weighed_what_is_vital_or_waits_for_a_look_stays(as_alice):
    kept = [
        aged(as_alice, 40, confirmed_at=NOW),
        aged(as_alice, 40, importance_by_person=0.1),
        aged(as_alice, 40, stakes=Stakes.VITAL),
        aged(as_alice, 40, quarantined_at=NOW),
    ]
    services.archive_aged(user=as_alice, now=NOW)
    assert live(as_alice) == {memory.id for memory in kept}


def test_a_dry_run_counts_and_changes_nothing(as_alice):
    aged(as_alice, 40)
    answer = services.archive_aged(user=as_alice, now=NOW, dry_run=True)
    assert answer.counts["session_note"] == 1
    assert len(live(as_alice)) == 1


def test_what_aged_can_be_restored_and_stays_then(as_alice):
    note = aged(as_alice, 40)
    with time_machine.travel(NOW, tick=False):
        services.archive_aged(user=as_alice, now=NOW)
        restored = services.restore(user=as_alice, memory_id=note.id)
        assert restored.archived_at is None
        services.archive_aged(user=as_alice, now=NOW)
    assert live(as_alice) == {note.id}


def test_the_archive_says_why_it_went(as_alice, client):
    note = aged(as_alice, 40)
    services.archive_aged(user=as_alice, now=NOW)
    client.force_login(as_alice)
    page = client.get(f"/memories/{note.id}/").content.decode()
    assert "it was a note for its day, and that was long ago" in page


@pytest.mark.django_db(transaction=True)
def test_by_beat_each_person_with_old_notes_gets_one_task(alice, bob, settings, monkeypatch):
    with isolation.acting_as(alice.pk):
        aged(alice, 40)
    with isolation.acting_as(bob.pk):
        aged(bob, 1)
    handed: list[str] = []
    monkeypatch.setattr(tasks.archive_aged, "delay", handed.append)
    with time_machine.travel(NOW, tick=False):
        tasks.hand_out_aged()
        assert handed == [str(alice.pk)]
        tasks.archive_aged(str(alice.pk))
        tasks.archive_aged(str(alice.pk))
        tasks.hand_out_aged()
    assert handed == [str(alice.pk)]
    with isolation.acting_as(alice.pk):
        assert live(alice) == set()
    with isolation.acting_as(bob.pk):
        assert len(live(bob)) == 1


def test_beat_knows_the_task():
    entry = app.conf.beat_schedule["hand-out-aged-memories"]
    assert entry["task"] == tasks.hand_out_aged.name


def test_archiving_by_age_over_the_api(as_alice):
    with time_machine.travel(NOW, tick=False):
        aged(as_alice, 40)
        api = api_of(as_alice)
        looked = api.post(f"{URL}archive-aged/", {"dry_run": True}, format="json").json()
        assert looked["counts"] == {"session_note": 1, "debug_log": 0}
        assert len(live(as_alice)) == 1
        assert api.post(f"{URL}archive-aged/", {}, format="json").json() == looked
    assert live(as_alice) == set()


# --- Clearing -------------------------------------------------------------------------------------


@pytest.fixture
def three_places(as_alice, embedder):
    services.create(user=as_alice, text="The mast is high.", wing="Boat", room="rig")
    services.create(user=as_alice, text="Fenders hang to port.", wing="Boat", room="hull")
    services.create(user=as_alice, text="Alice bakes bread.", wing="home")
    return as_alice


def texts(user) -> list[str]:
    return sorted(Memory.objects.for_user(user).values_list("text", flat=True))


def test_a_room_goes_and_the_rest_of_the_wing_stays(three_places):
    cleared = services.clear(user=three_places, wing="boat", room="RIG")
    assert cleared.count == 1
    assert texts(three_places) == ["Alice bakes bread.", "Fenders hang to port."]


def test_without_a_room_the_whole_wing_goes(three_places):
    assert services.clear(user=three_places, wing="boat").count == 2
    assert texts(three_places) == ["Alice bakes bread."]


def test_without_a_wing_everything_goes_the_archive_too_and_nobody_elses(three_places, bob):
    with isolation.acting_as(bob.pk):
        services.create(user=bob, text="Bob rows.", wing="Boat")
    archived = Memory.objects.for_user(three_places).first()
    services.archive(user=three_places, memory_id=archived.id, reason="over")
    assert services.clear(user=three_places).count == 3
    assert texts(three_places) == []
    with isolation.acting_as(bob.pk):
        assert texts(bob) == ["Bob rows."]


def test_somebody_elses_wing_holds_nothing_of_ones_own(three_places, bob):
    with isolation.acting_as(bob.pk):
        assert services.clear(user=bob, wing="Boat").count == 0
        assert services.clear(user=bob).count == 0
    assert len(texts(three_places)) == 3


def test_what_is_cleared_is_forgotten_derived_forms_and_all_with_a_receipt(three_places):
    receipt = services.clear(user=three_places).receipt
    assert receipt.counts["memories"] == 3
    assert ForgetReceipt.objects.for_user(three_places).get() == receipt
    for model in (Fingerprint, Passage, MemoryAccess):
        assert not model.objects.for_user(three_places).exists()


def test_many_take_no_more_statements_than_few(as_alice):
    taken = []
    for wing, count in (("warm", 1), ("few", 2), ("many", 20)):
        for _ in range(count):
            aged(as_alice, 1, "fact", wing=wing)
        with CaptureQueriesContext(connection) as queries:
            assert services.clear(user=as_alice, wing=wing).count == count
        taken.append(len(queries))
    assert taken[1] == taken[2]


def test_clearing_twice_changes_nothing_more(three_places):
    services.clear(user=three_places, wing="boat")
    again = services.clear(user=three_places, wing="boat")
    assert (again.count, again.receipt) == (0, None)
    assert ForgetReceipt.objects.for_user(three_places).count() == 1


@pytest.mark.parametrize(
    ("scope", "field"),
    [({"room": "rig"}, "wing"), ({"wing": " "}, "wing"), ({"wing": "boat", "room": ""}, "room")],
)
def test_an_unclear_place_is_refused_and_never_means_everything(three_places, scope, field):
    with pytest.raises(BadRequest) as caught:
        services.clear(user=three_places, **scope)
    assert list(caught.value.fields) == [field]
    assert len(texts(three_places)) == 3


@pytest.fixture
def many(as_alice):
    """Twenty-one memories in a wing."""
    for _ in range(21):
        aged(as_alice, 1, "fact", wing="boat")
    return as_alice


def confirmation(user, **scope) -> str:
    with pytest.raises(ConfirmationNeeded) as caught:
        services.clear(user=user, **scope)
    return caught.value.confirmation


def test_more_than_twenty_need_a_confirmation_and_go_with_it(many):
    token = confirmation(many, wing="boat")
    assert len(texts(many)) == 21
    assert services.clear(user=many, wing="BOAT", confirm=token).count == 21
    assert texts(many) == []


def test_twenty_go_without(many):
    services.forget(user=many, memory_id=Memory.objects.for_user(many).first().id)
    assert services.clear(user=many).count == 20


def test_a_confirmation_is_for_one_place(many):
    token = confirmation(many, wing="boat")
    with pytest.raises(ConfirmationNeeded):
        services.clear(user=many, confirm=token)
    with pytest.raises(ConfirmationNeeded):
        services.clear(user=many, wing="boat", room="facts", confirm=token)


def test_a_confirmation_is_for_one_number_of_memories(many):
    token = confirmation(many, wing="boat")
    aged(many, 1, "fact", wing="boat")
    with pytest.raises(ConfirmationNeeded, match="22 memories"):
        services.clear(user=many, wing="boat", confirm=token)


def test_a_confirmation_is_for_one_person(many, bob):
    token = confirmation(many, wing="boat")
    with isolation.acting_as(bob.pk):
        for _ in range(21):
            aged(bob, 1, "fact", wing="boat")
        with pytest.raises(ConfirmationNeeded):
            services.clear(user=bob, wing="boat", confirm=token)


def test_a_confirmation_is_good_for_ten_minutes(many):
    with time_machine.travel(NOW, tick=False) as clock:
        token = confirmation(many)
        clock.shift(timedelta(minutes=10, seconds=1))
        with pytest.raises(ConfirmationNeeded):
            services.clear(user=many, confirm=token)


@pytest.mark.parametrize("token", ["", "nonsense", "a:b:c"])
def test_what_is_no_confirmation_is_none(many, token):
    with pytest.raises(ConfirmationNeeded):
        services.clear(user=many, confirm=token)


def test_clearing_over_the_api_refuses_confirms_and_counts(many):
    api = api_of(many)
    refused = api.post(f"{URL}clear/", {"wing": "boat"}, format="json")
    assert refused.status_code == 409
    assert refused.headers["Content-Type"] == "application/problem+json"
    body = refused.json()
    assert body["type"] == "urn:mira:problem:confirmation-needed"
    assert "21 memories" in body["detail"]
    done = api.post(
        f"{URL}clear/", {"wing": "boat", "confirm": body["confirmation"]}, format="json"
    ).json()
    assert (done["count"], done["receipt"]["counts"]["memories"]) == (21, 21)
    assert api.post(f"{URL}clear/", {"wing": "boat"}, format="json").json() == {
        "count": 0,
        "receipt": None,
    }
