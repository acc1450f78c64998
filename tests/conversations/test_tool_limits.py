"""Calls side by side, what ends a loop and what the person hears of it, and stops at any point."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from django.db import connection
from pydantic import BaseModel, Field

from conversations import services, tool_guard, turn
from conversations.models import Message, Turn
from conversations.tool_guard import NOTICES
from memory.models import Memory
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.llm.models import ModelCall
from tests.conversations.talking import heard, know, names, reply, said, say
from tests.fake_anthropic import FakeAnthropic, Plan
from toolbox import registry
from toolbox.constants import CALLS_AT_ONCE
from toolbox.types import ToolContext

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]


class Arguments(BaseModel):
    operation: str = Field(default="look", description="look or write.")
    word: str = Field(default="", description="Anything.")


class Probe:
    """A tool that notes when calls begin and end, and does what it is told."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.act: Callable[[str], str] = lambda word: f"echo {word}"
        self.together = 0
        self._lock = threading.Lock()
        self._running = 0

    def call(self, context: ToolContext, arguments: Arguments) -> str:
        with self._lock:
            self._running += 1
            self.together = max(self.together, self._running)
            self.log.append(("begins", arguments.word))
        try:
            return self.act(arguments.word)
        finally:
            with self._lock:
                self._running -= 1
                self.log.append(("ends", arguments.word))


@pytest.fixture
def tool() -> Iterator[Probe]:
    made = Probe()

    def probe(context: ToolContext, arguments: Arguments) -> str:
        """Look at something, or write it."""
        return made.call(context, arguments)

    with registry.temporarily(registry.made("probe", probe, Arguments, parallel={"look"})):
        yield made


def calls(fake: FakeAnthropic, *inputs: dict[str, str], name: str = "probe") -> None:
    """One answer that makes all these calls."""
    blocks = tuple(("tool_use", (json.dumps(one),), {"name": name}) for one in inputs)
    fake.on("reply")._then(Plan(blocks, stop_reason="tool_use", times=1))


def look(word: str) -> dict[str, str]:
    return {"operation": "look", "word": word}


def write(word: str) -> dict[str, str]:
    return {"operation": "write", "word": word}


def results(fake: FakeAnthropic) -> list[str]:
    content = fake.seen("reply")[-1].json["messages"][-1]["content"]
    return [block["content"] for block in content if block["type"] == "tool_result"]


