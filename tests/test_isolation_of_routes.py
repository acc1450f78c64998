"""Every address that holds an id: for somebody else it is as if there were nothing.

A new address with an id of a kind that is not made here fails: make one of Alice's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from conversations import services as conversations
from conversations.models import Message
from memory import services as memories
from memory.models import Conflict, Entity, EntityMergeProposal
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.webhooks import services as webhooks
from mira_site.webhooks.models import Delivery
from mira_site.webhooks.types import EventType
from tests.conversations.uploading import kept
from tests.factories import MemoryFactory

NOWHERE = {400, 404, 405}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PARAMETER = re.compile(r"<uuid:(\w+)>")
NOT_OURS = ("admin/", "accounts/")  # Django's and allauth's own


def routes() -> list[str]:
    def below(resolver: URLResolver, before: str) -> Iterator[str]:
        for entry in resolver.url_patterns:
            whole = before + str(entry.pattern)
            if isinstance(entry, URLPattern):
                yield whole
            elif not whole.startswith(NOT_OURS):
                yield from below(entry, whole)

    return sorted({one for one in below(get_resolver(), "") if PARAMETER.search(one)})


@pytest.fixture
def ids(alice, embedder) -> dict[str, UUID]:
    """One thing of Alice's for each kind of id that an address holds."""
    with isolation.acting_as(alice.pk):
        return {**_conversation(alice), **_memory(alice), **_webhook(alice)}


def _conversation(alice: User) -> dict[str, UUID]:
    turn = conversations.accept_message(user=alice, text="I sail.", client_id=uuid4())
    message = Message.objects.for_user(alice).get()
    return {
        "turn_id": turn.id,
        "message_id": message.id,
        "segment_id": message.segment_id,
        "file_id": kept(alice).id,
    }


def _memory(alice: User) -> dict[str, UUID]:
    now = timezone.now()
    names = ("Merula", "Trieste", "Jana", "Robin", "Rovinj")
    one, other, third, *parts = [
        MemoryFactory(user=alice, text=f"{name} is far away.") for name in names
    ]
    merge = memories.merge(
        user=alice,
        memory_ids=[part.id for part in parts],
        text="Robin is far away. Rovinj is far away.",
    )
    link = memories.link(
        user=alice, source_id=one.id, target_id=other.id, link_type="because",
        reasoning="She said so.", author="person", at=now,
    )  # fmt: skip
    first, second = [
        Entity.objects.create(
            user=alice, name=name, normalised=name.casefold(), entity_type="person", created_at=now
        )
        for name in ("Anna", "Ana")
    ]
    proposal = EntityMergeProposal.objects.create(
        user=alice, first=first, second=second, similarity=0.9, created_at=now
    )
    conflict = Conflict.objects.create(user=alice, older=other, newer=third, created_at=now)
    return {
        "memory_id": one.id,
        "target_id": other.id,
        "link_id": link.id,
        "entity_id": first.id,
        "proposal_id": proposal.id,
        "conflict_id": conflict.id,
        "merge_id": merge.id,
    }


def _webhook(alice: User) -> dict[str, UUID]:
    made = webhooks.create(user=alice, url="https://93.184.215.14/hook", events=["*"])
    webhooks.emit(alice, EventType.MEMORY_STORED, {})
    delivery = Delivery.objects.for_user(alice).first()
    return {"endpoint_id": made.endpoint.id, "delivery_id": delivery.id}


def statuses(client: Client, route: str, ids: dict[str, UUID]) -> dict[str, int]:
    """What each method answers to fields that every form likes; whatever it did is undone."""
    path = "/" + PARAMETER.sub(lambda match: str(ids[match[1]]), route)
    said = {
        "verdict": "right", "keep": "newer", "same": "yes", "text": "I sail far.",
        "target": str(ids["target_id"]), "link_type": "refines", "reasoning": "It says more.",
        "name": "Anna", "entity_type": "person",
    }  # fmt: skip
    found = {}
    for method in METHODS:
        given: dict[str, Any] = {} if method == "GET" else {"data": said}
        if path.startswith("/api/"):
            given["content_type"] = "application/json"
        elif method not in {"GET", "POST"}:
            given = {}
        with transaction.atomic():
            found[method] = getattr(client, method.lower())(path, **given).status_code
            transaction.set_rollback(True)
    return found


@pytest.mark.django_db
def test_an_address_of_alices_leads_bob_nowhere(ids, alice, bob):
    theirs, owners = Client(), Client()
    theirs.force_login(bob)
    owners.force_login(alice)
    found = routes()
    assert len(found) > 40
    of_bob = {route: statuses(theirs, route, ids) for route in found}
    of_alice = {route: statuses(owners, route, ids) for route in found}
    assert {
        route: answers for route, answers in of_bob.items() if set(answers.values()) - NOWHERE
    } == {}
    assert {
        route: answers for route, answers in of_alice.items() if not set(answers.values()) - NOWHERE
    } == {}, "the id leads Alice nowhere either, so nothing was tried"
