"""Writes to a person's memories: the front door."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from memory import (
    accesses,
    aging,
    clearing,
    derived,
    extraction,
    fingerprint_rows,
    fingerprint_rules,
    forgetting,
    linking,
    mentions,
    merging,
    noting,
    passages,
    places,
    quarantine,
    rereading,
    scores,
    settling,
    spans,
    storage,
    tasks,
    telling,
    tending,
    truth,
    upkeep,
    withdrawing,
    work,
)
from memory.constants import (
    MEMORY_TYPES,
    REASON_MAX_CHARS,
    TEXT_LENGTH,
    TEXT_MIN_CHARS,
    VERBATIM_MAX_CHARS,
)
from memory.duplicates import text_hash
from memory.forgetting import being_forgotten as being_forgotten
from memory.models import (
    Extraction,
    ForgetReceipt,
    Memory,
    MemoryAccess,
    MemoryRevision,
    Merge,
    Work,
)
from memory.quoting import meaning, speaker
from memory.storage import Fact
from memory.types import Remembered, SourceMessage, Trust
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import BadRequest, Conflict, NotFound

log = structlog.get_logger(__name__)


class Unchanged:
    """The type of UNCHANGED: a field that an edit leaves as it is (None would clear it)."""


UNCHANGED: Final = Unchanged()


def remember(
    *,
    user: User,
    segment_id: UUID,
    messages: Sequence[SourceMessage],
    at: datetime,
    is_current: Callable[[], bool] = lambda: True,
) -> Remembered:
    """Store the lasting facts of one collapsed segment, once, however often it is called.

    The model and the embeddings are asked before the transaction. Two calls at the same time store
    once: the segment's Extraction row is unique and written first. A fact that is known already
    gains a source. `at` is from before the messages were read; `is_current` is asked in the
    transaction whether they are still as they were. Raises DependencyError if embeddings are away,
    WorkLeftDue if not, or if something was forgotten since `at`: then nothing is stored and the
    step stays due.
    """
    if done := _already(user, segment_id):
        return done
    found = extraction.extract(user, messages, now=at)
    with telling.embedding(user, segment_id=segment_id):
        vectors = embeddings.embed([meaning(fact.text) for fact in found.facts])
    with transaction.atomic():
        storage.lock(user)
        if done := _already(user, segment_id):
            return done
        rereading.refuse_outdated(user, at=at, is_current=is_current)
        row = Extraction.objects.create(
            user=user, source_segment_id=segment_id, finished_at=at, memory_count=0,
            by_model=found.by_model,
        )  # fmt: skip
        ids = settling.settle(user, found.facts, vectors, at=at, segment_id=segment_id)
        row.memory_count = len(ids)
        row.save(update_fields=["memory_count"])
        work.make_due(user, Work.Kind.INTEGRATION, str(segment_id), at)
    log.info(
        "segment.remembered", segment=str(segment_id), memories=len(ids), by_model=found.by_model
    )
    return Remembered(memory_ids=tuple(ids), by_model=found.by_model, already_done=False)


def create(
    *,
    user: User,
    text: str,
    memory_type: str | None = None,
    wing: str = "",
    room: str = "",
    importance: float | None = None,
    happens_at: datetime | None = None,
    expires_at: datetime | None = None,
    trust: Trust = Trust.SAID,
    metrics: Mapping[str, Any] | None = None,
) -> Memory:
    """Store one memory that the person wrote; if it is known already, that one is returned.

    Without a `memory_type` the text decides. A text that the embedding model cannot read at once is
    found by each of its passages.
    `importance` is the person's word, and stands; without it the memory is scored.
    Raises BadRequest for a field that cannot be stored, DependencyError without embeddings.
    """
    fields = _checked(
        {
            "text": text,
            "memory_type": fingerprint_rules.type_of(text) if memory_type is None else memory_type,
            "wing": wing,
            "room": room,
            "happens_at": happens_at,
            "expires_at": expires_at,
        }
    )
    weight = _checked({"importance": importance})["importance"]
    with telling.embedding(user):
        vectors, (cut,) = passages.embed([fields["text"]])
    with transaction.atomic():
        storage.lock(user)
        (memory_id,) = storage.store(
            user,
            [Fact(**fields, trust=trust, cut=cut)],
            vectors,
            at=timezone.now(),
            use_day=accounts.use_days(user),
            segment_id=None,
        )
        rows = Memory.objects.for_user(user).filter(id=memory_id)
        if weight is not None:
            rows.update(importance_by_person=weight)
        if metrics is not None:
            rows.update(metrics=dict(metrics))
        scores.rescore(user, now=timezone.now(), memory_ids=[memory_id])
        memory: Memory = rows.get()
    log.info("memory.created", memory=memory.short_id)
    return memory


def edit(
    *,
    user: User,
    memory_id: UUID,
    text: str | Unchanged = UNCHANGED,
    happens_at: datetime | Unchanged | None = UNCHANGED,
    expires_at: datetime | Unchanged | None = UNCHANGED,
    wing: str | Unchanged = UNCHANGED,
    room: str | Unchanged = UNCHANGED,
    memory_type: str | Unchanged = UNCHANGED,
    importance: float | Unchanged | None = UNCHANGED,
) -> Memory:
    """Change what is given; a new text is embedded anew. The sources stay.

    An `importance` that is given stands from then on; None leaves it to the score again.
    Raises NotFound, BadRequest for a field that cannot be stored, Conflict if another live memory
    says the same already, DependencyError without embeddings.
    """
    given = {
        "text": text,
        "happens_at": happens_at,
        "expires_at": expires_at,
        "wing": wing,
        "room": room,
        "memory_type": memory_type,
        "importance": importance,
    }
    fields = _checked({name: value for name, value in given.items() if value is not UNCHANGED})
    if "importance" in fields:
        fields["importance_by_person"] = fields.pop("importance")
    with telling.embedding(user):
        vectors, cuts = passages.embed([fields["text"]] if "text" in fields else [])
    with transaction.atomic():
        storage.lock(user)
        memory = _locked(user, memory_id)
        fields |= places.moved(user, memory, fields)
        _keep_wording(memory, fields.get("text", memory.text))
        _apply(memory, fields, vectors)
        _refuse_twin(user, memory)
        written = ("text_hash", "embedding", "embedding_model", "speaker", "updated_at")
        memory.save(update_fields=[*fields, *written])
        if "text" in fields:
            mentions.read_again(user, memory, at=timezone.now())
            derived.write(user, [memory], at=timezone.now(), cuts={memory.id: cuts[0]})
        elif "memory_type" in fields:
            fingerprint_rows.retype(user, memory)
        _rescore(memory)
    log.info("memory.edited", memory=memory.short_id, fields=sorted(fields))
    return memory


@transaction.atomic
def archive(*, user: User, memory_id: UUID, reason: str) -> Memory:
    """Take a memory out of recall. It stays restorable; archiving twice changes nothing.

    Raises NotFound if the user has no such memory.
    """
    memory = _locked(user, memory_id)
    if memory.archived_at is None:
        memory.archived_at = timezone.now()
        memory.archive_reason = reason[:REASON_MAX_CHARS]
        memory.save(update_fields=["archived_at", "archive_reason", "updated_at"])
        telling.archived(user, [memory], reason=memory.archive_reason)
        log.info("memory.archived", memory=memory.short_id)
    return memory


@transaction.atomic
def restore(*, user: User, memory_id: UUID) -> Memory:
    """Bring an archived memory back into recall; restoring twice changes nothing.

    It counts as a use, or what had faded would fade again; an expiry that has passed is lifted.
    Raises NotFound if the user has no such memory, Conflict if a live one says the same by now.
    """
    storage.lock(user)
    memory = _locked(user, memory_id)
    if memory.archived_at is not None:
        now = timezone.now()
        memory.archived_at, memory.archive_reason = None, ""
        if memory.expires_at is not None and memory.expires_at <= now:
            memory.expires_at = None
        _refuse_twin(user, memory)
        memory.save(update_fields=["archived_at", "archive_reason", "expires_at", "updated_at"])
        accesses.record(user, [memory.id], segment_id=None, kind=MemoryAccess.Kind.USED, at=now)
        _rescore(memory)
        log.info("memory.restored", memory=memory.short_id)
    return memory


def forget(*, user: User, memory_id: UUID) -> ForgetReceipt:
    """Delete a memory for good, with all that was made of it; the receipt says what was touched.

    Raises NotFound if the user has no such memory.
    """
    return forgetting.forget(user, [memory_id], at=timezone.now())


def forget_all(*, user: User, memory_ids: Collection[UUID]) -> ForgetReceipt:
    """Forget several at once, with one receipt. Raises NotFound if one is not the person's."""
    return forgetting.forget(user, memory_ids, at=timezone.now())


