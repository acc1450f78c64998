import threading
import time
from itertools import count

import pytest

from mira_site import errors
from mira_site.llm import client, constants
from mira_site.llm.types import (
    ChatMessage,
    Finished,
    ModelRequest,
    StreamEvent,
    SystemSection,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ThinkingMode,
    Tier,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    ToolResult,
    ToolSpec,
    Usage,
    without_thinking,
)
from tests import messages_api
from tests.fake_anthropic import FakeAnthropic

LOOK_UP = ToolSpec(
    name="look_up",
    description="Look something up.",
    input_schema={"type": "object", "properties": {"query": {"type": "string"}}},
)


def question(text: str = "Hi", **changes) -> ModelRequest:
    said = (ChatMessage(role="user", content=text),)
    return ModelRequest(**{"tier": Tier.REPLY, "messages": said, **changes})


def events(request: ModelRequest, **options) -> list[StreamEvent]:
    return list(client.stream(request, **options))


def collect(got: list[StreamEvent], request: ModelRequest, **options) -> None:
    """Events one by one, so that `got` holds what came before an error or a stop."""
    for event in client.stream(request, **options):
        got.append(event)  # noqa: PERF402


def said(got: list[StreamEvent]) -> str:
    return "".join(event.text for event in got if isinstance(event, TextDelta))


