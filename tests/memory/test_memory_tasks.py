"""The jobs of the memory app: one task a person, safe to run twice, a failure changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import time_machine

from conversations import services as conversations
from memory import scores, scoring, tasks, upkeep, work
from memory.models import Memory, Work
from mira_site import isolation
from mira_site.accounts import services as accounts
from mira_site.accounts.models import User
from mira_site.celery import app
from mira_site.errors import DependencyError
from tests.conversations import talking
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)
FLAT = [1.0] + [0.0] * 383


@pytest.fixture(autouse=True)
def _now():
    with time_machine.travel(NOW, tick=False):
        yield


def live(user: User, days: int) -> None:
    """The person has talked on this many days, the last of them yesterday."""
    with isolation.acting_as(user.pk):
        for n in range(days, 0, -1):
            accounts.record_use(user=user, at=NOW - timedelta(days=n))


def make(user: User, **fields) -> Memory:
    with isolation.acting_as(user.pk):
        return MemoryFactory(user=user, embedding=FLAT, **fields)


def make_due(user: User) -> None:
    with isolation.acting_as(user.pk):
        work.make_due(user, Work.Kind.RESCORE, upkeep.SCORES, NOW)


def fresh(memory: Memory) -> Memory:
    with isolation.all_users("test"):
        memory.refresh_from_db()
    return memory


def rescoring(user: User) -> list[str]:
    """States of the person's rescoring: one row at most."""
    with isolation.acting_as(user.pk):
        rows = Work.objects.for_user(user).filter(kind=Work.Kind.RESCORE)
        return list(rows.values_list("status", flat=True))


# --- A new use-day ---------------------------------------------------------------------------
def test_who_comes_back_finds_fresh_scores_after_the_first_message(
    alice, django_capture_on_commit_callbacks
):
    live(alice, 20)
    memory = make(alice)
    with isolation.acting_as(alice.pk), django_capture_on_commit_callbacks(execute=True):
        conversations.accept_message(user=alice, text="I am back.", client_id=uuid4())
    expected = scoring.importance(scoring.Signals(age=20, idle=20))
    assert fresh(memory).importance == expected < 0.119
    assert rescoring(alice) == ["done"]


def test_the_first_message_of_a_day_brings_rescoring_due_and_the_second_nothing(alice):
    with isolation.acting_as(alice.pk):
        talking.say(alice, at=NOW)
        assert rescoring(alice) == ["due"]
        with time_machine.travel(NOW + timedelta(minutes=1), tick=False):
            upkeep.run_due(alice)
        talking.say(alice, at=NOW + timedelta(minutes=5))
    assert rescoring(alice) == ["done"]
    with isolation.acting_as(alice.pk):
        talking.say(alice, at=NOW + timedelta(days=1))
    assert rescoring(alice) == ["due"]


@pytest.mark.parametrize(("days", "comes"), [(5, False), (6, True), (7, False), (13, True)])
def test_a_pass_comes_due_every_seventh_use_day(alice, monkeypatch, days, comes):
    runner = upkeep.Runner(run=upkeep.rescore, every_use_days=7)
    monkeypatch.setattr(upkeep, "RUNNERS", {Work.Kind.FLOOR: runner})
    live(alice, days)
    with isolation.acting_as(alice.pk):
        for _ in range(2):
            talking.say(alice, at=NOW)
        floor = Work.objects.for_user(alice).filter(kind=Work.Kind.FLOOR)
        subjects = list(floor.values_list("subject", flat=True))
    assert subjects == ([f"use-day {days + 1}"] if comes else [])


# --- Handing out -----------------------------------------------------------------------------
def test_each_persons_work_is_done_in_their_own_name(alice, bob):
    rows = []
    for user, days in ((alice, 30), (bob, 50)):
        live(user, days)
        rows.append(make(user))
        make_due(user)
    tasks.hand_out_work()
    assert rescoring(alice) == rescoring(bob) == ["done"]
    mine, his = (fresh(row) for row in rows)
    assert mine.importance == scoring.importance(scoring.Signals(age=29, idle=29))
    assert mine.archived_at is None
    assert his.archive_reason == "faded"


