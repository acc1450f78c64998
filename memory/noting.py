"""Remember this, now: one memory written by MIRA in mid-conversation, recallable at once.

Whose word it is, is not the model's to say: it is the person's only if a sentence of theirs in
this turn says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from memory import (
    asked,
    backing,
    forgetting,
    instructions,
    scores,
    settling,
    storage,
    telling,
    truth,
)
from memory.constants import DEFAULT_TYPE, TEXT_MAX_CHARS
from memory.models import Memory, MemoryLink, Stakes, Trust
from memory.quoting import meaning
from memory.storage import Fact
from memory.types import Kept, SourceMessage, SourceRef
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import BadRequest

log = structlog.get_logger(__name__)

NOTE_MIN_CHARS = 10  # spec memory 8.1
REASONING = "Noted in conversation as replacing it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What was stored; `was_known` if it was remembered already and gained the source at most."""

    memory: Memory
    was_known: bool
    superseded: tuple[UUID, ...]
    disputed: tuple[UUID, ...]


def note(
    *,
    user: User,
    text: str,
    said: Sequence[SourceMessage],
    segment_id: UUID | None,
    at: datetime,
    lowest_read: Trust | None = None,
    asked_for: bool = False,
    happens_at: datetime | None = None,
    expires_at: datetime | None = None,
    supersedes: Sequence[UUID] = (),
) -> Noted:
    """Store one memory and commit it. `said` are the person's messages it may rest on.

    `lowest_read` is the class of what tools brought in before: without the person's word the memory
    is no better than that. What it `supersedes` becomes past, or is disputed where the new word
    weighs less. Raises BadRequest, DependencyError without embeddings; then nothing is stored.
    """
    text = text.replace("\x00", "").strip()
    if not NOTE_MIN_CHARS <= len(text) <= TEXT_MAX_CHARS:
        raise BadRequest(f"Write between {NOTE_MIN_CHARS} and {TEXT_MAX_CHARS:,} characters.")
    if expires_at is not None and expires_at <= at:
        raise BadRequest("It would have expired already. Give a later time, or none.")
    source = _source(user, text, said, (happens_at, expires_at))
    fact = Fact(
        text=text,
        memory_type=DEFAULT_TYPE,
        sources=(source,) if source else (),
        happens_at=happens_at,
        expires_at=expires_at,
        trust=Trust.SAID if source else min(Trust.INFERRED, lowest_read or Trust.INFERRED),
    )
    with telling.embedding(user, segment_id=segment_id):
        vectors = embeddings.embed([meaning(text)])
    noted = _store(user, fact, vectors, segment_id, at, supersedes, asked_for=asked_for)
    log.info(
        "memory.noted",
        memory=noted.memory.short_id,
        trust=noted.memory.trust,
        was_known=noted.was_known,
    )
    return noted


def note_asked(*, user: User, message: SourceMessage, at: datetime) -> Kept:
    """Store what the person asks to remember, in their own words, and commit it.

    Once: where memories rest on the message already, nothing is stored and those are returned.
    Raises DependencyError without embeddings.
    """
    if not asked.is_asked(message.text):
        return Kept()
    name = user.get_short_name() or user.get_username()
    facts = asked.facts(message, name=name, zone=accounts.zone(user))
    if not facts:
        return Kept()
    with telling.embedding(user, segment_id=message.segment_id):
        vectors = embeddings.embed([meaning(fact.text) for fact in facts])
    with transaction.atomic():
        storage.lock(user)
        if (known := _kept(user, message)).memory_ids:
            return known
        facts = [_unspanned(user, fact) for fact in facts]
        ids = settling.settle(user, facts, vectors, at=at, segment_id=message.segment_id)
        rows = Memory.objects.for_user(user).filter(id__in=ids)
        rows.update(stakes=Stakes.VITAL, updated_at=at)
        scores.rescore(user, now=at, memory_ids=ids)
    log.info("memory.asked_for", memories=len(facts))
    return _kept(user, message)


def _kept(user: User, message: SourceMessage) -> Kept:
    rows = Memory.objects.for_user(user).live().filter(sources__message_id=message.message_id)
    found = rows.order_by("created_at", "id").values_list("id", "quarantined_at")
    return Kept(
        memory_ids=tuple(memory_id for memory_id, _ in found),
        is_held_back=all(held_at is not None for _, held_at in found),
    )


@transaction.atomic
def _store(
    user: User,
    fact: Fact,
    vectors: Vectors,
    segment_id: UUID | None,
    at: datetime,
    supersedes: Sequence[UUID],
    *,
    asked_for: bool,
) -> Noted:
    storage.lock(user)
    fact = _unspanned(user, fact)
    before = set(Memory.objects.for_user(user).live().filter(created_at__gte=at).values_list("id"))
    (memory_id,) = storage.store(
        user, [fact], vectors, at=at, use_day=accounts.use_days(user), segment_id=segment_id
    )
    memory = _settled(user, memory_id, fact, at, asked_for=asked_for)
    was_known = memory.created_at != at or (memory_id,) in before
    superseded, disputed = _replace(user, memory, supersedes, at)
    scores.rescore(user, now=at, memory_ids=[memory_id, *superseded, *disputed])
    memory.refresh_from_db()
    return Noted(memory=memory, was_known=was_known, superseded=superseded, disputed=disputed)


def _unspanned(user: User, fact: Fact) -> Fact:
    """Without the messages around it, if anything was forgotten since: they may still hold it."""
    said_at = min((source.said_at for source in fact.sources), default=None)
    if said_at is None or not forgetting.since(user, said_at):
        return fact
    return replace(fact, sources=tuple(replace(source, span="") for source in fact.sources))


def _source(
    user: User, text: str, said: Sequence[SourceMessage], moments: Sequence[datetime | None]
) -> SourceRef | None:
    zone = accounts.zone(user)
    days = [moment.astimezone(zone).date() for moment in moments if moment is not None]
    names = [user.get_full_name(), user.get_username()]
    return backing.backing(text, said, names=names, days=days)


def _settled(user: User, memory_id: UUID, fact: Fact, at: datetime, *, asked_for: bool) -> Memory:
    """The row, which may be an old one: said again by the person, it is their word now."""
    memory: Memory = Memory.objects.for_user(user).select_for_update().get(id=memory_id)
    memory.trust = max(memory.trust, fact.trust)
    if asked_for:
        memory.stakes = Stakes.VITAL
    sentences = [source.sentence for source in fact.sources]
    if memory.quarantined_at is None and instructions.reads_like_an_instruction(
        [memory.text, *sentences], memory.trust
    ):
        memory.quarantined_at = at
    memory.save(update_fields=["trust", "stakes", "quarantined_at", "updated_at"])
    return memory


def _replace(
    user: User, memory: Memory, older_ids: Sequence[UUID], at: datetime
) -> tuple[tuple[UUID, ...], tuple[UUID, ...]]:
    """Which became past, and which are disputed: hearsay does not overrule the person's word."""
    superseded: list[UUID] = []
    disputed: list[UUID] = []
    if memory.quarantined_at is not None:  # nothing gives way to what is held back
        return (), ()
    rows = Memory.objects.for_user(user).live().filter(id__in=older_ids).exclude(id=memory.id)
    author = MemoryLink.Author.MODEL
    for older in rows.order_by("id"):
        if memory.trust >= older.trust:
            truth.supersede(user, memory.id, older.id, at=at, reasoning=REASONING, author=author)
            superseded.append(older.id)
        else:
            truth.conflict(user, older.id, memory.id, reasoning=REASONING, at=at, author=author)
            disputed.append(older.id)
    return tuple(superseded), tuple(disputed)
