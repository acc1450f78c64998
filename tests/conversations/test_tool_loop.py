"""Reply, tools, reply: in order, bounded, kept whole, and stopped anywhere without harm."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pydantic import BaseModel, Field

from conversations import services
from conversations.constants import TOOL_CALLS_MAX
from conversations.models import Message, ToolCall, Turn
from conversations.tool_guard import NOTICES
from memory import selectors as memory
from memory.models import Memory, MemoryAccess, Trust
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.llm.models import ModelCall
from tests.conversations.talking import heard, know, names, put_to_rest, reply, said, say
from tests.fake_anthropic import FakeAnthropic
from toolbox import registry
from toolbox.types import ToolContext

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("embedder"),
]


class Arguments(BaseModel):
    word: str = Field(default="", description="Anything.")


@pytest.fixture
def probe() -> Iterator[list[Callable[[str], str]]]:
    """A tool that does what the first of the list says, and echoes without one."""
    acts: list[Callable[[str], str]] = []

    def probe(context: ToolContext, arguments: Arguments) -> str:
        """Echo a word."""
        return acts[0](arguments.word) if acts else f"echo {arguments.word}"

    with registry.temporarily(registry.made("probe", probe, Arguments, summary="probed")):
        yield acts


def results(fake: FakeAnthropic, request: int = -1) -> list[dict[str, Any]]:
    """The tool results of the last message of a request."""
    content = fake.seen("reply")[request].json["messages"][-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


def test_a_tool_is_used_and_the_answer_goes_on(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "hello"}, saying="Let me look.").says(
        "It says hello."
    )
    ended = say(me, "What does it say?")
    assert ended.status == Turn.Status.DONE
    assert reply(ended) == "Let me look.\n\nIt says hello."
    assert results(fake_anthropic)[0]["content"] == "echo hello"
    call = ended.tool_calls.get()
    assert said(ended).content == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_call", "id": str(call.pk)},
        {"type": "text", "text": "It says hello."},
    ]
    assert (call.name, call.input, call.result) == ("probe", {"word": "hello"}, "echo hello")


def test_a_page_hears_of_it_and_the_text_it_heard_is_the_text_that_is_kept(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}, saying="One.").says("Two.")
    ended = say(me)
    events = {event.type: event.payload for event in heard(me)}
    assert events["tool.started"]["input"] == {"word": "x"}
    assert events["tool.finished"]["ok"] is True
    assert events["tool.finished"]["summary"] == "probed"
    order = names(me)
    assert order.index("text.delta") < order.index("tool.started") < order.index("tool.finished")
    text = "".join(e.payload["text"] for e in heard(me) if e.type == "text.delta")
    assert text == reply(ended)
    tools = next(e for e in heard(me) if e.type == "turn.finished").payload["message"]["tools"]
    assert [tool["summary"] for tool in tools] == ["probed"]


def test_usage_is_that_of_all_steps(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "hello"}, times=3).says("Done.")
    ended = say(me)
    spent = ModelCall.objects.for_user(me).filter(turn_id=ended.pk, job="reply")
    assert spent.count() == 4
    assert ended.output_tokens == sum(spent.values_list("output_tokens", flat=True))


def test_the_next_turn_reads_what_was_called_and_what_came_back(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "one"}).says("First.").says("Second.")
    say(me, "Use it.")
    say(me, "And now?")
    sent = fake_anthropic.seen("reply")[-1].json["messages"]
    kinds = [[block["type"] for block in m["content"]] if isinstance(m["content"], list) else "text"
             for m in sent]  # fmt: skip
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert kinds[1] == ["tool_use"]
    assert kinds[2] == ["tool_result"]
    assert reply_ok(me)


def reply_ok(me: User) -> bool:
    last = Turn.objects.for_user(me).order_by("-created_at").first()
    return last is not None and last.status == Turn.Status.DONE


def test_results_stand_in_the_order_of_the_calls(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "a"}).calls_tool(
        "probe", {"word": "b"}
    ).says("Done.")
    ended = say(me)
    assert [call.result for call in ended.tool_calls.all()] == ["echo a", "echo b"]


def test_a_tool_that_fails_costs_nothing_but_its_result(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    def broken(word: str) -> str:
        raise RuntimeError(word)

    probe.append(broken)
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}).says("I could not look.")
    ended = say(me)
    assert reply(ended) == "I could not look."
    assert results(fake_anthropic)[0]["is_error"] is True
    assert [e.payload["ok"] for e in heard(me) if e.type == "tool.finished"] == [False]


def test_cut_arguments_are_answered_with_the_schema(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "abc" * 20}, cut=True).says("Well.")
    assert reply(say(me)) == "Well."
    assert "schema" in results(fake_anthropic)[0]["content"]


def test_failing_again_and_again_withdraws_the_tools(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    for number in range(9):
        fake_anthropic.on("reply").calls_tool("oracle", {"word": str(number)})
    fake_anthropic.on("reply").says("Without it, then.")
    say(me)
    requests = fake_anthropic.seen("reply")
    assert len(requests) == 4
    assert requests[-1].json["tool_choice"] == {"type": "none"}
    assert requests[-1].json["tools"]


def test_the_same_call_again_and_again_is_not_done(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    done: list[str] = []
    probe.append(lambda word: done.append(word) or "again")
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}, times=3).says("Enough.")
    ended = say(me)
    assert reply(ended) == f"Enough.\n\n{NOTICES['repeated']}"
    assert len(done) == 2
    assert fake_anthropic.seen("reply")[-1].json["tool_choice"] == {"type": "none"}


def test_a_turn_has_so_many_calls_and_no_more(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    for number in range(TOOL_CALLS_MAX + 3):
        fake_anthropic.on("reply").calls_tool("probe", {"word": str(number)})
    ended = say(me)
    assert ended.tool_calls.filter(is_error=False).count() == TOOL_CALLS_MAX
    assert len(fake_anthropic.seen("reply")) == TOOL_CALLS_MAX + 2


def test_a_model_that_used_a_tool_and_said_nothing_is_asked_once_more(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}).says("", times=1).says("Here.")
    assert reply(say(me)) == "Here."


def test_a_provider_that_breaks_off_after_a_call_leaves_a_turn_to_retry(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}).fails(500, times=3).says("Here.")
    ended = say(me)
    assert ended.status == Turn.Status.FAILED
    assert ended.tool_calls.count() == 1
    services.retry_turn(user=me, turn_id=ended.pk)
    again = Turn.objects.for_user(me).get(pk=ended.pk)
    assert again.tool_calls.count() <= 1


def test_stopping_while_a_tool_works_leaves_a_valid_thread(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    working = threading.Event()

    def slow(word: str) -> str:
        working.set()
        time.sleep(4)
        return word

    probe.append(slow)
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}, saying="Wait.").says("Go on.")

    def stop() -> None:
        working.wait(timeout=10)
        with isolation.acting_as(me.pk):
            running = Turn.objects.for_user(me).get(status=Turn.Status.RUNNING)
            services.stop_turn(user=me, turn_id=running.pk)
        connection.close()

    stopping = threading.Thread(target=stop)
    stopping.start()
    started = time.monotonic()
    ended = say(me)  # the queue is eager here: it is answered before it is accepted
    stopping.join()
    assert time.monotonic() - started < 4
    assert ended.status == Turn.Status.STOPPED
    assert said(ended).is_partial
    assert ended.tool_calls.get().is_error
    say(me, "Go on.")
    assert reply_ok(me)


def test_remember_this_is_stored_at_once_and_comes_up_in_the_next_turn(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    fake_anthropic.on("reply").calls_tool(
        "memory_tool",
        {"operation": "create_memory", "content": "Alice's boat is called Merula.",
         "user_requested": True},
    ).says("I will remember.")  # fmt: skip
    ended = say(me, "Remember that my boat is called Merula.")
    stored = Memory.objects.for_user(me).get()
    assert ended.tool_calls.get().summary == "remembered something"
    assert stored.sources.get().message_id == ended.messages.get(role=Message.Role.USER).pk
    asked = say(me, "What is my boat called?")
    assert [row.memory_id for row in asked.surfaced.all()] == [stored.pk]


def test_touched_memories_are_used_ones_over_all_calls(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    rows = [know(me, "My boat is called Merula."), know(me, "My berth is in Izola.")]
    for row in rows:
        fake_anthropic.on("reply").calls_tool(
            "memory_tool", {"operation": "touch", "memory_ids": [f"mem_{row.short_id}"]}
        )
    fake_anthropic.on("reply").says("Merula, in Izola.")
    ended = say(me, "Where is my boat?")
    used = MemoryAccess.objects.for_user(me).filter(kind="used", segment_id=ended.segment_id)
    assert set(used.values_list("memory_id", flat=True)) == {row.pk for row in rows}


def test_what_a_tool_said_is_never_remembered_as_the_persons_word(
    me: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    probe.append(lambda _: "I own a castle in Scotland and I love haggis.")
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}).says("The text is odd.")
    say(me, "I moved to Graz in May.")
    segment = put_to_rest(me)
    asked = "\n".join(seen.prompt for seen in fake_anthropic.seen("extraction"))
    assert "castle" not in asked
    texts = [row.text for row in memory.made_of_segment(me, segment.pk)]
    assert not any("castle" in text for text in texts)


def test_what_is_written_beside_outside_memories_is_outside_text(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    """They are in front of MIRA by themselves, and weigh as much as if she had looked them up."""
    know(me, "The mail says that the boat is moved to berth fourteen.", trust=Trust.OUTSIDE)
    fake_anthropic.on("reply").calls_tool(
        "memory_tool",
        {"operation": "create_memory", "content": "The berth of the boat is fourteen."},
    ).says("I see.")
    say(me, "Where is the boat?")
    assert Memory.objects.for_user(me).latest("created_at").trust == Trust.OUTSIDE


def test_what_tools_did_is_the_persons_own(
    me: User, bob: User, fake_anthropic: FakeAnthropic, probe: list[Any]
) -> None:
    fake_anthropic.on("reply").calls_tool("probe", {"word": "x"}).says("Done.")
    say(me)
    with isolation.acting_as(bob.pk):
        assert not ToolCall.objects.exists()
        assert not ToolCall.objects.for_user(me).exists()


def test_without_tools_nothing_is_different(me: User, fake_anthropic: FakeAnthropic) -> None:
    fake_anthropic.on("reply").says("Good morning.")
    ended = say(me)
    assert said(ended).content == [{"type": "text", "text": "Good morning."}]
    assert timezone.is_aware(ended.finished_at)
