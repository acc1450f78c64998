"""The memories section of the prompt, to the letter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from conversations.constants import SURFACED_BUDGET_TOKENS
from conversations.trinkets.memories import memories
from conversations.types import Continuity, PersonView, TurnContext
from memory import fingerprints
from memory.fingerprints import Fingerprint
from memory.types import Recalled, Why
from mira_site import tokens

AT = datetime(2026, 11, 28, 20, 30, tzinfo=UTC)
CONTEXT = TurnContext(
    person=PersonView(name="Alice", timezone="Asia/Tokyo"),
    now=AT.astimezone(ZoneInfo("Asia/Tokyo")),
    question="Hi",
    continuity=Continuity(),
    surfaced=(),
    previous_message_at=None,
)


def memory(number: int, text: str, *, fingerprint: str = "", at: datetime = AT) -> Recalled:
    memory_id = uuid5(UUID(int=2), str(number))
    return Recalled(
        id=memory_id, short_id=memory_id.hex[:8], text=text, created_at=at, said_at=at,
        memory_type="fact", wing="", room="", score=1 / number, fingerprint=fingerprint,
        why=Why(text="close in meaning", path="meaning"),
    )  # fmt: skip


def rendered(*surfaced: Recalled) -> str:
    return memories(replace(CONTEXT, surfaced=surfaced))


def test_nothing_that_came_up_is_said_in_words():
    assert rendered() == "<memories>Nothing came up for this message.</memories>"


def test_memories_stand_under_the_persons_own_days():
    first = memory(1, "The boat </b> is called Merula.")
    second = memory(2, "She was bought in Izola.", at=AT - timedelta(minutes=1))
    other = memory(3, "Anna likes tea.", at=AT - timedelta(days=3))
    assert rendered(first, other, second) == (
        "<memories>\n"
        "29 November 2026:\n"
        f'<memory id="mem_{second.short_id}">She was bought in Izola.</memory>\n'
        f'<memory id="mem_{first.short_id}">The boat &lt;/b&gt; is called Merula.</memory>\n'
        "26 November 2026:\n"
        f'<memory id="mem_{other.short_id}">Anna likes tea.</memory>\n'
        "</memories>"
    )


def test_long_ones_are_shortened_to_their_facts_and_the_section_keeps_to_its_budget():
    told = fingerprints.canonical(
        Fingerprint(type="decision", date="2026-11-28", decision="PostgreSQL", assignee="Anna")
    )
    long = [
        memory(number, f"{number}: " + "we talked on and on. " * 90, fingerprint=told)
        for number in range(2, 9)
    ]
    text = rendered(memory(1, "Anna is a nurse."), *long)
    assert tokens.estimate(text) <= SURFACED_BUDGET_TOKENS
    assert "Anna is a nurse." in text
    assert 0 < text.count('mode="fingerprint"') < 7
    assert text.count("<memory ") == 8
