"""Deliveries over real HTTP: what arrives, what is tried again, what is given up."""

from __future__ import annotations

import hashlib
import hmac
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from mira_site import isolation
from mira_site.webhooks import outbox, sending, services, tasks
from mira_site.webhooks.constants import RETRY_AFTER_S
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.types import EventType

pytestmark = pytest.mark.django_db


def told(user, endpoint, count=1):
    payloads = [{"memory": f"id-{number}"} for number in range(count)]
    services.emit_all(user, EventType.MEMORY_STORED, payloads)
    sending.run(user, endpoint.endpoint.id)


def make_due(user):
    Delivery.objects.for_user(user).filter(status="pending").update(next_attempt_at=timezone.now())


def close_breaker(user):
    Endpoint.objects.for_user(user).update(failures=0, opened_at=None, successes=0)


def test_an_event_arrives_with_the_headers_and_body_of_the_documentation(
    as_alice, endpoint, receiver
):
    told(as_alice, endpoint)
    (heard,) = receiver.heard
    delivery = Delivery.objects.for_user(as_alice).get()
    assert heard.event == {
        "id": str(delivery.event_id),
        "type": "memory.stored",
        "timestamp": delivery.occurred_at.isoformat(),
        "payload": {"memory": "id-0"},
    }
    assert heard.headers["Content-Type"] == "application/json"
    assert heard.headers["X-MIRA-Event-ID"] == str(delivery.event_id)
    assert heard.headers["X-MIRA-Event-Type"] == "memory.stored"
    assert heard.headers["X-MIRA-Webhook-ID"] == str(endpoint.endpoint.id)
    assert heard.headers["X-MIRA-Signature-Version"] == "v1"
    assert (delivery.status, delivery.attempts, delivery.response_status) == ("delivered", 1, 204)


def test_the_signature_covers_the_time_and_the_body(as_alice, endpoint, receiver):
    told(as_alice, endpoint)
    (heard,) = receiver.heard
    signed = heard.headers["X-MIRA-Timestamp"].encode() + b"." + heard.body
    right = hmac.new(endpoint.secret.encode(), signed, hashlib.sha256).hexdigest()
    assert heard.headers["X-MIRA-Signature"] == f"sha256={right}"
    assert abs(int(heard.headers["X-MIRA-Timestamp"]) - timezone.now().timestamp()) < 60


def test_the_secret_is_encrypted_in_the_table(as_alice, endpoint):
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM webhooks_endpoints")
        assert endpoint.secret.encode() not in bytes(cursor.fetchone()[0])


def test_a_failure_waits_its_time_and_is_dead_after_the_sixth_attempt(as_alice, endpoint, receiver):
    receiver.status = 500
    told(as_alice, endpoint)
    for number, wait_s in enumerate(RETRY_AFTER_S, start=1):
        delivery = Delivery.objects.for_user(as_alice).get()
        assert (delivery.status, delivery.attempts) == ("pending", number)
        assert (delivery.response_status, delivery.error_code) == (500, "status")
        left_s = (delivery.next_attempt_at - timezone.now()).total_seconds()
        assert 0.79 * wait_s - 1 < left_s < 1.21 * wait_s
        make_due(as_alice)
        close_breaker(as_alice)
        sending.run(as_alice, endpoint.endpoint.id)
    delivery = Delivery.objects.for_user(as_alice).get()
    assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("dead", 6, None)
    assert len(receiver.heard) == 6
    assert len({heard.event["id"] for heard in receiver.heard}) == 1


def test_what_is_not_due_yet_is_left_alone(as_alice, endpoint, receiver):
    receiver.status = 503
    told(as_alice, endpoint)
    sending.run(as_alice, endpoint.endpoint.id)
    assert len(receiver.heard) == 1


def test_after_five_failures_the_endpoint_has_peace_and_nothing_is_counted_against_what_waits(
    as_alice, endpoint, receiver
):
    receiver.status = 500
    told(as_alice, endpoint, count=8)
    assert len(receiver.heard) == 5
    waiting = Delivery.objects.for_user(as_alice).filter(attempts=0)
    assert waiting.count() == 3
    row = Endpoint.objects.for_user(as_alice).get()
    assert set(waiting.values_list("next_attempt_at", flat=True)) == {row.breaker.opens_until}


