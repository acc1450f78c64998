"""What the mira_* tools are asked with: checked values, and JSON schemas that say the same.

A number may come as a string, as some models write it; a list also as comma-separated text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from memory import places
from memory.causality import CHAIN_DEPTH, CHAIN_DEPTH_MAX
from memory.constants import (
    BUDGET_TOKENS,
    BUDGET_TOKENS_MAX,
    FALLBACK_WINGS_MAX,
    PLACE_MAX_CHARS,
    QUESTION_MAX_CHARS,
    RECALL_LIMIT_MAX,
    TEXT_LENGTH,
    TEXT_MIN_CHARS,
    TIMELINE_LIMIT,
    TIMELINE_LIMIT_MAX,
    VERBATIM_MAX_CHARS,
)

METRICS_MAX_BYTES = 10_000  # spec recall 1.1

MemoryType = Literal["fact", "preference", "decision", "session_note", "debug_log"]


def _number(low: int, high: int) -> Any:
    """A whole number within the range, also written as a string."""
    either = {
        "anyOf": [
            {"type": "integer", "minimum": low, "maximum": high},
            {"type": "string", "pattern": r"^\s*\d+\s*$"},
        ]
    }
    return Annotated[int, BeforeValidator(_whole), Field(ge=low, le=high), WithJsonSchema(either)]


def _whole(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Give a whole number.")
    return value.strip() if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _object(value: Any) -> Any:
    """An object, also as JSON in a string; bounded, and such as PostgreSQL can keep."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        written = json.dumps(found, ensure_ascii=False, allow_nan=False)
        size = len(written.encode())
    except (ValueError, RecursionError):
        raise ValueError("metrics must be valid JSON.") from None
    if not isinstance(found, dict) or "\\u0000" in written:
        raise ValueError("metrics must be a JSON object.")
    if size > METRICS_MAX_BYTES:
        raise ValueError(f"metrics must be at most {METRICS_MAX_BYTES:,} bytes of JSON.")
    return found


def _content(value: str) -> str:
    text = value.replace("\x00", "").strip()
    if not TEXT_MIN_CHARS <= len(text) <= VERBATIM_MAX_CHARS:
        raise ValueError(TEXT_LENGTH)
    return text


def _place(value: str) -> str:
    name = places.tidy(value)
    if not name:
        raise ValueError("Give a name, or leave it out.")
    if objection := places.objection(name):
        raise ValueError(objection)
    return name


_A_PLACE = {"type": "string", "minLength": 1, "maxLength": PLACE_MAX_CHARS}
Place = Annotated[str, AfterValidator(_place), WithJsonSchema(_A_PLACE)]
_SOME_PLACES = {
    "anyOf": [
        {"type": "array", "items": _A_PLACE, "maxItems": FALLBACK_WINGS_MAX},
        {"type": "string", "description": "Comma-separated."},
    ]
}
Places = Annotated[
    list[Place],
    BeforeValidator(_listed),
    Field(max_length=FALLBACK_WINGS_MAX),
    WithJsonSchema(_SOME_PLACES),
]
Metrics = Annotated[
    dict[str, Any],
    BeforeValidator(_object),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]}),
]
Content = Annotated[
    str,
    AfterValidator(_content),
    WithJsonSchema(
        {"type": "string", "minLength": TEXT_MIN_CHARS, "maxLength": VERBATIM_MAX_CHARS}
    ),
]
MemoryId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=8, max_length=60)]

ID_HELP = (
    "Which memory: its id exactly as a result gave it, like mem_1a2b3c4d. The eight digits alone "
    "or the full UUID do as well. Do not invent one."
)
WING_HELP = "The wing: a project or an area of life. Letters, digits, spaces, - and _ only."
ROOM_HELP = "The room inside the wing, named like a wing."
MOMENT_HELP = "An ISO 8601 date or time, like 2026-05-01; inclusive, on the person's own clock."


