"""Fingerprint fields as a model gives them: each optional, checked by itself, held to the text.

What a field says must stand in the memory's own text. So a model adds no fact of its own, and a
fingerprint never holds words that would outlive the text when it is edited or forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from memory import fingerprint_rules
from memory.fingerprint_personal import PERSONAL
from memory.fingerprints import Fingerprint, PersonalFact, Rejected, distinct, trimmed

SHARE = 0.75  # of a value's words that the text must hold, by their first letters
_STEM = 5
_WORD = re.compile(r"\w+")


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    """A list of texts, or one text; anything else among them is dropped."""
    given = value if isinstance(value, list) else [value]
    return [item.strip() for item in given if isinstance(item, str) and item.strip()]


def _pairs(value: Any) -> list[tuple[str, str]]:
    """`{"key": …, "value": …}`, malformed ones and unknown keys dropped."""
    given = value if isinstance(value, list) else []
    return [
        (item["key"], item["value"].strip())
        for item in given
        if isinstance(item, dict)
        and item.get("key") in PERSONAL
        and isinstance(item.get("value"), str)
    ]


_Text = Annotated[str, BeforeValidator(_text)]
_Texts = Annotated[
    list[str],
    BeforeValidator(_texts),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]


class GivenFields(BaseModel):
    """What the memory says, field by field; only fields that its text fills."""

    decision: _Text = Field(default="", description="What was chosen, in a few words.")
    rejected: _Texts = Field(
        default_factory=list,
        description='What was decided against, each as "name" or "name (why not)".',
    )
    reasons: _Texts = Field(default_factory=list, description="Why, each in a few words.")
    validated_by: _Text = Field(default="", description="Who approved it.")
    assignee: _Text = Field(default="", description="Who is to do it.")
    deadline: _Text = Field(default="", description="ISO 8601 date by which, if the text has one.")
    facts: Annotated[
        list[tuple[str, str]],
        BeforeValidator(_pairs),
        WithJsonSchema(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string", "enum": list(PERSONAL)},
                        "value": {"type": "string"},
                    },
                    "required": ["key", "value"],
                },
            }
        ),
    ] = Field(default_factory=list, description="What it tells of the person's life.")


def fields(value: Any) -> GivenFields | None:
    """For a model's answer: the fields, None for anything that is no object."""
    return GivenFields.model_validate(value) if isinstance(value, dict) else None


def fingerprint(given: GivenFields | None, *, text: str, memory_type: str) -> Fingerprint | None:
    """The fields that the text bears out; None if there are none."""
    if given is None:
        return None
    held = _words(text)
    found = Fingerprint(
        type=memory_type,
        decision=_held(given.decision, held),
        rejected=_rejected(given.rejected, held),
        reasons=distinct(_held(one, held) for one in given.reasons),
        validated_by=_held(given.validated_by, held),
        assignee=_held(given.assignee, held),
        deadline=_deadline(given.deadline, held),
        facts=tuple(
            PersonalFact(key=key, value=kept)
            for key, value in dict.fromkeys(given.facts)
            if (kept := _held(value, held))
        ),
    )
    return None if found == Fingerprint(type=memory_type) else found


def _rejected(values: Sequence[str], held: frozenset[str]) -> tuple[Rejected, ...]:
    items = [one for value in values for one in fingerprint_rules.rejected_in(value)]
    return tuple(
        Rejected(name=one.name, note=_held(one.note, held))
        for one in dict.fromkeys(items)
        if _held(one.name, held)
    )


def _deadline(value: str, held: frozenset[str]) -> str:
    """A day may be worked out from the text's words, and then stands in it in other ones."""
    try:
        on = date.fromisoformat(value)
    except ValueError:
        return _held(value, held)
    parts = {str(on.day), f"{on:%d}", f"{on:%A}".casefold()[:_STEM], on.isoformat()}
    return on.isoformat() if parts & held else ""


def _held(value: str, held: frozenset[str]) -> str:
    words = _words(value)
    if not words or len(words & held) < SHARE * len(words):
        return ""
    return trimmed(value)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:_STEM] for word in _WORD.findall(text))
