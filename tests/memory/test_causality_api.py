"""Causal chains and the links they go by, over the API."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memory import links
from memory.models import Conflict, MemoryLink
from tests.factories import MemoryFactory

ROOT = "/api/v1/memories/"
NOW = timezone.now()


@pytest.fixture
def row(alice, acting):
    """Of three memories each is so because of the next; with the two links."""
    with acting(alice):
        made = [
            MemoryFactory(user=alice, text=f"Step {number}.", said_at=NOW - timedelta(days=number))
            for number in range(3)
        ]
        found = [
            links.connect(
                alice, one.id, two.id, link_type="because", reasoning="", author="rule", at=NOW
            )
            for one, two in pairwise(made)
        ]
    return made, found


def pair(user, link_type):
    newer = MemoryFactory(user=user, text="It is new.")
    older = MemoryFactory(user=user, text="It is old.", said_at=NOW - timedelta(days=3))
    link = links.connect(
        user, newer.id, older.id, link_type=link_type, reasoning="", author="rule", at=NOW
    )
    MemoryLink.objects.filter(id=link.id).update(weight=0.61)
    return newer, older, link


def test_a_chain_tells_what_led_here_and_by_which_links(api, row):
    made, found = row
    body = api.get(f"{ROOT}{made[0].id}/causal-chain/").json()
    assert body["memory"] == str(made[0].id)
    assert [node["id"] for node in body["causes"]] == [str(made[1].id), str(made[2].id)]
    assert [node["link"] for node in body["causes"]] == [str(link.id) for link in found]
    first = body["causes"][0]
    assert (first["relation"], first["depth"], first["via"]) == ("because", 1, str(made[0].id))
    assert (first["weight"], first["is_past"], first["confirmed_at"]) == (0.7, False, None)
    assert body["consequences"] == []


def test_consequences_are_told_where_asked_for(api, row):
    made, _ = row
    url = f"{ROOT}{made[2].id}/causal-chain/"
    body = api.get(url, {"include_consequences": "true", "max_depth": 1}).json()
    assert body["causes"] == []
    assert [node["id"] for node in body["consequences"]] == [str(made[1].id)]


@pytest.mark.parametrize("depth", ["0", "11", "-1", "deep"])
def test_a_bad_depth_is_refused_by_its_name(api, row, depth):
    response = api.get(f"{ROOT}{row[0][0].id}/causal-chain/", {"max_depth": depth})
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "max_depth" in response.json()["errors"]


def test_links_carry_weight_and_confirmation(api, row):
    made, found = row
    (shown,) = api.get(f"{ROOT}{made[0].id}/").json()["links"]
    assert (shown["link_type"], shown["weight"], shown["confirmed_at"]) == ("because", 0.7, None)
    graph = api.get(f"{ROOT}{made[0].id}/graph/").json()
    assert {link["link_type"] for link in graph["links"]} == {"because"}
    assert all(link["weight"] == 0.7 for link in graph["links"])
    assert {link["id"] for link in graph["links"]} == {str(link.id) for link in found}


def test_a_link_is_confirmed_from_either_end_and_once(api, row):
    made, found = row
    answer = api.post(f"{ROOT}{made[1].id}/links/{found[0].id}/confirm/")
    assert answer.status_code == 200
    first = answer.json()["confirmed_at"]
    assert first is not None
    again = api.post(f"{ROOT}{made[0].id}/links/{found[0].id}/confirm/")
    assert again.json()["confirmed_at"] == first


def test_what_a_person_links_is_confirmed_by_it(api, row):
    made, _ = row
    body = {"target": str(made[2].id), "link_type": "triggered", "reasoning": "I was there."}
    written = api.post(f"{ROOT}{made[0].id}/links/", body, format="json").json()
    assert (written["author"], written["confirmed_at"] is not None) == ("person", True)


def test_confirming_a_replacement_makes_the_older_past(api, alice, acting):
    with acting(alice):
        newer, older, link = pair(alice, "supersedes")
    answer = api.post(f"{ROOT}{newer.id}/links/{link.id}/confirm/").json()
    assert (answer["id"], answer["weight"]) == (str(link.id), 0.61)
    with acting(alice):
        older.refresh_from_db()
    assert older.valid_until is not None
    (cause,) = api.get(f"{ROOT}{newer.id}/causal-chain/").json()["causes"]
    assert cause["is_past"]


def test_confirming_a_contradiction_asks_which_is_right(api, alice, acting):
    with acting(alice):
        newer, older, link = pair(alice, "conflicts")
    answer = api.post(f"{ROOT}{older.id}/links/{link.id}/confirm/").json()
    assert (answer["id"], answer["weight"]) == (str(link.id), 0.61)
    with acting(alice):
        (asked,) = Conflict.objects.for_user(alice)
    assert (asked.older_id, asked.newer_id) == (older.id, newer.id)


def test_a_link_is_taken_away_by_its_own_id_from_either_end(api, row, alice, acting):
    made, found = row
    assert api.delete(f"{ROOT}{made[1].id}/links/{found[0].id}/").status_code == 204
    assert api.delete(f"{ROOT}{made[1].id}/links/{found[1].id}/").status_code == 204
    assert api.delete(f"{ROOT}{made[1].id}/links/{found[1].id}/").status_code == 404
    with acting(alice):
        assert not MemoryLink.objects.for_user(alice).exists()


def test_a_link_elsewhere_is_none_of_this_memory(api, row):
    made, found = row
    for path in (f"{found[1].id}/confirm/", f"{uuid4()}/confirm/"):
        assert api.post(f"{ROOT}{made[0].id}/links/{path}").status_code == 404
    assert api.delete(f"{ROOT}{made[0].id}/links/{found[1].id}/").status_code == 404


def test_somebody_elses_chain_and_links_are_not_found(bobs_api, row, alice, acting):
    made, found = row
    refused = [
        bobs_api.get(f"{ROOT}{made[0].id}/causal-chain/"),
        bobs_api.post(f"{ROOT}{made[0].id}/links/{found[0].id}/confirm/"),
        bobs_api.delete(f"{ROOT}{made[0].id}/links/{found[0].id}/"),
    ]
    assert {response.status_code for response in refused} == {404}
    with acting(alice):
        assert MemoryLink.objects.for_user(alice).filter(confirmed_at__isnull=True).count() == 2


def test_a_stranger_is_sent_away(row):
    url = f"{ROOT}{row[0][0].id}/causal-chain/"
    assert APIClient().get(url).status_code in {401, 403}
