"""Of the third turn of a segment and later ones, four fifths of the prompt come from the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from pydantic import BaseModel, Field

from conversations.models import Turn
from mira_site.llm.models import ModelCall
from tests import messages_api
from tests.conversations.talking import know, put_to_rest, say, tell
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


@pytest.fixture
def talk(me: Any, fake_anthropic: FakeAnthropic, archive: None) -> Callable[[], list[Turn]]:
    """A morning of a dozen turns, with memories, tools and files, after an evening at rest."""
    for text in KNOWN:
        know(me, text)
    fake_anthropic.on("summary").answers(
        {
            "trace": "I heard how the evening with Ruth went, that the move is fixed for the second "
            "week of November and that Jakob has been invited to Basel. Alice was tired and glad.",
            "precis": "Ruth's move in November, Jakob's invitation to Basel.",
            "title": "Ruth's move and Basel",
            "complexity": 2,
        }
    )
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


def test_from_the_third_turn_on_four_fifths_of_the_prompt_come_from_the_cache(talk):
    turns = talk()
    told = [
        f"turn {turn.number}: {read} of {total} tokens, {read / total:.0%}"
        for turn in turns
        for read, total in [use(turn)]
    ]
    whole = share(turns[WARM_FROM - 1 :])
    print("\n".join([*told, f"from turn {WARM_FROM} on: {whole:.1%}"]))  # noqa: T201
    assert whole >= SHARE


def test_what_was_said_before_is_the_same_bytes_in_the_next_prompt(talk, fake_anthropic):
    fake_anthropic.requests.clear()
    talk()
    firsts = [
        number
        for number, seen in enumerate(fake_anthropic.seen("reply"))
        if "<hud>" in json.dumps(seen.json["messages"][-1])
    ]
    assert len(firsts) == len(ASKED)
    for earlier, later in zip(firsts, firsts[1:], strict=False):
        before, after = history(fake_anthropic, earlier), history(fake_anthropic, later)
        assert after[: len(before)] == before
