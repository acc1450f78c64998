"""Values that cross the memory app's border."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory.allocation import Mode as Mode
from memory.causality import CausalChain as CausalChain
from memory.causality import CausalNode as CausalNode
from memory.imprint import Imprint as Imprint
from memory.models import ForgetReceipt as ForgetReceipt
from memory.models import Memory as Memory
from memory.models import MemorySource as MemorySource
from memory.models import Trust as Trust
from mira_site.accounts.models import User


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
    """A message that a memory rests on, and the person's sentence in it that says so.

    `span` is the message around the sentence, where it is at hand.
    """

    message_id: UUID
    segment_id: UUID | None
    sentence: str
    said_at: datetime
    span: str = ""


Path = Literal["meaning", "words", "entity", "link", "kept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a score is made of, each from 0 to 1.

    `similarity` is the cosine to the nearest phrase (0 without embeddings); `overlap` the share of
    a phrase's words, rare ones counting more, that the memory holds; `relevance` how likely it is
    that the memory is needed (ranking.py), all told; `importance` the memory's own.

    The others are what `relevance` rests on beside those two, of the phrase it answers best:
    `late` how well its word pieces answer the phrase's, `session` how much its conversation is
    about the phrase, `month` whether it was said in the month that is named; `other_speaker`,
    `asks`, `particular` and `named` are 1 or 0.
    """

    similarity: float = 0.0
    overlap: float = 0.0
    relevance: float = 0.0
    importance: float = 0.0
    late: float = 0.0
    session: float = 0.0
    month: float = 0.0
    other_speaker: float = 0.0
    asks: float = 0.0
    particular: float = 0.0
    named: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a memory came up: by which path, for which phrase, and on whose words it rests.

    `text` says it in short for people. `sentence` and `said_at` are of the newest source. By path
    "link" `phrase` is empty, and `linked_to` the memory that brought it along.
    """

    text: str
    path: Path
    phrase: str = ""
    words: tuple[str, ...] = ()
    name: str = ""
    linked_to: UUID | None = None
    sentence: str = ""
    said_at: datetime | None = None
    parts: Parts = Parts()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note on a memory."""

    text: str
    added_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """A memory as it is shown: its text, and what keeps the text from being taken for more.

    `fingerprint` is its T1 as canonical JSON, empty where it has none (see fingerprints.py).
    `origin` says whose word it is where it is not the person's own. `disputed_by` are memories that
    cannot be true beside it, undecided; `replaced_by` those that took its place.
    """

    id: UUID
    short_id: str
    text: str
    created_at: datetime
    said_at: datetime
    memory_type: str
    wing: str
    room: str
    segment_id: UUID | None = None
    fingerprint: str = ""
    happens_at: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    origin: str = ""
    sources: tuple[SourceRef, ...] = ()
    notes: tuple[Note, ...] = ()
    disputed_by: tuple[UUID, ...] = ()
    replaced_by: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedMemory(MemoryView):
    """A memory that hangs together with one that came up, `depth` hops from it.

    `outward` says that the link is read from the other to it; `score` compares what is linked.
    """

    link_type: str
    outward: bool
    bond: str
    reasoning: str
    depth: int
    score: float
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled(MemoryView):
    """A memory that answers a query, with the best of what is linked to it.

    `score` orders the fresh items of one recall and means nothing across two. `also` are memories
    that say nearly the same and stand back for it. `excerpt` is of a long text what answers best.
    """

    score: float
    why: Why
    is_past: bool = False
    linked: tuple[LinkedMemory, ...] = ()
    also: tuple[UUID, ...] = ()
    excerpt: str = ""

    @property
    def similarity(self) -> float:
        return self.why.parts.similarity

    @property
    def overlap(self) -> float:
        return self.why.parts.overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A memory that came up before, and how near it is to what is said now (cosine)."""

    id: UUID
    text: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a segment left behind: memories made of it, and older ones it said again."""

    memory_ids: tuple[UUID, ...]
    by_model: bool
    already_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What spoke for a memory in one recall, each from 0 to 1; docs/contexts.md has the formulas.

    `relevance`: how likely it is needed; `density`: facts for its length; `recency`: how little its
    kind of memory has aged; `overlap`: likeness to what was chosen before it; `session`: how much
    its conversation is about the question; `causal`: whether a cause or effect of it is chosen too.
    """

    relevance: float = 0.0
    density: float = 0.0
    recency: float = 0.0
    overlap: float = 0.0
    session: float = 0.0
    causal: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """A memory as it was put into a context: `text` exactly as rendered, `tokens` with its frame.

    `shown` is what is told of it: its own text, an excerpt, its fingerprint's line or its header.
    `gain` is what it added to the value of the context (allocation.py).
    """

    memory: Recalled
    mode: Mode
    text: str
    tokens: int
    shown: str = ""
    gain: float = 0.0
    factors: Factors = Factors()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutItem:
    """A candidate that is not in the context, and why: a sentence for people."""

    memory: Recalled
    reason: str
    factors: Factors = Factors()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallContext:
    """Memories rendered for a prompt, within a budget of tokens.

    `text` is exactly what a model gets, `tokens` its estimate (mira_site/tokens.py) and never more
    than the budget. Items stand in the order of the text; `left_out` most wanted first. `quality`
    is the value as a share of what no choice can exceed. `wing` is the one that was fallen back to,
    empty if none was. `is_degraded`: embeddings were away, words alone decided.
    """

    text: str
    tokens: int
    budget_tokens: int
    items: tuple[ContextItem, ...]
    left_out: tuple[LeftOutItem, ...] = ()
    quality: float = 1.0
    wing: str = ""
    is_degraded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What is being forgotten: where it was said, and by which words other texts quote it."""

    user: User
    memory_ids: frozenset[UUID]
    sources: tuple[SourceRef, ...]
    imprint: Imprint
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a receiver of services.being_forgotten did; unfinished while texts are to be written."""

    counts: Mapping[str, int]
    is_finished: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSide:
    """One of two memories that contradict each other."""

    id: UUID
    text: str
    noted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """What only the person can tell: which of two memories is right."""

    conflict_id: UUID
    older: OneSide
    newer: OneSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the person asked to remember, as it was stored; none if they asked for nothing.

    `is_held_back`: all of it waits for a look, and does not come up before.
    """

    memory_ids: tuple[UUID, ...] = ()
    is_held_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """Memories that rest on some messages: on them alone, or on others too."""

    alone: tuple[Memory, ...]
    among_others: tuple[Memory, ...]
