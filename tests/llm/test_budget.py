"""The monthly cap: the person's months, a soft landing, nothing lost."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
import time_machine

from mira_site import errors, isolation
from mira_site.accounts.models import User
from mira_site.llm import budget, choices, client, usage
from mira_site.llm.jobs import Job, leave_due
from mira_site.llm.models import ModelCall
from mira_site.llm.types import ChatMessage, ModelRequest, Tier
from tests.fake_anthropic import FakeAnthropic
from tests.llm.test_jobs import FAST, GOOD, VALUES, WEATHER, Weather, unknown

pytestmark = pytest.mark.django_db

VIENNA, KIRITIMATI = ZoneInfo("Europe/Vienna"), ZoneInfo("Pacific/Kiritimati")
REPLY = ModelRequest(tier=Tier.REPLY, messages=(ChatMessage(role="user", content="Hi"),))
MID_NOVEMBER = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)


@pytest.fixture
def me(alice: User):
    """Alice in Vienna, in scope."""
    User.objects.filter(pk=alice.pk).update(timezone="Europe/Vienna")
    with isolation.acting_as(alice.pk):
        yield alice


def spend(user: User, dollars: str, at: dt.datetime = MID_NOVEMBER) -> None:
    call = ModelCall.objects.create(
        user=user, job="reply", tier="reply", model="m", outcome="ok", cost=Decimal(dollars)
    )
    ModelCall.objects.for_user(user).filter(pk=call.pk).update(created_at=at)
    budget.spent_more()


def cap(user: User, dollars: str | None) -> None:
    budget.set_cap(user_id=user.pk, dollars=Decimal(dollars) if dollars else None)


class TestMonths:
    @pytest.mark.parametrize(
        ("zone", "at", "start", "end"),
        [
            # In Vienna November is over an hour before UTC says so.
            (VIENNA, "2026-11-30T22:59:59+00:00", "2026-10-31T23:00", "2026-11-30T23:00"),
            (VIENNA, "2026-11-30T23:00:00+00:00", "2026-11-30T23:00", "2026-12-31T23:00"),
            # Summer time begins within the month: its two ends have different offsets.
            (VIENNA, "2026-03-15T00:00:00+00:00", "2026-02-28T23:00", "2026-03-31T22:00"),
            # The first place to begin a month, fourteen hours ahead.
            (KIRITIMATI, "2026-11-30T10:00:00+00:00", "2026-11-30T10:00", "2026-12-31T10:00"),
        ],
    )
    def test_a_month_is_that_of_the_persons_zone(self, zone, at, start, end):
        first, last = budget.month_of(zone, dt.datetime.fromisoformat(at))
        assert first == dt.datetime.fromisoformat(f"{start}+00:00")
        assert last == dt.datetime.fromisoformat(f"{end}+00:00")

    def test_only_the_calls_of_the_month_count(self, me):
        cap(me, "10")
        spend(me, "1.00", dt.datetime(2026, 10, 31, 22, 59, 59, tzinfo=dt.UTC))
        spend(me, "0.10", dt.datetime(2026, 10, 31, 23, 0, 0, tzinfo=dt.UTC))
        spend(me, "0.02", dt.datetime(2026, 11, 30, 22, 59, 59, tzinfo=dt.UTC))
        spend(me, "5.00", dt.datetime(2026, 11, 30, 23, 0, 0, tzinfo=dt.UTC))
        november = budget.of(me.pk, zone=VIENNA, at=MID_NOVEMBER)
        assert (november.spent, november.resets_on) == (Decimal("0.12"), "1 December")

    def test_what_others_spend_does_not_count(self, me, bob):
        with isolation.acting_as(bob.pk):
            spend(bob, "9")
        cap(me, "10")
        assert budget.of(me.pk, zone=VIENNA, at=MID_NOVEMBER).spent == 0


class TestAtTheCap:
    @pytest.fixture(autouse=True)
    def capped(self, me: User, fake_anthropic: FakeAnthropic):
        """The cap is reached in Vienna's November."""
        with time_machine.travel(MID_NOVEMBER, tick=False):
            cap(me, "5")
            spend(me, "5.00")
            yield

    def test_no_provider_is_asked_and_the_error_says_what_to_do(self, fake_anthropic):
        with pytest.raises(errors.LLMCapReached, match=r"before 1 December.*/settings/usage/"):
            client.complete(REPLY)
        assert fake_anthropic.requests == []

    def test_background_work_is_left_due_even_where_a_rule_could_stand_in(self, fake_anthropic):
        with pytest.raises(errors.WorkLeftDue, match="cap"):
            WEATHER.ask(VALUES, otherwise=unknown)
        assert fake_anthropic.requests == []

    def test_small_questions_take_their_substitute(self):
        assert FAST.ask(VALUES, otherwise=unknown) == unknown()

    def test_what_has_no_substitute_stays_due(self):
        job = Job("weather", Tier.FAST, prompt=("tests.llm", "weather"), answer=Weather)
        with pytest.raises(errors.WorkLeftDue):
            job.ask(VALUES, otherwise=leave_due)

    def test_a_new_month_of_the_person_begins_anew(self, fake_anthropic):
        last_second = dt.datetime(2026, 11, 30, 22, 59, 59, tzinfo=dt.UTC)
        with time_machine.travel(last_second, tick=False), pytest.raises(errors.LLMCapReached):
            client.complete(REPLY)
        with time_machine.travel(dt.datetime(2026, 11, 30, 23, 0, 1, tzinfo=dt.UTC)):
            assert client.complete(REPLY).text == "You said: Hi"

    def test_a_raised_or_lifted_cap_counts_at_once(self, me):
        cap(me, "6")
        assert client.complete(REPLY).text == "You said: Hi"
        cap(me, None)
        assert client.complete(REPLY).text == "You said: Hi"

    def test_somebody_else_goes_on(self, bob):
        with isolation.acting_as(bob.pk):
            assert client.complete(REPLY).text == "You said: Hi"


