"""A memory's text to fingerprint fields and type, by rule: equal input, equal output (pure).

The text is read sentence by sentence with the pack of its language; labels such as "Rejected:" are
understood in every language. What the packs do not know is left empty, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from memory import relative_dates, written_dates
from memory.fingerprint_packs import PACKS, Pack, Patterns
from memory.fingerprint_personal import BY_LANGUAGE, PERSONAL, TASTES
from memory.fingerprints import (
    SUBJECTS_MAX,
    VALUES_MAX,
    Fingerprint,
    PersonalFact,
    Rejected,
    distinct,
    trimmed,
)
from memory.quoting import meaning, speaker
from memory.sentences import sentences

SENTENCE_MAX_CHARS = 600  # of one, as it is read: no pattern needs more, and none gets slow
ENTITIES_MAX = 12
REASONS_MAX = 4
SENTENCES_MAX = 400  # of one memory; the rest of so long a text is for its passages

_DATA = re.compile(
    r"\d{2,}|(?<!\w)(?:true|false|vrai|faux)(?!\w)|(?<!\w)v\d+\.\d+|(?<!\w)(?:version|port) ?\d"
    r"|https?://|(?<!\w)[^\W\d_]{2,}\d",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://[^\s<>\"”“»]+[^\s<>\"”“».,;:!?)]")
_BRACKETED = re.compile(r"^(?P<name>[^()]*?)\s*\((?P<note>[^()]*)\)")
_IN_BRACKETS = re.compile(r"\([^()]*\)?")
_SEPARATOR = re.compile(r"\s*,\s*(?:(?:and|or|et|ou)\s+)?|\s+(?:and|or|et|ou)\s+", re.IGNORECASE)
_OUTER = re.compile(r"^(?:the|a|an|my|our|le|la|les|un|une|mon|ma|mes)\s+|^l['’]", re.IGNORECASE)
_NOTHING = frozenset({"none", "nothing", "n/a", "aucun", "aucune", "rien"})
_TIME = re.compile(
    r"(?:the )?(?:end|mid|middle|start|beginning|next|q[1-4]|fin|début|mi)(?!\w)|\d", re.IGNORECASE
)
_OWN_WORDS = re.compile(r"(?<!\w)(?:I|my|My|we|We|our|je|Je|mon|ma|mes)(?!\w)|[Jj]['’]")
# "Decision: …" opens as "Alice: …" does, and is nobody's words.
_LABEL = re.compile(
    r"(?:decision|choice|rejected|discarded|excluded|reasons?|rationale|justification|owner"
    r"|assignee|assigned|deadline|due(?: date)?|subject|topic|note|todo|task|project|status|update"
    r"|décision|choix|rejetés?|raisons?|motifs?|responsable|échéance|sujet|objet|tâche|projet)\s*:",
    re.IGNORECASE,
)
_EVENTS = frozenset({"plan", "past"})
_EMPTY = re.compile(r"\w+ (?:there|it|that|them|this|him|her|one|so)", re.IGNORECASE)
_ANY_DAY = date(2000, 1, 3)


def read(
    text: str, *, memory_type: str, on: date, entities: Sequence[str] = (), person: str = ""
) -> Fingerprint:
    """What the text says, field by field.

    `on` is the person's day when it was said, from which relative dates are worked out. `entities`
    are the names it mentions, in any order; those it does not hold are left out. `person` is the
    name under which it may tell of the person ("Alice likes tea" for "I like tea").
    """
    who, statement = _spoken(text)
    lines, pack = _lines(statement), _pack(statement)
    assignee, its_deadline = _assigned(lines, pack, on)
    decision = _decision(lines, pack)
    personal = _personal(lines, pack, on, "" if who else person)
    named = in_order([*entities, *_ADDRESS.findall(statement)], statement)
    return Fingerprint(
        type=memory_type,
        date=on.isoformat(),
        entities=named,
        subjects=_subjects(lines, pack, "" if who == person else who, named),
        decision=written_dates.with_days(decision, on),
        rejected=_rejected(lines, pack),
        reasons=distinct(written_dates.with_days(one, on) for one in _reasons(lines, pack)),
        validated_by=_who(lines, pack.validated_by, pack),
        assignee=assignee,
        deadline=_deadline(lines, pack, on) or its_deadline,
        facts=tuple(one for one in personal if not decision or decision not in one.value),
    )


def type_of(text: str) -> str:
    """The type of a memory for which nobody gave one; debug_log is never found."""
    _, statement = _spoken(text)
    lines, pack = _lines(statement), _pack(statement)
    if _decision(lines, pack):
        return "decision"
    facts = _personal(lines, pack, _ANY_DAY, "")
    if any(one.key in TASTES for one in facts) or pack.preference.search(statement):
        return "preference"
    if facts or (pack.state.search(statement) and _DATA.search(statement)):
        return "fact"
    return "session_note"


def in_order(names: Sequence[str], text: str) -> tuple[str, ...]:
    """The names that the text holds, by their first appearance, longer ones first, no repeats."""
    plain = text.casefold()
    places = {name: plain.find(name.casefold()) for name in names if name}
    held = [name for name, place in places.items() if place >= 0]
    return distinct(
        sorted(held, key=lambda name: (places[name], -len(name), name)), most=ENTITIES_MAX
    )


def _spoken(text: str) -> tuple[str, str]:
    """Whose words the text quotes, and these; ('', text) where it quotes nobody's."""
    who, statement = speaker(text), meaning(text)
    if who and statement == text:
        if _LABEL.match(text):
            return "", text
        statement = text[len(who) + 1 :].lstrip()
    return who, statement