def finish_forgetting(*, user: User, before: datetime) -> None:
    """What was forgotten until `before` has been written anew everywhere."""
    forgetting.finish(user, before=before, at=timezone.now())


def drop_sources(*, user: User, message_ids: Collection[UUID]) -> int:
    """The messages are gone: memories no longer rest on them. Returns the sources deleted."""
    return forgetting.drop_sources(user, message_ids)


def message_changed(*, user: User, message_id: UUID, text: str) -> None:
    """A message says `text` now, without what was forgotten of it: memories quote the new one."""
    with transaction.atomic():
        storage.lock(user)
        spans.message_changed(user, message_id, text)


def reread(
    *,
    user: User,
    segment_id: UUID,
    messages: Sequence[SourceMessage],
    at: datetime,
    is_current: Callable[[], bool] = lambda: True,
) -> list[UUID]:
    """Remember messages that were changed after their segment was; see rereading.read."""
    return rereading.read(
        user, segment_id=segment_id, messages=messages, at=at, is_current=is_current
    )


def begin_use_day(*, user: User, at: datetime) -> None:
    """The person's first message of a day: what goes by use-days comes due, and starts soon."""
    upkeep.begin_use_day(user, at=at)
    tasks.start_work(user.pk)


def note_accesses(
    *,
    user: User,
    segment_id: UUID | None,
    surfaced: Sequence[UUID] = (),
    used: Sequence[UUID] = (),
    at: datetime,
) -> None:
    """Which memories came up in a segment and which were used: each counts once a segment."""
    accesses.record(user, surfaced, segment_id=segment_id, kind=MemoryAccess.Kind.SURFACED, at=at)
    accesses.record(user, used, segment_id=segment_id, kind=MemoryAccess.Kind.USED, at=at)