class TestAReplyUnderWay:
    def test_it_is_finished_and_the_next_one_is_not_begun(self, me, fake_anthropic):
        with time_machine.travel(MID_NOVEMBER, tick=False):
            cap(me, "5")
            spend(me, "4.99")
            with usage.calls_for(turn_id=uuid.uuid4()):
                client.complete(REPLY)
                spend(me, "0.02")
                assert client.complete(REPLY).text == "You said: Hi"
                with pytest.raises(errors.LLMCapReached):  # but nothing else is begun for it
                    client.complete(ModelRequest(tier=Tier.FAST, messages=REPLY.messages))
            with usage.calls_for(turn_id=uuid.uuid4()), pytest.raises(errors.LLMCapReached):
                client.complete(REPLY)

    def test_trying_it_again_is_a_new_reply(self, me, fake_anthropic):
        turn_id = uuid.uuid4()
        with time_machine.travel(MID_NOVEMBER, tick=False):
            cap(me, "5")
            with usage.calls_for(turn_id=turn_id):
                client.complete(REPLY)
            spend(me, "5")
            with usage.calls_for(turn_id=turn_id), pytest.raises(errors.LLMCapReached):
                client.complete(REPLY)


class TestNotice:
    def test_it_is_given_once_a_month_from_80_percent_on(self, me):
        with time_machine.travel(MID_NOVEMBER, tick=False):
            cap(me, "10")
            spend(me, "7.99")
            assert budget.take_notice(me.pk) is None
            spend(me, "0.01")
            told = budget.take_notice(me.pk)
            assert told is not None
            assert (told.spent, told.share) == (Decimal("8.00"), Decimal("0.8"))
            assert budget.take_notice(me.pk) is None
        with time_machine.travel(dt.datetime(2026, 12, 3, tzinfo=dt.UTC), tick=False):
            assert budget.take_notice(me.pk) is None
            spend(me, "9", dt.datetime(2026, 12, 2, tzinfo=dt.UTC))
            assert budget.take_notice(me.pk) is not None

    def test_another_cap_has_a_notice_of_its_own(self, me):
        with time_machine.travel(MID_NOVEMBER, tick=False):
            cap(me, "10")
            spend(me, "9")
            assert budget.take_notice(me.pk) is not None
            cap(me, "11")
            assert budget.take_notice(me.pk) is not None

    def test_without_a_cap_there_is_none(self, me):
        spend(me, "1000")
        assert budget.take_notice(me.pk) is None


@pytest.mark.parametrize("dollars", ["0", "-1", "100000.01"])
def test_a_cap_that_makes_no_sense_is_refused(me, dollars):
    with pytest.raises(errors.BadRequest) as caught:
        cap(me, dollars)
    assert list(caught.value.fields) == ["monthly_cap"]
    assert choices.of(me.pk) is None


def test_a_person_without_a_cap_is_not_added_up(me, fake_anthropic, django_assert_max_num_queries):
    client.complete(REPLY)
    with django_assert_max_num_queries(5):  # choices, key, and the record with its savepoint
        client.complete(REPLY)


def test_the_answer_of_a_job_below_the_cap_is_a_models(me, fake_anthropic):
    fake_anthropic.on("weather").answers(GOOD)
    cap(me, "5")
    assert WEATHER.ask(VALUES, otherwise=unknown) == Weather.model_validate(GOOD)
