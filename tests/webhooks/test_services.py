"""Who hears of what; and what may be written."""

from __future__ import annotations

import pytest

from mira_site import isolation
from mira_site.errors import BadRequest, Conflict, LimitReached, NotFound
from mira_site.webhooks import services
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.types import EventType

pytestmark = pytest.mark.django_db

URL = "https://example.org/hook"


def types_told(user):
    return sorted(Delivery.objects.for_user(user).values_list("event_type", flat=True))


def test_everything_is_all_but_what_must_be_named(as_alice):
    services.create(user=as_alice, url=URL, events=["*"])
    for event_type in EventType:
        services.emit(as_alice, event_type, {})
    assert types_told(as_alice) == sorted(set(EventType.values) - {"recall.completed"})


def test_an_endpoint_hears_only_of_what_it_named(as_alice):
    services.create(user=as_alice, url=URL, events=["recall.completed", "memory.deleted"])
    for event_type in EventType:
        services.emit(as_alice, event_type, {})
    assert types_told(as_alice) == ["memory.deleted", "recall.completed"]


def test_an_event_has_one_id_for_all_who_hear_of_it(as_alice):
    for _ in range(2):
        services.create(user=as_alice, url=URL, events=["*"])
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    assert len(set(Delivery.objects.for_user(as_alice).values_list("event_id", flat=True))) == 1


def test_telling_nobody_costs_one_query(as_alice, django_assert_num_queries):
    payloads = iter([{}])
    with django_assert_num_queries(1):
        services.emit_all(as_alice, EventType.MEMORY_STORED, payloads)
    assert next(payloads) == {}


def test_nobody_hears_of_what_happens_to_somebody_else(as_alice, bob):
    services.create(user=as_alice, url=URL, events=["*"])
    with isolation.acting_as(bob.pk):
        services.emit(bob, EventType.MEMORY_STORED, {})
        assert not Delivery.objects.for_user(bob).exists()
    assert types_told(as_alice) == []


def test_switched_off_it_hears_of_nothing(as_alice):
    made = services.create(user=as_alice, url=URL, events=["*"])
    services.change(user=as_alice, endpoint_id=made.endpoint.id, is_active=False)
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    assert types_told(as_alice) == []
    with pytest.raises(Conflict):
        services.send_test(user=as_alice, endpoint_id=made.endpoint.id)


def test_whether_somebody_listens_is_known_at_once_where_it_was_changed(as_alice):
    assert not services.is_wanted(as_alice, EventType.RECALL_COMPLETED)
    made = services.create(user=as_alice, url=URL, events=["recall.completed"])
    assert services.is_wanted(as_alice, EventType.RECALL_COMPLETED)
    services.delete(user=as_alice, endpoint_id=made.endpoint.id)
    assert not services.is_wanted(as_alice, EventType.RECALL_COMPLETED)


def test_a_person_has_ten_at_most(as_alice):
    for _ in range(10):
        services.create(user=as_alice, url=URL, events=["*"])
    with pytest.raises(LimitReached):
        services.create(user=as_alice, url=URL, events=["*"])


@pytest.mark.parametrize("events", [[], ["memory.lost"]])
def test_events_are_known_ones(as_alice, events):
    with pytest.raises(BadRequest):
        services.create(user=as_alice, url=URL, events=events)


def test_a_new_address_closes_the_breaker(as_alice):
    made = services.create(user=as_alice, url=URL, events=["*"])
    Endpoint.objects.for_user(as_alice).update(failures=5, opened_at=made.endpoint.created_at)
    changed = services.change(user=as_alice, endpoint_id=made.endpoint.id, url=URL + "/new")
    assert (changed.failures, changed.opened_at) == (0, None)


def test_a_dead_letter_starts_from_its_first_attempt(as_alice):
    services.create(user=as_alice, url=URL, events=["*"])
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    rows = Delivery.objects.for_user(as_alice)
    rows.update(status="dead", attempts=6, next_attempt_at=None)
    again = services.resend(user=as_alice, delivery_id=rows.get().id)
    assert (again.status, again.attempts) == ("pending", 0)
    assert again.next_attempt_at is not None


def test_what_is_somebody_elses_does_not_exist(as_alice, bob):
    made = services.create(user=as_alice, url=URL, events=["*"])
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    delivery = Delivery.objects.for_user(as_alice).get()
    with isolation.acting_as(bob.pk):
        for act in (
            lambda: services.change(user=bob, endpoint_id=made.endpoint.id, is_active=False),
            lambda: services.delete(user=bob, endpoint_id=made.endpoint.id),
            lambda: services.send_test(user=bob, endpoint_id=made.endpoint.id),
            lambda: services.resend(user=bob, delivery_id=delivery.id),
        ):
            with pytest.raises(NotFound):
                act()
    assert Endpoint.objects.for_user(as_alice).get().is_active
