"""Work stays due until it is done: claims, waits, and the staff page that shows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import time_machine
from django.db import transaction

from conversations.models import Segment, Thread
from memory import upkeep, work
from memory.constants import WORK_CLAIM_S, WORK_RETRY_S
from memory.models import Work
from mira_site import isolation
from mira_site.errors import LLMUnavailable
from mira_site.staff import overview

NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)
LATER = NOW + timedelta(seconds=WORK_CLAIM_S + 1)
FLOOR, RESCORE = Work.Kind.FLOOR, Work.Kind.RESCORE
KINDS = Work.Kind.values


@pytest.fixture
def job(as_alice) -> Work:
    work.make_due(as_alice, FLOOR, "use-day 7", NOW)
    return Work.objects.for_user(as_alice).get()


def due(user, at=NOW) -> list:
    return work.due_of(user, at=at, kinds=KINDS, limit=10)


def status(job: Work) -> str:
    job.refresh_from_db()
    return job.status


# --- Due -------------------------------------------------------------------------------------
def test_the_same_work_is_due_once(as_alice, job):
    work.make_due(as_alice, FLOOR, "use-day 7", LATER)
    work.make_due(as_alice, FLOOR, "use-day 14", LATER)
    assert Work.objects.for_user(as_alice).count() == 2
    assert due(as_alice) == [job.pk]


def test_what_is_done_is_due_again_only_when_that_is_said(as_alice, job):
    work.done(work.claim(as_alice, job.pk, at=NOW), at=NOW)
    work.make_due(as_alice, FLOOR, "use-day 7", LATER)
    assert due(as_alice, LATER) == []
    work.make_due(as_alice, FLOOR, "use-day 7", LATER, again=True)
    assert due(as_alice, LATER) == [job.pk]


def test_work_that_comes_due_while_it_runs_is_run_once_more(as_alice, job):
    claimed = work.claim(as_alice, job.pk, at=NOW)
    work.make_due(as_alice, FLOOR, "use-day 7", NOW, again=True)
    with pytest.raises(work.ClaimLost):
        work.done(claimed, at=NOW)
    assert due(as_alice) == [job.pk]


def test_again_does_not_shorten_the_wait_of_what_failed(as_alice, job):
    work.postpone(work.claim(as_alice, job.pk, at=NOW), at=NOW, error_code="x")
    work.make_due(as_alice, FLOOR, "use-day 7", NOW, again=True)
    assert due(as_alice) == []


def test_a_segment_id_is_a_subject_that_fits(as_alice):
    work.make_due(as_alice, Work.Kind.INTEGRATION, str(uuid4()), NOW)
    assert len(due(as_alice)) == 1


# --- Claims ----------------------------------------------------------------------------------
def test_work_is_claimed_once(as_alice, job):
    assert work.claim(as_alice, job.pk, at=NOW).attempts == 1
    assert work.claim(as_alice, job.pk, at=NOW) is None
    assert due(as_alice) == []


def test_a_claim_runs_out_and_the_late_worker_writes_nothing(as_alice, job):
    late = work.claim(as_alice, job.pk, at=NOW)
    assert due(as_alice, LATER) == [job.pk]
    taken = work.claim(as_alice, job.pk, at=LATER)
    assert taken.attempts == 2
    with pytest.raises(work.ClaimLost), transaction.atomic():
        work.make_due(as_alice, RESCORE, "written by the late one", LATER)
        work.done(late, at=LATER)
    with pytest.raises(work.ClaimLost):
        work.postpone(late, at=LATER, error_code="x")
    assert not Work.objects.for_user(as_alice).filter(kind=RESCORE).exists()
    work.done(taken, at=LATER)
    assert status(job) == "done"


def test_saying_done_twice_is_harmless(as_alice, job):
    claimed = work.claim(as_alice, job.pk, at=NOW)
    work.done(claimed, at=NOW)
    work.done(claimed, at=LATER)
    job.refresh_from_db()
    assert (job.status, job.finished_at, job.claimed_until) == ("done", NOW, None)


# --- Failure ---------------------------------------------------------------------------------
def test_the_waits_grow_and_the_last_one_stays(as_alice, job):
    at, waits = NOW, []
    for _ in range(len(WORK_RETRY_S) + 2):
        work.postpone(work.claim(as_alice, job.pk, at=at), at=at, error_code="model_unavailable")
        job.refresh_from_db()
        waits.append((job.next_attempt_at - at).total_seconds())
        assert due(as_alice, job.next_attempt_at - timedelta(seconds=1)) == []
        at = job.next_attempt_at
    assert tuple(waits) == (*WORK_RETRY_S, WORK_RETRY_S[-1], WORK_RETRY_S[-1])
    assert (job.status, job.error_code) == ("failed", "model_unavailable")
    work.done(work.claim(as_alice, job.pk, at=at), at=at)
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("done", "")


def test_what_waits_can_be_hastened_and_what_runs_or_is_done_cannot(as_alice, job):
    work.postpone(work.claim(as_alice, job.pk, at=NOW), at=NOW, error_code="x")
    assert work.hasten(as_alice, [job.pk], at=NOW) == 1
    claimed = work.claim(as_alice, job.pk, at=NOW)
    assert work.hasten(as_alice, [job.pk], at=NOW) == 0
    work.done(claimed, at=NOW)
    assert work.hasten(as_alice, [job.pk], at=NOW) == 0


# --- Over all users --------------------------------------------------------------------------
def users_due(at=NOW, kinds=KINDS) -> list:
    with isolation.all_users("test"):
        return work.users_due(at=at, kinds=kinds)


def test_who_has_waited_longest_comes_first_and_once(as_alice, bob):
    work.make_due(as_alice, FLOOR, "use-day 7", NOW)
    work.make_due(as_alice, RESCORE, "scores", NOW)
    with isolation.acting_as(bob.pk):
        work.make_due(bob, RESCORE, "scores", NOW - timedelta(hours=1))
    assert users_due() == [bob.pk, as_alice.pk]
    assert users_due(kinds=[FLOOR]) == [as_alice.pk]
    assert users_due(at=NOW - timedelta(hours=2)) == []


def test_who_is_being_worked_for_or_has_left_is_not_handed_out(as_alice, bob, job):
    with isolation.acting_as(bob.pk):
        work.make_due(bob, RESCORE, "scores", NOW)
    bob.is_active = False
    bob.save()
    work.make_due(as_alice, RESCORE, "scores", NOW)
    work.claim(as_alice, job.pk, at=NOW)
    assert users_due() == []
    assert users_due(at=LATER) == [as_alice.pk]


def test_nobody_touches_anothers_work(as_alice, job, bob):
    with isolation.acting_as(bob.pk):
        assert due(bob) == due(as_alice) == []
        assert work.claim(bob, job.pk, at=NOW) is None
        assert work.claim(as_alice, job.pk, at=NOW) is None
        assert work.hasten(bob, [job.pk], at=NOW) == 0
    assert status(job) == "due"


# --- Running ---------------------------------------------------------------------------------
def runner(run, monkeypatch, kind=FLOOR) -> None:
    monkeypatch.setitem(upkeep.RUNNERS, kind, upkeep.Runner(run=run))


def test_a_runner_that_fails_leaves_its_work_due_and_the_rest_goes_on(as_alice, job, monkeypatch):
    def fails(user, job, now):
        with transaction.atomic():
            work.make_due(user, RESCORE, "half done", now)
            raise LLMUnavailable("The model is away.")

    work.make_due(as_alice, RESCORE, upkeep.SCORES, NOW)
    runner(fails, monkeypatch)
    with time_machine.travel(NOW, tick=False):
        assert upkeep.run_due(as_alice) == 1
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "model_unavailable")
    assert due(as_alice, NOW + timedelta(seconds=WORK_RETRY_S[0])) == [job.pk]
    rows = Work.objects.for_user(as_alice).filter(kind=RESCORE)
    assert list(rows.values_list("subject", "status")) == [("scores", "done")]


def test_a_bug_leaves_its_work_due_and_is_heard_of(as_alice, job, monkeypatch):
    def breaks(user, job, now):
        raise KeyError("a bug")

    runner(breaks, monkeypatch)
    with pytest.raises(KeyError), time_machine.travel(NOW, tick=False):
        upkeep.run_due(as_alice)
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("failed", "internal")
    assert due(as_alice, NOW + timedelta(seconds=WORK_RETRY_S[0])) == [job.pk]


@pytest.mark.parametrize("error", [None, LLMUnavailable("The model is away.")])
def test_a_runner_that_lost_its_claim_ends_nothing(as_alice, job, monkeypatch, error):
    def too_long(user, job, now):
        work.claim(user, job.pk, at=now + timedelta(seconds=WORK_CLAIM_S + 1))
        if error is not None:
            raise error

    runner(too_long, monkeypatch)
    with time_machine.travel(NOW, tick=False):
        assert upkeep.run_due(as_alice) == 0
    assert status(job) == "running"


def test_work_of_a_kind_that_nobody_does_waits(as_alice, job, monkeypatch):
    monkeypatch.delitem(upkeep.RUNNERS, FLOOR, raising=False)
    with time_machine.travel(NOW, tick=False):
        assert upkeep.run_due(as_alice) == 0
    assert status(job) == "due"


# --- The staff page --------------------------------------------------------------------------
@pytest.fixture
def failed(alice, bob) -> list[Work]:
    """One failed piece of Alice's and one of Bob's, and a collapse of Alice's that failed."""
    at = datetime.now(UTC)
    jobs = []
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            work.make_due(user, RESCORE, "scores", at)
            claimed = work.claim(user, due(user, at)[0], at=at)
            work.postpone(claimed, at=at, error_code="model_overloaded")
            jobs.append(claimed)
    with isolation.acting_as(alice.pk):
        Segment.objects.create(
            user=alice,
            thread=Thread.objects.create(user=alice),
            status=Segment.Status.COLLAPSING,
            opened_at=at,
            last_message_at=at,
            attempts=1,
            next_attempt_at=at + timedelta(hours=1),
            error_code="embeddings_unavailable",
            title="A secret of Alice's",
        )
    return jobs


