"""Values that cross the memory app's border."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory.models import Trust as Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMessage:
    """One message of a segment, as the memory app reads it; `text` is its plain text."""

    message_id: UUID
    segment_id: UUID
    role: Literal["user", "assistant"]
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRef:
    """A message that a memory rests on, and the person's sentence in it that says so."""

    message_id: UUID
    segment_id: UUID | None
    sentence: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A memory that answers a query.

    `score` orders the items of one recall and means nothing across two. `similarity` is the cosine
    to the nearest query (0 without embeddings), `overlap` the share of the queries' words, rare
    ones counting more, that the memory holds. `sources` are in the order they were said.
    """

    id: UUID
    short_id: str
    text: str
    created_at: datetime
    happens_at: datetime | None
    score: float
    why: str
    sources: tuple[SourceRef, ...]
    similarity: float = 0.0
    overlap: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a segment left behind: memories made of it, and older ones it said again."""

    memory_ids: tuple[UUID, ...]
    by_model: bool
    already_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """A memory as it was put into a recall's context."""

    memory: Recalled
    mode: Literal["verbatim"]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallContext:
    """Memories rendered for a prompt, within a budget of tokens."""

    text: str
    tokens: int
    budget_tokens: int
    items: tuple[ContextItem, ...]
