"""A segment's transcript to lasting facts, by a model or, without one, by rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, WithJsonSchema

from memory import dates, rules
from memory.constants import (
    ASSISTANT_TEXT_MAX_CHARS,
    CHUNK_BUDGET_TOKENS,
    DEFAULT_TYPE,
    MEMORY_TYPES,
    TEXT_MAX_CHARS,
)
from memory.naming import TYPES, Named, known_type
from memory.sentences import best_sentence, shared_words
from memory.storage import Fact
from memory.types import SourceMessage, SourceRef
from mira_site import tokens
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.llm.jobs import Job
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

log = structlog.get_logger(__name__)

_NUMBER = re.compile(r"\d+")


def _text_or_none(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _known_type(value: Any) -> str:
    kind = value.strip().lower() if isinstance(value, str) else ""
    return kind if kind in MEMORY_TYPES else DEFAULT_TYPE


def _numbers(value: Any) -> list[int]:
    """Message numbers however they are written: [3], 3, "#3", ["3", "#4"]; [] for anything else."""
    given = value if isinstance(value, list) else [value]
    texts = [str(item) for item in given if isinstance(item, int | str)]
    return [int(number[:9]) for text in texts for number in _NUMBER.findall(text)]


def _names(value: Any) -> list[Named] | None:
    """The names among what was given, malformed ones dropped; None if nothing like a list was."""
    if not isinstance(value, list):
        return None
    given = [{"name": item} if isinstance(item, str) else item for item in value]
    return [
        Named(name=item["name"], entity_type=known_type(item.get("type")))
        for item in given
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]


# A bad optional field is dropped and never costs the memory.
OptionalText = Annotated[str | None, BeforeValidator(_text_or_none)]


class ExtractedMemory(BaseModel):
    """One lasting fact."""

    text: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=3, max_length=TEXT_MAX_CHARS)
    ] = Field(description="The fact, in one self-contained statement.")
    memory_type: Annotated[str, BeforeValidator(_known_type)] = Field(
        default=DEFAULT_TYPE,
        description="fact, preference or decision.",
        json_schema_extra={"enum": ["fact", "preference", "decision"]},
    )
    messages: Annotated[list[int], BeforeValidator(_numbers)] = Field(
        default_factory=list,
        description="Numbers of the person's messages that say so.",
    )
    sentence: OptionalText = Field(
        default=None, description="The sentence of the person that says it, word for word."
    )
    happens_at: OptionalText = Field(
        default=None, description="ISO 8601 date or time of the event the fact is about, if any."
    )
    expires_at: OptionalText = Field(
        default=None, description="ISO 8601 date or time from which it no longer holds, if known."
    )
    entities: Annotated[
        list[Named] | None,
        BeforeValidator(_names),
        WithJsonSchema(
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "type": {"type": "string", "enum": list(TYPES)},
                    },
                    "required": ["name", "type"],
                },
            }
        ),
    ] = Field(default=None, description="Whom and what the fact names, in full as it names them.")


class ExtractedMemories(BaseModel):
    """The lasting facts of the transcript; an empty list if it holds none."""

    memories: list[ExtractedMemory]


EXTRACTION = Job(
    "extraction", Tier.BACKGROUND, prompt=("memory", "extraction"), answer=ExtractedMemories
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Facts in the order they were said; `by_model` if a model found all of them."""

    facts: tuple[Fact, ...]
    by_model: bool


def extract(user: User, messages: Sequence[SourceMessage]) -> Extracted:
    """The lasting facts of what the person said, each with the person's messages it rests on."""
    zone, name = accounts.zone(user), user.get_short_name() or user.get_username()
    facts: list[Fact] = []
    by_model = True
    for chunk in _chunks(messages):
        if not any(message.role == "user" for message in chunk):
            continue
        found = _ask(name, zone, chunk)
        if found is None:
            by_model = False
            facts.extend(rules.facts(chunk, name=name, zone=zone))
        else:
            facts.extend(found)
    return Extracted(facts=tuple(facts), by_model=by_model)


def _ask(name: str, zone: ZoneInfo, chunk: Sequence[SourceMessage]) -> list[Fact] | None:
    """The facts a model finds in the chunk; None if no model could be asked or understood."""
    outcome = EXTRACTION.ask_outcome(
        {
            "person": quoted(name),
            "zone": zone.key,
            "transcript": transcript(chunk, zone),
        },
        otherwise=lambda: ExtractedMemories(memories=[]),
    )
    if not outcome.by_model:
        return None
    facts = [
        fact
        for memory in outcome.answer.memories
        if (fact := _fact(memory, chunk, zone)) is not None
    ]
    if unsupported := len(outcome.answer.memories) - len(facts):
        log.info("extraction.left_out_unsupported", memories=unsupported)
    return facts


def transcript(messages: Sequence[SourceMessage], zone: ZoneInfo) -> str:
    """The messages as numbered elements with speaker and local time, their text escaped."""
    return "\n".join(
        f'<message number="{number}" from="{"person" if message.role == "user" else "assistant"}" '
        f'at="{message.said_at.astimezone(zone):%A %Y-%m-%d %H:%M}">'
        f"{quoted(_shown(message))}</message>"
        for number, message in enumerate(messages, start=1)
    )


def _shown(message: SourceMessage) -> str:
    if message.role == "user" or len(message.text) <= ASSISTANT_TEXT_MAX_CHARS:
        return message.text
    return message.text[:ASSISTANT_TEXT_MAX_CHARS] + " …"


def _chunks(messages: Sequence[SourceMessage]) -> Iterator[list[SourceMessage]]:
    """The messages in order, cut between messages so that each part fits one question."""
    chunk: list[SourceMessage] = []
    size = 0
    for message in messages:
        cost = tokens.estimate(_shown(message))
        if chunk and size + cost > CHUNK_BUDGET_TOKENS:
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += cost
    if chunk:
        yield chunk


def _fact(memory: ExtractedMemory, chunk: Sequence[SourceMessage], zone: ZoneInfo) -> Fact | None:
    """The memory with its sources checked; None if only the assistant said it."""
    support = _support(memory, chunk)
    if not support:
        return None
    claim = memory.sentence or memory.text
    return Fact(
        text=memory.text,
        memory_type=memory.memory_type,
        happens_at=dates.parsed(memory.happens_at or "", zone),
        expires_at=dates.parsed(memory.expires_at or "", zone),
        named=None if memory.entities is None else tuple(memory.entities),
        sources=tuple(
            SourceRef(
                message_id=message.message_id,
                segment_id=message.segment_id,
                sentence=best_sentence(message.text, claim),
                said_at=message.said_at,
            )
            for message in support
        ),
    )


def _support(memory: ExtractedMemory, chunk: Sequence[SourceMessage]) -> list[SourceMessage]:
    """The person's messages a memory rests on: those it names, or else the one most like it."""
    named = [
        chunk[number - 1] for number in dict.fromkeys(memory.messages) if 0 < number <= len(chunk)
    ]
    said = [message for message in named if message.role == "user"]
    if said or named:
        return said
    claim = f"{memory.text} {memory.sentence or ''}"
    persons = [message for message in chunk if message.role == "user"]
    return [max(persons, key=lambda message: shared_words(message.text, claim))]