def status_of_all(jobs) -> set[str]:
    with isolation.all_users("test"):
        return {status(job) for job in jobs}


def test_staff_see_what_failed_and_why_and_no_private_text(client, staff, failed):
    client.force_login(staff)
    page = client.get("/admin/work/").content.decode()
    assert "2 × <code>model_overloaded</code>" in page
    assert "1 × <code>embeddings_unavailable</code>" in page
    assert "secret" not in page
    assert "alice" not in page
    assert "/admin/work/" in client.get("/admin/").content.decode()


def test_the_page_is_for_staff(client, alice, failed):
    assert client.get("/admin/work/").status_code == 302
    client.force_login(alice)
    assert client.get("/admin/work/").status_code in (302, 403)
    assert client.post("/admin/work/", {"job": "rescore"}).status_code in (302, 403)
    assert status_of_all(failed) == {"failed"}


@pytest.mark.django_db(transaction=True)
def test_try_again_now_does_not_wait(client, staff, failed):
    client.force_login(staff)
    page = client.post("/admin/work/", {"job": "rescore"}, follow=True).content.decode()
    assert "2 brought back" in page
    assert status_of_all(failed) == {"done"}
    assert client.post("/admin/work/", {"job": "nonsense"}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_list_of_work_has_the_same_action(client, staff, failed):
    client.force_login(staff)
    chosen = {"action": "try_again_now", "_selected_action": [failed[0].pk]}
    client.post("/admin/memory/work/", chosen)
    assert status_of_all(failed[:1]) == {"done"}
    assert status_of_all(failed[1:]) == {"failed"}


def test_the_overview_tells_due_waiting_running_and_failed_apart(failed, alice):
    at = datetime.now(UTC)
    with isolation.acting_as(alice.pk):
        for subject in ("use-day 7", "use-day 14"):
            work.make_due(alice, FLOOR, subject, at - timedelta(hours=3))
        work.claim(alice, due(alice, at)[0], at=at)
    with isolation.all_users("test"):
        rows = {row.job: row for row in overview(at)}
        late = {row.job: row for row in overview(at + timedelta(seconds=WORK_CLAIM_S + 1))}
    collapse, rescoring, floor = rows["collapse"], rows["rescore"], rows["floor"]
    assert (collapse.due, collapse.waiting, collapse.running, collapse.failed) == (0, 1, 0, 1)
    assert (rescoring.due, rescoring.waiting, rescoring.running, rescoring.failed) == (0, 2, 0, 2)
    assert (floor.due, floor.waiting, floor.running, floor.failed) == (1, 0, 1, 0)
    assert floor.oldest == at - timedelta(hours=3)
    assert (late["floor"].due, late["floor"].running) == (2, 0)
    assert late["rescore"].due == 2


def test_metrics_count_work_by_kind_and_status(client, staff, failed):
    client.force_login(staff)
    told = client.get("/metrics").content.decode()
    assert 'mira_memory_work{kind="rescore",status="failed"} 2.0' in told
