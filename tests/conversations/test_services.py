"""What a person may ask of the thread: accept, stop, retry, put to rest."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.utils import timezone

from conversations import presenting, services
from conversations.constants import MESSAGE_MAX_CHARS
from conversations.models import Message, Segment, Thread, Turn
from mira_site import isolation
from mira_site.accounts.models import UseDay
from mira_site.errors import BadRequest, Conflict, NotFound
from tests.conversations.talking import (
    answer,
    at_once,
    names,
    put_to_rest,
    quiet,
    reply,
    said,
    say,
    tell,
)


class TestAccept:
    def test_a_message_is_stored_with_its_turn_before_anything_runs(self, me):
        turn = tell(me, "I have a dog.")
        stored = Message.objects.for_user(me).get()
        assert (stored.text, stored.role, stored.position) == ("I have a dog.", "user", 1)
        assert stored.content == [{"type": "text", "text": "I have a dog."}]
        assert (turn.status, stored.turn_id) == (Turn.Status.QUEUED, turn.pk)

    def test_it_is_announced_and_queued_once_it_is_committed(
        self, me, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            turn = services.accept_message(user=me, text="Hello", client_id=uuid.uuid4())
            assert names(me) == []
        turn.refresh_from_db()
        assert turn.status == Turn.Status.DONE  # the queue of the tests runs at once
        assert names(me)[0] == "turn.started"

    def test_it_is_accepted_while_redis_is_away(
        self, me, redis_away, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            turn = services.accept_message(user=me, text="Hello", client_id=uuid.uuid4())
        turn.refresh_from_db()
        assert (turn.status, turn.resume_after) == (Turn.Status.QUEUED, "0")
        assert Message.objects.for_user(me).get().text == "Hello"

    def test_the_same_client_id_is_the_same_turn(self, me):
        client_id = uuid.uuid4()
        first = services.accept_message(user=me, text="Hello", client_id=client_id)
        again = services.accept_message(user=me, text="Hello", client_id=client_id)
        answer(first)
        afterwards = services.accept_message(user=me, text="Hello", client_id=client_id)
        assert first.pk == again.pk == afterwards.pk
        assert Message.objects.for_user(me).filter(role=Message.Role.USER).count() == 1

    def test_two_people_may_choose_the_same_client_id(self, me, bob):
        client_id = uuid.uuid4()
        mine = services.accept_message(user=me, text="Hello", client_id=client_id)
        with isolation.acting_as(bob.pk):
            theirs = services.accept_message(user=bob, text="Hello", client_id=client_id)
        assert mine.pk != theirs.pk

    def test_a_second_message_has_to_wait_for_the_open_turn(self, me):
        first = tell(me)
        with pytest.raises(Conflict):
            tell(me, "And another.")
        assert Message.objects.for_user(me).count() == 1
        answer(first)
        tell(me, "And another.")

    @pytest.mark.parametrize("text", ["", "   \n\t ", "\x00", " \x00 "])
    def test_a_blank_message_is_refused_by_the_name_of_its_field(self, me, text):
        with pytest.raises(BadRequest) as refused:
            tell(me, text)
        assert set(refused.value.fields) == {"message"}
        assert not Thread.objects.for_user(me).exists()

    def test_a_message_may_be_long_but_not_longer_than_the_limit(self, me):
        words = " ".join(f"w{number:x}" for number in range(20_000))[:MESSAGE_MAX_CHARS]
        assert tell(me, words).messages.get().text == words.strip()
        with pytest.raises(BadRequest) as refused:
            tell(me, "x" * (MESSAGE_MAX_CHARS + 1))
        assert set(refused.value.fields) == {"message"}

    def test_nul_is_left_out_and_the_rest_is_kept_as_written(self, me):
        text = "  tabs\tand\n\n  lines \x00– ünïcode 🙂 <b>&amp;\\n"
        assert tell(me, text).messages.get().text == text.replace("\x00", "").strip()

    def test_half_of_a_sign_is_marked_and_two_halves_make_one(self, me):
        assert tell(me, "A \ud83d half and a \ud83d\ude42 whole.").messages.get().text == (
            "A \ufffd half and a 🙂 whole."
        )

    def test_a_person_has_one_thread_and_positions_without_gaps(self, me):
        say(me, "One.")
        put_to_rest(me)
        say(me, "Two.")
        assert Thread.objects.for_user(me).count() == 1
        positions = Message.objects.for_user(me).order_by("position")
        assert list(positions.values_list("position", flat=True)) == [1, 2, 3, 4]

    def test_the_day_of_use_is_the_persons_own(self, me):
        me.timezone = "Pacific/Auckland"
        me.save()
        say(me, at=datetime(2026, 6, 1, 11, 30, tzinfo=UTC))  # 23:30 on 1 June there
        say(me, at=datetime(2026, 6, 1, 12, 30, tzinfo=UTC))  # 00:30 on 2 June
        days = UseDay.objects.for_user(me).values_list("day_on", "message_count")
        assert list(days) == [(date(2026, 6, 1), 1), (date(2026, 6, 2), 1)]

    def test_a_message_during_a_collapse_opens_a_new_segment(self, me):
        resting = quiet(me)
        Segment.objects.for_user(me).filter(pk=resting.pk).update(status=Segment.Status.COLLAPSING)
        turn = tell(me, "I am back.")
        assert turn.segment_id != resting.pk
        assert turn.segment.status == Segment.Status.ACTIVE
        assert turn.segment.messages.get().text == "I am back."

    @pytest.mark.parametrize(
        ("model", "fields"),
        [
            (Thread, {}),
            (Segment, {"opened_at": timezone.now(), "last_message_at": timezone.now()}),
            (Turn, {"client_id": uuid.uuid4(), "queued_at": timezone.now()}),
        ],
    )
    def test_the_database_itself_refuses_a_second_one(self, me, model, fields):
        turn = tell(me)
        parents = {"thread": turn.thread, "segment": turn.segment}
        wanted = {name: parents[name] for name in parents if hasattr(model, name)}
        with pytest.raises(IntegrityError), transaction.atomic():
            model.objects.create(user=me, **wanted, **fields)


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_the_same_message_sent_twice_at_once_is_stored_once(self, alice, monkeypatch):
        monkeypatch.setattr(services, "queue_turn", lambda turn: None)
        client_id = uuid.uuid4()

        def send() -> Turn:
            return services.accept_message(user=alice, text="Hello", client_id=client_id)

        turns = at_once(alice, send, send, send)
        assert len({turn.pk for turn in turns}) == 1
        with isolation.acting_as(alice.pk):
            assert Message.objects.for_user(alice).count() == 1

    def test_of_two_messages_at_once_one_is_taken_and_one_has_to_wait(self, alice, monkeypatch):
        monkeypatch.setattr(services, "queue_turn", lambda turn: None)

        def send() -> Turn:
            return services.accept_message(user=alice, text="Hello", client_id=uuid.uuid4())

        got = at_once(alice, send, send)
        assert {type(one) for one in got} == {Turn, Conflict}
        with isolation.acting_as(alice.pk):
            assert Message.objects.for_user(alice).count() == 1


class TestStop:
    def test_a_queued_turn_ends_at_once_and_is_never_answered(
        self, me, django_capture_on_commit_callbacks
    ):
        turn = tell(me)
        with django_capture_on_commit_callbacks(execute=True):
            services.stop_turn(user=me, turn_id=turn.pk)
        assert answer(turn).status == Turn.Status.STOPPED
        assert Message.objects.for_user(me).count() == 1
        assert names(me) == ["turn.stopped"]

    def test_a_running_turn_is_asked_to_stop(self, me):
        turn = tell(me)
        Turn.objects.for_user(me).update(status=Turn.Status.RUNNING)
        services.stop_turn(user=me, turn_id=turn.pk)
        turn.refresh_from_db()
        assert turn.status == Turn.Status.RUNNING
        assert turn.stop_requested_at is not None

    def test_stopping_an_ended_turn_changes_nothing(self, me):
        turn = say(me)
        assert services.stop_turn(user=me, turn_id=turn.pk).status == Turn.Status.DONE

    def test_nobody_stops_somebody_elses_turn(self, me, bob):
        turn = tell(me)
        with isolation.acting_as(bob.pk), pytest.raises(NotFound):
            services.stop_turn(user=bob, turn_id=turn.pk)


class TestRetry:
    @pytest.fixture
    def failed(self, me) -> Turn:
        turn = tell(me, "Are you there?")
        Turn.objects.for_user(me).update(
            status=Turn.Status.FAILED, error_code="internal", error_detail="Broken."
        )
        return turn

    def test_a_failed_turn_is_answered_again(self, me, failed):
        services.retry_turn(user=me, turn_id=failed.pk)
        again = answer(failed)
        assert (again.status, again.attempt, again.error_code) == (Turn.Status.DONE, 2, "")
        assert Message.objects.for_user(me).count() == 2

    def test_asking_twice_is_asking_once(self, me, failed):
        services.retry_turn(user=me, turn_id=failed.pk)
        assert services.retry_turn(user=me, turn_id=failed.pk).attempt == 2

    def test_what_was_only_quoted_on_is_answered_once_there_is_a_model(self, me, request):
        quoted = say(me, "Are you there?")
        assert presenting.message(said(quoted))["is_quoted"]
        fake = request.getfixturevalue("fake_anthropic")
        fake.on("reply").says("Here I am.")
        services.retry_turn(user=me, turn_id=quoted.pk)
        again = answer(quoted)
        assert (reply(again), again.attempt) == ("Here I am.", 2)
        assert not presenting.message(said(again))["is_quoted"]
        assert Message.objects.for_user(me).count() == 2

    def test_what_was_answered_is_not_answered_again(self, me, fake_anthropic):
        turn = say(me)
        with pytest.raises(Conflict):
            services.retry_turn(user=me, turn_id=turn.pk)
        assert reply(turn)

    def test_only_the_newest_turn_can_be_retried(self, me, failed):
        say(me, "Hello?")
        with pytest.raises(Conflict):
            services.retry_turn(user=me, turn_id=failed.pk)

    def test_a_turn_of_a_segment_at_rest_stays_as_it_is(self, me, failed):
        put_to_rest(me)
        with pytest.raises(Conflict):
            services.retry_turn(user=me, turn_id=failed.pk)

    def test_nobody_retries_somebody_elses_turn(self, me, bob, failed):
        with isolation.acting_as(bob.pk), pytest.raises(NotFound):
            services.retry_turn(user=bob, turn_id=failed.pk)

    def test_a_stopped_turn_can_be_taken_up_again(self, me):
        turn = tell(me)
        services.stop_turn(user=me, turn_id=turn.pk)
        services.retry_turn(user=me, turn_id=turn.pk)
        assert answer(turn).status == Turn.Status.DONE


class TestCollapseNow:
    def test_there_must_be_something_to_put_to_rest(self, me):
        with pytest.raises(Conflict):
            services.collapse_now(user=me)

    def test_an_open_turn_is_not_cut_off(self, me):
        tell(me)
        assert services.collapse_now(user=me).collapse_asked_at is not None
        assert Segment.objects.for_user(me).get().status == Segment.Status.ACTIVE

    def test_the_active_segment_collapses_without_being_quiet(self, me):
        say(me, "I live in Graz and work as a baker.")
        segment = services.collapse_now(user=me)
        assert segment.status == Segment.Status.COLLAPSED
        with pytest.raises(Conflict):
            services.collapse_now(user=me)

    def test_a_postponed_collapse_can_be_brought_back_before_its_time(self, me):
        resting = quiet(me)
        Segment.objects.for_user(me).filter(pk=resting.pk).update(
            status=Segment.Status.COLLAPSING, next_attempt_at=timezone.now() + timedelta(hours=2)
        )
        services.collapse_again(user=me, segment_id=resting.pk)
        resting.refresh_from_db()
        assert resting.status == Segment.Status.COLLAPSED


def test_an_hour_that_the_clock_repeats_counts_once(me):
    """In Vienna 02:30 comes twice on 25 October 2026; it is one day all the same."""
    me.timezone = "Europe/Vienna"
    me.save()
    with time_machine.travel(datetime(2026, 10, 25, 0, 30, tzinfo=UTC), tick=False):
        say(me)
    with time_machine.travel(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), tick=False):
        say(me)
    assert UseDay.objects.for_user(me).get().message_count == 2
