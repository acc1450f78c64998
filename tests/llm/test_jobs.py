import json

import pytest
from pydantic import BaseModel, Field

from mira_site import errors
from mira_site.llm.jobs import Job, leave_due
from mira_site.llm.types import Tier
from tests.fake_anthropic import FakeAnthropic


class Wind(BaseModel):
    direction: str
    knots: int = Field(ge=0, le=150)


class Weather(BaseModel):
    """The weather a note speaks of."""

    summary: str = Field(min_length=1)
    winds: list[Wind] = []


WEATHER = Job("weather", Tier.BACKGROUND, prompt=("tests.llm", "weather"), answer=Weather)
FAST = Job("weather", Tier.FAST, prompt=("tests.llm", "weather"), answer=Weather)
GOOD = {"summary": "Fair.", "winds": [{"direction": "SW", "knots": 12}]}
VALUES = {"note": "SW 3, fair."}


def unknown() -> Weather:
    return Weather(summary="Unknown.")


def ask(job: Job[Weather] = WEATHER) -> Weather:
    return job.ask(VALUES, otherwise=unknown)


class TestAnswers:
    def test_the_answer_comes_typed(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").answers(GOOD)
        assert ask() == Weather.model_validate(GOOD)

    def test_an_outcome_says_which_model_answered(self, fake_anthropic: FakeAnthropic):
        outcome = WEATHER.ask_outcome(VALUES, otherwise=unknown)
        assert (outcome.by_model, outcome.model, outcome.reason) == (True, "fake-background", None)

    def test_the_question_is_the_filled_prompt_and_the_schema(self, fake_anthropic: FakeAnthropic):
        ask()
        body = fake_anthropic.requests[0].json
        assert "You read the weather." in fake_anthropic.requests[0].system
        assert body["messages"][0]["content"][0]["text"].startswith("<note>SW 3, fair.</note>")
        assert body["tools"][0]["description"] == "The weather a note speaks of."
        assert set(body["tools"][0]["input_schema"]["properties"]) == {"summary", "winds"}

    @pytest.mark.parametrize("text", ["{}", "```json\n{}\n```", "Here you are: {} I hope so."])
    def test_json_in_the_text_will_do(self, fake_anthropic: FakeAnthropic, text):
        fake_anthropic.on("weather").says(text.replace("{}", json.dumps(GOOD)))
        assert ask().winds[0].knots == 12

    def test_a_model_that_refuses_orders_is_asked_in_words(
        self, fake_anthropic: FakeAnthropic, settings
    ):
        settings.MIRA_BACKGROUND_MODEL = "claude-sonnet-5-5"
        fake_anthropic.refuses_forced_tools = True
        fake_anthropic.on("weather").answers(GOOD)
        assert ask().summary == "Fair."
        assert len(fake_anthropic.seen("weather")) == 1

    def test_a_thinking_model_answers_too(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").thinks("Let me see.", then=json.dumps(GOOD))
        assert ask().summary == "Fair."


class TestRepair:
    def test_a_bad_answer_is_asked_again_with_what_is_wrong(self, fake_anthropic: FakeAnthropic):
        bad = {"summary": "Wild.", "winds": [{"direction": "N", "knots": 900}]}
        fake_anthropic.on("weather").answers(bad, times=1).answers(GOOD)
        assert ask().summary == "Fair."
        repair = fake_anthropic.requests[1].json["messages"]
        assert [message["role"] for message in repair] == ["user", "assistant", "user"]
        assert "winds.0.knots" in repair[2]["content"][0]["content"]
        assert repair[2]["content"][0]["is_error"] is True

    @pytest.mark.parametrize("said", ["not json", "", "[1, 2]", "null", '{"summary": ""}', "{}"])
    def test_what_is_no_answer_is_asked_again(self, fake_anthropic: FakeAnthropic, said):
        fake_anthropic.on("weather").says(said, times=1).answers(GOOD)
        assert ask().summary == "Fair."
        assert len(fake_anthropic.requests) == 2

    def test_an_empty_call_is_no_answer_even_where_all_has_defaults(
        self, fake_anthropic: FakeAnthropic
    ):
        class Facts(BaseModel):
            facts: list[str] = []

        job = Job("facts", Tier.BACKGROUND, prompt=("tests.llm", "weather"), answer=Facts)
        fake_anthropic.on("facts").answers({})
        outcome = job.ask_outcome(VALUES, otherwise=lambda: Facts(facts=["by rule"]))
        assert outcome.answer.facts == ["by rule"]

    def test_an_answer_cut_off_is_not_believed(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").says(json.dumps(GOOD), times=1, stop_reason="max_tokens")
        fake_anthropic.on("weather").answers(GOOD | {"summary": "Whole."})
        assert ask().summary == "Whole."

    def test_a_call_cut_off_is_repaired(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").calls_tool("weather", GOOD, cut=True).answers(GOOD)
        assert ask().summary == "Fair."

    def test_two_bad_answers_are_enough(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").says("not json", times=2).answers(GOOD)
        outcome = WEATHER.ask_outcome(VALUES, otherwise=unknown)
        assert (outcome.answer, outcome.by_model) == (unknown(), False)
        assert outcome.reason == "model_output"
        assert len(fake_anthropic.requests) == 2


class TestOtherwise:
    def test_without_a_provider_nothing_is_asked(self):
        outcome = WEATHER.ask_outcome(VALUES, otherwise=unknown)
        assert (outcome.answer, outcome.reason) == (unknown(), "not_configured")

    @pytest.mark.parametrize("status", [401, 400, 404, 500, 529])
    def test_a_provider_that_fails_is_done_without(self, fake_anthropic: FakeAnthropic, status):
        fake_anthropic.on("weather").fails(status, times=None)
        assert ask() == unknown()

    def test_work_without_a_substitute_is_left_due(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").fails(500, times=None)
        with pytest.raises(errors.WorkLeftDue):
            WEATHER.ask(VALUES, otherwise=leave_due)

    def test_a_refusal_of_the_model_falls_back(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").says("I would rather not.", stop_reason="refusal")
        assert ask() == unknown()

    def test_a_missing_value_is_a_bug_even_offline(self):
        with pytest.raises(ValueError, match="note"):
            WEATHER.ask({}, otherwise=unknown)


class TestFastJobs:
    def test_a_person_does_not_wait_for_a_slow_provider(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("weather").fails(429, retry_after=15, times=None)
        assert ask(FAST) == unknown()
        assert len(fake_anthropic.requests) == 1

    def test_they_are_served_by_the_fast_model_with_a_cached_question(
        self, fake_anthropic: FakeAnthropic
    ):
        ask(FAST)
        assert fake_anthropic.requests[0].tier == "fast"
        assert "cache_control" in fake_anthropic.requests[0].json["system"][0]


@pytest.mark.parametrize("name", ["", "Weather", "two words", "x" * 41])
def test_a_job_needs_a_name_that_a_tool_may_have(name):
    with pytest.raises(ValueError, match="name of a job"):
        Job(name, Tier.FAST, prompt=("tests.llm", "weather"), answer=Weather)
