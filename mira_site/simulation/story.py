"""What is said in a simulated life: some weeks of talk with a vacation in the middle (pure).

The same seed tells the same story. Days are numbered as use-days, from 0; the vacation lies between
two of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Literal

from mira_site.simulation import words

NAME = "Robin"
BEGINS_ON = date(2041, 3, 4)  # in the future, where no scheduler of a running MIRA finds work
VACATION_DAYS = 14
QUESTIONS = {"ordinary": 30, "trivial": 8}  # of 300 facts, so many are asked about later
REPEATED = 60  # of 300 facts, so many are said again, half of them in other words
TRIVIAL_SHARE = 0.3
TRIVIAL_UNTIL = 0.75  # of the days; what is said in the last ones has no time to fade

Kind = Literal["ordinary", "trivial", "changed", "event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`key` is what it is about, `value` what is so; two values of one key are never both true."""

    key: str
    value: str
    kind: Kind
    sentence: str  # as the person says it
    text: str  # as a model notes it
    question: str
    again: tuple[str, str] | None = None  # the same in other words: sentence, text
    past_question: str = ""
    replaces: str = ""  # the value that was true before
    name: str = ""  # of a person it mentions
    happens_on: date | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of the person, and how a model notes it."""

    sentence: str
    text: str
    fact: Fact


@dataclass(slots=True)
class Day:
    """A use-day: what is said on it, and which facts are asked about."""

    on: date
    said: list[Said] = field(default_factory=list)
    asked: list[Fact] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Story:
    days: tuple[Day, ...]
    facts: tuple[Fact, ...]
    leaves_after: int  # the number of the use-day before the vacation
    told: dict[str, int]  # text of a fact: the day it was first said

    def dates(self) -> Iterator[date]:
        """Every calendar day, the vacation too, and one more to look back from."""
        last = self.days[-1].on + timedelta(days=1)
        for number in range((last - BEGINS_ON).days + 1):
            yield BEGINS_ON + timedelta(days=number)


def tell(*, days: int = 30, facts: int = 300, seed: int = 1) -> Story:
    """So many facts over so many use-days.

    Raises ValueError where they are too few for what is to be shown, or more than there are words.
    """
    if not 28 <= days <= 60:
        raise ValueError("Give 28 to 60 days: what is trivial takes 20 use-days to fade.")
    chance = random.Random(seed)  # noqa: S311 (a story, not a secret)
    half = days // 2
    on = [BEGINS_ON + timedelta(days=n + (VACATION_DAYS if n >= half else 0)) for n in range(days)]
    changed, events = _changed(), _events(on)
    trivial = round(facts * TRIVIAL_SHARE)
    ordinary = facts - 2 * len(changed) - len(events) - trivial
    if not (0 < ordinary <= len(words.friends_facts()) and trivial <= len(words.passing())):
        raise ValueError("Give 100 to 300 facts.")
    plan = _Plan([Day(day) for day in on], chance)
    plan.changes(changed)
    plan.events(events)
    plan.spread([_friend(*one) for one in chance.sample(words.friends_facts(), ordinary)])
    plan.spread(
        [_passing(one) for one in chance.sample(words.passing(), trivial)], until=TRIVIAL_UNTIL
    )
    plan.repeat(round(REPEATED * facts / 300))
    plan.ask(facts / 300)
    return Story(tuple(plan.days), tuple(plan.facts), half - 1, plan.told)


class _Plan:
    def __init__(self, days: list[Day], chance: random.Random) -> None:
        self.days, self.facts, self.told = days, list[Fact](), dict[str, int]()
        self._chance = chance

    def say(self, fact: Fact, day: int) -> None:
        self.days[day].said.append(Said(fact.sentence, fact.text, fact))
        self.facts.append(fact)
        self.told[fact.text] = day

    def spread(self, facts: Sequence[Fact], *, until: float = 1.0) -> None:
        """Evenly over all days, or that share of them."""
        for number, fact in enumerate(facts):
            self.say(fact, int(number * len(self.days) * until / len(facts)))

    def changes(self, pairs: Sequence[tuple[Fact, Fact]]) -> None:
        """The old values in the first third, the new ones later; asked about before and after."""
        for number, (old, new) in enumerate(pairs):
            first, second = number % 10, 11 + number * 13 % (len(self.days) - 15)
            self.say(old, first)
            self.say(new, second)
            if number % 2:
                self.days[self._between(first, second)].asked.append(old)
            self.days[self._between(second, len(self.days))].asked.append(new)

    def events(self, facts: Sequence[Fact]) -> None:
        """Said in the first week, long before their dates; asked about once before."""
        for number, fact in enumerate(facts):
            self.say(fact, number % 6)
            before = [n for n, day in enumerate(self.days) if day.on < (fact.happens_on or day.on)]
            self.days[self._between(number % 6, before[-1] + 1)].asked.append(fact)

    def repeat(self, count: int) -> None:
        """Ordinary facts, on a later day: the same words and other words in turn."""
        last = len(self.days) - 1
        early = [one for one in self.facts if one.again and self.told[one.text] < last]
        for number, fact in enumerate(self._chance.sample(early, min(count, len(early)))):
            day = self._between(self.told[fact.text], len(self.days))
            sentence, text = fact.again if number % 2 and fact.again else (fact.sentence, fact.text)
            self.days[day].said.append(Said(sentence, text, fact))

    def ask(self, share: float) -> None:
        for kind, most in QUESTIONS.items():
            count = round(most * share)
            early = [
                one
                for one in self.facts
                if one.kind == kind and self.told[one.text] < len(self.days) * 2 // 3
            ]
            for fact in self._chance.sample(early, min(count, len(early))):
                # While it is still known: nobody asks for a shopping list of a month ago.
                until = min(len(self.days), self.told[fact.text] + 15)
                self.days[self._between(self.told[fact.text], until)].asked.append(fact)

    def _between(self, day: int, end: int) -> int:
        """A day after `day` and before `end`, or the last before it."""
        return self._chance.randrange(day + 1, end) if end > day + 1 else end - 1


def _changed() -> list[tuple[Fact, Fact]]:
    pairs = []
    for key, old, new, said, noted, question in words.CHANGED:
        past_question = words.PAST[key]
        older = Fact(
            key=key,
            value=old,
            kind="changed",
            sentence=f"{said.format(old)}.",
            text=f"{noted.format(old)}.",
            question=question,
            past_question=past_question,
        )
        newer = Fact(
            key=key,
            value=new,
            kind="changed",
            sentence=f"By the way, things have changed: {said.format(new)} now.",
            text=f"{noted.format(new)}.",
            question=question,
            past_question=past_question,
            replaces=old,
        )
        pairs.append((older, newer))
    return pairs


def _events(on: Sequence[date]) -> list[Fact]:
    """Their dates lie from the last days before the vacation to the last days of all."""
    span = (on[-1] - on[0]).days
    facts = []
    for number, (key, said, noted, question) in enumerate(words.EVENTS):
        # Over a fortnight after it was said, and over five days before the end.
        day = on[0] + timedelta(days=22 + number * (span - 6 - 22) // (len(words.EVENTS) - 1))
        written = f"{day.day} {day:%B} {day.year}"
        facts.append(
            Fact(
                key=key,
                value=day.isoformat(),
                kind="event",
                sentence=f"{said.format(written)}.",
                text=f"{noted.format(written)}.",
                question=question,
                happens_on=day,
            )
        )
    return facts


def _friend(name: str, about: str, value: str) -> Fact:
    said, noted, again, question = words.ABOUT_FRIENDS[about]
    return Fact(
        key=f"{name} {about}",
        value=value,
        kind="ordinary",
        sentence=said.format(name=name, value=value),
        text=noted.format(name=name, value=value),
        again=(again.format(name=name, value=value), words.again_noted(about, name, value)),
        question=question.format(name=name),
        name=name,
    )


def _passing(what: str) -> Fact:
    return Fact(
        key=what,
        value=what,
        kind="trivial",
        sentence=f"I {what}.",
        text=f"Robin {what}.",
        question=f"When was it that I {what}?",
    )