def hasten(*, user: User, work_ids: Collection[UUID]) -> int:
    """Background work that waits for its next attempt starts soon. Returns how many waited."""
    count = work.hasten(user, work_ids, at=timezone.now())
    tasks.start_work(user.pk)
    return count


def merge(
    *,
    user: User,
    memory_ids: Sequence[UUID],
    text: str,
    note: str = "",
    author: MemoryRevision.Author = MemoryRevision.Author.PERSON,
) -> Merge:
    """Make several memories one that says all of it; undone for 30 days by `undo_merge`.

    Raises what merging.stage and merging.swap raise.
    """
    staged = merging.stage(user, memory_ids, text, note)
    return merging.swap(user, staged, author=author, at=timezone.now())


# What their modules do is what the front door offers.
hold = storage.lock
CURATOR = MemoryRevision.Author.CURATOR
remember_now = noting.note
remember_asked = noting.note_asked
annotate = tending.annotate
touch = tending.touch
release_held = quarantine.release
archive_aged = aging.archive_aged
clear = clearing.clear
mark_asked = truth.mark_asked
note_recall = telling.recalled
link = linking.link
confirm_link = linking.confirm
unlink = linking.unlink
remove_link = linking.remove
withdraw_segment = withdrawing.withdraw


def undo_merge(*, user: User, merge_id: UUID) -> Merge:
    """Put back what was before the merge. Raises NotFound, Conflict with what to do instead."""
    return merging.undo(user, merge_id, at=timezone.now())


def _already(user: User, segment_id: UUID) -> Remembered | None:
    done = Extraction.objects.for_user(user).filter(source_segment_id=segment_id).first()
    if done is None:
        return None
    ids = (
        Memory.objects.for_user(user)
        .filter(sources__segment_id=segment_id)
        .order_by("created_at", "id")
        .values_list("id", flat=True)
        .distinct()
    )
    return Remembered(memory_ids=tuple(ids), by_model=done.by_model, already_done=True)


def _locked(user: User, memory_id: UUID) -> Memory:
    memory = Memory.objects.for_user(user).select_for_update().filter(id=memory_id).first()
    if memory is None:
        raise NotFound("There is no such memory.")
    return memory  # type: ignore[no-any-return]


def _keep_wording(memory: Memory, text: str) -> None:
    """What it said before the person changed it stays in its history."""
    if text != memory.text:
        MemoryRevision.objects.create(
            user_id=memory.user_id,
            memory=memory,
            text=memory.text,
            changed_at=timezone.now(),
            author=MemoryRevision.Author.PERSON,
            reason="edited",
        )


def _rescore(memory: Memory) -> None:
    scores.rescore(memory.user, now=timezone.now(), memory_ids=[memory.id])
    memory.refresh_from_db(fields=["importance", "scored_at"])


def _apply(memory: Memory, fields: Mapping[str, Any], vectors: Vectors) -> None:
    for name, value in fields.items():
        setattr(memory, name, value)
    memory.text_hash = text_hash(memory.text, memory.happens_at)
    memory.speaker = speaker(memory.text)
    if len(vectors):
        memory.embedding, memory.embedding_model = vectors[0], embeddings.model_id()


def _refuse_twin(user: User, memory: Memory) -> None:
    live = Memory.objects.for_user(user).live().exclude(id=memory.id)
    if memory.archived_at is None and live.filter(text_hash=memory.text_hash).exists():
        raise Conflict("Another memory says the same already. Edit or delete that one instead.")


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, trimmed. Raises BadRequest that names each one that cannot be stored."""
    trimmed = {
        name: value.replace("\x00", "").strip() if isinstance(value, str) else value
        for name, value in fields.items()
    }
    wrong = {name: says for name, value in trimmed.items() if (says := _objection(name, value))}
    if wrong:
        raise BadRequest("Some fields need another value; see errors.", fields=wrong)
    return trimmed


def _objection(name: str, value: Any) -> str:
    """What is wrong with the value, or ''."""
    if name == "text" and not TEXT_MIN_CHARS <= len(value) <= VERBATIM_MAX_CHARS:
        return TEXT_LENGTH
    if name in {"wing", "room"}:
        return places.objection(places.tidy(value))
    if name == "memory_type" and value not in MEMORY_TYPES:
        return f"Choose one of {', '.join(MEMORY_TYPES)}."
    if name == "importance" and value is not None and not 0 <= value <= 1:
        return "Give a number from 0 to 1."
    return ""
