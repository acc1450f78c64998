"""Of the third turn of a segment and later ones, four fifths of the prompt come from the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pydantic import BaseModel, Field

from conversations import collapse
from conversations.models import Turn
from mira_site.llm.models import ModelCall
from tests import messages_api
from tests.conversations.talking import know, put_to_rest, say
from tests.conversations.test_attachments import show
from tests.conversations.uploading import document, kept, picture
from tests.fake_anthropic import FakeAnthropic
from toolbox import registry
from toolbox.types import ToolContext

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]

SHARE = 0.8  # issue 5
WARM_FROM = 3  # the turn of a segment
MORNING = datetime(2026, 10, 5, 7, 30, tzinfo=UTC)

KNOWN = (
    "Alice sails a wooden boat called Merula, built in 1962.",
    "Merula lies at berth 14 in Piran and is sold in May 2027.",
    "Alice's sister Ruth lives in Graz with her two sons.",
    "Alice works as a restorer at the Belvedere three days a week.",
    "Alice drinks green tea and cannot stand coffee.",
    "Alice is afraid of dogs since she was bitten in 1998.",
    "Ruth's younger son Jakob plays the cello and wants to study in Basel.",
    "The mooring costs 2,300 euros a year and is paid in January.",
    "Alice promised to help Ruth move in the second week of November.",
    "Alice's knee was operated on in March and still hurts on stairs.",
)
ASKED = (
    "Good morning! I have been lying awake thinking about Merula and whether selling her is right.",
    "What did I say the mooring costs, and when is it due again? I want to do the sums properly.",
    "Right. And the move with Ruth, that is the same month in which I wanted to haul her out.",
    "I could ask the yard whether they take her two weeks later. They were friendly last time, "
    "but the crane is booked quickly in autumn.",
    "Look up what we said about the crane last year, would you? I think there was a number.",
    "Jakob has his audition in Basel at the end of that week as well, it never comes alone.",
    "Here is the list from the yard.",
    "Then let us make an order of things: the audition first, then the move, then the boat.",
    "My knee will not like the stairs in Ruth's new place. Fourth floor, and no lift at all.",
    "Find out what else I have in November, please, before I promise anything to anybody.",
    "That is less than I feared. I will write to Ruth tonight and to the yard tomorrow.",
    "One more thing: should I tell the buyer about the soft plank near the mast now or later?",
)
ANSWER = (
    "I would not decide that at night. You told me that she has been the place where you think "
    "most clearly, and that the winter storage has worried you for two years now. Both are true. "
    "What I would do is to put the two costs next to each other, the money and the weekends, and "
    "then ask which of them you would rather do without. If you like, we do that now, line by "
    "line; it takes ten minutes, and you will sleep better for it whichever way it goes."
)


SUMMARY = {
    "trace": "I heard how the evening with Ruth went, that the move is fixed for the second week "
    "of November and that Jakob has been invited to Basel. Alice was tired and glad.",
    "precis": "The move in November, the invitation to Basel.",
    "title": "The move and Basel",
    "complexity": 2,
}


class Looked(BaseModel):
    word: str = Field(description="What to look for.")
    until: str = Field(default="", description="Up to which day.")
    among: list[str] = Field(default_factory=list, description="Where to look.")


@pytest.fixture
def archive() -> Iterator[None]:
    """A tool with an answer of some length."""

    def archive(context: ToolContext, arguments: Looked) -> str:
        """Look something up in the person's archive of letters and lists."""
        return "\n".join(
            f"{number}. {arguments.word}: the yard wrote that the crane is free again on that day."
            for number in range(12)
        )

    with registry.temporarily(registry.made("archive", archive, Looked)):
        yield


def use(turn: Turn) -> tuple[int, int]:
    """Tokens of the turn's prompts that the cache served, and all of them."""
    calls = ModelCall.objects.for_user(turn.user_id).filter(turn_id=turn.pk, job="reply")
    read = sum(call.cache_read_tokens for call in calls)
    return read, read + sum(call.input_tokens + call.cache_write_tokens for call in calls)


def share(turns: Sequence[Turn]) -> float:
    used = [use(turn) for turn in turns]
    return sum(read for read, _ in used) / sum(total for _, total in used)


def parts(fake: FakeAnthropic, request: int) -> list[tuple[str, bool]]:
    """A request's prompt in the order in which it is cached, and where it is marked."""
    return list(messages_api.prompt_parts(fake.seen("reply")[request].json))


def history(fake: FakeAnthropic, request: int) -> list[str]:
    """What stands before the HUD: all up to the last breakpoint of a first request."""
    said = parts(fake, request)
    last = max(index for index, (_, is_marked) in enumerate(said) if is_marked)
    return [text for text, _ in said[: last + 1]]


def first_requests(fake: FakeAnthropic) -> list[int]:
    """Of each turn the first request, without those of its tool loop."""
    return [
        number
        for number, seen in enumerate(fake.seen("reply"))
        if "<hud>" in json.dumps(seen.json["messages"][-1])
    ]


