from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memory import services
from memory.models import Memory
from mira_site import tokens
from tests.factories import MemoryFactory

URL = "/api/v1/memories/"
NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)


@pytest.fixture
def boat(alice, acting, segment):
    with acting(alice):
        segment.said("My boat is called Merula.")
        (memory_id,) = services.remember(
            user=alice, segment_id=segment.id, messages=segment.messages, at=NOW
        ).memory_ids
        return Memory.objects.for_user(alice).get(id=memory_id)


def problem(response, status):
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    return response.json()


def test_a_memory_shows_the_fields_of_the_contract(api, boat, segment):
    body = api.get(f"{URL}{boat.id}/").json()
    assert set(body) == {
        "id", "text", "wing", "room", "memory_type", "importance", "happens_at", "expires_at",
        "valid_from", "valid_until", "trust", "stakes", "state", "is_archived", "archived_at",
        "created_at", "updated_at", "source", "fingerprint", "links",
        "entities",
    }  # fmt: skip
    assert (body["trust"], body["stakes"], body["state"]) == ("said", "ordinary", "active")
    assert body["is_archived"] is False
    assert body["created_at"] == "2026-11-28T13:00:00Z"
    assert body["source"] == {
        "segment": str(segment.id),
        "messages": [
            {
                "id": str(segment.messages[0].message_id),
                "sentence": "My boat is called Merula.",
                "span": "My boat is called Merula.",
                "said_at": "2026-11-28T12:00:00Z",
            }
        ],
    }


def test_a_memory_shows_its_fingerprint(api):
    text = "We chose Redis over etcd (too slow). Tom approved it."
    made = api.post(URL, {"text": text}, format="json").json()
    assert made["memory_type"] == "decision"
    shown = made["fingerprint"]
    assert shown.items() >= {
        "type": "decision", "decision": "Redis", "validated_by": "Tom", "fact_count": 4,
        "author": "rule",
    }.items()  # fmt: skip
    assert shown["rejected"] == [{"name": "etcd", "note": "too slow"}]


def test_a_memory_without_a_fingerprint_shows_none(api, alice, acting):
    with acting(alice):
        memory = MemoryFactory(user=alice)
    assert api.get(f"{URL}{memory.id}/").json()["fingerprint"] is None


def test_a_text_of_64k_is_stored_and_a_longer_one_refused_in_the_same_words(api):
    text = ("sail " * 13_108)[:65_535] + "."
    assert api.post(URL, {"text": text}, format="json").json()["text"] == text
    for wrong in ("x" * 65_537, "x"):
        body = problem(api.post(URL, {"text": wrong}, format="json"), 400)
        assert body["errors"]["text"] == ["Write between 3 and 65,536 characters."]


def test_the_list_is_newest_first_and_pages_by_cursor(api, alice, acting):
    with acting(alice):
        for number in range(5):
            MemoryFactory(user=alice, text=f"Fact {number}.", created_at=NOW + timedelta(number))
    seen, url = [], f"{URL}?page_size=2"
    while url:
        body = api.get(url).json()
        assert set(body) == {"results", "next", "previous"}
        seen += [item["text"] for item in body["results"]]
        url = body["next"]
    assert seen == [f"Fact {number}." for number in (4, 3, 2, 1, 0)]


def test_rows_of_one_moment_are_paged_without_loss(api, alice, acting):
    with acting(alice):
        for number in range(5):
            MemoryFactory(user=alice, text=f"Fact {number}.", created_at=NOW)
    seen, url = [], f"{URL}?page_size=2"
    while url:
        body = api.get(url).json()
        seen += [item["text"] for item in body["results"]]
        url = body["next"]
    assert sorted(seen) == [f"Fact {number}." for number in range(5)]


def test_a_page_costs_the_same_whatever_its_length(
    api, alice, acting, django_assert_max_num_queries
):
    with acting(alice):
        MemoryFactory.create_batch(20, user=alice)
    with django_assert_max_num_queries(7):  # session, user, memories, sources, links, mentions
        assert len(api.get(URL).json()["results"]) == 20


def test_filters_narrow_the_list(api, alice, acting):
    with acting(alice):
        MemoryFactory(
            user=alice, text="Alice sails.", wing="home", room="lake",
            memory_type="preference", created_at=NOW,
        )  # fmt: skip
        MemoryFactory(user=alice, text="Alice rows.", created_at=NOW + timedelta(days=3))
        gone = MemoryFactory(user=alice, text="Alice swam.", created_at=NOW)
        services.archive(user=alice, memory_id=gone.id, reason="over")

    def found(query):
        return [item["text"] for item in api.get(URL, query).json()["results"]]

    assert found({}) == ["Alice rows.", "Alice sails."]
    assert found({"archived": "true"}) == ["Alice swam."]
    assert set(found({"archived": ""})) == {"Alice rows.", "Alice swam.", "Alice sails."}
    assert found({"wing": "home"}) == found({"room": "lake"}) == ["Alice sails."]
    assert found({"type": "preference"}) == ["Alice sails."]
    assert found({"since": "2026-11-30"}) == ["Alice rows."]
    assert found({"until": "2026-11-28"}) == ["Alice sails."]
    assert found({"until": "2026-11-28T12:59:59Z"}) == []