class TestStream:
    def test_text_comes_in_the_pieces_the_provider_sends(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").streams(["Hel", "lo, ", "Alice."])
        got = events(question())
        assert [event.text for event in got[:-1]] == ["Hel", "lo, ", "Alice."]
        assert isinstance(got[-1], Finished)
        assert (got[-1].text, got[-1].stop_reason) == ("Hello, Alice.", "end_turn")
        assert got[-1].model == messages_api.REPLY_MODEL

    def test_the_first_piece_arrives_before_the_last_is_sent(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").streams(["one ", "two ", "three"], delay_s=0.2)
        started = time.monotonic()
        stream = client.stream(question())
        assert next(stream) == TextDelta(text="one ")
        assert time.monotonic() - started < 0.4
        assert len(list(stream)) == 3

    def test_thoughts_are_told_from_words(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").thinks("Who is it? Alice.", then="Hello.")
        got = events(question())
        thought = "".join(event.text for event in got if isinstance(event, ThinkingDelta))
        assert (thought, said(got)) == ("Who is it? Alice.", "Hello.")
        assert got[-1].content[0] == Thinking(text="Who is it? Alice.", signature="signed")
        assert without_thinking(got[-1].content) == (Text(text="Hello."),)

    def test_a_tool_call_is_announced_and_then_given_whole(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").calls_tool("look_up", {"query": "boat"}, saying="Let me look.")
        got = events(question(tools=(LOOK_UP,)))
        started = next(event for event in got if isinstance(event, ToolCallStarted))
        finished = next(event for event in got if isinstance(event, ToolCallFinished))
        assert started.name == "look_up"
        assert finished.call == ToolCall(id=started.id, name="look_up", input={"query": "boat"})
        assert got[-1].tool_calls == (finished.call,)
        assert got[-1].stop_reason == "tool_use"

    def test_a_tool_loop_goes_on_from_the_blocks_that_came(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").calls_tool("look_up", {"query": "boat"}).says("Ada.")
        first = client.complete(question(tools=(LOOK_UP,)))
        answered = ToolResult(call_id=first.tool_calls[0].id, text="The boat is Ada.")
        second = question(
            tools=(LOOK_UP,),
            messages=(
                ChatMessage(role="user", content="What is my boat called?"),
                ChatMessage(role="assistant", content=first.content),
                ChatMessage(role="user", content=[answered]),
            ),
        )
        assert client.complete(second).text == "Ada."

    def test_arguments_cut_off_are_marked_malformed(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").calls_tool("look_up", {"query": "a long one"}, cut=True)
        finished = client.complete(question(tools=(LOOK_UP,)))
        assert finished.tool_calls[0].malformed
        assert (finished.tool_calls[0].input, finished.stop_reason) == ({}, "max_tokens")

    def test_connections_are_used_again(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").says("Hello.")
        for _ in range(3):
            client.complete(question())
        assert fake_anthropic.connections == 1


class TestWhatIsSent:
    def test_a_key_goes_in_both_headers_that_servers_read(
        self, fake_anthropic: FakeAnthropic, settings
    ):
        settings.ANTHROPIC_API_KEY = "key-of-the-operator"
        client.complete(question())
        headers = fake_anthropic.requests[0].headers
        assert headers["authorization"] == "Bearer key-of-the-operator"
        assert headers["x-api-key"] == "key-of-the-operator"

    def test_a_server_without_a_key_gets_a_placeholder(self, fake_anthropic: FakeAnthropic):
        client.complete(question())
        assert fake_anthropic.requests[0].headers["x-api-key"] == constants.PLACEHOLDER_KEY

    def test_each_tier_has_its_model(self, fake_anthropic: FakeAnthropic):
        for tier in Tier:
            client.complete(question(tier=tier))
        assert [request.tier for request in fake_anthropic.requests] == list(Tier)

    def test_a_breakpoint_ends_the_stable_prefix(self, fake_anthropic: FakeAnthropic):
        request = question(
            system=(
                SystemSection(text="You are MIRA.", cached=True),
                SystemSection(text=""),
                SystemSection(text="It is noon."),
            ),
            messages=(
                ChatMessage(role="user", content="Hi"),
                ChatMessage(role="assistant", content="Hello.", cached=True),
                ChatMessage(role="user", content="How are you?"),
            ),
        )
        client.complete(request)
        body = fake_anthropic.requests[0].json
        assert body["system"] == [
            {"type": "text", "text": "You are MIRA.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "It is noon."},
        ]
        marked = ["cache_control" in message["content"][-1] for message in body["messages"]]
        assert marked == [False, True, False]

    def test_more_breakpoints_than_the_api_allows_are_a_bug(self, fake_anthropic: FakeAnthropic):
        system = tuple(SystemSection(text="x", cached=True) for _ in range(5))
        with pytest.raises(ValueError, match="at most 4"):
            client.complete(question(system=system))

    def test_empty_messages_are_left_out(self, fake_anthropic: FakeAnthropic):
        stopped = ChatMessage(role="assistant", content="")
        again = ChatMessage(role="user", content="Again?")
        client.complete(question(messages=(*question().messages, stopped, again)))
        assert [m["role"] for m in fake_anthropic.requests[0].json["messages"]] == ["user"] * 2

    def test_unsigned_thoughts_are_not_sent_back(self, fake_anthropic: FakeAnthropic):
        thought = ChatMessage(role="assistant", content=[Thinking(text="Hm."), Text(text="Yes.")])
        client.complete(question(messages=(*question().messages, thought, *question().messages)))
        assert fake_anthropic.requests[0].json["messages"][1]["content"] == [
            {"type": "text", "text": "Yes."}
        ]

    @pytest.mark.parametrize(
        ("model", "mode", "sent"),
        [
            ("claude-sonnet-5-5", ThinkingMode.OFF, {"type": "between_tools"}),
            ("claude-haiku-5-5", ThinkingMode.OFF, {"type": "disabled"}),
            (
                "claude-sonnet-5-5",
                ThinkingMode.SHOWN,
                {"type": "adaptive", "display": "summarized"},
            ),
            ("claude-sonnet-5-5", ThinkingMode.DEFAULT, None),
            ("llama-of-a-local-server", ThinkingMode.OFF, None),
        ],
    )
    def test_a_wish_for_thinking_is_said_as_the_model_takes_it(
        self, fake_anthropic: FakeAnthropic, settings, model, mode, sent
    ):
        settings.MIRA_MODEL = model
        client.complete(question(thinking=mode))
        assert fake_anthropic.requests[0].json.get("thinking") == sent


class TestUsage:
    def test_cached_tokens_are_counted_apart(self, fake_anthropic: FakeAnthropic):
        request = question(system=(SystemSection(text="You are MIRA. " * 100, cached=True),))
        first = client.complete(request).usage
        second = client.complete(request).usage
        assert (first.cache_read_tokens, second.cache_write_tokens) == (0, 0)
        assert first.cache_write_tokens == second.cache_read_tokens > 400
        assert first.prompt_tokens == second.prompt_tokens
        assert first.output_tokens > 0

    def test_a_changed_prefix_is_not_read_from_the_cache(self, fake_anthropic: FakeAnthropic):
        for name in ("Alice", "Bob"):
            section = SystemSection(text=f"You talk to {name}.", cached=True)
            usage = client.complete(question(system=(section,))).usage
        assert usage.cache_read_tokens == 0

    def test_usage_adds_up(self):
        one = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
        assert (one + one).cache_write_tokens == 8
        assert one.prompt_tokens == 8


class TestRetries:
    @pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
    def test_a_passing_failure_is_tried_again(self, fake_anthropic: FakeAnthropic, status):
        fake_anthropic.on("reply").fails(status, times=2).says("Hello.")
        assert client.complete(question()).text == "Hello."
        assert len(fake_anthropic.requests) == 3

    def test_after_three_tries_it_gives_up(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").fails(500, times=None)
        with pytest.raises(errors.LLMUnavailable):
            client.complete(question())
        assert len(fake_anthropic.requests) == constants.MAX_TRIES

    def test_the_wait_is_as_long_as_the_provider_asks(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").fails(429, retry_after=0.5).says("Hello.")
        started = time.monotonic()
        client.complete(question())
        assert 0.5 <= time.monotonic() - started < 2

    def test_a_wait_beyond_the_deadline_is_not_begun(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("fast").fails(429, retry_after=15)
        started = time.monotonic()
        with pytest.raises(errors.LLMRateLimited) as raised:
            client.complete(question(tier=Tier.FAST, deadline_s=1))
        assert raised.value.retry_after_s == 15
        assert time.monotonic() - started < 1

    def test_an_error_event_before_any_text_is_tried_again(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").errs_midway(529, after=0).says("Hello.")
        assert said(events(question())) == "Hello."

    @pytest.mark.parametrize("cleanly", [True, False])
    def test_a_broken_stream_is_not_tried_again(self, fake_anthropic: FakeAnthropic, cleanly):
        fake_anthropic.on("reply").cuts_off(after=2, cleanly=cleanly).says("Hello.")
        got = []
        with pytest.raises(errors.LLMUnavailable):
            collect(got, question())
        assert said(got) == "one two "
        assert len(fake_anthropic.requests) == 1

    def test_a_stream_that_breaks_before_any_text_is(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").cuts_off(after=0).says("Hello.")
        assert said(events(question())) == "Hello."

    def test_an_unreachable_provider_is_unavailable(self, settings):
        settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
        with pytest.raises(errors.LLMUnavailable):
            client.complete(question())

    def test_silence_in_mid_answer_ends_at_the_deadline(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("fast").streams(["a "] * 3, delay_s=0.9)
        started = time.monotonic()
        with pytest.raises(errors.LLMUnavailable):
            client.complete(question(tier=Tier.FAST, deadline_s=1))
        assert time.monotonic() - started < 1.5

    def test_a_dribbling_answer_ends_at_the_deadline(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("fast").streams(["a "] * 100, delay_s=0.05)
        started = time.monotonic()
        with pytest.raises(errors.LLMUnavailable):
            client.complete(question(tier=Tier.FAST, deadline_s=0.5))
        assert time.monotonic() - started < 2


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "message", "error"),
        [
            (401, "invalid x-api-key", errors.LLMBadKey),
            (403, "no permission", errors.LLMBadKey),
            (400, "prompt is too long: 210000 tokens > 200000 maximum", errors.LLMContextTooLong),
            (400, "the request exceeds the available context size", errors.LLMContextTooLong),
            (413, "Request exceeds the maximum size", errors.LLMContextTooLong),
            (400, "messages: something else", errors.LLMRefused),
            (404, "model: gone", errors.LLMRefused),
            (402, "no credit", errors.LLMRefused),
            (429, "slow down", errors.LLMRateLimited),
            (529, "overloaded", errors.LLMOverloaded),
            (500, "fault", errors.LLMUnavailable),
        ],
    )
    def test_each_answer_of_the_provider_has_its_error(
        self, fake_anthropic: FakeAnthropic, status, message, error
    ):
        fake_anthropic.on("reply").fails(status, message=f"{message}: my secret", times=None)
        with pytest.raises(error) as raised:
            client.complete(question())
        assert type(raised.value) is error
        assert "secret" not in str(raised.value)

    def test_an_overload_in_mid_stream_is_one(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").errs_midway(529, after=2)
        with pytest.raises(errors.LLMOverloaded):
            client.complete(question())

    def test_a_refusal_is_not_asked_again(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").fails(400, times=None)
        with pytest.raises(errors.LLMRefused):
            client.complete(question())
        assert len(fake_anthropic.requests) == 1


class TestStopping:
    def test_a_stop_between_words_keeps_what_was_said(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").streams([f"{n} " for n in range(100)], delay_s=0.05)
        got: list[StreamEvent] = []
        collect(got, question(), should_stop=lambda: len(got) == 4)
        finished = got[-1]
        assert isinstance(finished, Finished)
        assert (finished.text, finished.stop_reason) == ("0 1 2 ", "stopped")
        assert finished.usage.output_tokens > 1
        assert fake_anthropic.requests[0].was_dropped.wait(1)

    def test_a_stop_is_noticed_while_nothing_comes(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").hangs()
        asked = count()
        started = time.monotonic()
        got = events(question(), should_stop=lambda: next(asked) > 1)
        assert time.monotonic() - started < 1
        assert got[-1].stop_reason == "stopped"
        assert fake_anthropic.requests[0].was_dropped.wait(1)

    def test_a_stop_is_noticed_before_the_provider_answers_at_all(
        self, fake_anthropic: FakeAnthropic
    ):
        fake_anthropic.on("reply").hangs(before_headers=True)
        asked = count()
        started = time.monotonic()
        assert events(question(), should_stop=lambda: next(asked) > 1)[-1].content == ()
        assert time.monotonic() - started < 1

    def test_a_stop_ends_the_wait_for_another_try(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").fails(429, retry_after=15)
        asked = count()
        started = time.monotonic()
        got = events(question(), should_stop=lambda: next(asked) > 2)
        assert time.monotonic() - started < 2
        assert got[-1].stop_reason == "stopped"

    def test_stop_is_asked_in_the_thread_of_the_caller(self, fake_anthropic: FakeAnthropic):
        asked_in = set()

        def should_stop() -> bool:
            asked_in.add(threading.current_thread())
            return False

        assert said(events(question(), should_stop=should_stop)) == "You said: Hi"
        assert asked_in == {threading.current_thread()}

    def test_errors_come_through_where_a_stop_is_possible(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.on("reply").fails(401)
        with pytest.raises(errors.LLMBadKey):
            events(question(), should_stop=lambda: False)

    def test_connections_are_used_again_where_a_stop_is_possible(
        self, fake_anthropic: FakeAnthropic
    ):
        for _ in range(3):
            events(question(), should_stop=lambda: False)
        assert fake_anthropic.connections == 1


class TestForcedTools:
    def test_a_tool_is_ordered_where_the_model_takes_orders(self, fake_anthropic: FakeAnthropic):
        client.complete(question(tools=(LOOK_UP,), forced_tool="look_up"))
        assert fake_anthropic.requests[0].json["tool_choice"] == {"type": "tool", "name": "look_up"}

    def test_a_model_that_refuses_orders_is_remembered(self, fake_anthropic: FakeAnthropic):
        fake_anthropic.refuses_forced_tools = True
        for _ in range(2):
            client.complete(question(tools=(LOOK_UP,), forced_tool="look_up"))
        ordered = ["tool_choice" in request.json for request in fake_anthropic.requests]
        assert ordered == [True, False, False]

    def test_models_known_to_refuse_are_not_tried(self, fake_anthropic: FakeAnthropic, settings):
        settings.MIRA_MODEL = "claude-sonnet-5-5"
        client.complete(question(tools=(LOOK_UP,), forced_tool="look_up"))
        assert "tool_choice" not in fake_anthropic.requests[0].json


@pytest.mark.parametrize(
    ("key", "url", "configured"),
    [("", "", False), ("k", "", True), ("", "http://localhost:1", True)],
)
def test_a_key_or_an_address_is_enough(settings, key, url, configured):
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = key, url
    assert client.is_configured() is configured


class TestEffort:
    ASKED = ModelRequest(
        tier=Tier.REPLY, messages=(ChatMessage(role="user", content="Hi"),), effort="high"
    )

    def test_it_is_told_to_models_that_take_it(self, fake_anthropic: FakeAnthropic, settings):
        settings.MIRA_MODEL = "claude-sonnet-5-5"
        client.complete(self.ASKED)
        assert fake_anthropic.requests[-1].json["output_config"] == {"effort": "high"}

    def test_others_are_left_at_their_default(self, fake_anthropic: FakeAnthropic, settings):
        for model in ("claude-haiku-4-5", "llama4:8b"):
            settings.MIRA_MODEL = model
            client.complete(self.ASKED)
            assert "output_config" not in fake_anthropic.requests[-1].json

    def test_a_server_that_refuses_it_is_asked_without_it_and_remembered(
        self, fake_anthropic: FakeAnthropic, settings
    ):
        settings.MIRA_MODEL = "claude-sonnet-5-5"
        fake_anthropic.on("reply").fails(
            400, message="output_config: Extra inputs are not permitted"
        ).says("Hello.")
        assert client.complete(self.ASKED).text == "Hello."
        assert client.complete(self.ASKED).text == "Hello."
        assert ["output_config" in seen.json for seen in fake_anthropic.requests] == [
            True, False, False,
        ]  # fmt: skip
