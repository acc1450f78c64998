"""A segment's transcript to lasting facts, by a model or, without one, by rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, WithJsonSchema

from memory import attribution, dates, fingerprint_fields, neighbours, quoting, rules
from memory import stakes as stakes_by_words
from memory.constants import (
    ASSISTANT_TEXT_MAX_CHARS,
    CHUNK_BUDGET_TOKENS,
    DEFAULT_TYPE,
    MEMORY_TYPES,
    TEXT_MAX_CHARS,
)
from memory.models import Stakes, Trust
from memory.naming import TYPES, Named, known_type
from memory.storage import Fact
from memory.types import SourceMessage
from mira_site import tokens
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.llm import client
from mira_site.llm.jobs import Job
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

log = structlog.get_logger(__name__)

_NUMBER = re.compile(r"\d+")
_SHORT_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?![0-9a-f])", re.IGNORECASE)
_STAKES = {"trivial": Stakes.TRIVIAL, "ordinary": Stakes.ORDINARY, "vital": Stakes.VITAL}
_TRUST = {"said": Trust.SAID, "inferred": Trust.INFERRED, "outside": Trust.OUTSIDE}
_OF_THE_PERSON = ("preference", "decision")
# Signs that a text says by itself that it was read.
_READ = re.compile(
    r"(?<!\w)(?:reads?|gelesen|liest|las|lu|lit|leyó|leído|lee)(?!\w)|“", re.IGNORECASE
)


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


def _ids(value: Any) -> list[str]:
    """Short ids however they are written: ["mem_1a2b3c4d"], "1A2B3C4D"; [] for anything else."""
    given = value if isinstance(value, list) else [value]
    found = (_SHORT_ID.findall(item) for item in given if isinstance(item, str))
    return [one.lower() for several in found for one in several]


def _word(value: Any) -> str | None:
    return value.strip().lower() if isinstance(value, str) else None


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
OptionalWord = Annotated[str | None, BeforeValidator(_word)]
KnownIds = Annotated[list[str], BeforeValidator(_ids)]


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
    source: OptionalWord = Field(
        default=None,
        description="said, inferred from what was said, or outside: read in a pasted text.",
        json_schema_extra={"enum": list(_TRUST)},
    )
    stakes: OptionalWord = Field(
        default=None,
        description="What it would cost to have forgotten it.",
        json_schema_extra={"enum": list(_STAKES)},
    )
    fingerprint: Annotated[
        fingerprint_fields.GivenFields | None, BeforeValidator(fingerprint_fields.fields)
    ] = Field(default=None, description="What the statement says, field by field.")
    repeats: KnownIds = Field(
        default_factory=list, description="Ids of known memories that say the same already."
    )
    replaces: KnownIds = Field(
        default_factory=list, description="Ids of known memories that are over now."
    )
    contradicts: KnownIds = Field(
        default_factory=list,
        description="Ids of known memories that cannot be true beside it, undecided.",
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What one part of a transcript is read with; `known` are ids by their first eight digits."""

    name: str
    zone: ZoneInfo
    chunk: Sequence[SourceMessage]
    known: Mapping[str, UUID]

    def ids(self, given: Sequence[str]) -> tuple[UUID, ...]:
        return tuple(dict.fromkeys(self.known[one] for one in given if one in self.known))


def extract(user: User, messages: Sequence[SourceMessage], *, now: datetime) -> Extracted:
    """The lasting facts of what the person said, each with the person's messages it rests on.

    A model is shown what is known already near each part of the transcript.
    """
    zone, name = accounts.zone(user), user.get_short_name() or user.get_username()
    facts: list[Fact] = []
    by_model = True
    for chunk in _chunks(messages):
        if not any(message.role == "user" for message in chunk):
            continue
        found = _ask(user, name, zone, chunk, now=now)
        if found is None:
            by_model = False
            facts.extend(rules.facts(chunk, name=name, zone=zone))
        else:
            facts.extend(found)
    return Extracted(facts=tuple(facts), by_model=by_model)


def _ask(
    user: User, name: str, zone: ZoneInfo, chunk: Sequence[SourceMessage], *, now: datetime
) -> list[Fact] | None:
    """The facts a model finds in the chunk; None if no model could be asked or understood."""
    known = neighbours.near(user, chunk, now=now) if client.is_configured() else []
    outcome = EXTRACTION.ask_outcome(
        {
            "person": quoted(name),
            "zone": zone.key,
            "known": neighbours.shown(known, zone) or "(nothing)",
            "transcript": transcript(chunk, zone),
        },
        otherwise=lambda: ExtractedMemories(memories=[]),
    )
    if not outcome.by_model:
        return None
    reading = _Reading(name=name, zone=zone, chunk=chunk, known=neighbours.by_short_id(known))
    facts = [
        fact for memory in outcome.answer.memories if (fact := _fact(memory, reading)) is not None
    ]
    if unsupported := len(outcome.answer.memories) - len(facts):
        log.info("extraction.left_out_unsupported", memories=unsupported)
    return facts


def transcript(messages: Sequence[SourceMessage], zone: ZoneInfo) -> str:
    """The messages as numbered elements with speaker and local time, their text escaped.

    What the person only pasted, or said back, stands apart from their own words.
    """
    lines: list[str] = []
    answers: list[str] = []
    for number, message in enumerate(messages, start=1):
        is_person = message.role == "user"
        inside = attribution.marked(message.text, answers) if is_person else quoted(_shown(message))
        if not is_person:
            answers.append(message.text)
        lines.append(
            f'<message number="{number}" from="{"person" if is_person else "assistant"}" '
            f'at="{message.said_at.astimezone(zone):%A %Y-%m-%d %H:%M}">{inside}</message>'
        )
    return "\n".join(lines)


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


def _fact(memory: ExtractedMemory, reading: _Reading) -> Fact | None:
    """The memory with its sources checked; None if only the assistant said it."""
    numbers = [number for number in memory.messages if 0 < number <= len(reading.chunk)]
    backing = attribution.backing(
        memory.text, memory.sentence or "", reading.chunk, numbers=numbers
    )
    if backing is None:
        return None
    trust = min(backing.trust, _TRUST.get(memory.source or "", Trust.SAID))
    is_outside = trust == Trust.OUTSIDE
    text = memory.text
    if is_outside and not _READ.search(text):
        text = quoting.as_read(reading.name, text)
    stakes = _STAKES.get(memory.stakes or "")
    replaces = reading.ids(memory.replaces)
    is_claim = is_outside and memory.memory_type in _OF_THE_PERSON
    kind = DEFAULT_TYPE if is_claim else memory.memory_type
    return Fact(
        text=text,
        memory_type=kind,
        happens_at=dates.parsed(memory.happens_at or "", reading.zone),
        expires_at=dates.parsed(memory.expires_at or "", reading.zone),
        named=None if memory.entities is None else tuple(memory.entities),
        trust=trust,
        stakes=stakes_by_words.of(text) if stakes is None else stakes,
        sources=backing.sources,
        repeats=() if replaces else reading.ids(memory.repeats),
        fingerprint=fingerprint_fields.fingerprint(memory.fingerprint, text=text, memory_type=kind),
        replaces=replaces,
        contradicts=tuple(one for one in reading.ids(memory.contradicts) if one not in replaces),
    )