def test_every_memory_is_in_the_list_of_its_state(api, alice, acting):
    before = timezone.now() - timedelta(days=1)
    fields = {
        "active": {},
        "archived": {"archived_at": before},
        "past": {"valid_until": before},
        "quarantined": {"quarantined_at": before},
        "muted": {"muted_at": before},
    }
    with acting(alice):
        for state, given in fields.items():
            MemoryFactory(user=alice, text=f"This is {state}.", **given)
    for state in fields:
        (only,) = api.get(URL, {"state": state}).json()["results"]
        assert (only["text"], only["state"]) == (f"This is {state}.", state)


def test_a_search_finds_by_words_and_meaning_best_first(api, alice, acting):
    with acting(alice):
        best = MemoryFactory(user=alice, text="Alice's boat is called Merula.", created_at=NOW)
        MemoryFactory(user=alice, text="Alice's sister likes boats.", created_at=NOW)
        MemoryFactory(user=alice, text="The landlord is Dr. Weber.", created_at=NOW)
    found = api.get(URL, {"q": "name of the boat"}).json()["results"]
    assert found[0]["text"] == best.text
    assert "landlord" not in str(found)


def test_a_search_pages_too(api, alice, acting):
    with acting(alice):
        for number in range(5):
            MemoryFactory(user=alice, text=f"Alice sailed to island number {number}.")
    seen, url = [], f"{URL}?q=sailed&page_size=2"
    while url:
        body = api.get(url).json()
        seen += [item["id"] for item in body["results"]]
        url = body["next"]
    assert len(seen) == len(set(seen)) == 5


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-13-01"}, "until"),
        ({"type": "gossip"}, "type"),
        ({"archived": "perhaps"}, "archived"),
        ({"state": "held_back"}, "state"),
    ],
)
def test_a_bad_filter_is_named(api, query, field):
    assert set(problem(api.get(URL, query), 400)["errors"]) == {field}


def test_a_memory_can_be_written_changed_and_forgotten(api):
    made = api.post(URL, {"text": "Alice sails.", "wing": "home"}, format="json")
    assert made.status_code == 201
    url = f"{URL}{made.json()['id']}/"
    changed = api.patch(
        url, {"text": "Alice rows.", "happens_at": "2026-12-01T10:00:00+01:00"}, format="json"
    ).json()
    assert (changed["text"], changed["wing"]) == ("Alice rows.", "home")
    assert changed["happens_at"] == "2026-12-01T09:00:00Z"
    assert api.delete(url).json()["counts"]["memories"] == 1
    problem(api.get(url), 404)
    problem(api.delete(url), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * 65_537}, "text"),
        ({"text": "Alice sails.", "importance": 2}, "importance"),
        ({"text": "Alice sails.", "memory_type": "gossip"}, "memory_type"),
        ({"text": "Alice sails.", "happens_at": "soon"}, "happens_at"),
    ],
)
def test_a_bad_field_is_named(api, body, field):
    assert set(problem(api.post(URL, body, format="json"), 400)["errors"]) == {field}


def test_archiving_and_restoring(api, boat):
    body = api.post(f"{URL}{boat.id}/archive/", {"reason": "sold"}, format="json").json()
    assert body["is_archived"]
    assert api.get(URL).json()["results"] == []
    assert not api.post(f"{URL}{boat.id}/restore/").json()["is_archived"]
    assert len(api.get(URL).json()["results"]) == 1


def test_repeating_another_memory_is_a_conflict(api, boat):
    other = api.post(URL, {"text": "Alice rows."}, format="json").json()["id"]
    problem(api.patch(f"{URL}{other}/", {"text": boat.text}, format="json"), 409)


# --- recall ----------------------------------------------------------------------------------
def test_recall_answers_within_the_budget(api, boat):
    asked = {"query": "What is my boat called?", "budget": 100}
    body = api.post(f"{URL}recall/", asked, format="json").json()
    (item,) = body["items"]
    assert set(body) == {"context", "tokens", "budget", "items", "fallback_wing", "is_degraded"}
    assert set(item) == {
        "id", "mode", "text", "tokens", "score", "why", "path", "factors", "wing",
    }  # fmt: skip
    assert (item["id"], item["mode"], item["text"]) == (str(boat.id), "verbatim", boat.text)
    assert set(item["factors"]) == {
        "relevance", "density", "recency", "overlap", "session", "causal",
    }  # fmt: skip
    assert all(0 <= value <= 1 for value in item["factors"].values())
    assert "Merula" in body["context"]
    assert body["tokens"] == tokens.estimate(body["context"]) <= body["budget"] == 100