@pytest.fixture
def talk(me: Any, fake_anthropic: FakeAnthropic, archive: None) -> Callable[[], list[Turn]]:
    """A morning of a dozen turns, with memories, tools and files, after an evening at rest."""
    for text in KNOWN:
        know(me, text)
    fake_anthropic.on("summary").answers(SUMMARY)
    fake_anthropic.on("subcortical").answers(
        {
            "phrases": ["Merula and the yard"],
            "entities": ["Ruth"],
            "keep": [],
            "complexity": "complex",
        }
    )
    with time_machine.travel(MORNING - timedelta(hours=12), tick=True):
        fake_anthropic.on("reply").says(ANSWER)
        for text in ASKED[:4]:
            say(me, text)
        put_to_rest(me)

    def held() -> list[Turn]:
        turns = []
        for number, text in enumerate(ASKED):
            with time_machine.travel(MORNING + timedelta(minutes=2 * number), tick=True):
                reply = fake_anthropic.on("reply")
                if number == 4:
                    reply.calls_tool(
                        "archive",
                        {"word": "crane", "until": "2026", "among": ["letters", "lists"]},
                        saying="Let me look.",
                    )
                if number == 9:
                    reply.calls_tool("archive", {"word": "November", "among": []})
                    reply.calls_tool("archive", {"among": ["lists"], "word": "promised"})
                reply.says(ANSWER)
                if number == 6:
                    files = (
                        kept(
                            me,
                            document(*["Crane on 14 November, 80 euros an hour."] * 20),
                            "yard.docx",
                        ),
                        kept(me, picture(), "plan.png"),
                    )
                    turns.append(show(me, *files, text=text))
                else:
                    turns.append(say(me, text))
        return turns

    return held


def test_from_the_third_turn_on_four_fifths_of_the_prompt_come_from_the_cache(talk, fake_anthropic):
    fake_anthropic.requests.clear()
    turns = talk()
    told = [
        f"turn {turn.number}: {read} of {total} tokens, {read / total:.0%}"
        for turn in turns
        for read, total in [use(turn)]
    ]
    whole = share(turns[WARM_FROM - 1 :])
    print("\n".join([*told, f"from turn {WARM_FROM} on: {whole:.1%}"]))  # noqa: T201
    assert whole >= SHARE
    # What was said before is the same bytes in the next prompt, files and tool calls included.
    asked = first_requests(fake_anthropic)
    assert len(asked) == len(ASKED)
    for earlier, later in pairwise(asked):
        before, after = history(fake_anthropic, earlier), history(fake_anthropic, later)
        assert after[: len(before)] == before


def test_what_stood_at_the_last_breakpoint_is_read_by_the_next_prompt(me, fake_anthropic):
    fake_anthropic.on("reply").says(ANSWER)
    turns = [say(me, text) for text in ASKED[:4]]
    for number, (before, after) in enumerate(pairwise(turns)):
        calls = [
            ModelCall.objects.for_user(me).get(turn_id=turn.pk, job="reply")
            for turn in (before, after)
        ]
        assert calls[1].cache_read_tokens == (
            calls[0].cache_read_tokens + calls[0].cache_write_tokens
        ), f"after turn {number + 1}"
        assert calls[0].input_tokens > 0, "the HUD and the newest words are not written"


def test_a_turn_of_very_many_calls_does_not_put_the_history_out_of_sight(
    me, fake_anthropic, archive
):
    fake_anthropic.on("reply").says(ANSWER)
    for text in ASKED[:3]:
        say(me, text)
    reply = fake_anthropic.on("reply")
    for number in range(14):
        reply.calls_tool("archive", {"word": f"crane {number}"})
    reply.says(ANSWER)
    say(me, "Look everything up, please.")
    after = say(me, "Thank you.")
    read, total = use(after)
    told = fake_anthropic.seen("reply")[-1].json
    assert sum("cache_control" in part for part in told["system"]) == 1
    assert read > sum(messages_api.tokens(text) for text, _ in parts(fake_anthropic, 2)) * 0.6
    assert total > 0


def test_a_summary_that_comes_late_is_told_and_changes_no_cached_byte(me, fake_anthropic):
    fake_anthropic.on("reply").says(ANSWER)
    with time_machine.travel(MORNING - timedelta(hours=3), tick=True):
        old = say(me, "The boat lies at berth 14.").segment
    with time_machine.travel(MORNING, tick=True):
        collapse.close(user=me, segment_id=old.pk, at=timezone.now())
        say(me, "Good morning!")
        before = history(fake_anthropic, -1)
    with time_machine.travel(MORNING + timedelta(minutes=1), tick=True):
        fake_anthropic.on("summary").answers(SUMMARY)
        collapse.run(user=me, segment_id=old.pk)
        say(me, "Where was I?")
    prompt = fake_anthropic.seen("reply")[-1]
    assert history(fake_anthropic, -1)[: len(before)] == before
    assert SUMMARY["trace"] in prompt.prompt and SUMMARY["trace"] not in prompt.system
    with time_machine.travel(MORNING + timedelta(minutes=3), tick=True):
        say(me, "And now?")
        assert SUMMARY["trace"] not in fake_anthropic.seen("reply")[-1].system
    with time_machine.travel(MORNING + timedelta(minutes=20), tick=True):
        say(me, "I made some tea.")
    prompt = fake_anthropic.seen("reply")[-1]
    assert SUMMARY["trace"] in prompt.system, "the cache is cold: it has found its place"
    assert prompt.prompt.count(SUMMARY["trace"]) == 1


def test_effort_rises_and_does_not_fall_while_the_cache_is_warm(me, fake_anthropic):
    fake_anthropic.on("reply").says(ANSWER)

    def understood(complexity: str, minutes: int, text: str) -> str:
        fake_anthropic.on("subcortical").answers(
            {"phrases": ["the boat"], "entities": [], "complexity": complexity}
        )
        with time_machine.travel(MORNING + timedelta(minutes=minutes), tick=True):
            return say(me, text).effort

    assert understood("straightforward", 0, "Good morning!") == "medium"
    assert understood("complex", 1, "Shall I sell the boat?") == "high"
    assert understood("straightforward", 2, "Thank you.") == "high"
    assert understood("straightforward", 30, "I am back.") == "medium"
