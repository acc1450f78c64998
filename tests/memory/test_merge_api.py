"""Merges over HTTP."""

from __future__ import annotations

from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from memory.models import Memory
from mira_site.accounts.models import User
from tests.factories import MemoryFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedder")]

MERGE, MERGES = "/api/v1/memories/merge/", "/api/v1/memories/merges/"
BOTH = "Alice's boat is called Merula and lies in Izola."


def client(user: User) -> APIClient:
    made = APIClient()
    made.force_login(user)
    return made


@pytest.fixture
def parts(as_alice: User) -> list[Memory]:
    texts = ("Alice's boat is called Merula.", "Alice's boat lies in Izola.")
    return [MemoryFactory(user=as_alice, text=text) for text in texts]


def test_memories_are_merged_listed_and_put_back(as_alice: User, parts: list[Memory]) -> None:
    api = client(as_alice)
    ids = [str(part.id) for part in parts]
    made = api.post(MERGE, {"ids": ids, "text": BOTH, "note": "One boat."}, format="json")
    assert made.status_code == 201
    body = made.json()
    assert body["memory"]["text"] == BOTH
    assert (body["author"], body["note"], body["undone_at"]) == ("person", "One boat.", None)
    assert [part["id"] for part in body["parts"]] == ids
    listed = api.get(MERGES).json()
    assert [row["id"] for row in listed["results"]] == [body["id"]]
    undone = api.post(f"{MERGES}{body['id']}/undo/").json()
    assert undone["undone_at"] is not None
    assert api.get(f"/api/v1/memories/{ids[0]}/").json()["is_archived"] is False


def test_a_lossy_text_is_refused_and_says_what_is_missing(
    as_alice: User, parts: list[Memory]
) -> None:
    ids = [str(part.id) for part in parts]
    text = "Alice's boat is called Merula, and it floats."
    refused = client(as_alice).post(MERGE, {"ids": ids, "text": text}, format="json")
    assert refused.status_code == 400
    assert refused.json()["errors"] == {"text": ["Missing: Izola."]}
    assert "Izola" not in refused.json()["detail"]


def test_merges_are_the_persons_own(as_alice: User, bob: User, parts: list[Memory]) -> None:
    ids = [str(part.id) for part in parts]
    made = client(as_alice).post(MERGE, {"ids": ids, "text": BOTH}, format="json").json()
    his = client(bob)
    assert his.get(MERGES).json()["results"] == []
    assert his.post(f"{MERGES}{made['id']}/undo/").status_code == 404
    assert his.post(MERGE, {"ids": ids, "text": BOTH}, format="json").status_code == 404
    assert his.post(f"{MERGES}{uuid4()}/undo/").status_code == 404


def test_a_stranger_is_asked_to_sign_in(db: None) -> None:
    assert APIClient().get(MERGES).status_code in (401, 403)
