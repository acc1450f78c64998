"""Does the person ask to remember something, and what? In their own words, by rule (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memory import orders, rules
from memory.sentences import around, prose, sentences
from memory.storage import Fact
from memory.types import SourceMessage
from memory.voices import own_words


def is_asked(text: str) -> bool:
    """Whether a message of the person asks to remember something that it says."""
    return bool(_orders(_sentences(text)))


def facts(message: SourceMessage, *, name: str, zone: ZoneInfo) -> list[Fact]:
    """What the message asks to remember, as rules.facts would keep it; [] if it asks for nothing.

    "Remember this" alone stands for all else that the message states.
    """
    said = _sentences(message.text)
    given = _orders(said)
    if not given:
        return []
    stated = [
        fact
        for fact in rules.facts([message], name=name, zone=zone)
        if not orders.is_bare(fact.sources[0].sentence)
    ]
    if any(orders.is_bare(order) for order in given):
        return stated
    found: list[Fact] = []
    for order in given:
        held = [fact for fact in stated if fact.sources[0].sentence.startswith(order[:100])]
        found.extend(held or _ordered(message, order, name=name, zone=zone))
    return found


def _sentences(text: str) -> list[str]:
    return sentences(own_words(prose(text)))


def _orders(said: Sequence[str]) -> list[str]:
    return [sentence for sentence in said if orders.is_order(sentence)]


def _ordered(message: SourceMessage, order: str, *, name: str, zone: ZoneInfo) -> list[Fact]:
    """What the order itself states; its source is the whole message."""
    return [
        replace(
            fact,
            sources=tuple(
                replace(source, span=around(message.text, order)) for source in fact.sources
            ),
        )
        for fact in rules.facts([_plainly(message, order)], name=name, zone=zone)
    ]


def _plainly(message: SourceMessage, order: str) -> SourceMessage:
    """The message as if it said what is to be remembered and nothing else."""
    return replace(message, text=orders.without(order))