def test_recall_of_nothing_is_an_honest_nothing(api, boat):
    body = api.post(f"{URL}recall/", {"query": "capital of France"}, format="json").json()
    assert body == {
        "context": "", "tokens": 0, "budget": 4000, "items": [], "fallback_wing": "",
        "is_degraded": False,
    }  # fmt: skip


def test_a_recall_explains_what_it_left_out_when_asked(api, boat):
    wordy = "The boat is called Merula because of a bird. " * 20
    other = api.post(URL, {"text": wordy}, format="json").json()["id"]
    asked = {"query": "What is my boat called?", "budget": 60, "explain": True}
    body = api.post(f"{URL}recall/", asked, format="json").json()
    assert [item["id"] for item in body["items"]] == [str(boat.id)]
    (left,) = body["left_out"]
    assert (left["id"], left["reason"]) == (other, "It did not fit beside what is worth more.")
    assert 0 < body["allocation_quality"] < 1
    assert body["items"][0]["gain"] > 0
    for one in (body["items"][0], left):
        assert one["parts"]["similarity"] > 0.3
        assert one["parts"]["relevance"] == pytest.approx(one["factors"]["relevance"], abs=0.2)


def test_a_recall_is_narrowed_and_falls_back(api, boat):
    api.patch(f"{URL}{boat.id}/", {"wing": "Harbour"}, format="json")
    asked = {"query": "What is my boat called?", "wing": "office"}
    assert api.post(f"{URL}recall/", asked, format="json").json()["items"] == []
    asked["fallback_wings"] = ["harbour"]
    body = api.post(f"{URL}recall/", asked, format="json").json()
    assert [item["wing"] for item in body["items"]] == ["Harbour"]
    assert body["fallback_wing"] == "harbour"


@pytest.mark.parametrize("budget", [0, -1, 100_001])
def test_a_budget_out_of_range_names_the_range(api, budget):
    response = api.post(f"{URL}recall/", {"query": "boat", "budget": budget}, format="json")
    assert problem(response, 400)["errors"]["budget"] == ["Give a budget from 1 to 100,000 tokens."]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": "boat", "budget": 0}, "budget"),
        ({"query": "boat", "limit": 1000}, "limit"),
    ],
)
def test_a_bad_recall_is_named(api, body, field):
    response = api.post(f"{URL}recall/", body, format="json")
    assert set(problem(response, 400)["errors"]) == {field}


# --- who may ---------------------------------------------------------------------------------
def test_nobody_unknown_gets_in(boat):
    assert APIClient().get(URL).status_code == 401
    assert APIClient().post(f"{URL}recall/", {"query": "boat"}, format="json").status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "{id}/"),
        ("patch", "{id}/"),
        ("delete", "{id}/"),
        ("post", "{id}/archive/"),
        ("post", "{id}/restore/"),
    ],
)
def test_bob_finds_nothing_at_the_address_of_alices_memory(bobs_api, boat, method, path):
    url = URL + path.format(id=boat.id)
    theirs = problem(getattr(bobs_api, method)(url, {"text": "Bob was here."}, format="json"), 404)
    unknown = getattr(bobs_api, method)(
        URL + path.format(id=uuid4()), {"text": "Bob was here."}, format="json"
    )
    assert theirs == problem(unknown, 404)


def test_bob_lists_searches_and_recalls_nothing_of_alices(bobs_api, boat):
    assert bobs_api.get(URL).json()["results"] == []
    assert bobs_api.get(URL, {"q": "boat"}).json()["results"] == []
    body = bobs_api.post(f"{URL}recall/", {"query": "What is my boat called?"}, format="json")
    assert body.json()["items"] == []


def test_the_schema_describes_every_operation(client):
    schema = client.get("/api/schema/", headers={"accept": "application/json"}).json()
    described = {
        f"{method} {path.removeprefix('/api/v1/')}"
        for path, operations in schema["paths"].items()
        for method in operations
        if path.startswith(URL)
    }
    assert described == {
        "get memories/", "post memories/", "post memories/recall/",
        "get memories/{memory_id}/", "patch memories/{memory_id}/",
        "delete memories/{memory_id}/", "post memories/{memory_id}/archive/",
        "post memories/{memory_id}/restore/", "get memories/{memory_id}/graph/",
        "post memories/{memory_id}/links/", "delete memories/{memory_id}/links/{link_id}/",
        "post memories/{memory_id}/links/{link_id}/confirm/",
        "get memories/{memory_id}/causal-chain/",
        "get memories/forgotten/", "post memories/{memory_id}/feedback/",
        "post memories/{memory_id}/feedback/undo/", "post memories/merge/",
        "get memories/merges/", "post memories/merges/{merge_id}/undo/",
        "get memories/conflicts/", "post memories/conflicts/{conflict_id}/resolve/",
        "get memories/quarantine/", "post memories/{memory_id}/release/",
        "get memories/timeline/", "get memories/wings/", "get memories/status/",
        "post memories/archive-aged/", "post memories/clear/",
    }  # fmt: skip