def test_a_job_that_runs_twice_does_no_more_than_once(alice):
    live(alice, 50)
    memory = make(alice)
    make_due(alice)
    for _ in range(2):
        tasks.hand_out_work()
        tasks.run_work(str(alice.pk))
    archived_at = fresh(memory).archived_at
    assert archived_at == NOW
    with time_machine.travel(NOW + timedelta(hours=1)):
        tasks.hand_out_work()
    assert fresh(memory).archived_at == archived_at


def test_a_task_does_the_work_of_no_one_else(alice, bob):
    for user in (alice, bob):
        make_due(user)
    tasks.run_work(str(bob.pk))
    assert rescoring(alice) == ["due"]
    assert rescoring(bob) == ["done"]


class _Broken(DependencyError):
    code = "broken"


def fail_for(user: User, error: Exception, monkeypatch) -> None:
    """From now on the second step of rescoring breaks for this person."""
    real = scores.archive_faded

    def breaks(whose, *, now):
        if whose.pk == user.pk:
            raise error
        return real(whose, now=now)

    monkeypatch.setattr(scores, "archive_faded", breaks)


@pytest.mark.parametrize("error", [_Broken("It broke."), ZeroDivisionError()])
def test_one_failing_person_stops_nobody_and_nothing_of_theirs_changes(
    alice, bob, monkeypatch, error
):
    rows = {}
    for user in (alice, bob):
        live(user, 30)
        rows[user.username] = make(user)
        make_due(user)
    with monkeypatch.context() as patched:
        patched.setitem(app.conf, "task_eager_propagates", False)  # as with a real worker
        fail_for(alice, error, patched)
        tasks.hand_out_work()
    assert fresh(rows["alice"]).importance == 0.5
    assert fresh(rows["alice"]).scored_at is None
    assert fresh(rows["bob"]).scored_at == NOW
    assert rescoring(alice) == ["failed"]
    assert rescoring(bob) == ["done"]
    with time_machine.travel(NOW + timedelta(minutes=6), tick=False):
        tasks.hand_out_work()
    assert rescoring(alice) == ["done"]
    assert fresh(rows["alice"]).scored_at == NOW + timedelta(minutes=6)


# --- Dates -----------------------------------------------------------------------------------
def test_an_absent_persons_dates_are_kept_up_with_once_a_day(alice):
    live(alice, 100)
    event = make(alice, happens_at=NOW + timedelta(days=20), created_use_day=1)
    undated = make(alice, created_use_day=90)
    make_due(alice)
    tasks.hand_out_work()
    before, steady = fresh(event).importance, fresh(undated).importance
    seen = []
    for day in range(1, 22):
        with time_machine.travel(NOW + timedelta(days=day), tick=False):
            tasks.rescore_dates()
        seen.append(fresh(event).importance)
    assert before == seen[0] < seen[10] < seen[-3]
    assert seen[19] == 0.5  # its day
    assert seen[20] < 0.119
    assert fresh(undated).importance == steady


def test_scores_that_are_fresh_or_hang_on_no_date_are_let_be(alice, bob):
    for user in (alice, bob):
        live(user, 3)
    make(alice, happens_at=NOW + timedelta(days=2))
    make(bob)
    with isolation.all_users("test"):
        assert upkeep.users_with_dates(at=NOW) == [alice.pk]
    tasks.rescore_dates()
    with isolation.all_users("test"):
        assert upkeep.users_with_dates(at=NOW + timedelta(hours=19)) == []
        assert upkeep.users_with_dates(at=NOW + timedelta(hours=21)) == [alice.pk]
    assert rescoring(bob) == []


def test_the_expired_go_to_the_archive_in_their_owners_absence(alice):
    live(alice, 3)
    memory = make(alice, expires_at=NOW + timedelta(days=1))
    for day in range(8):
        with time_machine.travel(NOW + timedelta(days=day), tick=False):
            tasks.rescore_dates()
    assert fresh(memory).archive_reason == "expired"
    assert fresh(memory).archived_at == NOW + timedelta(days=7)
    with isolation.all_users("test"):
        assert upkeep.users_with_dates(at=NOW + timedelta(days=30)) == []


def test_a_closed_account_is_left_alone(alice):
    live(alice, 3)
    make(alice, happens_at=NOW + timedelta(days=2))
    make_due(alice)
    alice.is_active = False
    alice.save()
    tasks.rescore_dates()
    tasks.hand_out_work()
    assert rescoring(alice) == ["due"]


def test_beat_names_tasks_that_exist():
    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in app.tasks
        assert entry["options"]["expires"] < entry["schedule"]