class TestSideBySide:
    def test_looks_run_together_and_their_results_stand_in_the_order_of_the_calls(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        waits = {"a": 1.2, "b": 0.8, "c": 0.4}  # a busy machine begins the last one late
        tool.act = lambda word: time.sleep(waits[word]) or f"echo {word}"
        calls(fake_anthropic, look("a"), look("b"), look("c"))
        fake_anthropic.on("reply").says("Done.")
        ended = say(me)
        assert tool.together == 3
        assert results(fake_anthropic) == ["echo a", "echo b", "echo c"]
        assert [call.result for call in ended.tool_calls.all()] == ["echo a", "echo b", "echo c"]
        finished = [e.payload["call"] for e in heard(me) if e.type == "tool.finished"]
        begun = [e.payload["call"] for e in heard(me) if e.type == "tool.started"]
        assert finished == list(reversed(begun))  # as it happened

    def test_what_writes_is_done_alone_and_before(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        tool.act = lambda word: time.sleep(0.1) or word
        calls(fake_anthropic, look("a"), write("b"), write("c"), look("d"))
        fake_anthropic.on("reply").says("Done.")
        say(me)
        assert tool.log[:4] == [("begins", "b"), ("ends", "b"), ("begins", "c"), ("ends", "c")]
        assert results(fake_anthropic) == ["a", "b", "c", "d"]

    def test_only_so_many_at_once(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        tool.act = lambda word: time.sleep(0.1) or word
        calls(fake_anthropic, *(look(str(number)) for number in range(10)))
        fake_anthropic.on("reply").says("Done.")
        assert say(me).tool_calls.count() == 10
        assert tool.together == CALLS_AT_ONCE

    def test_each_thread_sees_the_persons_own_rows(
        self, me: User, bob: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        know(me, "The boat is called Merula.")
        with isolation.acting_as(bob.pk):
            know(bob, "The boat of Bob is called Ada.")
        tool.act = lambda word: ",".join(Memory.objects.values_list("text", flat=True))
        calls(fake_anthropic, look("a"), look("b"), look("c"))
        fake_anthropic.on("reply").says("Done.")
        say(me)
        assert results(fake_anthropic) == ["The boat is called Merula."] * 3

    def test_one_that_fails_costs_the_others_nothing(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        def act(word: str) -> str:
            if word == "b":
                raise RuntimeError
            return word

        tool.act = act
        calls(fake_anthropic, look("a"), look("b"), look("c"))
        fake_anthropic.on("reply").says("Done.")
        ended = say(me)
        assert [call.is_error for call in ended.tool_calls.all()] == [False, True, False]

    def test_the_same_call_thrice_in_one_answer_is_done_twice(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        calls(fake_anthropic, look("a"), look("a"), look("a"))
        fake_anthropic.on("reply").says("Done.")
        say(me)
        assert results(fake_anthropic)[:2] == ["echo a", "echo a"]
        assert results(fake_anthropic)[2] == tool_guard.SAID_ALREADY


class TestLimits:
    def test_money_ends_the_tools_and_the_person_hears_why(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe, settings, monkeypatch
    ) -> None:
        settings.MIRA_MODEL = "claude-opus-5-5"
        monkeypatch.setattr(tool_guard, "TURN_COST_MAX", Decimal("0.03"))
        for number in range(20):
            calls(fake_anthropic, look(str(number)))
        fake_anthropic.on("reply").says("That is what I have.")
        ended = say(me)
        spent = sum(ModelCall.objects.for_user(me).filter(job="reply").values_list("cost", flat=1))
        assert Decimal("0.03") <= spent < Decimal("0.06")
        assert 1 <= len(tool.log) // 2 < 20
        assert reply(ended).endswith(NOTICES["money"])
        assert fake_anthropic.seen("reply")[-1].json["tool_choice"] == {"type": "none"}
        text = "".join(e.payload["text"] for e in heard(me) if e.type == "text.delta")
        assert text == reply(ended)

    def test_a_model_that_goes_on_calling_ends_with_the_explanation(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe, monkeypatch
    ) -> None:
        monkeypatch.setattr(tool_guard, "TOOL_CALLS_MAX", 3)
        for number in range(9):
            calls(fake_anthropic, look(str(number)))
        ended = say(me)
        assert (ended.status, reply(ended)) == (Turn.Status.DONE, NOTICES["limit"])
        assert len(tool.log) == 2 * 3
        fake_anthropic.forget()
        assert say(me, "Go on.").status == Turn.Status.DONE

    def test_repeated_failures_are_told(
        self, me: User, fake_anthropic: FakeAnthropic, tool: Probe
    ) -> None:
        def act(word: str) -> str:
            raise RuntimeError(word)

        tool.act = act
        for number in range(9):
            calls(fake_anthropic, look(str(number)))
        fake_anthropic.on("reply").says("Without it, then.")
        assert NOTICES["failures"] in reply(say(me))


class TestStops:
    """Wherever the person stops an answer, what is kept is valid and the next turn goes well."""

    @pytest.fixture
    def run(self, alice: User, monkeypatch) -> Callable[[], tuple[Turn, threading.Thread]]:
        monkeypatch.setattr(services, "queue_turn", lambda queued: None)
        monkeypatch.setattr("conversations.liveness.STOP_POLL_S", 0.05)

        def start() -> tuple[Turn, threading.Thread]:
            with isolation.acting_as(alice.pk):
                asked = services.accept_message(user=alice, text="Look.", client_id=uuid.uuid4())

            def work() -> None:
                with isolation.acting_as(alice.pk):
                    turn.run(user_id=alice.pk, turn_id=asked.pk)
                connection.close()

            worker = threading.Thread(target=work)
            worker.start()
            return asked, worker

        return start

    def _stop(self, alice: User, asked: Turn, worker: threading.Thread) -> Turn:
        with isolation.acting_as(alice.pk):
            services.stop_turn(user=alice, turn_id=asked.pk)
        worker.join(timeout=10)
        assert not worker.is_alive()
        with isolation.acting_as(alice.pk):
            ended = Turn.objects.for_user(alice).get(pk=asked.pk)
            assert ended.status == Turn.Status.STOPPED
            assert names(alice)[-1] == "turn.stopped"
        return ended

    def _goes_on(self, alice: User, fake: FakeAnthropic) -> list[dict]:
        """The next turn's prompt, which the fake server has found valid."""
        fake._scripts.clear()
        fake.on("reply").says("Here I am.")
        with isolation.acting_as(alice.pk):
            asked = services.accept_message(user=alice, text="Go on.", client_id=uuid.uuid4())
            turn.run(user_id=alice.pk, turn_id=asked.pk)
            ended = Turn.objects.for_user(alice).get(pk=asked.pk)
            assert (ended.status, reply(ended)) == (Turn.Status.DONE, "Here I am.")
        return fake.seen("reply")[-1].json["messages"]

    def test_before_a_call_while_its_arguments_come(
        self, alice: User, fake_anthropic: FakeAnthropic, tool: Probe, run
    ) -> None:
        block = ("tool_use", ('{"operation": ', '"look", ', '"word": "a"}'), {"name": "probe"})
        words = ("text", ("Let ", "me ", "look."), {})
        fake_anthropic.on("reply")._then(
            Plan((words, block), stop_reason="tool_use", delay_s=0.4, times=1)
        )
        asked, worker = run()
        _until(lambda: "text.delta" in names(alice))
        time.sleep(1.0)
        self._stop(alice, asked, worker)
        assert tool.log == []
        sent = self._goes_on(alice, fake_anthropic)
        assert "tool_use" not in str(sent)

    def test_during_calls_side_by_side(
        self, alice: User, fake_anthropic: FakeAnthropic, tool: Probe, run
    ) -> None:
        tool.act = lambda word: time.sleep(0.0 if word == "a" else 3.0) or word
        calls(fake_anthropic, write("a"), look("b"), look("c"))
        asked, worker = run()
        _until(lambda: ("begins", "c") in tool.log)
        ended = self._stop(alice, asked, worker)
        with isolation.acting_as(alice.pk):
            rows = {call.input["word"]: call for call in ended.tool_calls.all()}
        assert not rows["a"].is_error
        assert rows["b"].is_error
        assert rows["c"].is_error
        self._goes_on(alice, fake_anthropic)

    def test_between_a_result_and_the_next_words(
        self, alice: User, fake_anthropic: FakeAnthropic, tool: Probe, run
    ) -> None:
        fake_anthropic.on("reply").calls_tool("probe", write("a"), saying="Let me see.").hangs()
        asked, worker = run()
        _until(lambda: len(fake_anthropic.seen("reply")) == 2)
        ended = self._stop(alice, asked, worker)
        with isolation.acting_as(alice.pk):
            assert said(ended).text == "Let me see."
            assert said(ended).is_partial
            assert [one["type"] for one in said(ended).content] == ["text", "tool_call"]
        sent = self._goes_on(alice, fake_anthropic)
        assert [block["type"] for block in sent[1]["content"]] == ["text", "tool_use"]
        assert sent[2]["content"][0]["content"] == "echo a"

    def test_during_the_words_after_a_result(
        self, alice: User, fake_anthropic: FakeAnthropic, tool: Probe, run
    ) -> None:
        fake_anthropic.on("reply").calls_tool("probe", write("a"), saying="Let me see.").streams(
            ["It ", "says ", *["more "] * 50], delay_s=0.1
        )
        asked, worker = run()
        _until(lambda: "It " in "".join(_texts(alice)))
        ended = self._stop(alice, asked, worker)
        with isolation.acting_as(alice.pk):
            assert said(ended).text.startswith("Let me see.\n\nIt ")
        sent = self._goes_on(alice, fake_anthropic)
        assert [message["role"] for message in sent] == ["user", "assistant"] * 2 + ["user"]

    def test_without_a_word_the_call_is_kept_with_its_turn(
        self, alice: User, fake_anthropic: FakeAnthropic, tool: Probe, run
    ) -> None:
        fake_anthropic.on("reply").calls_tool("probe", write("a")).hangs()
        asked, worker = run()
        _until(lambda: len(fake_anthropic.seen("reply")) == 2)
        ended = self._stop(alice, asked, worker)
        with isolation.acting_as(alice.pk):
            assert ended.tool_calls.get().result == "echo a"
            assert not Message.objects.for_user(alice).filter(role="assistant").exists()
        self._goes_on(alice, fake_anthropic)


def _texts(user: User) -> list[str]:
    return [event.payload["text"] for event in heard(user) if event.type == "text.delta"]


def _until(holds: Callable[[], object], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