def _lines(statement: str) -> list[str]:
    return [one[:SENTENCE_MAX_CHARS] for one in sentences(statement)[:SENTENCES_MAX]]


def _pack(statement: str) -> Pack:
    """That of the language with most small words in it; English among equals."""
    beginning = statement[: SENTENCE_MAX_CHARS * 4]
    counts = [len(pack.signs.findall(beginning)) for pack in PACKS]
    best = max(range(len(PACKS)), key=lambda index: (counts[index], -index))
    return PACKS[best]


def _labelled(of: Callable[[Pack], Patterns]) -> Patterns:
    return tuple(pattern for pack in PACKS for pattern in of(pack))


def _matches(lines: Sequence[str], patterns: Patterns) -> Iterator[re.Match[str]]:
    """By pattern, then as they stand."""
    for pattern in patterns:
        for line in lines:
            yield from pattern.finditer(line)


def _values(lines: Sequence[str], patterns: Patterns) -> Iterator[str]:
    for match in _matches(lines, patterns):
        if value := trimmed(match["value"]):
            yield value


def _decision(lines: Sequence[str], pack: Pack) -> str:
    patterns = (*pack.decision, *_DECISION_LABELLED)
    return next(_values(lines, patterns), "")


def _reasons(lines: Sequence[str], pack: Pack) -> tuple[str, ...]:
    spoken, labelled = _values(lines, pack.reason), _values(lines, _REASON_LABELLED)
    return distinct([*spoken, *labelled], most=REASONS_MAX)


def _rejected(lines: Sequence[str], pack: Pack) -> tuple[Rejected, ...]:
    found: dict[str, Rejected] = {}
    for match in _matches(lines, (*pack.rejected, *_REJECTED_LABELLED)):
        for one in rejected_in(match["value"]):
            found.setdefault(one.name.casefold(), one)
    return tuple(found.values())[:VALUES_MAX]


def rejected_in(text: str) -> Iterator[Rejected]:
    """The items of a list, parted by commas and "and"; what stands in brackets is their note."""
    for item in _parted(text):
        match = _BRACKETED.match(item)
        name, note = (match["name"], match["note"]) if match else (item, "")
        plain = _OUTER.sub("", trimmed(name))
        if plain and plain.casefold() not in _NOTHING:
            yield Rejected(name=plain, note=trimmed(note))


def _parted(text: str) -> list[str]:
    """Cut at commas and conjunctions that stand in no brackets."""
    masked = _IN_BRACKETS.sub(lambda match: "\x00" * len(match[0]), text)
    parts: list[str] = []
    start = 0
    for cut in _SEPARATOR.finditer(masked):
        parts.append(text[start : cut.start()])
        start = cut.end()
    return [*parts, text[start:]]


def _who(lines: Sequence[str], patterns: Patterns, pack: Pack) -> str:
    for match in _matches(lines, patterns):
        if name := _name(match, pack):
            return name
    return ""


