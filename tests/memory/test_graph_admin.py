from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from memory import entities, links
from memory.models import Entity, EntityMergeProposal
from memory.naming import Named
from tests.factories import MemoryFactory

NOW = timezone.now()


@pytest.fixture
def desk(client, staff):
    client.force_login(staff)
    return client


def named(user, *names):
    made = []
    for place, name in enumerate(names):
        memory = MemoryFactory(user=user)
        at = NOW + timedelta(seconds=place)
        entities.attach(user, {memory.id: [Named(name=name, entity_type="person")]}, at=at)
        made.append(Entity.objects.for_user(user).get(memory_links__memory=memory))
    return made


def chosen(desk, model, action, *rows):
    return desk.post(
        reverse(f"admin:memory_{model}_changelist"),
        {"action": action, "_selected_action": [str(row.id) for row in rows]},
        follow=True,
    ).content.decode()


@pytest.mark.parametrize("model", ["entity", "entitymergeproposal", "memorylink"])
def test_the_lists_show_no_text_of_a_person(desk, alice, acting, model):
    with acting(alice):
        named(alice, "Jana Novak", "Dr. Jana Novak")
        links.connect(
            alice, MemoryFactory(user=alice).id, MemoryFactory(user=alice).id,
            link_type="refines", reasoning="Of Jana.", author="person", at=NOW,
        )  # fmt: skip
    html = desk.get(reverse(f"admin:memory_{model}_changelist")).content.decode()
    assert "alice" in html
    assert "Jana" not in html


def test_a_name_opens_for_a_reason_only(desk, alice, acting):
    with acting(alice):
        (jana,) = named(alice, "Jana Novak")
    url = reverse("admin:memory_entity_change", args=[jana.id])
    assert "Jana" not in desk.get(url).content.decode()
    desk.post(
        reverse("admin:memory_entity_private", args=[jana.id]),
        {"reason": "Alice asked for help with this name."},
    )
    assert "Jana Novak" in desk.get(url).content.decode()


def test_staff_merge_and_separate(desk, alice, bob, acting):
    with acting(alice):
        one, two = named(alice, "Rex", "The Hound")
    with acting(bob):
        (theirs,) = named(bob, "Rex")
    assert "of one person" in chosen(desk, "entity", "merge_chosen", one, theirs)
    assert "1 merged" in chosen(desk, "entity", "merge_chosen", one, two)
    with acting(alice):
        two.refresh_from_db()
        assert (two.canonical_id, two.merged_by) == (one.id, "staff")
    assert "1 separated" in chosen(desk, "entity", "unmerge_chosen", one, two)
    with acting(alice):
        two.refresh_from_db()
        assert two.canonical_id is None


def test_staff_decide_proposals(desk, alice, acting):
    with acting(alice):
        named(alice, "Jana Novak", "Dr. Jana Novak")
        proposal = EntityMergeProposal.objects.for_user(alice).get()
    assert "1 decided" in chosen(desk, "entitymergeproposal", "same", proposal)
    assert "0 decided" in chosen(desk, "entitymergeproposal", "different", proposal)
    with acting(alice):
        proposal.refresh_from_db()
        assert (proposal.status, proposal.decided_by) == ("merged", "staff")
