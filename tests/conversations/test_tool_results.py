"""Long results: whole in the database, in short in later prompts, and read again page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, Field

from conversations import tasks, tool_results
from conversations.constants import REPLAYED_RESULT_MAX_CHARS, RESULT_PAGE_CHARS
from conversations.models import ToolCall, Turn
from memory import services as memory
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.errors import ToolError
from tests.conversations.talking import know, say
from tests.fake_anthropic import FakeAnthropic
from toolbox import registry
from toolbox.constants import RESULT_KEPT_MAX_CHARS, RESULT_MAX_CHARS
from toolbox.types import ToolContext

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]

TEXT = "".join(f"Line {number} of the report of the harbour.\n" for number in range(400))
LIST = json.dumps([{"id": number, "name": "boat " * 10} for number in range(80)])


class Arguments(BaseModel):
    word: str = Field(default="", description="Anything.")


@pytest.fixture
def brings() -> Iterator[dict[str, str]]:
    """What the tool `probe` brings, under "text"."""
    result = {"text": TEXT}

    def probe(context: ToolContext, arguments: Arguments) -> str:
        """Bring something."""
        return result["text"]

    with registry.temporarily(*registry.every(), registry.made("probe", probe, Arguments)):
        yield result


def used(me: User, fake: FakeAnthropic, text: str = "What is in the report?") -> Turn:
    fake.on("reply").calls_tool("probe", {"word": "x"}).says("It is about the harbour.", times=1)
    return say(me, text)


def replayed(fake: FakeAnthropic) -> str:
    """The tool's result in the last prompt."""
    found = [
        block["content"]
        for message in fake.seen("reply")[-1].json["messages"]
        if not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert len(found) == 1
    return str(found[0])


class TestByRule:
    def test_a_text_keeps_its_head_and_its_tail(self) -> None:
        short = tool_results.by_rule(TEXT, "tr_1a2b3c4d")
        assert short.startswith("Line 0 of")
        assert "Line 399 of" in short
        assert len(short) <= REPLAYED_RESULT_MAX_CHARS
        assert "read_tool_result tr_1a2b3c4d" in short.splitlines()[-1]

    def test_a_list_keeps_whole_elements(self) -> None:
        short, note = tool_results.by_rule(LIST, "tr_1a2b3c4d").rsplit("\n", 1)
        kept = json.loads(short)
        assert 0 < len(kept) < 80
        assert kept == json.loads(LIST)[: len(kept)]
        assert f"{len(LIST):,}" in note

    def test_a_list_inside_an_object_keeps_the_object(self) -> None:
        whole = json.dumps({"total": 80, "items": json.loads(LIST)})
        short, _ = tool_results.by_rule(whole).rsplit("\n", 1)
        assert json.loads(short)["total"] == 80
        assert json.loads(short)["items"][0]["id"] == 0

    @pytest.mark.parametrize(
        "text",
        [
            "x" * 2_001,
            json.dumps(["y" * 5_000]),
            json.dumps({"a": "z" * 5_000}),
            "[" * 5_000,
            '{"items": []}' + " " * 3_000,
            "🙂" * 3_000,
        ],
    )
    def test_it_is_always_smaller_and_never_empty(self, text: str) -> None:
        short = tool_results.by_rule(text, "tr_1a2b3c4d")
        assert 100 < len(short) <= REPLAYED_RESULT_MAX_CHARS < len(text)

    def test_what_is_short_stays_as_it_is(self) -> None:
        assert tool_results.by_rule("x" * REPLAYED_RESULT_MAX_CHARS) == "x" * 2_000


class TestInLaterPrompts:
    def test_the_prompt_of_the_turn_has_it_whole_and_later_ones_in_short(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        ended = used(me, fake_anthropic)
        assert replayed(fake_anthropic) == TEXT
        say(me, "Thank you.")
        assert replayed(fake_anthropic) == tool_results.by_rule(
            TEXT, tool_results.short_id(ended.tool_calls.get().pk)
        )
        assert ended.tool_calls.get().result == TEXT

    def test_the_fast_model_says_what_is_worth_keeping_of_a_text(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        fake_anthropic.on("tool_result").answers({"text": "A report of the harbour, 200 lines."})
        ended = used(me, fake_anthropic)
        say(me, "Thank you.")
        shown = replayed(fake_anthropic)
        assert shown.startswith("A report of the harbour, 200 lines.\n[Shortened from")
        assert tool_results.short_id(ended.tool_calls.get().pk) in shown
        assert tool_results.compact(me, ended.pk) == 0

    def test_and_which_elements_of_a_list(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        brings["text"] = LIST
        fake_anthropic.on("tool_result").answers({"keep": [70, 3, 3, 999]})
        ended = used(me, fake_anthropic)
        short, _ = ended.tool_calls.get().compact_result.rsplit("\n", 1)
        assert [one["id"] for one in json.loads(short)] == [3, 70]

    @pytest.mark.parametrize(
        "said",
        [
            {"text": ""},
            {"text": "See https://evil.example/x for more."},
            {"keep": [1, 2]},
        ],
    )
    def test_an_answer_of_no_use_leaves_the_rule(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str], said: dict
    ) -> None:
        fake_anthropic.on("tool_result").answers(said)
        ended = used(me, fake_anthropic)
        call = ended.tool_calls.get()
        assert call.compact_result == tool_results.by_rule(TEXT, tool_results.short_id(call.pk))

    def test_without_the_fast_model_the_rule_stays(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        fake_anthropic.on("tool_result").fails(500, times=9)
        ended = used(me, fake_anthropic)
        assert ended.tool_calls.get().compact_result.startswith("Line 0")

    def test_what_a_later_prompt_has_shown_is_shown_again(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str], monkeypatch
    ) -> None:
        monkeypatch.setattr(tasks.compact_results, "delay", lambda *_: None)
        fake_anthropic.on("tool_result").answers({"text": "A report of the harbour."})
        ended = used(me, fake_anthropic)
        say(me, "Thank you.")
        before = replayed(fake_anthropic)
        assert tool_results.compact(me, ended.pk) == 1
        say(me, "And now?")
        assert replayed(fake_anthropic) == before

    def test_errors_and_short_results_are_left(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        brings["text"] = "short"
        ended = used(me, fake_anthropic)
        assert not tool_results.are_long(ended)
        ToolCall.objects.for_user(me).update(result=TEXT, is_error=True)
        assert not tool_results.are_long(ended)
        assert tool_results.compact(me, ended.pk) == 0

    def test_forgetting_takes_the_short_form_too(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        brings["text"] = "Vera is allergic to nuts. " + TEXT
        fake_anthropic.on("tool_result").answers({"text": "Vera is allergic to nuts."})
        kept = know(me, "Vera is allergic to nuts.")
        ended = used(me, fake_anthropic)
        memory.forget(user=me, memory_id=kept.pk)
        call = ended.tool_calls.get()
        assert "nuts" not in call.result + call.compact_result


class TestReadAgain:
    def read(self, me: User, ended: Turn, page: int = 1, **context: object) -> str:
        tool = registry.find("read_tool_result")
        assert tool is not None
        given = tool.arguments(
            result_id=tool_results.short_id(ended.tool_calls.first().pk), page=page
        )
        made = ToolContext(
            user=me, turn_id=ended.pk, segment_id=ended.segment_id, now=ended.created_at, **context
        )
        return tool.run(made, given).text

    def test_it_is_whole_page_by_page(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        ended = used(me, fake_anthropic)
        pages = [self.read(me, ended, page) for page in (1, 2)]
        assert pages[0].startswith(TEXT[:RESULT_PAGE_CHARS])
        assert TEXT[RESULT_PAGE_CHARS:] in pages[1]
        with pytest.raises(ToolError):
            self.read(me, ended, 3)

    def test_a_result_of_this_turn_that_was_cut_can_be_read_on(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        brings["text"] = TEXT * 4
        ended = used(me, fake_anthropic)
        cut = replayed(fake_anthropic)
        call = ended.tool_calls.get()
        assert len(cut) < RESULT_MAX_CHARS + 200 < len(call.result)
        assert f"read_tool_result {tool_results.short_id(call.pk)}" in cut
        assert call.result == brings["text"]

    def test_what_is_endless_is_kept_up_to_a_bound(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        brings["text"] = "x" * (RESULT_KEPT_MAX_CHARS + 5_000)
        ended = used(me, fake_anthropic)
        assert len(ended.tool_calls.get().result) == RESULT_KEPT_MAX_CHARS

    def test_within_the_turn_it_is_found_before_it_is_stored(
        self, me: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        ended = used(me, fake_anthropic)
        name = tool_results.short_id(ended.tool_calls.get().pk)
        assert self.read(me, ended, results={name: "Still warm."}) == "Still warm."

    def test_nobody_reads_what_others_results_were(
        self, me: User, bob: User, fake_anthropic: FakeAnthropic, brings: dict[str, str]
    ) -> None:
        ended = used(me, fake_anthropic)
        first = ended.tool_calls.get()
        assert first.result == TEXT
        with isolation.acting_as(bob.pk), pytest.raises(ToolError):
            tool = registry.find("read_tool_result")
            context = ToolContext(
                user=bob, turn_id=ended.pk, segment_id=ended.segment_id, now=ended.created_at
            )
            tool.run(context, tool.arguments(result_id=tool_results.short_id(first.pk)))
