"""Forgetting: what goes with a memory, what is put right after it, and a receipt of counts.

One transaction removes the memory, everything that belongs to it and what was merged from it, and
tells those who keep texts that may quote it (`being_forgotten`), while the words are still at hand.
Nothing of the words is stored. Texts that have to be written anew are taken out at once, and due
until that is done; `finish` then closes the receipt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.dispatch import Signal

from memory import heirs, scores, spans, storage, telling, truth
from memory.imprint import Imprint, imprint, words_of
from memory.merging import MERGED
from memory.models import (
    Annotation,
    Conflict,
    Entity,
    EntityMergeProposal,
    ForgetReceipt,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemoryRevision,
    MemorySource,
    Merge,
    MergeSource,
)
from memory.quoting import meaning
from memory.types import Forgotten, SourceRef, Touched
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.errors import NotFound

log = structlog.get_logger(__name__)


# Sent inside the transaction that forgets, with `forgotten: Forgotten`; receivers return Touched.
# What they raise undoes it all: nothing is forgotten by halves. See docs/adr/0008.
being_forgotten = Signal()


@transaction.atomic
def forget(user: User, memory_ids: Collection[UUID], *, at: datetime) -> ForgetReceipt:
    """Delete memories for good, with what belongs to them, and see to every text made of them.

    What they were merged from goes too. A memory that one of them was merged into goes as well, and
    its other parts stand again by themselves. Raises NotFound if one is not the person's.
    """
    storage.lock(user)
    doomed = _with_parts(user, memory_ids)
    merged = _merged_from(user, doomed)
    forgotten = _forgotten(user, doomed, merged, at=at)
    counts = _belongings(user, doomed | merged)
    told = being_forgotten.send(sender=Memory, forgotten=forgotten)
    answers = [cast(Touched, answer) for _, answer in told]
    for memory_id in truth.replacing(user, doomed):
        truth.reopen_replaced_by(user, memory_id, at=at)
    standing = heirs.wake(user, merged, but=doomed, imprint=forgotten.imprint, at=at)
    counts["entities"] = delete(user, doomed | merged)
    counts += _cleaned(user, forgotten.imprint)
    said_in = {source.message_id for source in forgotten.sources}
    counts["spans"] = spans.forget(user, forgotten.imprint, message_ids=said_in)
    for answer in answers:
        counts.update(answer.counts)
    scores.rescore(user, now=at, memory_ids=standing)
    is_finished = all(answer.is_finished for answer in answers)
    receipt: ForgetReceipt = ForgetReceipt.objects.create(
        user=user,
        requested_at=at,
        finished_at=at if is_finished else None,
        counts={
            "memories": len(doomed),
            "merged": len(merged),
            **{name: count for name, count in counts.items() if count},
        },
    )
    telling.deleted(user, doomed | merged, receipt)
    transaction.on_commit(embeddings.forget_queries, robust=True)
    log.info("memories.forgotten", receipt=receipt.short_id, memories=len(doomed))
    return receipt


def finish(user: User, *, before: datetime, at: datetime) -> int:
    """What was forgotten until `before` has been written anew everywhere. Returns the receipts."""
    rows = ForgetReceipt.objects.for_user(user).filter(
        finished_at__isnull=True, requested_at__lte=before
    )
    return int(rows.update(finished_at=at))


def since(user: User, moment: datetime) -> bool:
    """Whether anything was forgotten at `moment` or later."""
    return bool(ForgetReceipt.objects.for_user(user).filter(requested_at__gte=moment).exists())


def drop_sources(user: User, message_ids: Collection[UUID]) -> int:
    """The messages are gone: memories no longer rest on them. Returns the sources deleted."""
    storage.lock(user)
    rows = MemorySource.objects.for_user(user).filter(message_id__in=message_ids)
    return int(rows.delete()[0])


def _with_parts(user: User, memory_ids: Collection[UUID]) -> frozenset[UUID]:
    """The memories, and what rests in the archive because it was merged into one of them."""
    wanted = set(memory_ids)
    rows = Memory.objects.for_user(user).filter(id__in=wanted).order_by("id").select_for_update()
    if set(rows.values_list("id", flat=True)) != wanted:
        raise NotFound("There is no such memory.")
    found, new = set(wanted), set(wanted)
    while new:
        parts = MergeSource.objects.for_user(user).filter(
            merge__result__in=new, merge__undone_at__isnull=True, memory__archive_reason=MERGED
        )
        new = set(parts.values_list("memory_id", flat=True)) - found
        found |= new
    return frozenset(found)


def _merged_from(user: User, memory_ids: Collection[UUID]) -> frozenset[UUID]:
    """What any of the memories was ever merged into, through any number of merges."""
    found: set[UUID] = set()
    new = set(memory_ids)
    while new:
        into = MergeSource.objects.for_user(user).filter(memory__in=new)
        new = set(into.values_list("merge__result_id", flat=True)) - found - set(memory_ids)
        found |= new
    return frozenset(found)


def _forgotten(
    user: User, doomed: frozenset[UUID], merged: frozenset[UUID], *, at: datetime
) -> Forgotten:
    texts = Memory.objects.for_user(user).filter(id__in=doomed).values_list("text", flat=True)
    rows = MemorySource.objects.for_user(user).filter(memory__in=doomed).order_by("said_at", "id")
    sources = tuple(
        SourceRef(
            message_id=row.message_id,
            segment_id=row.segment_id,
            sentence=row.sentence,
            said_at=row.said_at,
        )
        for row in rows
    )
    statements = [*map(meaning, texts), *(source.sentence for source in sources)]
    known, seen = _seen(user, words_of(statements), but=doomed | merged)
    names = (user.first_name, user.last_name, user.get_username())
    return Forgotten(
        user=user,
        memory_ids=doomed | merged,
        sources=sources,
        imprint=imprint(statements, seen=seen, known=known, but=names),
        at=at,
    )


_SEEN = """
SELECT word, (
    SELECT count(*) FROM memory_memories AS m
    WHERE m.user_id = %(user)s AND NOT m.id = ANY(%(but)s::uuid[])
      AND m.search_vector @@ plainto_tsquery('english', word)
)
FROM unnest(%(words)s::text[]) AS word
"""


def _seen(
    user: User, words: Collection[str], *, but: Collection[UUID]
) -> tuple[int, dict[str, int]]:
    """How many other memories there are, and how many of them hold each of the words."""
    known = Memory.objects.for_user(user).exclude(id__in=but).count()
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, {"user": user.pk, "but": list(but), "words": sorted(words)})
        return known, dict(cursor.fetchall())


def _belongings(user: User, memory_ids: Collection[UUID]) -> Counter[str]:
    """What the tables hold of the memories, and goes with them by cascade."""
    kinds: Sequence[tuple[str, Any]] = (
        ("sources", MemorySource),
        ("mentions", MemoryEntity),
        ("uses", MemoryAccess),
        ("revisions", MemoryRevision),
        ("notes", Annotation),
    )
    counts = Counter(
        {
            name: model.objects.for_user(user).filter(memory__in=memory_ids).count()
            for name, model in kinds
        }
    )
    either = Q(source__in=memory_ids) | Q(target__in=memory_ids)
    counts["links"] = MemoryLink.objects.for_user(user).filter(either).count()
    return counts


def delete(user: User, memory_ids: Collection[UUID]) -> int:
    """The rows go, and the names that nothing mentions any more. Returns how many names."""
    mentions = MemoryEntity.objects.for_user(user)
    named = set(mentions.filter(memory__in=memory_ids).values_list("entity_id", flat=True))
    Memory.objects.for_user(user).filter(id__in=memory_ids).delete()
    still = set(mentions.filter(entity__in=named).values_list("entity_id", flat=True))
    gone = Entity.objects.for_user(user).filter(id__in=named - still, merged__isnull=True)
    ids = list(gone.values_list("id", flat=True))
    Entity.objects.for_user(user).filter(id__in=ids).delete()
    return len(ids)


def _cleaned(user: User, traces: Imprint) -> Counter[str]:
    """Notes and old wordings elsewhere that say it go, reasons that say it are emptied."""
    counts: Counter[str] = Counter()
    for name, model in (("notes", Annotation), ("revisions", MemoryRevision)):
        counts[name] = len(ids := _quoting(user, model, "text", traces))
        model.objects.for_user(user).filter(id__in=ids).delete()
    reasons: Iterable[tuple[Any, str]] = (
        (Merge, "note"),
        (MemoryLink, "reasoning"),
        (Conflict, "reasoning"),
        (EntityMergeProposal, "reason"),
    )
    for model, field in reasons:
        counts["reasons"] += len(ids := _quoting(user, model, field, traces))
        model.objects.for_user(user).filter(id__in=ids).update(**{field: ""})
    return counts


def _quoting(user: User, model: Any, field: str, traces: Imprint) -> list[UUID]:
    rows = model.objects.for_user(user).exclude(**{field: ""}).values_list("id", field)
    return [row_id for row_id, text in rows.iterator() if traces.is_in(text)]
