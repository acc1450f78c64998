"""A segment's collapse is taken back: what was made of it is withdrawn, as if never made.

That is not forgetting: the person wishes nothing gone, and the segment is read again later. So no
receipt is written, and no text elsewhere is looked through. What was made has the moment of the
reading, or of the integration after it, on each row; by that it is known.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from memory import forgetting, scores, storage, telling, truth
from memory.models import (
    Annotation,
    Conflict,
    Entity,
    Extraction,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemoryRevision,
    MemorySource,
    MergeSource,
    Work,
)
from memory.staging import ARCHIVED
from mira_site import errors
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

AT_WORK = "What was remembered of it is being worked on right now. Try again in a minute."
MERGED = "A memory made of it was merged with others since. Undo that merge first."
JUDGED = (
    "You have changed or judged a memory made of it since, so it stays as it is. Go on talking; "
    "the next part follows on from it."
)
Person = MemoryRevision.Author.PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """`removed`: memories that are gone. `restored`: older ones that changed back."""

    removed: tuple[UUID, ...] = ()
    restored: tuple[UUID, ...] = ()


@transaction.atomic
def withdraw(user: User, segment_id: UUID) -> Withdrawn:
    """Undo what the collapse of this segment did to memory; twice changes nothing.

    Memories that rest on it alone go, with links, names, forms and conflicts. Those that it only
    said again lose it as a source, and the use that this counted. What they had replaced is true
    again. What the person or MIRA stored while talking stays. Raises Conflict if something made of
    it was merged or judged since, or is being worked on.
    """
    storage.lock(user)
    work = Work.objects.for_user(user).filter(kind=Work.Kind.INTEGRATION, subject=str(segment_id))
    integration = work.select_for_update().first()
    if integration is not None and _runs(integration):
        raise errors.Conflict(AT_WORK)
    done = Extraction.objects.for_user(user).filter(source_segment_id=segment_id).first()
    if done is None:
        return Withdrawn()
    reading = _Reading(user, segment_id, done.finished_at)
    reading.refuse_merged()
    reading.refuse_judged()
    restored = reading.take_back_relations()
    forgetting.delete(user, reading.sole | reading.husks())
    reading.take_back_repeats()
    reading.take_back_names()
    restored |= reading.take_back_archiving()
    scores.rescore(user, now=timezone.now(), memory_ids=sorted(restored | reading.known))
    done.delete()
    work.delete()
    if reading.sole:
        telling.withdrawn(user, reading.sole)
    log.info("segment.withdrawn", segment=str(segment_id), memories=len(reading.sole))
    return Withdrawn(removed=tuple(sorted(reading.sole)), restored=tuple(sorted(restored)))


def _runs(work: Work) -> bool:
    """Somebody works on it, and is not just gone."""
    is_claimed = work.claimed_until is not None and work.claimed_until > timezone.now()
    return work.status == Work.Status.RUNNING and is_claimed


class _Reading:
    """What one reading of a segment, and the integration after it, made."""

    def __init__(self, user: User, segment_id: UUID, at: datetime) -> None:
        self._user, self._segment_id, self._since = user, segment_id, at
        sources = MemorySource.objects.for_user(user)
        told = sources.filter(segment_id=segment_id).values("memory_id")
        elsewhere = sources.exclude(segment_id=segment_id).values("memory_id")
        mine = Memory.objects.for_user(user)
        new = mine.filter(source_segment_id=segment_id, created_at__gte=at)
        self.sole = frozenset(new.exclude(id__in=elsewhere).values_list("id", flat=True))
        tended = new.filter(tended_at__gte=at).values_list("tended_at", flat=True)
        self._moments: list[datetime] = [at, *tended.distinct()]
        while_talking = Q(source_segment_id=segment_id, created_at__lt=at)
        said_again = mine.filter(id__in=told).exclude(while_talking).exclude(id__in=self.sole)
        self.known = frozenset(said_again.values_list("id", flat=True))

    def refuse_merged(self) -> None:
        merged = MergeSource.objects.for_user(self._user).filter(
            memory__in=self.sole | self.known,
            merge__undone_at__isnull=True,
            merge__merged_at__gte=self._since,
        )
        if merged.exists():
            raise errors.Conflict(MERGED)

    def refuse_judged(self) -> None:
        changed = MemoryRevision.objects.for_user(self._user).filter(author=Person)
        noted = Annotation.objects.for_user(self._user).filter(author=Person)
        judged = (
            Q(confirmed_at__isnull=False)
            | Q(muted_at__isnull=False)
            | Q(importance_by_person__isnull=False)
            | Q(id__in=changed.values("memory_id"))
            | Q(id__in=noted.values("memory_id"))
        )
        if Memory.objects.for_user(self._user).filter(judged, id__in=self.sole).exists():
            raise errors.Conflict(JUDGED)

    def husks(self) -> frozenset[UUID]:
        """What is left in the archive of merges with it that were undone: its words."""
        parts = MergeSource.objects.for_user(self._user).filter(
            memory__in=self.sole, merge__undone_at__isnull=False
        )
        return frozenset(parts.values_list("merge__result_id", flat=True))

    def take_back_relations(self) -> set[UUID]:
        """Replacements, conflicts and links; returns the memories whose end changed."""
        user, at = self._user, timezone.now()
        restored: set[UUID] = set()
        for memory_id in sorted(self.sole):
            restored |= set(truth.reopen_replaced_by(user, memory_id, at=at))
        between = self._links().filter(link_type=MemoryLink.Type.SUPERSEDES)
        for newer_id, older_id in list(between.values_list("source_id", "target_id")):
            if truth.let_go(user, newer_id, older_id):
                restored.add(older_id)
        conflicts = Conflict.objects.for_user(user)
        conflicts.filter(created_at__in=self._moments, status=Conflict.Status.OPEN).delete()
        settled = conflicts.filter(resolved_at__in=self._moments).exclude(
            Q(older__in=self.sole) | Q(newer__in=self.sole)
        )
        self._links().delete()
        for conflict in settled:
            truth.open_again(user, conflict)
        return restored - self.sole

    def _links(self) -> QuerySet[MemoryLink]:
        """Made by the reading, between memories that stay."""
        rows: QuerySet[MemoryLink] = MemoryLink.objects.for_user(self._user).filter(
            created_at__in=self._moments
        )
        return rows.exclude(Q(source__in=self.sole) | Q(target__in=self.sole))

    def take_back_repeats(self) -> None:
        """What was known before is as old as what it rested on before."""
        user = self._user
        sources = MemorySource.objects.for_user(user)
        sources.filter(memory__in=self.known, segment_id=self._segment_id).delete()
        accesses = MemoryAccess.objects.for_user(user).filter(accessed_at__in=self._moments)
        accesses.filter(kind=MemoryAccess.Kind.USED, segment_id=self._segment_id).delete()
        rows = Memory.objects.for_user(user).filter(id__in=self.known)
        said = dict(
            rows.annotate(said=Coalesce(Max("sources__said_at"), F("created_at"))).values_list(
                "id", "said"
            )
        )
        for memory_id, said_at in said.items():
            rows.filter(id=memory_id).update(said_at=said_at)
        mine = rows.filter(source_segment_id=self._segment_id)  # of another segment, too, by now
        mine.update(source_segment_id=None)

    def take_back_names(self) -> None:
        """Names that were new, and stand on what was known before alone by now."""
        new = Entity.objects.for_user(self._user).filter(created_at__in=self._moments)
        mentions = MemoryEntity.objects.for_user(self._user).filter(memory__in=self.known)
        mentions.filter(entity__in=new.values("id")).delete()
        new.filter(memory_links__isnull=True, merged__isnull=True).delete()

    def take_back_archiving(self) -> set[UUID]:
        """What the integration put away, noted or looked at on memories that stay."""
        rows = Memory.objects.for_user(self._user)
        notes = Annotation.objects.for_user(self._user).filter(created_at__in=self._moments)
        notes.exclude(author=Person).delete()
        rows.filter(tended_at__in=self._moments).update(tended_at=None)
        asleep = rows.filter(archived_at__in=self._moments, archive_reason=ARCHIVED)
        return self._woken(list(asleep.values_list("id", "text_hash")))

    def _woken(self, asleep: Collection[tuple[UUID, str]]) -> set[UUID]:
        """Live again, unless another memory says the same by now."""
        rows = Memory.objects.for_user(self._user)
        woken: set[UUID] = set()
        for memory_id, text_hash in asleep:
            if not rows.live().filter(text_hash=text_hash).exists():
                rows.filter(id=memory_id).update(archived_at=None, archive_reason="")
                woken.add(memory_id)
        return woken
