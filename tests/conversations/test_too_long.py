"""A prompt that does not fit the model: told in short, twice, then said; no stuck thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pydantic import BaseModel, Field

from conversations import compaction, tasks, turn
from conversations.models import CompactionBrief, ComposedContext, Message, Turn
from conversations.replying import MESSAGE_TOO_LONG, TOO_LONG
from mira_site.accounts.models import User
from tests import messages_api
from tests.conversations.talking import heard, know, reply, say, tell
from tests.fake_anthropic import FakeAnthropic
from toolbox import registry
from toolbox.types import ToolContext

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]

LONG = ("We spoke of the boat and of the berth and of the winter. " * 60).strip()
BRIEF = {
    "state": "Alice had told me a great deal about her boat and had asked what to do in winter.",
    "synopsis": "Alice had told me about the boat, the berth and the winter. " * 8,
}


class Arguments(BaseModel):
    word: str = Field(default="", description="Anything.")


@pytest.fixture
def probe() -> Iterator[list[str]]:
    """A tool with a long result; the list holds the words it was called with."""
    done: list[str] = []

    def probe(context: ToolContext, arguments: Arguments) -> str:
        """Bring a lot."""
        done.append(arguments.word)
        return f"{arguments.word} " * 3_000

    with registry.temporarily(registry.made("probe", probe, Arguments)):
        yield done


def sizes(fake: FakeAnthropic) -> list[int]:
    return [messages_api.prompt_tokens(seen.json) for seen in fake.seen("reply")]


def base(me: User, fake: FakeAnthropic) -> int:
    """What a prompt costs with hardly anything said. Answers are short from now on."""
    fake.on("reply").says("Well.")
    say(me, "Hi.")
    return sizes(fake)[-1]


def test_older_turns_are_told_in_short_and_the_newest_stay_whole(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    size = base(me, fake_anthropic)
    for number in range(13):
        say(me, f"Number {number}. {LONG}")
    fake_anthropic.takes_prompts_up_to(size + messages_api.tokens(LONG) * 12)
    before = len(fake_anthropic.seen("reply"))
    ended = say(me, "And what do you say to number twelve?")
    assert ended.status == Turn.Status.DONE
    first, second = fake_anthropic.seen("reply")[before:]
    assert second.json["system"] == first.json["system"]
    assert LONG in messages_api.text_of(second.json["messages"][-3])
    assert LONG not in messages_api.text_of(second.json["messages"][0])
    assert "Number 0." in second.prompt
    assert second.json["messages"][-1] == first.json["messages"][-1]


def test_where_that_does_not_help_only_the_last_turns_stay_and_memories_go(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    know(me, "The boat of Alice is called Merula.")
    size = base(me, fake_anthropic)
    for number in range(4):
        say(me, f"Number {number}. {LONG}")
    fake_anthropic.takes_prompts_up_to(size + 2 * messages_api.tokens(LONG))
    ended = say(me, "What is the boat called?")
    assert ended.status == Turn.Status.DONE
    last = fake_anthropic.seen("reply")[-1]
    assert "Number 0." not in last.prompt
    assert "Number 3." in last.prompt
    assert "Merula" not in messages_api.text_of(last.json["messages"][-1])
    assert ComposedContext.objects.for_user(me).get(turn=ended).counted_tokens == 0


def test_a_message_that_is_too_long_alone_says_so_and_the_thread_goes_on(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    size = base(me, fake_anthropic)
    fake_anthropic.takes_prompts_up_to(size + 4_000)
    huge = say(me, "x y z " * 10_000)
    assert (huge.status, huge.error_code) == (Turn.Status.FAILED, "model_context_too_long")
    assert huge.error_detail == MESSAGE_TOO_LONG
    error = heard(me)[-1].payload["error"]
    assert error["retryable"] is False
    for text in ("Never mind.", "Are you still there?"):
        assert say(me, text).status == Turn.Status.DONE


def test_a_thread_that_fits_in_no_way_offers_rest(me: User, fake_anthropic: FakeAnthropic) -> None:
    size = base(me, fake_anthropic)
    fake_anthropic.takes_prompts_up_to(size // 2)
    ended = say(me, "Hello?")
    assert (ended.status, ended.error_detail) == (Turn.Status.FAILED, TOO_LONG)
    fake_anthropic.takes_prompts_up_to(10**6)
    assert say(me, "Hello again?").status == Turn.Status.DONE


def test_a_tool_loop_that_grows_too_long_is_shortened_and_no_call_is_done_twice(
    me: User, fake_anthropic: FakeAnthropic, probe: list[str]
) -> None:
    size = base(me, fake_anthropic)
    fake_anthropic.takes_prompts_up_to(size + 12_000)
    for word in ("one", "two", "three", "four"):
        fake_anthropic.on("reply").calls_tool("probe", {"word": word})
    fake_anthropic.on("reply").says("All four.")
    ended = say(me, "Look four times.")
    assert reply(ended) == "All four."
    assert probe == ["one", "two", "three", "four"]
    assert [call.result[:3] for call in ended.tool_calls.all()] == ["one", "two", "thr", "fou"]
    assert all(len(call.result) > 9_000 for call in ended.tool_calls.all())
    assert sizes(fake_anthropic)[-1] <= size + 12_000 < max(sizes(fake_anthropic))


def test_a_loop_that_fits_in_no_way_keeps_what_was_done(
    me: User, fake_anthropic: FakeAnthropic, probe: list[str]
) -> None:
    size = base(me, fake_anthropic)
    fake_anthropic.takes_prompts_up_to(size + 150)
    fake_anthropic.on("reply").calls_tool("probe", {"word": "one"}).says("Done.")
    ended = say(me, "Look.")
    assert ended.status == Turn.Status.FAILED
    assert probe == ["one"]
    assert ended.tool_calls.get().name == "probe"
    fake_anthropic.takes_prompts_up_to(10**6)
    assert say(me, "Go on.").status == Turn.Status.DONE


def test_it_is_compacted_afterwards_whatever_was_estimated(
    me: User, fake_anthropic: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_anthropic.on("compaction").answers(BRIEF)
    size = base(me, fake_anthropic)
    for number in range(4):
        say(me, f"Number {number}. {LONG}")
    fake_anthropic.takes_prompts_up_to(size + 2 * messages_api.tokens(LONG))
    asked = tell(me, "What is the boat called?")
    monkeypatch.setattr(compaction, "is_due", lambda *_: False)
    tasks.run_turn(str(me.pk), str(asked.pk))
    brief = CompactionBrief.objects.for_user(me).get()
    before = len(sizes(fake_anthropic))
    assert say(me, "And now?").status == Turn.Status.DONE
    assert len(sizes(fake_anthropic)) == before + 1
    assert brief.text in fake_anthropic.seen("reply")[-1].system


def test_the_estimate_is_corrected_by_what_was_counted(
    me: User, fake_anthropic: FakeAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[float] = []
    compose = turn.prompt.compose

    def watched(*args: object, **kwargs: object) -> object:
        budgets.append(kwargs["ratio"])
        return compose(*args, **kwargs)

    monkeypatch.setattr(turn.prompt, "compose", watched)
    first = say(me, "Hi.")
    context = ComposedContext.objects.for_user(me).get(turn=first)
    ComposedContext.objects.for_user(me).update(counted_tokens=round(1.52 * context.tokens))
    say(me, "And now?")
    assert budgets == [1.0, 1.5]


def test_the_window_is_smaller_where_more_is_counted(make_history: Callable[..., list]) -> None:
    history = make_history(60)
    whole = turn.prompt.window(history, budget=20_000)
    corrected = turn.prompt.window(history, budget=round(20_000 / 1.5))
    assert len(corrected) < len(whole)


@pytest.fixture
def make_history() -> Callable[..., list]:
    return lambda count: [
        Message(role=("user", "assistant")[place % 2], text="word " * 400, position=place)
        for place in range(count)
    ]
