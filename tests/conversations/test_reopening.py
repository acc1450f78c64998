"""A collapse waits for the answer that is being written, and can be taken back for ten minutes."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from conversations import collapse, services, tasks, turn
from conversations.models import Message, Segment, Turn
from memory.models import Extraction, Memory, Work
from mira_site import isolation
from mira_site.errors import Conflict, NotFound
from tests.conversations.talking import answer, heard, put_to_rest, say, tell

pytestmark = pytest.mark.django_db(transaction=True)


def begin(asked: Turn) -> None:
    """As if a worker had taken it."""
    Turn.objects.for_user(asked.user_id).filter(pk=asked.pk).update(
        status=Turn.Status.RUNNING, started_at=timezone.now(), heartbeat_at=timezone.now()
    )


@pytest.fixture
def lazily(monkeypatch):
    """The queue keeps what it is given."""
    kept = []
    monkeypatch.setattr(tasks.run_turn, "delay", lambda *given: kept.append(given))
    return kept


class TestWrappingUp:
    def test_while_a_turn_runs_the_wish_is_kept_and_done_after_it(self, me, lazily):
        asked = tell(me, "I live in Graz.")
        segment = services.collapse_now(user=me)
        assert segment.status == Segment.Status.ACTIVE
        assert segment.collapse_asked_at is not None
        tasks.run_turn(str(me.pk), str(asked.pk))
        segment.refresh_from_db()
        assert segment.status == Segment.Status.COLLAPSED
        assert segment.collapse_asked_at is None
        roles = [one.role for one in segment.messages.order_by("position")]
        assert roles == ["user", "assistant"]

    def test_the_beat_finds_a_wish_whose_worker_was_killed(self, me, lazily):
        asked = tell(me, "I live in Graz.")
        services.collapse_now(user=me)
        # And the worker is gone before it looks for the wish.
        turn.run(user_id=me.pk, turn_id=asked.pk)
        with isolation.all_users("a test of reopening"):
            assert collapse.due(at=timezone.now()) == [(me.pk, asked.segment_id)]
        tasks.collapse_due_segments()
        assert Segment.objects.for_user(me).get().status == Segment.Status.COLLAPSED

    def test_wishing_twice_is_one_wish(self, me, lazily):
        tell(me)
        first = services.collapse_now(user=me).collapse_asked_at
        assert services.collapse_now(user=me).collapse_asked_at == first

    def test_over_the_api_it_is_accepted(self, me, api, lazily):
        tell(me)
        given = api.post("/api/v1/segments/collapse/")
        assert given.status_code == 202
        assert given.json()["collapse_asked_at"]

    def test_with_nothing_said_there_is_nothing_to_wrap_up(self, api, me):
        assert api.post("/api/v1/segments/collapse/").status_code == 409


class TestReopening:
    def test_the_segment_goes_on_as_before_and_what_was_made_of_it_is_gone(self, me):
        say(me, "My sister Zerlina lives in Graz.")
        before = Segment.objects.for_user(me).values().get()
        segment = put_to_rest(me)
        assert Memory.objects.for_user(me).exists()
        services.reopen_segment(user=me, segment_id=segment.pk)
        after = Segment.objects.for_user(me).values().get()
        assert after.pop("reopened_at") is not None
        before.pop("reopened_at")
        assert after == before
        assert not Memory.objects.for_user(me).exists()
        assert not Extraction.objects.for_user(me).exists()
        assert not Work.objects.for_user(me).filter(subject=str(segment.pk)).exists()

    def test_it_goes_on_and_collapses_again_with_all_of_it(self, me):
        say(me, "My sister Zerlina lives in Graz.")
        segment = put_to_rest(me)
        services.reopen_segment(user=me, segment_id=segment.pk)
        more = say(me, "My brother Anselm lives in Linz.")
        assert more.segment_id == segment.pk
        put_to_rest(me)
        texts = " ".join(Memory.objects.for_user(me).values_list("text", flat=True))
        assert "Zerlina" in texts
        assert "Anselm" in texts

    def test_its_quiet_time_begins_anew(self, me):
        long_ago = timezone.now() - timedelta(hours=5)
        say(me, "I live in Graz.", at=long_ago)
        segment = put_to_rest(me)
        services.reopen_segment(user=me, segment_id=segment.pk)
        with isolation.all_users("a test of reopening"):
            assert collapse.due(at=timezone.now()) == []
            assert collapse.due(at=timezone.now() + timedelta(minutes=61))
        assert collapse.run(user=me, segment_id=segment.pk) is None

    def test_ten_minutes_later_it_is_refused_with_words(self, me, api):
        say(me, "I live in Graz.")
        segment = put_to_rest(me)
        until = segment.collapsed_at + timedelta(minutes=10)
        late = time_machine.travel(until + timedelta(seconds=1))
        with late, pytest.raises(Conflict, match="minutes"):
            services.reopen_segment(user=me, segment_id=segment.pk)
        with time_machine.travel(until, tick=False):
            assert api.post(f"/api/v1/segments/{segment.pk}/reopen/").status_code == 200

    def test_once_something_newer_was_said_it_is_refused(self, me, api):
        say(me, "I live in Graz.")
        segment = put_to_rest(me)
        say(me, "And now?")
        given = api.post(f"/api/v1/segments/{segment.pk}/reopen/")
        assert given.status_code == 409
        assert "newer" in given.json()["detail"]

    def test_an_older_segment_is_refused(self, me):
        say(me, "I live in Graz.")
        older = put_to_rest(me)
        say(me, "I like tea.")
        put_to_rest(me)
        with pytest.raises(Conflict, match="newer"):
            services.reopen_segment(user=me, segment_id=older.pk)

    def test_while_it_collapses_it_is_refused(self, me):
        say(me, "I live in Graz.")
        segment = Segment.objects.for_user(me).get()
        collapse.close(user=me, segment_id=segment.pk, at=timezone.now())
        until = timezone.now() + timedelta(minutes=5)
        rows = Segment.objects.for_user(me).filter(pk=segment.pk)
        rows.update(claimed_until=until)
        with pytest.raises(Conflict, match="right now"):
            services.reopen_segment(user=me, segment_id=segment.pk)
        rows.update(claimed_until=None, next_attempt_at=until)  # it failed, and waits
        services.reopen_segment(user=me, segment_id=segment.pk)
        assert rows.get().status == Segment.Status.ACTIVE

    def test_refused_by_memory_nothing_is_changed(self, me):
        say(me, "My sister Zerlina lives in Graz.")
        segment = put_to_rest(me)
        Work.objects.for_user(me).filter(subject=str(segment.pk)).update(
            status=Work.Status.RUNNING, claimed_until=timezone.now() + timedelta(minutes=5)
        )
        before = Segment.objects.for_user(me).values().get()
        with pytest.raises(Conflict):
            services.reopen_segment(user=me, segment_id=segment.pk)
        assert Segment.objects.for_user(me).values().get() == before
        assert Memory.objects.for_user(me).exists()

    def test_an_open_one_stays_as_it_is(self, me):
        say(me, "I live in Graz.")
        segment = Segment.objects.for_user(me).get()
        services.reopen_segment(user=me, segment_id=segment.pk)
        assert Segment.objects.for_user(me).get().reopened_at is None

    def test_pages_hear_of_it(self, me):
        say(me, "My sister Zerlina lives in Graz.")
        segment = put_to_rest(me)
        made = {str(one.pk) for one in Memory.objects.for_user(me)}
        services.reopen_segment(user=me, segment_id=segment.pk)
        notice = heard(me)[-1].payload
        assert notice["segment"]["status"] == "active"
        assert notice["segment"]["title"] == ""
        assert set(notice["forgotten"]) == made

    def test_the_api_says_until_when(self, me, api):
        say(me, "I live in Graz.")
        segment = put_to_rest(me)
        shown = api.get(f"/api/v1/segments/{segment.pk}/").json()
        assert shown["reopenable_until"] > shown["collapsed_at"]

    def test_somebody_elses_segment_is_not_there(self, me, stranger, bob):
        say(me, "I live in Graz.")
        segment = put_to_rest(me)
        assert stranger.post(f"/api/v1/segments/{segment.pk}/reopen/").status_code == 404
        with isolation.acting_as(bob.pk), pytest.raises(NotFound):
            services.reopen_segment(user=bob, segment_id=segment.pk)

    def test_an_answer_that_was_wished_to_be_wrapped_up_can_be_opened_again(self, me, lazily):
        asked = tell(me, "I live in Graz.")
        services.collapse_now(user=me)
        tasks.run_turn(str(me.pk), str(asked.pk))
        services.reopen_segment(user=me, segment_id=asked.segment_id)
        assert answer(tell(me, "And I like tea.")).segment_id == asked.segment_id
        assert Message.objects.for_user(me).count() == 4
