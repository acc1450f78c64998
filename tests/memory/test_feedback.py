"""What the person says about a memory holds at once, and can be taken back."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memory import feedback, selectors, services, truth
from memory.feedback import Verdict
from memory.models import ForgetReceipt, Memory, MemoryAccess
from mira_site.errors import BadRequest, NotFound
from tests.factories import MemoryFactory

URL = "/api/v1/memories/"


@pytest.fixture
def boat(as_alice, embedder) -> Memory:
    return services.create(user=as_alice, text="Alice's boat is called Merula.")


def judge(memory: Memory, verdict: str, **more) -> feedback.Judged:
    return feedback.judge(user=memory.user, memory_id=memory.id, verdict=Verdict(verdict), **more)


def comes_up(memory: Memory, *, past: bool = False) -> bool:
    found = selectors.recall(memory.user, "What is my boat called?", now=timezone.now(), past=past)
    return memory.id in [one.id for one in found]


def test_right_confirms_it_and_counts_as_a_use(boat):
    judged = judge(boat, "right")
    boat.refresh_from_db()
    assert boat.confirmed_at is not None
    assert judged.can_undo
    assert boat.accesses.get().kind == MemoryAccess.Kind.USED
    assert not judge(boat, "right").has_changed


def test_outdated_makes_it_past_which_answers_only_when_asked_for(boat):
    judge(boat, "outdated")
    assert not comes_up(boat)
    assert comes_up(boat, past=True)


def test_outdated_with_what_is_true_now_replaces_it(boat):
    judged = judge(boat, "outdated", now_true="Alice's boat is called Alauda.")
    boat.refresh_from_db()
    newer = Memory.objects.for_user(boat.user).get(id=judged.replaced_by)
    assert boat.valid_until is not None
    assert comes_up(newer)
    assert not comes_up(boat)
    assert not judged.can_undo


def test_only_what_is_outdated_can_be_replaced(boat):
    with pytest.raises(BadRequest):
        judge(boat, "right", now_true="Alice's boat is called Alauda.")


def test_wrong_puts_it_away_and_what_it_had_replaced_is_true_again(boat):
    older = services.create(user=boat.user, text="Alice's boat is called Turdus.")
    now = timezone.now()
    truth.supersede(boat.user, boat.id, older.id, at=now, reasoning="It was renamed.")
    judged = judge(boat, "wrong")
    boat.refresh_from_db()
    assert boat.archive_reason == "wrong"
    assert judged.reopened == (older.id,)
    assert comes_up(older)
    feedback.take_back(
        user=boat.user, memory_id=boat.id, verdict=Verdict.WRONG, reopened=judged.reopened
    )
    assert comes_up(boat)
    assert not comes_up(older)


def test_never_mention_keeps_it_and_never_shows_it(boat):
    judge(boat, "never_mention")
    assert not comes_up(boat)
    assert not comes_up(boat, past=True)
    feedback.take_back(user=boat.user, memory_id=boat.id, verdict=Verdict.NEVER_MENTION)
    assert comes_up(boat)


@pytest.mark.parametrize("verdict", ["right", "outdated", "wrong", "never_mention"])
def test_a_verdict_taken_back_leaves_it_as_it_was(boat, verdict):
    judge(boat, verdict)
    feedback.take_back(user=boat.user, memory_id=boat.id, verdict=Verdict(verdict))
    boat.refresh_from_db()
    assert (boat.confirmed_at, boat.valid_until, boat.archived_at, boat.muted_at) == (None,) * 4


def test_forget_leaves_a_receipt_and_nothing_to_take_back(boat):
    judged = judge(boat, "forget")
    assert judged.memory is None
    assert not judged.can_undo
    assert ForgetReceipt.objects.for_user(boat.user).get().id == judged.receipt.id
    with pytest.raises(BadRequest):
        feedback.take_back(user=boat.user, memory_id=boat.id, verdict=Verdict.FORGET)


def test_what_is_held_back_comes_up_once_released(boat):
    Memory.objects.for_user(boat.user).update(quarantined_at=timezone.now())
    assert not comes_up(boat)
    feedback.release(user=boat.user, memory_id=boat.id)
    assert comes_up(boat)


# --- over HTTP ------------------------------------------------------------------------------------
def test_the_api_says_what_happened_and_whether_it_can_be_undone(api, boat):
    address = f"{URL}{boat.id}/feedback/"
    said = api.post(address, {"verdict": "wrong", "turn": str(uuid4())}, format="json").json()
    assert (said["can_undo"], said["memory"]["is_archived"]) == (True, True)
    body = {"verdict": "wrong", "reopened": said["reopened"]}
    assert api.post(f"{address}undo/", body, format="json").json()["is_archived"] is False
    assert api.post(address, {"verdict": "perhaps"}, format="json").status_code == 400


def test_the_api_lists_receipts(api, boat):
    api.post(f"{URL}{boat.id}/feedback/", {"verdict": "forget"}, format="json")
    (receipt,) = api.get(f"{URL}forgotten/").json()["results"]
    assert receipt["counts"]["memories"] == 1
    assert receipt["finished_at"] is not None


@pytest.mark.parametrize("verdict", [one.value for one in Verdict])
def test_bob_has_no_say_about_alices_memories(alice, bob, acting, verdict):
    with acting(alice):
        memory = MemoryFactory(user=alice, text="Alice sails.")
    client = APIClient()
    client.force_login(bob)
    address = f"{URL}{memory.id}/feedback/"
    assert client.post(address, {"verdict": verdict}, format="json").status_code == 404
    status = 400 if verdict == "forget" else 404
    assert client.post(f"{address}undo/", {"verdict": verdict}, format="json").status_code == status
    assert client.get(f"{URL}forgotten/").json()["results"] == []
    with acting(bob), pytest.raises(NotFound):
        feedback.release(user=bob, memory_id=memory.id)
    with acting(alice):
        before = memory.updated_at
        memory.refresh_from_db()
        assert memory.updated_at == before
