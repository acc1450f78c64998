import uuid

import pytest
from django.db import connection

from mira_site import errors, isolation
from mira_site.accounts.models import User
from mira_site.llm import client, usage
from mira_site.llm.models import ModelCall
from mira_site.llm.types import ChatMessage, ModelRequest, SystemSection, Tier
from tests.fake_anthropic import FakeAnthropic
from tests.llm.test_jobs import GOOD, VALUES, WEATHER, unknown

QUESTION = ModelRequest(
    tier=Tier.REPLY,
    system=(SystemSection(text="You are MIRA. " * 50, cached=True),),
    messages=(ChatMessage(role="user", content="Hi"),),
)


def calls(user: User) -> list[ModelCall]:
    return list(ModelCall.objects.for_user(user).order_by("created_at"))


def outcomes(user: User) -> list[tuple[str, str]]:
    return [(call.job, call.outcome) for call in calls(user)]


def test_a_reply_is_recorded_for_its_turn(alice: User, fake_anthropic: FakeAnthropic):
    turn_id = uuid.uuid4()
    with isolation.acting_as(alice.pk), usage.calls_for(turn_id=turn_id):
        finished = client.complete(QUESTION)
        [call] = calls(alice)
    assert (call.pk, call.turn_id) == (finished.call_id, turn_id)
    assert (call.job, call.tier, call.model) == ("reply", "reply", "fake-reply")
    assert call.outcome == ModelCall.Outcome.OK
    assert call.cache_write_tokens == finished.usage.cache_write_tokens > 100
    assert call.output_tokens == finished.usage.output_tokens > 0


def test_a_call_outside_a_turn_has_none(alice: User, fake_anthropic: FakeAnthropic):
    with isolation.acting_as(alice.pk):
        client.complete(QUESTION)
        assert calls(alice)[0].turn_id is None


def test_a_job_is_recorded_under_its_name_each_time_it_is_asked(
    alice: User, fake_anthropic: FakeAnthropic
):
    fake_anthropic.on("weather").says("not json", times=1).answers(GOOD)
    with isolation.acting_as(alice.pk):
        WEATHER.ask(VALUES, otherwise=unknown)
        assert outcomes(alice) == [("weather", "bad_answer"), ("weather", "ok")]


def test_two_bad_answers_are_both_recorded(alice: User, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("weather").says("not json")
    with isolation.acting_as(alice.pk):
        WEATHER.ask(VALUES, otherwise=unknown)
        assert outcomes(alice) == [("weather", "bad_answer")] * 2


def test_a_stopped_call_counts_what_came(alice: User, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("reply").streams([f"word{n} " for n in range(50)], delay_s=0.02)
    got: list[object] = []
    with isolation.acting_as(alice.pk):
        stream = client.stream(QUESTION, should_stop=lambda: len(got) >= 5)
        for event in stream:
            got.append(event)  # noqa: PERF402  should_stop looks at it
        [call] = calls(alice)
    assert call.outcome == ModelCall.Outcome.STOPPED
    assert call.output_tokens > 5
    assert call.cache_write_tokens > 100


def test_a_stream_dropped_by_its_reader_is_recorded(alice: User, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("reply").streams([f"word{n} " for n in range(50)], delay_s=0.02)
    with isolation.acting_as(alice.pk):
        stream = client.stream(QUESTION)
        next(stream)
        stream.close()
        assert outcomes(alice) == [("reply", "stopped")]
    assert fake_anthropic.requests[0].was_dropped.wait(2)


def test_a_failed_call_is_recorded_once_for_all_its_tries(
    alice: User, fake_anthropic: FakeAnthropic
):
    fake_anthropic.on("reply").fails(500, times=None)
    with isolation.acting_as(alice.pk):
        with pytest.raises(errors.LLMUnavailable):
            client.complete(QUESTION)
        assert outcomes(alice) == [("reply", "failed")]


def test_a_broken_stream_counts_what_it_cost(alice: User, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("reply").cuts_off(after=2)
    with isolation.acting_as(alice.pk):
        with pytest.raises(errors.LLMUnavailable):
            client.complete(QUESTION)
        [call] = calls(alice)
    assert call.outcome == ModelCall.Outcome.FAILED
    assert call.cache_write_tokens > 100


def test_without_a_user_nothing_is_recorded(alice: User, fake_anthropic: FakeAnthropic):
    assert client.complete(QUESTION).call_id is None
    with isolation.acting_as(alice.pk):
        assert calls(alice) == []


def test_nobody_else_sees_the_calls(alice: User, bob: User, fake_anthropic: FakeAnthropic):
    with isolation.acting_as(alice.pk):
        client.complete(QUESTION)
    with isolation.acting_as(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM llm_model_calls")
        assert cursor.fetchone() == (0,)


def test_an_answer_outlives_a_record_that_cannot_be_written(
    alice: User, fake_anthropic: FakeAnthropic
):
    with isolation.acting_as(uuid.uuid4()):  # nobody has this id: the foreign key refuses the row
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        finished = client.complete(QUESTION)
    assert (finished.text, finished.call_id) == ("You said: Hi", None)
    assert User.objects.filter(pk=alice.pk).exists()
