"""A model's look at names that are very likely of one thing. It may merge no others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import structlog
from django.db import transaction
from pydantic import BaseModel, Field

from memory import entities, likeness, near_names, work
from memory.models import Entity, EntityMergeProposal, MemoryEntity, Work
from memory.storage import lock
from mira_site.accounts.models import User
from mira_site.errors import Conflict, WorkLeftDue
from mira_site.llm.jobs import Job, leave_due
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

log = structlog.get_logger(__name__)

PAIRS_MAX = 25  # in one question; the rest waits for the next; spec memory 5.3
NOTES_EACH = 2
NOTE_MAX_CHARS = 160


class Verdict(BaseModel):
    """What one pair is."""

    pair: int = Field(description="The number of the pair.")
    verdict: Literal["same", "different", "unsure"]


class Verdicts(BaseModel):
    """One verdict for every pair."""

    verdicts: list[Verdict]


ENTITY_MERGE = Job("entity_merge", Tier.FAST, prompt=("memory", "entity_merge"), answer=Verdicts)


def run(user: User, job: Work, now: datetime) -> None:
    """The background work: see `consider`."""
    consider(user, at=now, job=job)


def is_due(user: User) -> bool:
    return bool(_open(user))


def consider(user: User, *, at: datetime, job: Work | None = None) -> int:
    """Ask a model about the open questions that it may decide; how many pairs it merged.

    What it cannot tell is left to the person. Raises WorkLeftDue, with nothing changed, if no model
    could be asked or its answer is not one verdict for each pair.
    """
    proposals = _open(user)
    if not proposals:
        return 0
    answer = ENTITY_MERGE.ask({"pairs": _described(user, proposals)}, otherwise=leave_due)
    verdicts = {one.pair: one.verdict for one in answer.verdicts}
    expected = set(range(1, len(proposals) + 1))
    if len(answer.verdicts) != len(expected) or set(verdicts) != expected:
        log.warning("entity_merge.answer_refused", pairs=len(proposals), given=len(verdicts))
        raise WorkLeftDue("The model did not answer every pair once. It stays due.")
    with transaction.atomic():
        lock(user)
        merged = sum(
            _decided(user, proposal, verdicts[number], at)
            for number, proposal in enumerate(proposals, start=1)
        )
        if job is not None:
            work.done(job, at=at)
        if len(proposals) == PAIRS_MAX and is_due(user):
            work.make_due(user, Work.Kind.ENTITY_MERGE, near_names.WORK_SUBJECT, at, again=True)
    log.info("entity_merge.finished", pairs=len(proposals), merged=merged)
    return merged


def _open(user: User) -> list[EntityMergeProposal]:
    """Strong likeness only, the most alike first, of names that are in use."""
    return list(
        EntityMergeProposal.objects.for_user(user)
        .filter(
            status=EntityMergeProposal.Status.OPEN,
            doubted_at__isnull=True,
            similarity__gte=likeness.STRONG,
            first__archived_at__isnull=True,
            second__archived_at__isnull=True,
        )
        .select_related("first", "second")
        .order_by("-similarity", "created_at", "id")[:PAIRS_MAX]
    )


def _decided(user: User, proposal: EntityMergeProposal, verdict: str, at: datetime) -> bool:
    """Carry out a verdict; whether the pair is merged now. The person may have been quicker."""
    doubted = EntityMergeProposal.objects.for_user(user).filter(id=proposal.id)
    if verdict == "unsure":
        doubted.update(doubted_at=at)
        return False
    try:
        decided = entities.decide(
            user=user, proposal_id=proposal.id, same=verdict == "same", at=at, by=Entity.By.MODEL
        )
    except Conflict:  # of different kinds by now: no model may join them
        doubted.update(doubted_at=at)
        return False
    return (
        decided.status == EntityMergeProposal.Status.MERGED
        and decided.decided_by == Entity.By.MODEL
    )


def _described(user: User, proposals: Sequence[EntityMergeProposal]) -> str:
    names = [entity for one in proposals for entity in (one.first, one.second)]
    notes: dict[UUID, list[str]] = {}
    mentions = (
        MemoryEntity.objects.for_user(user)
        .filter(entity__in=names, memory__archived_at__isnull=True)
        .order_by("-memory__created_at")
        .values_list("entity_id", "memory__text")
    )
    for entity_id, text in mentions:
        notes.setdefault(entity_id, []).append(text)
    return "\n".join(
        f'<pair number="{number}">\n'
        + "\n".join(_name(one, notes.get(one.id, [])) for one in (pair.first, pair.second))
        + "\n</pair>"
        for number, pair in enumerate(proposals, start=1)
    )


def _name(entity: Entity, notes: Sequence[str]) -> str:
    shown = "".join(
        f"\n  <note>{quoted(text[:NOTE_MAX_CHARS])}</note>" for text in notes[:NOTES_EACH]
    )
    return (
        f'<name kind="{entity.entity_type}" notes="{len(notes)}">'
        f"{quoted(entity.name)}{shown}</name>"
    )
