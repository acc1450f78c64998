"""Truth over time: what replaced what, what contradicts what, and since when.

A replaced memory stays, with `valid_until`, as past: the visibility rule keeps it out unless the
past is asked for. What cannot be decided stays visible on both sides and open as a conflict, until
the person is asked. Every write takes the person's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Literal
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import F, Max, Min, Q, QuerySet

from memory import links, telling
from memory.models import Conflict, Memory, MemoryLink
from memory.past import asks_for_past, span
from memory.storage import lock
from memory.types import OneSide, OpenQuestion
from memory.visibility import visible
from mira_site import errors
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound

__all__ = [
    "Keep",
    "asks_for_past",
    "conflict",
    "mark_asked",
    "open_conflicts",
    "open_question",
    "question_of_the_day",
    "reopen_replaced_by",
    "resolve",
    "span",
    "supersede",
]

log = structlog.get_logger(__name__)

Keep = Literal["older", "newer", "both"]
SETTLED_AGAINST = "settled against"
Type = MemoryLink.Type
Author = MemoryLink.Author


# --- Replacement ---------------------------------------------------------------------------------
@transaction.atomic
def supersede(
    user: User,
    newer_id: UUID,
    older_id: UUID,
    *,
    at: datetime,
    reasoning: str,
    bond: str = "",
    author: str = Author.RULE,
) -> MemoryLink | None:
    """The newer memory is true from now on, the older one is past.

    It ends when the newer began, or else when that was said. Doing it twice changes nothing; an
    open conflict of the two is settled by it. Where only a cue said so before (causes.py), which
    ends nothing, it is done now. Returns the link written, None if nothing changed. Raises NotFound
    if either is none of the person's live memories, BadRequest for one and the same, Conflict if
    the older already replaces the newer, by itself or through others.
    """
    lock(user)
    newer, older = _pair(user, newer_id, older_id)
    if _has_ended(older, newer):
        _settle_conflicts(user, newer_id, older_id, at=at)
        return None
    if _replaces(user.pk, older_id, newer_id):
        raise errors.Conflict("The older of the two already replaces the newer one.")
    link = links.connect(
        user,
        newer_id,
        older_id,
        link_type=Type.SUPERSEDES,
        reasoning=reasoning,
        bond=bond,
        author=author,
        at=at,
    )
    _drop_link(user, older_id, newer_id, Type.CONFLICTS)
    _close(older, until=_begin(newer, at=at))
    _settle_conflicts(user, newer_id, older_id, at=at)
    log.info("memory.superseded", newer=newer.short_id, older=older.short_id, author=author)
    return link


def replacing(user: User, memory_ids: Collection[UUID]) -> list[UUID]:
    """Those of the memories that replace another, in the order of their ids.

    Whatever comes to replace another while these are reopened replaced one of them before, and so
    is here too if it is among the memories.
    """
    supersedes = MemoryLink.objects.for_user(user).filter(link_type=Type.SUPERSEDES)
    found = supersedes.filter(source__in=memory_ids).order_by("source_id")
    return list(found.values_list("source_id", flat=True).distinct())


@transaction.atomic
def reopen_replaced_by(user: User, newer_id: UUID, *, at: datetime) -> list[UUID]:
    """Take back what this memory replaced: call it before it is deleted, or when it was wrong.

    What it replaced is true again, unless another live memory replaces that too; what replaced
    this one now replaces what this one had. Returns the memories that changed.
    """
    lock(user)
    supersedes = MemoryLink.objects.for_user(user).filter(link_type=Type.SUPERSEDES)
    replaced = list(
        supersedes.filter(source_id=newer_id)
        .order_by("target_id")
        .values_list("target_id", flat=True)
    )
    heirs = list(
        supersedes.filter(
            target_id=newer_id, target__valid_until__isnull=False, source__archived_at__isnull=True
        )
        .order_by("source_id")
        .values_list("source_id", flat=True)
    )
    ended = Memory.objects.for_user(user).filter(id__in=replaced, valid_until__isnull=False)
    closed = set(ended.values_list("id", flat=True))  # the others were replaced by a cue only
    closed_at = (
        Memory.objects.for_user(user)
        .filter(id=newer_id)
        .values_list("valid_from", flat=True)
        .first()
    )
    supersedes.filter(source_id=newer_id).delete()
    for older_id in replaced:
        _open_again(user, older_id, closed_at=closed_at)
        for heir_id in heirs if older_id in closed else ():
            _inherit(user, heir_id, older_id, at=at)
    if replaced:
        log.info("memory.reopened", newer=newer_id.hex[:8], memories=len(replaced))
    return replaced


@transaction.atomic
def let_go(user: User, newer_id: UUID, older_id: UUID) -> bool:
    """Take one replacement back, its link with it: the older is true again unless another live
    memory replaces it too. False if the newer does not replace the older directly.
    """
    lock(user)
    replaced = MemoryLink.objects.for_user(user).filter(
        source_id=newer_id, target_id=older_id, link_type=Type.SUPERSEDES
    )
    if not replaced.delete()[0]:
        return False
    newer = Memory.objects.for_user(user).filter(id=newer_id)
    closed_at = newer.values_list("valid_from", flat=True).first()
    _open_again(user, older_id, closed_at=closed_at)
    return True


def _inherit(user: User, heir_id: UUID, older_id: UUID, *, at: datetime) -> None:
    try:
        supersede(user, heir_id, older_id, at=at, reasoning="It replaced what had replaced this.")
    except errors.RequestError as error:  # the older is archived: nothing is left to close
        log.info("memory.not_inherited", code=error.code)


def _pair(user: User, one_id: UUID, other_id: UUID) -> tuple[Memory, Memory]:
    if one_id == other_id:
        raise BadRequest("Name two different memories.")
    rows = {
        row.id: row
        for row in Memory.objects.for_user(user)
        .live()
        .filter(id__in=(one_id, other_id))
        .defer("embedding", "search_vector")
        .order_by("id")
        .select_for_update(no_key=True)
    }
    if len(rows) != 2:
        raise NotFound("There is no such memory, or it is archived.")
    return rows[one_id], rows[other_id]


# What a memory replaces, through any number of steps.
_CHAIN = """
WITH RECURSIVE chain (id) AS (
    SELECT target_id FROM memory_links
    WHERE user_id = %(user)s AND source_id = %(newer)s AND link_type = 'supersedes'
    UNION
    SELECT link.target_id FROM chain
    JOIN memory_links AS link ON link.user_id = %(user)s AND link.source_id = chain.id
     AND link.link_type = 'supersedes'
)
SELECT EXISTS (SELECT 1 FROM chain WHERE id = %(older)s)
"""


def _replaces(user_id: UUID, newer_id: UUID, older_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_CHAIN, {"user": user_id, "newer": newer_id, "older": older_id})
        (found,) = cursor.fetchone()
        return bool(found)


def _has_ended(older: Memory, newer: Memory) -> bool:
    """Whether the newer replaced the older, which is past since; a cue alone ends nothing."""
    return older.valid_until is not None and _replaces(older.user_id, newer.id, older.id)


def _begin(newer: Memory, *, at: datetime) -> datetime:
    """When the newer memory began to hold; noted on it where nobody had said so."""
    began: datetime | None = newer.valid_from
    if began is None:
        began = newer.sources.aggregate(first=Min("said_at"))["first"] or at
        newer.valid_from = began
        newer.save(update_fields=["valid_from", "updated_at"])
    return began


def _close(older: Memory, *, until: datetime) -> None:
    """It ends then, or at its earlier end; never before it began."""
    if older.valid_from is not None:
        until = max(until, older.valid_from)
    if older.valid_until is None or until < older.valid_until:
        older.valid_until = until
        older.save(update_fields=["valid_until", "updated_at"])


def _open_again(user: User, older_id: UUID, *, closed_at: datetime | None) -> None:
    """True again until what else replaces it began; an end that was earlier stays its end."""
    rows = Memory.objects.for_user(user).filter(id=older_id)
    older: Memory | None = rows.select_for_update(no_key=True).first()
    if older is None or older.valid_until is None:
        return
    closed = [moment for moment in (closed_at, older.valid_from) if moment is not None]
    if closed and older.valid_until < max(closed):
        return
    others = MemoryLink.objects.for_user(user).filter(
        target_id=older_id, link_type=Type.SUPERSEDES, source__archived_at__isnull=True
    )
    older.valid_until = others.aggregate(first=Min("source__valid_from"))["first"]
    older.save(update_fields=["valid_until", "updated_at"])


def _drop_link(user: User, source_id: UUID, target_id: UUID, link_type: str) -> None:
    MemoryLink.objects.for_user(user).filter(
        source_id=source_id, target_id=target_id, link_type=link_type
    ).delete()


# --- Conflicts -----------------------------------------------------------------------------------
@transaction.atomic
def conflict(
    user: User,
    older_id: UUID,
    newer_id: UUID,
    *,
    reasoning: str,
    at: datetime,
    author: str = Author.RULE,
) -> Conflict:
    """Two memories cannot both be true and nobody can tell which is: kept open, both visible.

    The same pair again, either way round, is the conflict there is; one that the person settled
    stays settled. Raises as `supersede`; Conflict too if one of them replaces the other.
    """
    lock(user)
    newer, older = _pair(user, newer_id, older_id)
    if known := _of_pair(user, older_id, newer_id).order_by("created_at").first():
        return known
    if _has_ended(newer, older) or _has_ended(older, newer):
        raise errors.Conflict("One of the two already replaces the other.")
    links.connect(
        user,
        newer_id,
        older_id,
        link_type=Type.CONFLICTS,
        reasoning=reasoning,
        author=author,
        at=at,
    )
    made: Conflict = Conflict.objects.create(
        user=user,
        older_id=older_id,
        newer_id=newer_id,
        reasoning=reasoning[: links.REASONING_MAX_CHARS],
        created_at=at,
    )
    log.info("conflict.opened", conflict=made.short_id, author=author)
    return made


@transaction.atomic
def resolve(user: User, conflict_id: UUID, *, keep: Keep, at: datetime) -> Conflict:
    """Settle a conflict as the person says. Settling it the same way twice changes nothing.

    newer: it replaces the older, which stays as past. older: the newer was wrong; it is archived,
    restorable, and what it had replaced is true again. both: they do not contradict each other.
    Raises NotFound; Conflict if it was settled otherwise before.
    """
    lock(user)
    found: Conflict | None = (
        Conflict.objects.for_user(user).select_for_update().filter(id=conflict_id).first()
    )
    if found is None:
        raise NotFound("There is no such conflict.")
    if found.status != Conflict.Status.OPEN:
        if found.kept == keep:
            return found
        raise errors.Conflict("This was settled already. Edit or archive one of the memories.")
    _drop_link(user, found.newer_id, found.older_id, Type.CONFLICTS)
    _drop_link(user, found.older_id, found.newer_id, Type.CONFLICTS)
    if keep == "newer":
        supersede(
            user,
            found.newer_id,
            found.older_id,
            at=at,
            reasoning="The person was asked and kept the newer one.",
            author=Author.PERSON,
        )
    elif keep == "older":
        _put_away(user, found.newer_id, at=at)
    sides = {"older": [found.older_id], "newer": [found.newer_id]}
    kept_ids = sides.get(keep, [found.older_id, found.newer_id])
    Memory.objects.for_user(user).filter(id__in=kept_ids).update(confirmed_at=at, updated_at=at)
    found.status = Conflict.Status.DISMISSED if keep == "both" else Conflict.Status.RESOLVED
    found.kept, found.resolved_at = keep, at
    found.save(update_fields=["status", "kept", "resolved_at"])
    log.info("conflict.resolved", conflict=found.short_id, kept=keep)
    return found


def open_again(user: User, conflict: Conflict) -> None:
    """What settled it was taken back: it is to be asked about again."""
    conflict.status, conflict.kept, conflict.resolved_at = Conflict.Status.OPEN, "", None
    conflict.save(update_fields=["status", "kept", "resolved_at"])
    links.connect(
        user,
        conflict.newer_id,
        conflict.older_id,
        link_type=Type.CONFLICTS,
        reasoning=conflict.reasoning,
        author=Author.RULE,
        at=conflict.created_at,
    )


def open_conflicts(user: User, *, now: datetime) -> QuerySet[Conflict]:
    """Open conflicts of which both sides may come up, the oldest first, with both memories."""
    seen = Memory.objects.for_user(user).filter(visible(now)).values("id")
    found: QuerySet[Conflict] = (
        Conflict.objects.for_user(user)
        .filter(status=Conflict.Status.OPEN, older__in=seen, newer__in=seen)
        .select_related("older", "newer")
        .order_by("created_at", "id")
    )
    return found.defer(
        "older__embedding", "older__search_vector", "newer__embedding", "newer__search_vector"
    )


def question_of_the_day(user: User, *, today: date, now: datetime) -> Conflict | None:
    """The open conflict to ask about: the one not asked about for longest.

    None if there is none, or one was asked about already on this day of the person's. Reading it
    changes nothing; `mark_asked` does, once it stood before MIRA in an answered turn.
    """
    # Nearly always there is none, and to look whose sides may be seen takes several times longer.
    if not Conflict.objects.for_user(user).filter(status=Conflict.Status.OPEN).exists():
        return None
    waiting = open_conflicts(user, now=now)
    found = waiting.order_by(F("asked_at").asc(nulls_first=True), "created_at", "id").first()
    if found is None:
        return None
    asked = Conflict.objects.for_user(user).aggregate(last=Max("asked_at"))
    last: datetime | None = asked["last"]
    if last is not None and last.astimezone(accounts.zone(user)).date() >= today:
        return None
    return found


def open_question(user: User, *, today: date, now: datetime) -> OpenQuestion | None:
    """The question of the day as a value, for a prompt or an answer."""
    found = question_of_the_day(user, today=today, now=now)
    if found is None:
        return None
    older, newer = (
        OneSide(id=side.id, text=side.text, noted_at=side.created_at)
        for side in (found.older, found.newer)
    )
    return OpenQuestion(conflict_id=found.id, older=older, newer=newer)


def mark_asked(user: User, conflict_id: UUID, *, at: datetime) -> None:
    Conflict.objects.for_user(user).filter(id=conflict_id).update(asked_at=at)


def _of_pair(user: User, one_id: UUID, other_id: UUID) -> QuerySet[Conflict]:
    rows: QuerySet[Conflict] = Conflict.objects.for_user(user).filter(
        Q(older_id=one_id, newer_id=other_id) | Q(older_id=other_id, newer_id=one_id)
    )
    return rows


def _settle_conflicts(user: User, newer_id: UUID, older_id: UUID, *, at: datetime) -> None:
    """One of the two replaces the other: there is nothing left to ask."""
    rows: Iterable[Conflict] = _of_pair(user, newer_id, older_id)
    opened: Sequence[Conflict] = [row for row in rows if row.status == Conflict.Status.OPEN]
    for row in opened:
        row.kept = "newer" if row.newer_id == newer_id else "older"
        row.status, row.resolved_at = Conflict.Status.RESOLVED, at
        row.save(update_fields=["status", "kept", "resolved_at"])


def _put_away(user: User, memory_id: UUID, *, at: datetime) -> None:
    reopen_replaced_by(user, memory_id, at=at)
    row = Memory.objects.for_user(user).filter(id=memory_id)
    if row.live().update(archived_at=at, archive_reason=SETTLED_AGAINST, updated_at=at):
        telling.archived(user, row.defer("embedding"), reason=SETTLED_AGAINST)
