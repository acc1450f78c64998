"""Turns that fell out of their worker's hands."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations import services, sweep, tasks
from conversations.constants import TURN_LOST_S, TURN_REQUEUE_S
from conversations.models import Message, Turn
from mira_site import isolation
from tests.conversations.talking import answer, heard, names, tell


def running(turn: Turn, *, silent_s: float) -> Turn:
    Turn.objects.for_user(turn.user_id).filter(pk=turn.pk).update(
        status=Turn.Status.RUNNING, heartbeat_at=timezone.now() - timedelta(seconds=silent_s)
    )
    return turn


def waiting(turn: Turn, *, for_s: float) -> Turn:
    Turn.objects.for_user(turn.user_id).filter(pk=turn.pk).update(
        queued_at=timezone.now() - timedelta(seconds=for_s)
    )
    return turn


def test_a_turn_of_a_silent_worker_is_interrupted_and_the_pages_hear_of_it(
    me, django_capture_on_commit_callbacks
):
    turn = running(tell(me), silent_s=TURN_LOST_S + 1)
    with django_capture_on_commit_callbacks(execute=True):
        assert sweep.interrupt_lost(at=timezone.now()) == 1
    turn.refresh_from_db()
    assert (turn.status, turn.error_code) == (Turn.Status.INTERRUPTED, "interrupted")
    (failed,) = heard(me)
    assert (failed.type, failed.turn_id) == ("turn.failed", str(turn.pk))
    assert failed.payload["error"]["code"] == "interrupted"
    assert failed.payload["error"]["retryable"] is True
    assert Message.objects.for_user(me).get().text == "Good morning."
    services.retry_turn(user=me, turn_id=turn.pk)
    assert answer(turn).status == Turn.Status.DONE


def test_a_turn_whose_worker_lives_is_left_alone(me):
    turn = running(tell(me), silent_s=TURN_LOST_S - 5)
    sweep.interrupt_lost(at=timezone.now())
    turn.refresh_from_db()
    assert turn.status == Turn.Status.RUNNING
    assert names(me) == []


def test_a_worker_that_beats_after_the_look_keeps_its_turn(me):
    turn = running(tell(me), silent_s=TURN_LOST_S + 1)
    seen = Turn.objects.for_user(me).get(pk=turn.pk)
    running(turn, silent_s=0)
    sweep._interrupt(seen, timezone.now())
    turn.refresh_from_db()
    assert turn.status == Turn.Status.RUNNING


def test_turns_of_everybody_are_looked_after(me, bob):
    running(tell(me), silent_s=60)
    with isolation.acting_as(bob.pk):
        running(tell(bob), silent_s=60)
    assert sweep.interrupt_lost(at=timezone.now()) == 2


def test_a_queued_turn_whose_task_was_lost_is_run_and_only_once(me):
    turn = waiting(tell(me), for_s=TURN_REQUEUE_S + 1)
    for _ in range(2):
        tasks.sweep_turns()
    tasks.run_turn(str(me.pk), str(turn.pk))
    turn.refresh_from_db()
    assert (turn.status, turn.attempt) == (Turn.Status.DONE, 1)
    assert Message.objects.for_user(me).count() == 2
    assert names(me).count("turn.finished") == 1


def test_a_turn_that_was_queued_just_now_is_not_queued_again(me):
    turn = waiting(tell(me), for_s=TURN_REQUEUE_S - 5)
    assert sweep.queued_too_long(at=timezone.now()) == []
    tasks.sweep_turns()
    turn.refresh_from_db()
    assert turn.status == Turn.Status.QUEUED


@pytest.mark.parametrize("status", ["done", "stopped", "failed", "interrupted"])
def test_what_has_ended_is_not_touched(me, status):
    turn = running(tell(me), silent_s=999)
    Turn.objects.for_user(me).update(status=status)
    tasks.sweep_turns()
    turn.refresh_from_db()
    assert turn.status == status
