"""What stands again when a merged memory is forgotten: its other parts, as they were.

They were archived whole, so nothing has to be written anew; what the merged memory has gained since
goes to the oldest of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from memory.imprint import Imprint
from memory.merging import MERGED
from memory.models import Annotation, Memory, MemoryLink, MemorySource, Merge, MergeSource
from mira_site.accounts.models import User


def wake(
    user: User,
    merged: Collection[UUID],
    *,
    but: Collection[UUID],
    imprint: Imprint,
    at: datetime,
) -> list[UUID]:
    """The parts of the `merged` memories stand by themselves, `but` for those being forgotten.

    Call it before the merged ones are deleted. Returns the parts.
    """
    woken: list[UUID] = []
    merges = Merge.objects.for_user(user).filter(result__in=merged, undone_at__isnull=True)
    for merge in merges.select_related("result").order_by("merged_at", "id"):
        parts = _asleep(user, merge, but=[*merged, *but])
        top = _top(user, merge.result)
        for part in parts:
            _stand_for(user, part, merge.result, top, gone=[*merged, *but], at=at)
        if parts:
            _inherit(user, merge, parts[0], gone=[*merged, *but], imprint=imprint)
        woken.extend(part.id for part in parts)
    return woken


def _asleep(user: User, merge: Merge, *, but: Collection[UUID]) -> Sequence[Memory]:
    """The merge's parts that rest in the archive because of it, oldest first."""
    rows = Memory.objects.for_user(user).filter(
        id__in=merge.parts.values("memory_id"), archive_reason=MERGED
    )
    return list(rows.exclude(id__in=but).order_by("created_at", "id").select_for_update())


def _top(user: User, memory: Memory) -> Memory:
    """What stands for the memory after all later merges."""
    while memory.archived_at is not None and memory.archive_reason == MERGED:
        later = (
            MergeSource.objects.for_user(user)
            .filter(memory=memory, merge__undone_at__isnull=True)
            .select_related("merge__result")
            .first()
        )
        if later is None:
            break
        memory = later.merge.result
    return memory


def _stand_for(
    user: User,
    part: Memory,
    result: Memory,
    top: Memory,
    *,
    gone: Collection[UUID],
    at: datetime,
) -> None:
    """Live if what it was merged into is; past, muted or held back if that was."""
    twins = Memory.objects.for_user(user).live().filter(text_hash=part.text_hash)
    if top.archived_at is None and not twins.exclude(id__in=[part.id, *gone]).exists():
        part.archived_at, part.archive_reason = None, ""
    elif top.archived_at is not None and top.archive_reason != MERGED:
        part.archived_at, part.archive_reason = top.archived_at, top.archive_reason
    part.muted_at = part.muted_at or top.muted_at
    part.quarantined_at = part.quarantined_at or top.quarantined_at
    part.valid_until = part.valid_until or result.valid_until or top.valid_until
    part.updated_at = at
    part.save(
        update_fields=[
            "archived_at", "archive_reason", "muted_at", "quarantined_at", "valid_until",
            "updated_at",
        ]
    )  # fmt: skip


def _inherit(
    user: User, merge: Merge, heir: Memory, *, gone: Collection[UUID], imprint: Imprint
) -> None:
    """What came to the merged memory after the merge: messages, links, notes."""
    parts = merge.parts.values("memory_id")
    copied = MemorySource.objects.for_user(user).filter(memory__in=parts).values("message_id")
    for source in merge.result.sources.exclude(message_id__in=copied):
        if not imprint.is_in(source.sentence):
            MemorySource.objects.for_user(user).filter(id=source.id).update(memory=heir)
    for note in Annotation.objects.for_user(user).filter(
        memory=merge.result, created_at__gt=merge.merged_at
    ):
        known = heir.annotations.filter(text=note.text).exists()
        if not known and not imprint.is_in(note.text):
            Annotation.objects.for_user(user).filter(id=note.id).update(memory=heir)
    _inherit_links(user, merge, heir, gone=[*gone, heir.id])


def _inherit_links(user: User, merge: Merge, heir: Memory, *, gone: Collection[UUID]) -> None:
    new = MemoryLink.objects.for_user(user).filter(created_at__gt=merge.merged_at)
    for link in new.filter(Q(source=merge.result) | Q(target=merge.result)):
        is_out = link.source_id == merge.result_id
        other = link.target_id if is_out else link.source_id
        ends = (heir.id, other) if is_out else (other, heir.id)
        taken = MemoryLink.objects.for_user(user).filter(source=ends[0], target=ends[1])
        if other not in gone and not taken.exists():
            MemoryLink.objects.for_user(user).filter(id=link.id).update(
                source=ends[0], target=ends[1]
            )