class Arguments(BaseModel):
    """An argument there is not is an error: what was meant by it would not happen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(Arguments):
    pass


class Store(Arguments):
    content: Content = Field(
        description="What to remember, self-contained: with names and absolute dates instead of "
        "'she', 'there' or 'tomorrow'. One subject for each memory.",
    )
    wing: Place = Field(description=WING_HELP)
    room: Place | None = Field(
        default=None, description=f"{ROOM_HELP} Without it, the usual room of the type."
    )
    type: MemoryType | None = Field(
        default=None,
        description="What kind of memory it is; without it, the text is looked at. decision, fact "
        "and preference stay; session_note and debug_log are put away when they have aged.",
    )
    metrics: Metrics | None = Field(
        default=None,
        description="Figures about it that are kept beside it, as a JSON object of at most "
        f"{METRICS_MAX_BYTES:,} bytes.",
    )


class Recall(Arguments):
    query: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        min_length=1,
        max_length=QUESTION_MAX_CHARS,
        description="What to look for, as a question or in a few words.",
    )
    budget: _number(1, BUDGET_TOKENS_MAX) = Field(  # type: ignore[valid-type]
        default=BUDGET_TOKENS, description="How many tokens the context may take at most."
    )
    wing: Place | None = Field(default=None, description=f"Only in here. {WING_HELP}")
    room: Place | None = Field(default=None, description=f"Only in here. {ROOM_HELP}")
    fallback_wings: Places = Field(
        default_factory=list,
        description="Wings to try in this order where the wing holds nothing good enough.",
    )
    limit: _number(1, RECALL_LIMIT_MAX) = Field(  # type: ignore[valid-type]
        default=RECALL_LIMIT_MAX, description="How many memories at most."
    )


class Load(Arguments):
    id: MemoryId = Field(description=ID_HELP)


class CausalChain(Arguments):
    id: MemoryId = Field(description=ID_HELP)
    max_depth: _number(1, CHAIN_DEPTH_MAX) = Field(  # type: ignore[valid-type]
        default=CHAIN_DEPTH, description="How many steps back at most."
    )
    include_consequences: bool = Field(
        default=False, description="Whether to follow what came of it, too."
    )


class Timeline(Arguments):
    wing: Place = Field(description=WING_HELP)
    room: Place | None = Field(default=None, description=ROOM_HELP)
    since: str | None = Field(default=None, max_length=40, description=MOMENT_HELP)
    until: str | None = Field(default=None, max_length=40, description=MOMENT_HELP)
    type: MemoryType | None = Field(default=None, description="Only memories of this kind.")
    order: Literal["newest", "oldest"] = Field(default="newest", description="Which comes first.")
    limit: _number(1, TIMELINE_LIMIT_MAX) = Field(  # type: ignore[valid-type]
        default=TIMELINE_LIMIT, description="How many memories at most."
    )
    cursor: str | None = Field(
        default=None,
        max_length=300,
        description="next_cursor of the page before, unchanged, with the same other arguments.",
    )


class Archive(Arguments):
    dry_run: bool = Field(
        default=False, description="Only say what would be put away; change nothing."
    )


class ClearMemory(Arguments):
    mode: Literal["global", "room"] = Field(
        description="global: every memory of the person. room: those of a room, or of a whole "
        "wing where no room is given."
    )
    wing: Place | None = Field(default=None, description=f"Needed for mode room. {WING_HELP}")
    room: Place | None = Field(default=None, description=f"{ROOM_HELP} Without it, all rooms.")
    confirmation: str | None = Field(
        default=None,
        max_length=300,
        description="What the tool asked you to send. Ask the person first: forgetting is final.",
    )


def schema(arguments: type[Arguments]) -> Mapping[str, Any]:
    """As a tool publishes it: plain, without the titles and nulls that pydantic adds."""
    found = arguments.model_json_schema()
    properties = {name: _plain(one) for name, one in found.get("properties", {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": found.get("required", []),
        "additionalProperties": False,
    }


def _plain(one: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in one.items() if name != "title"}
    if plain.get("default", ...) is None:
        del plain["default"]
    options = [option for option in plain.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        del plain["anyOf"]
        plain = {**options[0], **plain}
    elif options:
        plain["anyOf"] = options
    return plain
