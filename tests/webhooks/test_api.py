"""Webhooks over the API and the page: the owner's, and nobody else's."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from mira_site import isolation
from mira_site.webhooks import services
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.types import EventType

pytestmark = pytest.mark.django_db

URL = "https://example.org/hook"


@pytest.fixture
def api(alice) -> APIClient:
    client = APIClient()
    client.force_login(alice)
    return client


@pytest.fixture
def theirs(bob):
    """Bob's endpoint and a dead delivery of his."""
    with isolation.acting_as(bob.pk):
        made = services.create(user=bob, url=URL + "?bob", events=["*"])
        services.emit(bob, EventType.MEMORY_STORED, {})
        Delivery.objects.for_user(bob).update(status="dead", next_attempt_at=None)
        return made.endpoint.id, Delivery.objects.for_user(bob).get().id


def test_the_secret_is_told_once(api):
    made = api.post("/api/v1/webhooks/", {"url": URL}, format="json")
    assert made.status_code == 201
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert made.json()["events"] == ["*"]
    one = api.get(f"/api/v1/webhooks/{made.json()['id']}/")
    every = api.get("/api/v1/webhooks/")
    assert secret not in one.content.decode() + every.content.decode()
    assert [row["url"] for row in every.json()["results"]] == [URL]


def test_a_private_address_is_a_problem_that_names_the_field(api):
    refused = api.post("/api/v1/webhooks/", {"url": "http://127.0.0.1/"}, format="json")
    assert refused.status_code == 400
    assert "url" in refused.json()["errors"]


def test_an_endpoint_is_changed_and_deleted(api):
    made = api.post("/api/v1/webhooks/", {"url": URL}, format="json").json()
    path = f"/api/v1/webhooks/{made['id']}/"
    changed = api.patch(path, {"is_active": False, "events": ["memory.deleted"]}, format="json")
    assert (changed.json()["is_active"], changed.json()["events"]) == (False, ["memory.deleted"])
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_a_test_event_is_listed_and_can_be_sent_again(api):
    made = api.post("/api/v1/webhooks/", {"url": URL}, format="json").json()
    sent = api.post(f"/api/v1/webhooks/{made['id']}/test/")
    assert (sent.status_code, sent.json()["type"]) == (202, "webhook.test")
    (row,) = api.get("/api/v1/webhooks/deliveries/", {"status": "pending"}).json()["results"]
    assert row["webhook"] == made["id"]
    again = api.post(f"/api/v1/webhooks/deliveries/{row['id']}/resend/")
    assert again.status_code == 202
    assert api.get("/api/v1/webhooks/deliveries/", {"status": "lost"}).status_code == 400


def test_what_is_somebody_elses_is_not_there(api, theirs, bob):
    endpoint_id, delivery_id = theirs
    assert api.get("/api/v1/webhooks/").json()["results"] == []
    assert api.get("/api/v1/webhooks/deliveries/").json()["results"] == []
    path = f"/api/v1/webhooks/{endpoint_id}/"
    for answer in (
        api.get(path),
        api.patch(path, {"is_active": False}, format="json"),
        api.delete(path),
        api.post(f"{path}test/"),
        api.post(f"/api/v1/webhooks/deliveries/{delivery_id}/resend/"),
        api.post(f"/settings/webhooks/{endpoint_id}/delete/"),
        api.post(f"/settings/webhooks/{endpoint_id}/switch/", {"on": "no"}),
        api.post(f"/settings/webhooks/{endpoint_id}/test/"),
        api.post(f"/settings/webhooks/deliveries/{delivery_id}/resend/"),
    ):
        assert answer.status_code == 404
    assert "?bob" not in api.get("/settings/webhooks/").content.decode()
    with isolation.acting_as(bob.pk):
        assert Endpoint.objects.for_user(bob).get().is_active


def test_nobody_manages_webhooks_without_signing_in(client):
    assert client.get("/api/v1/webhooks/").status_code == 401
    assert client.get("/settings/webhooks/").status_code == 302


def test_the_page_makes_an_endpoint_and_shows_its_secret_once(client, alice):
    client.force_login(alice)
    made = client.post("/settings/webhooks/", {"url": URL, "events": ["*"]})
    assert made.status_code == 201
    secret = made.context["new"].secret
    assert secret in made.content.decode()
    again = client.get("/settings/webhooks/").content.decode()
    assert URL in again
    assert "Hears of: Everything but recalls" in again
    assert secret not in again


def test_the_page_says_what_is_wrong_with_an_address(client, alice):
    client.force_login(alice)
    answer = client.post("/settings/webhooks/", {"url": "https://localhost/", "events": ["*"]})
    assert answer.status_code == 400
    assert "private" in answer.content.decode()


def test_the_page_lists_dead_letters_and_sends_them_again(client, alice):
    with isolation.acting_as(alice.pk):
        made = services.create(user=alice, url=URL, events=["*"])
        services.emit(alice, EventType.MEMORY_STORED, {})
        Delivery.objects.for_user(alice).update(status="dead", next_attempt_at=None)
        delivery = Delivery.objects.for_user(alice).get()
    client.force_login(alice)
    assert "Given up" in client.get("/settings/webhooks/").content.decode()
    client.post(f"/settings/webhooks/deliveries/{delivery.id}/resend/")
    client.post(f"/settings/webhooks/{made.endpoint.id}/switch/", {"on": "no"})
    with isolation.acting_as(alice.pk):
        assert Delivery.objects.for_user(alice).get().status == "pending"
        assert not Endpoint.objects.for_user(alice).get().is_active
    client.post(f"/settings/webhooks/{made.endpoint.id}/delete/")
    with isolation.acting_as(alice.pk):
        assert not Endpoint.objects.for_user(alice).exists()


def test_staff_send_dead_letters_again_and_see_no_secret(client, staff, alice):
    with isolation.acting_as(alice.pk):
        made = services.create(user=alice, url=URL, events=["*"])
        services.emit(alice, EventType.MEMORY_STORED, {})
        Delivery.objects.for_user(alice).update(status="dead", next_attempt_at=None)
        delivery = Delivery.objects.for_user(alice).get()
    client.force_login(staff)
    chosen = {"action": "send_again", "_selected_action": [str(delivery.id)]}
    client.post("/admin/webhooks/delivery/", chosen)
    with isolation.acting_as(alice.pk):
        assert Delivery.objects.for_user(alice).get().status == "pending"
    page = client.get(f"/admin/webhooks/endpoint/{made.endpoint.id}/change/").content.decode()
    assert made.secret not in page
    assert URL not in page
