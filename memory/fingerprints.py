"""The structured facts of a memory (T1) as a value: canonical JSON of it, and the line it renders.

Pure. A fingerprint says nothing that the memory's text does not say, and holds no ids. How one is
read from a text is in fingerprint_rules.py; where its row is written, in derived.py.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.sentences import sentences

FIDELITY_MAX = 0.6  # of a line, however much of the memory it says; spec recall 3.4
SUBJECTS_MAX = 3
VALUE_MAX_CHARS = 160  # of one field; what goes on longer is better read in the text itself
VALUES_MAX = 12  # of a list
DEFAULT_SUBJECTS = {
    "decision": "Decision",
    "fact": "Fact",
    "preference": "Preference",
    "debug_log": "Debug",
}
OTHER_SUBJECT = "Note"

_SPACE = re.compile(r"[\s|]+")  # a bar parts the line


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """What was decided against; `note` is what stood in brackets behind it."""

    name: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalFact:
    """Something of a person's life, under a key of fingerprint_rules.PERSONAL."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a memory says, field by field; a field it says nothing of is empty.

    `date` and a `deadline` that is a day are ISO 8601. Entities stand in the order of their first
    appearance. Without `subjects` the default one of its type is shown.
    """

    type: str
    date: str = ""
    entities: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    decision: str = ""
    rejected: tuple[Rejected, ...] = ()
    reasons: tuple[str, ...] = ()
    validated_by: str = ""
    assignee: str = ""
    deadline: str = ""
    facts: tuple[PersonalFact, ...] = ()


def canonical(fingerprint: Fingerprint) -> str:
    """JSON with sorted keys, no white space and no empty fields: equal values, equal bytes."""
    given: dict[str, Any] = {
        "type": fingerprint.type,
        "date": fingerprint.date,
        "entities": list(fingerprint.entities),
        "subjects": list(fingerprint.subjects),
        "decision": fingerprint.decision,
        "rejected": [
            {"name": one.name, "note": one.note} if one.note else {"name": one.name}
            for one in fingerprint.rejected
        ],
        "reasons": list(fingerprint.reasons),
        "validated_by": fingerprint.validated_by,
        "assignee": fingerprint.assignee,
        "deadline": fingerprint.deadline,
        "facts": [{"key": one.key, "value": one.value} for one in fingerprint.facts],
    }
    filled = {name: value for name, value in given.items() if value}
    return json.dumps(filled, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def parse(text: str) -> Fingerprint:
    """What `canonical` wrote. Raises ValueError for anything else."""
    try:
        given = json.loads(text)
        return Fingerprint(
            type=given["type"],
            date=given.get("date", ""),
            entities=tuple(given.get("entities", ())),
            subjects=tuple(given.get("subjects", ())),
            decision=given.get("decision", ""),
            rejected=tuple(Rejected(**one) for one in given.get("rejected", ())),
            reasons=tuple(given.get("reasons", ())),
            validated_by=given.get("validated_by", ""),
            assignee=given.get("assignee", ""),
            deadline=given.get("deadline", ""),
            facts=tuple(PersonalFact(**one) for one in given.get("facts", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("This is no fingerprint.") from error


def completed(by_rule: Fingerprint, given: Fingerprint) -> Fingerprint:
    """With the fields of `given`; one that is empty there is the rule's. The frame is the rule's:
    type, date, entities and subjects."""
    return replace(
        by_rule,
        decision=given.decision or by_rule.decision,
        rejected=given.rejected or by_rule.rejected,
        reasons=given.reasons or by_rule.reasons,
        validated_by=given.validated_by or by_rule.validated_by,
        assignee=given.assignee or by_rule.assignee,
        deadline=given.deadline or by_rule.deadline,
        facts=given.facts or by_rule.facts,
    )


def sha256(canonical_text: str) -> str:
    return hashlib.sha256(canonical_text.encode()).hexdigest()


def subjects_shown(fingerprint: Fingerprint) -> tuple[str, ...]:
    """Never empty: the default subject of the type where the text names none."""
    default = DEFAULT_SUBJECTS.get(fingerprint.type, OTHER_SUBJECT)
    return fingerprint.subjects or (default,)


def fact_count(fingerprint: Fingerprint) -> int:
    """How many facts it holds, the subject among them; at least 1."""
    return _said(fingerprint) + 1


def is_worth_showing(fingerprint: Fingerprint) -> bool:
    """Whether its line says anything beyond what the memory is about."""
    return _said(fingerprint) > 0


def line(fingerprint: Fingerprint) -> str:
    """`[SUBJECTS|DATE] | decision | key: value | (rejected: A,B) | reason: R1; R2 | @WHO | …`

    then `due:DEADLINE` and `ok:NAME`. What is absent is left out. It is text of the person: whoever
    puts it into a prompt escapes it, and frames it with the memory's id.
    """
    date = fingerprint.date[:10] or "unknown"
    parts = [f"[{','.join(map(_flat, subjects_shown(fingerprint)))}|{date}]"]
    if fingerprint.decision:
        parts.append(_flat(fingerprint.decision))
    parts.extend(_facts_by_key(fingerprint.facts))
    if fingerprint.rejected:
        parts.append(f"(rejected: {','.join(_flat(one.name) for one in fingerprint.rejected)})")
    if fingerprint.reasons:
        parts.append(f"reason: {'; '.join(map(_flat, fingerprint.reasons))}")
    for mark, value in (
        ("@", fingerprint.assignee),
        ("due:", fingerprint.deadline),
        ("ok:", fingerprint.validated_by),
    ):
        if value:
            parts.append(f"{mark}{_flat(value)}")
    return " | ".join(parts)


def share_of_facts(fingerprint: Fingerprint, *, text: str) -> float:
    """The fidelity of the line, 0 to FIDELITY_MAX: what it shows of all there is to be told.

    All there is: the fields, the names that the line does not show (its brackets' notes neither),
    and no less than the sentences of `text`, the memory's own.
    """
    said = _said(fingerprint)
    if not said:
        return 0.0
    shown = line(fingerprint).casefold()
    hidden = sum(name.casefold() not in shown for name in fingerprint.entities)
    hidden += sum(bool(one.note) for one in fingerprint.rejected)
    return min(FIDELITY_MAX, said / max(said + hidden, len(sentences(text))))


def trimmed(value: str) -> str:
    """A value as a field keeps it: on one line, without outer punctuation, cut at a word."""
    plain = _SPACE.sub(" ", value).strip(' .,;:!?-–—"“”«»')
    if len(plain) <= VALUE_MAX_CHARS:
        return plain
    return plain[:VALUE_MAX_CHARS].rsplit(" ", 1)[0] + "…"


def distinct(values: Iterable[str], *, most: int = VALUES_MAX) -> tuple[str, ...]:
    """The values without empty ones and repeats (whatever their case), the first `most`."""
    found: dict[str, str] = {}
    for value in values:
        if value:
            found.setdefault(value.casefold(), value)
    return tuple(found.values())[:most]


def _said(fingerprint: Fingerprint) -> int:
    """Facts beside the subject."""
    single = (
        fingerprint.decision,
        fingerprint.validated_by,
        fingerprint.assignee,
        fingerprint.deadline,
    )
    listed = (fingerprint.rejected, fingerprint.reasons, fingerprint.facts)
    return sum(map(bool, single)) + sum(map(len, listed))


def _facts_by_key(facts: Sequence[PersonalFact]) -> list[str]:
    """`likes: tea; sailing`, one part a key, in order."""
    values: dict[str, list[str]] = {}
    for one in facts:
        values.setdefault(one.key, []).append(_flat(one.value))
    return [f"{key}: {'; '.join(said)}" for key, said in values.items()]


def _flat(value: str) -> str:
    return _SPACE.sub(" ", value).strip()
