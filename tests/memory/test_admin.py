from __future__ import annotations

import pytest
from django.urls import reverse

from memory import services
from memory.models import Fingerprint, Memory
from tests.factories import MemoryFactory


@pytest.fixture
def desk(client, staff):
    client.force_login(staff)
    return client


@pytest.fixture
def boat(alice, acting, segment):
    segment.said("My boat is called Merula.")
    with acting(alice):
        (memory_id,) = services.remember(
            user=alice,
            segment_id=segment.id,
            messages=segment.messages,
            at=segment.at,
        ).memory_ids
        return Memory.objects.for_user(alice).get(id=memory_id)


@pytest.mark.parametrize("model", ["memory", "memorysource", "extraction", "fingerprint"])
def test_the_lists_show_no_text_of_a_person(desk, boat, model):
    response = desk.get(reverse(f"admin:memory_{model}_changelist"))
    assert response.status_code == 200
    assert "alice" in response.content.decode()
    assert "Merula" not in response.content.decode()


def test_a_memory_opens_without_its_text_and_never_with_its_vector(desk, boat):
    url = reverse("admin:memory_memory_change", args=[boat.id])
    assert "Merula" not in desk.get(url).content.decode()
    desk.post(
        reverse("admin:memory_memory_private", args=[boat.id]),
        {"reason": "Alice asked for help with this memory."},
    )
    html = desk.get(url).content.decode()
    assert "Merula" in html
    assert "field-embedding_model" in html and 'field-embedding"' not in html


def test_a_fingerprint_opens_with_counts_and_never_with_what_it_says(desk, boat, alice, acting):
    with acting(alice):
        row = Fingerprint.objects.for_user(alice).get(memory=boat)
    html = desk.get(reverse("admin:memory_fingerprint_change", args=[row.id])).content.decode()
    assert "Fact count" in html
    assert "Merula" not in html
    assert row.sha256 not in html


def chosen(desk, action, memory):
    return desk.post(
        reverse("admin:memory_memory_changelist"),
        {"action": action, "_selected_action": [str(memory.id)]},
        follow=True,
    )


def test_staff_archive_and_restore(desk, boat, alice, acting):
    assert "1 archived" in chosen(desk, "archive_chosen", boat).content.decode()
    with acting(alice):
        boat.refresh_from_db()
        assert boat.archive_reason == "staff"
        twin = MemoryFactory(user=alice, text=boat.text)
    assert "1 left archived" in chosen(desk, "restore_chosen", boat).content.decode()
    with acting(alice):
        services.forget(user=alice, memory_id=twin.id)
    assert "1 restored" in chosen(desk, "restore_chosen", boat).content.decode()


def test_nothing_can_be_added_or_deleted_by_hand(desk, boat):
    assert desk.get(reverse("admin:memory_memory_add")).status_code == 403
    url = reverse("admin:memory_memory_delete", args=[boat.id])
    assert desk.post(url, {"post": "yes"}).status_code == 403
