"""What must hold at the end of a simulated life, and whether it does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from memory import selectors
from memory.models import Memory, Work
from memory.types import Recalled
from mira_site.simulation.life import Lived
from mira_site.simulation.model import NOTHING
from mira_site.simulation.story import Fact

SUNK_AFTER_DAYS = 4  # calendar days after its date an event must be below its day's importance
LIFTED = 0.45  # importance of an event on its eve; 0.5 is what something new has
THIRD = (0.25, 0.42)  # share of the untouched trivia that is archived
WITNESSES = 5  # named of what speaks against a claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`holds` or not, with the figure it was judged by and some of what speaks against it."""

    name: str
    holds: bool
    found: str
    against: tuple[str, ...] = ()


def judged(life: Lived) -> list[Claim]:
    """All claims about a life. Runs inside `lived`."""
    rows = list(Memory.objects.for_user(life.user).defer("embedding", "search_vector"))
    return [
        _no_doubles(life, rows),
        _nothing_missing(life, rows),
        _changes_answered(life),
        _past_findable(life),
        _answers_were_true(life),
        _events_lifted(life),
        _events_sunk(life),
        _vacation(life),
        _trivia_faded(life, rows),
        _used_kept(life, rows),
        _only_trivia_faded(life, rows),
        _work_done(life),
    ]


def _claim(name: str, against: list[str], of: int) -> Claim:
    return Claim(
        name=name,
        holds=not against and of > 0,
        found=f"{of - len(against)} of {of}",
        against=tuple(against[:WITNESSES]),
    )


def _no_doubles(life: Lived, rows: list[Memory]) -> Claim:
    """No fact twice among what is live, and no more rows than facts but for merged parts."""
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows:
        fact = life.model.fact(row.text)
        if fact is not None and row.archived_at is None:
            counted[fact.key, fact.value] += 1
    twice = [f"{key}: {value}" for (key, value), count in counted.items() if count > 1]
    strange = [row.text for row in rows if life.model.fact(row.text) is None]
    return _claim("no fact is remembered twice", twice + strange, len(counted))


def _nothing_missing(life: Lived, rows: list[Memory]) -> Claim:
    """Every fact has its memory: live, past or, faded, in the archive."""
    stored = {(fact.key, fact.value) for row in rows if (fact := life.model.fact(row.text))}
    missing = [one.text for one in life.story.facts if (one.key, one.value) not in stored]
    return _claim("every fact that was said has its memory", missing, len(life.story.facts))


def _changed(life: Lived) -> list[tuple[Fact, Fact]]:
    by_value = {(one.key, one.value): one for one in life.story.facts}
    return [(by_value[one.key, one.replaces], one) for one in life.story.facts if one.replaces]


def _recall(life: Lived, question: str, *, past: bool = False) -> list[Recalled]:
    return selectors.recall(life.user, question, now=timezone.now(), past=past)


def _changes_answered(life: Lived) -> Claim:
    against = []
    for old, new in _changed(life):
        found = [item.text for item in _recall(life, new.question)]
        if found[:1] != [new.text] or old.text in found:
            against.append(f"{new.question} {found[:1]}")
    return _claim("a changed fact is answered with the new value", against, len(_changed(life)))


def _past_findable(life: Lived) -> Claim:
    against = []
    for old, new in _changed(life):
        asks = selectors.asks_for_past(new.past_question)
        found = [one for one in _recall(life, new.past_question, past=asks) if one.text == old.text]
        if not found or not found[0].is_past or found[0].valid_until is None:
            against.append(new.past_question)
    return _claim("the old value is found as past", against, len(_changed(life)))


def _answers_were_true(life: Lived) -> Claim:
    against = []
    for asked in life.answers:
        fact = life.model.fact(asked.answer)
        if fact is None or (fact.key, fact.value) != (asked.fact.key, asked.fact.value):
            said = "nothing" if asked.answer == NOTHING else asked.answer
            against.append(f"{asked.on} {asked.fact.question} {said}")
    return _claim("questions on the way were answered rightly", against, len(life.answers))


def _events_lifted(life: Lived) -> Claim:
    """On its eve an event is higher than at the lowest before, and as high as something new."""
    against = []
    events = [(one, one.happens_on) for one in life.story.facts if one.happens_on]
    for one, day in events:
        seen = life.events.get(one.key, {})
        eve = seen.get(day - timedelta(days=1), 0.0)
        lowest = min((score for on, score in seen.items() if on < day), default=1.0)
        if eve < LIFTED or eve <= lowest:
            against.append(f"{one.key}: {lowest} to {eve}")
    return _claim("an event is lifted before its date", against, len(events))


def _events_sunk(life: Lived) -> Claim:
    against = []
    events = [(one, one.happens_on) for one in life.story.facts if one.happens_on]
    for one, day in events:
        seen = life.events.get(one.key, {})
        on_day = seen.get(day, 0.0)
        after = seen.get(day + timedelta(days=SUNK_AFTER_DAYS), 1.0)
        if after >= on_day:
            against.append(f"{one.key}: {on_day} to {after}")
    return _claim("an event sinks after its date", against, len(events))


def _vacation(life: Lived) -> Claim:
    before, after = life.at_leaving, life.at_return
    every = before.keys() | after.keys()
    against = [str(one) for one in every if before.get(one) != after.get(one)]
    return _claim("the vacation changed nothing without a date", against, len(before))


def _trivia_faded(life: Lived, rows: list[Memory]) -> Claim:
    trivia = {row.text: row for row in rows if _kind(life, row) == "trivial"}
    used = {one.fact.text for one in life.answers}
    idle = [row for text, row in trivia.items() if text not in used]
    gone = [row for row in idle if row.archive_reason == "faded"]
    share = len(gone) / max(1, len(idle))
    return Claim(
        name="about a third of the trivia is archived",
        holds=THIRD[0] <= share <= THIRD[1],
        found=f"{len(gone)} of {len(idle)}",
    )


def _used_kept(life: Lived, rows: list[Memory]) -> Claim:
    """What an answer used is there, archived neither as faded nor otherwise."""
    live = {
        (fact.key, fact.value)
        for row in rows
        if row.archived_at is None and (fact := life.model.fact(row.text))
    }
    used = {one.fact.text: one.fact for one in life.answers if one.answer != NOTHING}
    lost = [text for text, fact in used.items() if (fact.key, fact.value) not in live]
    return _claim("nothing that was used is lost", lost, len(used))


def _only_trivia_faded(life: Lived, rows: list[Memory]) -> Claim:
    others = [row for row in rows if _kind(life, row) != "trivial"]
    gone = [row.text for row in others if row.archive_reason == "faded"]
    return _claim("nothing but trivia faded", gone, len(others))


def _work_done(life: Lived) -> Claim:
    rows = Work.objects.for_user(life.user)
    left = [f"{row.kind}: {row.error_code}" for row in rows.exclude(status=Work.Status.DONE)]
    return _claim("all background work was done", left, rows.count())


def _kind(life: Lived, row: Memory) -> str:
    fact = life.model.fact(row.text)
    return fact.kind if fact else ""