def test_half_open_lets_one_probe_through_and_a_failure_closes_the_door_again(
    as_alice, endpoint, receiver
):
    receiver.status = 500
    told(as_alice, endpoint, count=8)
    Endpoint.objects.for_user(as_alice).update(opened_at=timezone.now() - timedelta(seconds=31))
    make_due(as_alice)
    sending.run(as_alice, endpoint.endpoint.id)
    assert len(receiver.heard) == 6


def test_two_successful_probes_let_everything_through(as_alice, endpoint, receiver):
    receiver.status = 500
    told(as_alice, endpoint, count=8)
    receiver.status = 200
    Endpoint.objects.for_user(as_alice).update(opened_at=timezone.now() - timedelta(seconds=31))
    make_due(as_alice)
    sending.run(as_alice, endpoint.endpoint.id)
    assert Delivery.objects.for_user(as_alice).filter(status="delivered").count() == 8
    assert Endpoint.objects.for_user(as_alice).get().opened_at is None


def test_events_of_one_moment_go_out_in_turns_of_fifty(as_alice, endpoint, receiver, monkeypatch):
    monkeypatch.setattr(sending, "RUN_MAX", 3)
    services.emit_all(as_alice, EventType.MEMORY_STORED, [{}] * 5)
    assert sending.run(as_alice, endpoint.endpoint.id) is True
    assert sending.run(as_alice, endpoint.endpoint.id) is False
    assert len(receiver.heard) == 5


def test_a_worker_that_died_leaves_its_endpoint_to_others_after_a_minute(
    as_alice, endpoint, receiver
):
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    rows = Endpoint.objects.for_user(as_alice)
    rows.update(claimed_until=timezone.now() + timedelta(seconds=30))
    sending.run(as_alice, endpoint.endpoint.id)
    assert receiver.heard == []
    rows.update(claimed_until=timezone.now() - timedelta(seconds=1))
    sending.run(as_alice, endpoint.endpoint.id)
    assert len(receiver.heard) == 1


def test_deliveries_of_somebody_else_are_not_sent(as_alice, bob, endpoint, receiver):
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    with isolation.acting_as(bob.pk):
        assert sending.run(bob, endpoint.endpoint.id) is False
    assert receiver.heard == []


def test_the_sweep_sends_what_the_queue_lost_and_leaves_what_is_not_due(
    as_alice, endpoint, receiver
):
    services.emit(as_alice, EventType.MEMORY_STORED, {})
    tasks.sweep()
    tasks.sweep()
    assert len(receiver.heard) == 1


def test_what_is_older_than_thirty_days_is_deleted(as_alice, endpoint):
    now = timezone.now()
    for days in (29, 31):
        at = now - timedelta(days=days)
        outbox.put(as_alice, [endpoint.endpoint.id], "memory.stored", [{"days": days}], at=at)
    tasks.delete_old()
    assert [row.payload["days"] for row in Delivery.objects.for_user(as_alice)] == [29]


@pytest.mark.django_db(transaction=True)
def test_an_event_is_on_its_way_with_the_commit_and_not_before(as_alice, endpoint, receiver):
    with transaction.atomic():
        services.emit(as_alice, EventType.MEMORY_STORED, {})
        assert receiver.heard == []
    assert len(receiver.heard) == 1


@pytest.mark.django_db(transaction=True)
def test_a_rollback_takes_the_event_along(as_alice, endpoint, receiver):
    with pytest.raises(RuntimeError), transaction.atomic():
        services.emit(as_alice, EventType.MEMORY_STORED, {})
        raise RuntimeError
    assert receiver.heard == []
    assert not Delivery.objects.for_user(as_alice).exists()


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_each_delivery_once(as_alice, endpoint, receiver):
    outbox.put(as_alice, [endpoint.endpoint.id], "memory.stored", [{}] * 6, at=timezone.now())

    def work() -> None:
        with isolation.acting_as(as_alice.pk):
            sending.run(as_alice, endpoint.endpoint.id)
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({heard.event["id"] for heard in receiver.heard}) == len(receiver.heard) == 6
