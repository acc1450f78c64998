"""Values that cross the app's border."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.types import Recalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is kept of a collapsed segment in the prompt."""

    segment_id: UUID
    opened_at: datetime
    last_message_at: datetime
    title: str
    precis: str
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView:
    """What the prompt says of the person."""

    name: str
    timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """Everything a trinket may look at. `now` is in the person's zone."""

    person: PersonView
    now: datetime
    question: str
    summaries: tuple[Summary, ...]
    surfaced: tuple[Recalled, ...]
    previous_message_at: datetime | None
