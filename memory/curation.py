"""Looking after memories: new ones find their place, and what lies at the bottom is gone through.

Each pass first merges, by rule, what says the same. The rest is a model's, at a desk of its own:
what it decides is checked and then done in one transaction. A pass that fails in any way changes
nothing, stamps nothing and stays due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memory import curator, links, lookup, short_ids, twins, work
from memory.constants import (
    CURATION_BATCH,
    CURATION_BATCHES_MAX,
    CURATION_HINTS,
    FLOOR_BELOW,
    FLOOR_SAMPLE,
    FLOOR_UNTENDED_DAYS,
)
from memory.links import Hint
from memory.models import Memory, Work
from memory.staging import Desk
from mira_site import prompts
from mira_site.accounts.models import User
from mira_site.errors import WorkLeftDue
from mira_site.llm import client

log = structlog.get_logger(__name__)

INTEGRATION, FLOOR = "curation_integration", "curation_floor"  # prompts, and names of the calls


def integrate(user: User, job: Work, now: datetime) -> None:
    """Runner: each new memory of a segment is merged, linked, set against others or left alone."""
    segment_id = UUID(job.subject)
    twins.fold(user, _new(user, segment_id, now), at=now)
    for _ in range(CURATION_BATCHES_MAX):
        ids = _new(user, segment_id, now)
        if not ids:
            work.done(job, at=timezone.now())
            return
        _require_model()
        _integrate_batch(user, job, segment_id, ids, now)
    if _new(user, segment_id, now):
        raise WorkLeftDue("There are more new memories than one run looks at. It goes on later.")


def _integrate_batch(
    user: User, job: Work, segment_id: UUID, ids: Sequence[UUID], now: datetime
) -> None:
    batch = ids[:CURATION_BATCH]
    hints = links.hints(user, batch, now=now)
    near = [hint.memory_id for found in hints.values() for hint in found[:CURATION_HINTS]]
    others = [one for one in dict.fromkeys(near) if one not in batch]
    desk = Desk(
        user=user,
        mode="integration",
        handed=tuple(batch),
        shown=tuple(others),
        segment_id=segment_id,
    )
    _pass(
        desk,
        INTEGRATION,
        {
            "new": lookup.render(user, batch, now=now),
            "candidates": lookup.render(user, others, now=now) or "None.",
            "hints": _hinted(hints) or "None.",
        },
        job=job,
        is_last=len(ids) <= CURATION_BATCH,
    )


def floor(user: User, job: Work, now: datetime) -> None:
    """Runner: a few memories that nothing speaks for are archived, salvaged or left with reason."""
    twins.fold(user, _low(user, now), at=now)
    sample = _low(user, now)
    if not sample:
        work.done(job, at=timezone.now())
        return
    _require_model()
    desk = Desk(user=user, mode="floor", handed=tuple(sample))
    _pass(desk, FLOOR, {"memories": lookup.render(user, sample, now=now)}, job=job, is_last=True)


def _pass(desk: Desk, purpose: str, values: Mapping[str, str], *, job: Work, is_last: bool) -> None:
    system, question = prompts.question("memory", purpose, values)
    curator.tend(desk, system=system, question=question, job=purpose)
    at = timezone.now()
    with transaction.atomic():
        desk.apply(at=at)
        if is_last:
            work.done(job, at=at)
    log.info(
        "memories.curated",
        mode=desk.mode,
        memories=len(desk.handed),
        merged=len(desk.merges),
        linked=len(desk.linked),
        archived=len(desk.archived),
        superseded=len(desk.replaced),
        disputed=len(desk.disputed),
    )


def _require_model() -> None:
    if not client.is_configured():
        raise WorkLeftDue("No model could do this now. It stays due and is taken up later.")


def _new(user: User, segment_id: UUID, now: datetime) -> list[UUID]:
    """The segment's memories that nobody has looked after yet, in the order they were stored."""
    rows = Memory.objects.for_user(user).visible(now)
    fresh = rows.filter(source_segment_id=segment_id, tended_at__isnull=True)
    return list(fresh.order_by("created_at", "id").values_list("id", flat=True))


def _low(user: User, now: datetime) -> list[UUID]:
    """A sample of what is nearly forgotten; never what the person weighed or confirmed."""
    long_ago = now - timedelta(days=FLOOR_UNTENDED_DAYS)
    untended = Q(tended_at__lte=long_ago) | Q(tended_at__isnull=True, created_at__lte=long_ago)
    rows = Memory.objects.for_user(user).visible(now).filter(untended, importance__lt=FLOOR_BELOW)
    free = rows.filter(importance_by_person__isnull=True, confirmed_at__isnull=True)
    return list(free.order_by("?").values_list("id", flat=True)[:FLOOR_SAMPLE])


def _hinted(hints: Mapping[UUID, Sequence[Hint]]) -> str:
    lines = []
    for memory_id, found in hints.items():
        named = ", ".join(
            f"{short_ids.short(hint.memory_id)} ({hint.signal} {hint.similarity:.2f})"
            for hint in found[:CURATION_HINTS]
        )
        if named:
            lines.append(f"{short_ids.short(memory_id)}: {named}")
    return "\n".join(lines)
