"""Values that cross the app's border."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from conversations.models import CompactionBrief, Message, Observation
from memory.types import ForgetReceipt, OpenQuestion, Recalled, Resting

# What shall become of the memories that rest on a message alone, when it is deleted or edited.
Afterlife = Literal["forget", "keep"]
Rederiving = Literal["derive", "forget", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is kept of a collapsed segment in the prompt."""

    segment_id: UUID
    opened_at: datetime
    last_message_at: datetime
    title: str
    precis: str
    trace: str
    complexity: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """What a segment goes on from; the same from turn to turn as long as prompts are cached.

    `told` are the last segments with their traces and `hinted` older ones with their precis, both
    oldest first; `manifest` names the segments of the last time, newest first; `tail` are the last
    messages before the segment, oldest first. `arrived` are of the last segments those whose
    summary was written since, oldest first: they are told with the newest words.
    """

    told: tuple[Summary, ...] = ()
    hinted: tuple[Summary, ...] = ()
    manifest: tuple[Summary, ...] = ()
    tail: tuple[Message, ...] = ()
    arrived: tuple[Summary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView:
    """What the prompt says of the person."""

    name: str
    timezone: str
    language: str = ""  # English name of the one chosen for answers


Complexity = Literal["straightforward", "complex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is looked for before a message is answered, and how hard it is (subcortical.py).

    Phrases to recall by, the most telling first; names; memories of the turn before that stay;
    `past`: what is no longer true is asked for too. `effort` is for the model that answers, empty
    for its own default; `offered_ids` are the memories that could have stayed; `reason` says why it
    is not a model's word.
    """

    phrases: tuple[str, ...]
    names: tuple[str, ...]
    kept_ids: tuple[UUID, ...]
    past: bool
    complexity: Complexity
    effort: str = ""
    offered_ids: tuple[UUID, ...] = ()
    by_model: bool = False
    reason: str = ""
    took_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """Everything a trinket may look at. `now` is in the person's zone; `number` is the turn's.

    `last_words` are the end of the answer before, where it met the limit of its length.
    """

    person: PersonView
    now: datetime
    question: str
    continuity: Continuity
    surfaced: tuple[Recalled, ...]
    previous_message_at: datetime | None
    open_question: OpenQuestion | None = None
    files: tuple[str, ...] = ()
    complexity: Complexity = "complex"
    number: int = 1
    guidance: tuple[Observation, ...] = ()
    brief: CompactionBrief | None = None
    last_words: str = ""
    is_off_record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A sentence of the person, and where it was said."""

    text: str
    message_id: UUID
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CameOf:
    """What came of a message: MIRA's answer to it, and the memories that rest on it."""

    message: Message
    answer: Message | None
    resting: Resting


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What went: messages, memories, and memories that now rest on other messages alone."""

    message_ids: tuple[UUID, ...]
    forgotten: int
    kept: int
    receipt: ForgetReceipt | None
