"""Several memories become one that says all of it; for 30 days it can be undone.

The parts are archived as they are, with their links, sources and notes; the new memory gets copies.
So undoing only wakes the parts and puts the new memory away: nothing has to be worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import structlog
from django.db import transaction
from django.db.models import Q

from memory import derived, details, instructions, scores, spans, storage, telling
from memory.constants import (
    MERGE_MAX_SOURCES,
    MERGE_TEXT_MIN_CHARS,
    MERGE_TEXT_MIN_SHARE,
    MERGE_TEXT_SLACK_CHARS,
    MERGE_UNDO_DAYS,
    NOTE_MAX_CHARS,
    TEXT_MAX_CHARS,
)
from memory.duplicates import text_hash
from memory.models import (
    Annotation,
    Conflict,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemoryRevision,
    MemorySource,
    Merge,
    MergeSource,
    Trust,
)
from memory.quoting import meaning, speaker
from mira_site import embeddings, errors
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import BadRequest, NotFound

log = structlog.get_logger(__name__)

MERGED = "merged"
UNDONE = "merge undone"
Author = MemoryRevision.Author
Row = TypeVar("Row")
Moments = dict[str, datetime | None]


class DetailsLost(BadRequest):
    """The text lacks something concrete; `missing` names it (text of the person: not for logs)."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(
            "The text leaves out names, numbers or negations of the memories it would replace. "
            "Keep every one of them.",
            fields={"text": f"Missing: {', '.join(missing)}."},
        )
        self.missing = tuple(missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedMerge:
    """A merge that was checked and is not done yet. `texts` are what its parts said then."""

    memory_ids: tuple[UUID, ...]
    texts: tuple[str, ...]
    text: str
    note: str
    vector: Vectors


def stage(user: User, memory_ids: Sequence[UUID], text: str, note: str = "") -> StagedMerge:
    """Check a merge and embed its text, changing nothing.

    Raises NotFound for a memory that is not the person's, BadRequest (DetailsLost) for a text that
    may not stand for the parts, Conflict for parts that may not become one, DependencyError
    without embeddings.
    """
    text, note = text.replace("\x00", "").strip(), note.replace("\x00", "").strip()
    parts = _parts(user, memory_ids)
    _check_text([part.text for part in parts], text)
    _merged_moments(parts)
    _refuse_twin(user, parts, text)
    return StagedMerge(
        memory_ids=tuple(part.id for part in parts),
        texts=tuple(part.text for part in parts),
        text=text,
        note=note[:NOTE_MAX_CHARS],
        vector=embeddings.embed([meaning(text)])[0],
    )


@transaction.atomic
def swap(user: User, staged: StagedMerge, *, author: Author, at: datetime) -> Merge:
    """Do a staged merge: the new memory stands, the parts are archived, all or nothing.

    Raises Conflict if a part has changed since, and what `stage` raises for parts.
    """
    storage.lock(user)
    parts = _parts(user, staged.memory_ids, lock=True)
    if tuple(part.text for part in parts) != staged.texts:
        raise errors.Conflict("One of the memories was changed meanwhile. Look again, then merge.")
    moments = _merged_moments(parts)
    _refuse_twin(user, parts, staged.text)
    Memory.objects.for_user(user).filter(id__in=staged.memory_ids).update(
        archived_at=at, archive_reason=MERGED, updated_at=at
    )
    result = _result(user, parts, staged, moments, at)
    result.save(force_insert=True)
    telling.archived(user, parts, reason=MERGED)
    telling.stored(user, [result])
    _copy_belongings(user, result, staged.memory_ids)
    derived.write(user, [result], at=at)
    merge: Merge = Merge.objects.create(
        user=user, result=result, note=staged.note, author=author, merged_at=at
    )
    MergeSource.objects.bulk_create(
        MergeSource(user=user, merge=merge, memory=part) for part in parts
    )
    scores.rescore(user, now=at, memory_ids=[result.id])
    log.info("memories.merged", memory=result.short_id, parts=len(parts), author=str(author))
    return merge


@transaction.atomic
def undo(user: User, merge_id: UUID, *, at: datetime) -> Merge:
    """Put back what was before a merge, within 30 days. Undoing twice changes nothing.

    Raises NotFound; Conflict, with what to do, once it is too late or something stands in the way.
    """
    storage.lock(user)
    merge: Merge | None = (
        Merge.objects.for_user(user).select_for_update().filter(id=merge_id).first()
    )
    if merge is None:
        raise NotFound("There is no such merge.")
    if merge.undone_at is not None:
        return merge
    if at - merge.merged_at > timedelta(days=MERGE_UNDO_DAYS):
        raise errors.Conflict(
            f"A merge can be undone for {MERGE_UNDO_DAYS} days, and these have passed. Restore the "
            "memories you miss from the archive, one by one."
        )
    ids = [merge.result_id, *merge.parts.values_list("memory_id", flat=True)]
    rows = {row.id: row for row in _locked(user, ids)}
    _refuse_later_merge(user, merge, ids)
    result = rows.pop(merge.result_id)
    asleep = [row for row in rows.values() if row.archive_reason == MERGED]
    _refuse_awake_twins(user, asleep, but=result)
    _archive_result(result, at)
    Memory.objects.for_user(user).filter(id__in=[row.id for row in asleep]).update(
        archived_at=None, archive_reason="", updated_at=at
    )
    merge.undone_at = at
    merge.save(update_fields=["undone_at"])
    log.info("merge.undone", memory=result.short_id, parts=len(asleep))
    return merge


def _refuse_later_merge(user: User, merge: Merge, ids: Sequence[UUID]) -> None:
    later = MergeSource.objects.for_user(user).filter(memory__in=ids, merge__undone_at__isnull=True)
    if later.exclude(merge=merge).exists():
        raise errors.Conflict("What came of this was merged again since. Undo that merge first.")


def _archive_result(result: Memory, at: datetime) -> None:
    if result.archived_at is None:
        result.archived_at, result.archive_reason = at, UNDONE
        result.save(update_fields=["archived_at", "archive_reason", "updated_at"])


# --- What may be merged -------------------------------------------------------------------------


def _locked(user: User, ids: Sequence[UUID]) -> list[Memory]:
    """Rows in the order of their ids, in which everybody locks several."""
    return list(
        Memory.objects.for_user(user)
        .filter(id__in=ids)
        .defer("search_vector")
        .order_by("id")
        .select_for_update(no_key=True)
    )


def _parts(user: User, memory_ids: Sequence[UUID], *, lock: bool = False) -> list[Memory]:
    """The memories to merge, oldest first. Raises if they are too few, not there or not open."""
    wanted = list(dict.fromkeys(memory_ids))
    if not 2 <= len(wanted) <= MERGE_MAX_SOURCES:
        detail = f"Name between 2 and {MERGE_MAX_SOURCES} different memories."
        raise BadRequest(detail, fields={"ids": detail})
    if lock:
        rows = _locked(user, wanted)
    else:
        found = Memory.objects.for_user(user).filter(id__in=wanted)
        rows = list(found.defer("embedding", "search_vector"))
    if len(rows) != len(wanted):
        raise NotFound("There is no such memory.")
    if any(row.archived_at is not None for row in rows):
        raise errors.Conflict("One of the memories is archived. Restore it first, or leave it out.")
    if any(row.quarantined_at is not None for row in rows):
        raise errors.Conflict("One of the memories is in quarantine. Look at it there first.")
    if any(row.muted_at is not None for row in rows):
        raise errors.Conflict("One of the memories is never to be mentioned. Leave it out.")
    if _are_in_conflict(user, wanted):
        raise errors.Conflict("These memories contradict each other. Settle that first.")
    return sorted(rows, key=lambda row: (row.created_at, row.id))


def _are_in_conflict(user: User, ids: Sequence[UUID]) -> bool:
    conflicts = Conflict.objects.for_user(user).filter(
        status=Conflict.Status.OPEN, older__in=ids, newer__in=ids
    )
    return bool(conflicts.exists())


def _check_text(sources: Sequence[str], text: str) -> None:
    """Raises BadRequest if the text cannot stand for the sources."""
    shortest = max(
        MERGE_TEXT_MIN_CHARS, round(MERGE_TEXT_MIN_SHARE * min(len(one) for one in sources))
    )
    longest = min(TEXT_MAX_CHARS, sum(len(one) for one in sources) + MERGE_TEXT_SLACK_CHARS)
    if not shortest <= len(text) <= longest:
        detail = f"Write between {shortest} and {longest} characters: all that the memories say."
        raise BadRequest(detail, fields={"text": detail})
    if missing := details.lost(sources, text):
        raise DetailsLost(missing)
    orders = instructions.reads_like_an_instruction
    if orders([text], Trust.TOOL) and not orders(sources, Trust.TOOL):
        raise BadRequest("The text reads like an instruction. State what is known, nothing else.")


def _merged_moments(parts: Sequence[Memory]) -> Moments:
    """The times of the merged memory. Raises Conflict where the parts speak of different times."""
    moments: Moments = {}
    for name, says in (
        ("happens_at", "speak of different times"),
        ("expires_at", "end at different times"),
    ):
        known = {getattr(part, name) for part in parts} - {None}
        if len(known) > 1:
            raise errors.Conflict(f"These memories {says}, so they are different facts.")
        moments[name] = known.pop() if known else None
    if len({part.valid_until for part in parts}) > 1:
        raise errors.Conflict("Some of these memories are past and some are not. Keep them apart.")
    moments["valid_until"] = parts[0].valid_until
    moments["valid_from"] = _earliest(part.valid_from for part in parts)
    return moments


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _refuse_twin(user: User, parts: Sequence[Memory], text: str) -> None:
    """The text may say what a part says, and not what another live memory says."""
    wanted = text_hash(text, _merged_moments(parts)["happens_at"])
    others = Memory.objects.for_user(user).live().exclude(id__in=[part.id for part in parts])
    if others.filter(text_hash=wanted).exists():
        raise errors.Conflict("Another memory says exactly this already. Merge that one too.")


def _refuse_awake_twins(user: User, asleep: Sequence[Memory], *, but: Memory) -> None:
    others = Memory.objects.for_user(user).live().exclude(id=but.id)
    if others.filter(text_hash__in=[row.text_hash for row in asleep]).exists():
        raise errors.Conflict(
            "Another memory says the same as one of the parts by now. Edit or archive that one, "
            "then undo the merge."
        )


# --- The new memory -----------------------------------------------------------------------------


def _result(
    user: User, parts: Sequence[Memory], staged: StagedMerge, moments: Moments, at: datetime
) -> Memory:
    """Oldest in age, lowest in trust, highest in stakes."""
    confirmed = [part.confirmed_at for part in parts]
    set_by_person = [part.importance_by_person for part in parts]
    return Memory(
        id=uuid4(),
        user=user,
        text=staged.text,
        text_hash=text_hash(staged.text, moments["happens_at"]),
        embedding=staged.vector,
        embedding_model=embeddings.model_id(),
        memory_type=_commonest([part.memory_type for part in parts]),
        wing=_commonest([part.wing for part in parts]),
        room=_commonest([part.room for part in parts]),
        importance=max(part.importance for part in parts),
        importance_by_person=max((one for one in set_by_person if one is not None), default=None),
        said_at=max(part.said_at for part in parts),
        speaker=speaker(staged.text),
        position=parts[0].position,
        created_at=parts[0].created_at,
        created_use_day=min(part.created_use_day for part in parts),
        source_segment_id=next(
            (part.source_segment_id for part in parts if part.source_segment_id), None
        ),
        trust=min(part.trust for part in parts),
        stakes=max(part.stakes for part in parts),
        confirmed_at=max(filter(None, confirmed)) if all(confirmed) else None,
        tended_at=at,
        **moments,
    )


def _commonest(values: Sequence[str]) -> str:
    """The value most parts have; the oldest part's among equals."""
    return max(values, key=values.count)


def _copy_belongings(user: User, result: Memory, ids: Sequence[UUID]) -> None:
    """Sources, notes, accesses, mentions, links, open conflicts of the parts, without repeats."""
    MemorySource.objects.bulk_create(_sources(user, result, ids))
    spans.bound(user, [result.id])
    notes = Annotation.objects.for_user(user).filter(memory__in=ids).order_by("-created_at", "id")
    Annotation.objects.bulk_create(_copies(notes, result, same=lambda one: one.text))
    accesses = MemoryAccess.objects.for_user(user).filter(memory__in=ids)
    MemoryAccess.objects.bulk_create(
        _copies(
            accesses.order_by("accessed_at", "id"),
            result,
            same=lambda one: (one.segment_id, one.kind),
        )
    )
    mentions = MemoryEntity.objects.for_user(user).filter(memory__in=ids).order_by("id")
    MemoryEntity.objects.bulk_create(_copies(mentions, result, same=lambda one: one.entity_id))
    MemoryLink.objects.bulk_create(_links(user, result, ids))
    Conflict.objects.bulk_create(_conflicts(user, result, ids))


def _sources(user: User, result: Memory, ids: Sequence[UUID]) -> list[MemorySource]:
    """One row a message; where two parts rest on different sentences of it, it holds both."""
    merged: dict[UUID, MemorySource] = {}
    rows = MemorySource.objects.for_user(user).filter(memory__in=ids).order_by("said_at", "id")
    for row in rows:
        known = merged.get(row.message_id)
        if known is None:
            merged[row.message_id] = _copy(row, memory=result)
        elif row.sentence not in known.sentence:
            known.sentence = f"{known.sentence} {row.sentence}".strip()
            known.span = max(known.span, row.span, key=len)
    return list(merged.values())


def _copies(rows: Iterable[Row], result: Memory, *, same: Callable[[Row], object]) -> list[Row]:
    """The rows as the result's own; of those that are the same, the last."""
    return [_copy(row, memory=result) for row in {same(row): row for row in rows}.values()]


def _copy(row: Row, **changes: object) -> Row:
    """An unsaved row with the same values but for the id and the changes."""
    model = type(row)
    values = {
        field.attname: getattr(row, field.attname)
        for field in model._meta.concrete_fields  # type: ignore[attr-defined]
        if not field.primary_key
    }
    copied = model(**values)
    for name, value in changes.items():
        setattr(copied, name, value)
    return copied


def _links(user: User, result: Memory, ids: Sequence[UUID]) -> list[MemoryLink]:
    """Links to and from the parts, turned to the result; of several with one memory, the newest."""
    rows = MemoryLink.objects.for_user(user).filter(Q(source__in=ids) | Q(target__in=ids))
    turned: dict[tuple[UUID, UUID], MemoryLink] = {}
    for row in rows.order_by("created_at", "id"):
        source_id = result.id if row.source_id in ids else row.source_id
        target_id = result.id if row.target_id in ids else row.target_id
        if source_id != target_id:
            turned[source_id, target_id] = _copy(row, source_id=source_id, target_id=target_id)
    return list(turned.values())


def _conflicts(user: User, result: Memory, ids: Sequence[UUID]) -> list[Conflict]:
    rows = Conflict.objects.for_user(user).filter(
        Q(older__in=ids) | Q(newer__in=ids), status=Conflict.Status.OPEN
    )
    turned: dict[tuple[UUID, UUID], Conflict] = {}
    for row in rows.order_by("created_at", "id"):
        older_id = result.id if row.older_id in ids else row.older_id
        newer_id = result.id if row.newer_id in ids else row.newer_id
        turned[older_id, newer_id] = _copy(row, older_id=older_id, newer_id=newer_id)
    return list(turned.values())
