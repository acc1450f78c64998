"""What a request to the model is made of, and in which order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from conversations import prompt
from conversations.models import Message
from conversations.trinkets.base import Slot, in_order, trinket
from conversations.types import Continuity, PersonView, TurnContext
from mira_site import tokens

NOW = datetime(2026, 11, 28, 20, 30, tzinfo=UTC).astimezone(ZoneInfo("Europe/Vienna"))
CONTEXT = TurnContext(
    person=PersonView(name="Alice <b>", timezone="Europe/Vienna"),
    now=NOW,
    question="Hi",
    continuity=Continuity(),
    surfaced=(),
    previous_message_at=None,
)


def roles(request) -> list[str]:
    return [message.role for message in request.messages]


def test_a_language_chosen_for_answers_is_told():
    def told(language: str) -> str:
        context = replace(CONTEXT, person=replace(CONTEXT.person, language=language))
        return prompt.compose(context, [Message(role="user", text="Hi")]).request.system[1].text

    assert "answers_in" not in told("")
    assert ' answers_in="German"/>' in told("German")


def test_the_sections_and_their_order_are_these():
    assert [(item.slot.name, item.name) for item in in_order()] == [
        ("CONSTANT", "persona"),
        ("SEGMENT", "person"),
        ("SEGMENT", "manifest"),
        ("SEGMENT", "continuation"),
        ("SEGMENT", "brief"),
        ("HUD", "clock"),
        ("HUD", "veil"),
        ("HUD", "arrived"),
        ("HUD", "memories"),
        ("HUD", "open_question"),
        ("HUD", "guidance"),
        ("HUD", "cut_answer"),
    ]


def test_a_taken_name_or_place_is_refused():
    with pytest.raises(ValueError, match="clock"):
        trinket("clock", slot=Slot.HUD, order=99)(lambda turn: "")
    with pytest.raises(ValueError, match="clock"):
        trinket("watch", slot=Slot.HUD, order=10)(lambda turn: "")


def test_nothing_of_a_person_is_in_the_part_that_all_share():
    system = prompt.compose(CONTEXT, [Message(role="user", text="Hi")]).request.system
    assert "Alice" not in system[0].text
    assert 'name="Alice &lt;b&gt;"' in system[1].text
    assert [section.cached for section in system] == [True, True]


def test_roles_alternate_whatever_was_left_unanswered():
    history = [
        Message(role=role, text=text)
        for role, text in [
            ("user", "One."), ("user", "Two."), ("assistant", "Both."), ("assistant", ""),
            ("user", "Three."), ("user", "Four."),
        ]
    ]  # fmt: skip
    request = prompt.compose(CONTEXT, history).request
    assert roles(request) == ["user", "assistant", "user"]
    assert request.messages[0].text == "One.\n\nTwo."
    assert request.messages[-1].text.index("Three.") < request.messages[-1].text.index("Four.")


def test_the_last_message_before_the_newest_ends_the_cached_part():
    history = [
        Message(role=role, text=text)
        for role, text in [("user", "One."), ("assistant", "Yes."), ("user", "Two.")]
    ]
    request = prompt.compose(CONTEXT, history).request
    assert [message.cached for message in request.messages] == [False, True, False]


class TestWindow:
    @staticmethod
    def history(count: int, words: int = 50) -> list[Message]:
        return [
            Message(role="user" if number % 2 == 0 else "assistant", text=f"{number} " * words)
            for number in range(count)
        ]

    def test_all_is_kept_while_it_fits(self):
        history = self.history(9)
        assert prompt.window(history, budget=100_000) == history

    def test_what_is_kept_fits_ends_with_the_newest_and_begins_with_the_person(self):
        history = self.history(101)
        kept = prompt.window(history, budget=2_000)
        assert sum(tokens.estimate(message.text) for message in kept) <= 2_000
        assert kept[-1] is history[-1]
        assert kept[0].role == "user"

    def test_its_start_stays_in_place_for_several_messages(self):
        starts = []
        for count in range(61, 121, 2):
            kept = prompt.window(self.history(count), budget=2_000)
            starts.append(int(kept[0].text.split()[0]))
        moves = sum(earlier != later for earlier, later in pairwise(starts))
        assert starts == sorted(starts)
        assert moves <= len(starts) / 3

    def test_one_message_over_the_budget_is_still_asked(self):
        huge = self.history(1, words=5_000)
        assert prompt.window(huge, budget=100) == huge