def _name(match: re.Match[str], pack: Pack) -> str:
    """The name that was matched, without an opener before it; '' if it is none."""
    given = match.groupdict()
    words = trimmed(given.get("value") or given.get("role") or given.get("team") or "").split()
    while words and words[0].casefold() in pack.no_names:
        words = words[1:]
    return " ".join(words)


def _assigned(lines: Sequence[str], pack: Pack, on: date) -> tuple[str, str]:
    """Who does it, and by when if the same sentence names a day to come."""
    for pattern in pack.assignee:
        for line in lines:
            for match in pattern.finditer(line):
                if name := _name(match, pack):
                    return name, _day_to_come(line, on)
    return next(_values(lines, _ASSIGNEE_LABELLED), ""), ""


def _day_to_come(text: str, on: date) -> str:
    day = written_dates.first_day(text, on)
    return day.isoformat() if day is not None and day >= on else ""


def _deadline(lines: Sequence[str], pack: Pack, on: date) -> str:
    """A day as ISO 8601, "sprint 12", or a phrase behind a label."""
    for match in _matches(lines, _DEADLINE_LABELLED):
        day = written_dates.first_day(match[0], on)
        return day.isoformat() if day else trimmed(match["value"])
    for match in _matches(lines, pack.deadline):
        if sprint := match.groupdict().get("sprint"):
            return f"sprint {sprint}"
        if found := _day_to_come(match[0], on) or _span_of_time(match["value"]):
            return found
    days = (_day_to_come(match[0], on) for match in _matches(lines, (pack.dated,)))
    return next(filter(None, days), "")


def _span_of_time(phrase: str) -> str:
    """ "End of March", "Q3": a time that is no day; '' for "tight"."""
    return trimmed(phrase) if _TIME.match(phrase) else ""


def _subjects(
    lines: Sequence[str], pack: Pack, who: str, entities: Sequence[str]
) -> tuple[str, ...]:
    spoken = [_OUTER.sub("", one) for one in _values(lines, pack.subject)]
    return distinct([who, *spoken, *entities], most=SUBJECTS_MAX)


def _personal(lines: Sequence[str], pack: Pack, on: date, person: str) -> tuple[PersonalFact, ...]:
    """In the order they were said; of two under one key, one inside the other, the longer."""
    found: list[PersonalFact] = []
    for line in lines:
        told = _in_first_person(line, person)
        hits = [
            (match.start("value"), key, match["value"])
            for key, pattern in BY_LANGUAGE[pack.language]
            for match in pattern.finditer(told)
        ]
        hits.sort(key=lambda hit: (hit[0], PERSONAL.index(hit[1])))
        found += [
            PersonalFact(key=key, value=_dated(key, value, line, on)) for _, key, value in hits
        ]
    told_well = [one for one in found if one.value and not _EMPTY.fullmatch(one.value)]
    kept = [one for one in told_well if not any(_holds(other, one) for other in told_well)]
    return tuple(dict.fromkeys(kept))[:VALUES_MAX]


def _dated(key: str, value: str, line: str, on: date) -> str:
    """The value with its day; that of a plan or an event may stand elsewhere in the sentence."""
    resolved = written_dates.with_days(value, on)
    if key in _EVENTS and resolved == value:
        days = {mention.on for mention in relative_dates.mentions(line, on)}
        if len(days) == 1:
            resolved = f"{trimmed(value)}, {days.pop().isoformat()}"
    return trimmed(resolved)


def _holds(longer: PersonalFact, shorter: PersonalFact) -> bool:
    one, other = longer.value.casefold(), shorter.value.casefold()
    return longer.key == shorter.key and one != other and other in one


def _in_first_person(line: str, person: str) -> str:
    """What is told of the person by name, as they would say it; a line of their own stays."""
    if not person or person not in line or _OWN_WORDS.search(line):
        return line
    name = re.escape(person)
    line = re.sub(rf"(?<!\w){name}['’]s?(?!\w)", "my", line)
    return re.sub(rf"(?<!\w){name}(?!\w)", "I", line)


_DECISION_LABELLED = _labelled(lambda pack: pack.decision_labelled)
_REJECTED_LABELLED = _labelled(lambda pack: pack.rejected_labelled)
_REASON_LABELLED = _labelled(lambda pack: pack.reason_labelled)
_ASSIGNEE_LABELLED = _labelled(lambda pack: pack.assignee_labelled)
_DEADLINE_LABELLED = _labelled(lambda pack: pack.deadline_labelled)
