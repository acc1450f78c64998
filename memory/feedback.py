"""What the person says about a memory that came up: right, outdated, wrong, never mention, forget.

Each but the last can be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from memory import accesses, forgetting, services, storage, truth
from memory.models import ForgetReceipt, Memory, MemoryAccess, MemoryLink
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound, RequestError

log = structlog.get_logger(__name__)

WRONG = "wrong"


class Verdict(StrEnum):
    RIGHT = "right"
    OUTDATED = "outdated"
    WRONG = "wrong"
    NEVER_MENTION = "never_mention"
    FORGET = "forget"


SAID = {
    Verdict.RIGHT: "Kept as right.",
    Verdict.OUTDATED: "Kept as past. It answers only when you ask how things were.",
    Verdict.WRONG: "Put away as wrong. It will not come up again.",
    Verdict.NEVER_MENTION: "It will never be mentioned.",
    Verdict.FORGET: "Forgotten.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a verdict did.

    `reopened` are memories that are true again; taking the verdict back closes them. `memory` is
    None once forgotten, `replaced_by` the new fact if one was given.
    """

    verdict: Verdict
    has_changed: bool
    memory: Memory | None = None
    replaced_by: UUID | None = None
    reopened: tuple[UUID, ...] = ()
    receipt: ForgetReceipt | None = None

    @property
    def said(self) -> str:
        if self.replaced_by is not None:
            return "Noted. The new one answers from now on, this one is past."
        return SAID[self.verdict]

    @property
    def can_undo(self) -> bool:
        return self.has_changed and self.verdict != Verdict.FORGET and self.replaced_by is None


def judge(
    *,
    user: User,
    memory_id: UUID,
    verdict: Verdict,
    now_true: str = "",
    turn_id: UUID | None = None,
) -> Judged:
    """Do what the verdict means. The same again changes nothing.

    `now_true` goes with "outdated": what is true instead. Raises NotFound, BadRequest for a text
    that cannot be stored, DependencyError without embeddings if there is one.
    """
    if verdict == Verdict.FORGET:
        receipt = forgetting.forget(user, [memory_id], at=timezone.now())
        judged = Judged(verdict=verdict, has_changed=True, receipt=receipt)
    elif now_true.strip():
        if verdict != Verdict.OUTDATED:
            raise BadRequest("Only what is outdated can be replaced by what is true now.")
        judged = _replace(user, memory_id, now_true)
    else:
        judged = _VERDICTS[verdict](user, memory_id)
    log.info(
        "memory.judged",
        memory=memory_id.hex[:8],
        verdict=verdict.value,
        changed=judged.has_changed,
        about_turn=turn_id.hex[:8] if turn_id else None,
    )
    return judged


@transaction.atomic
def take_back(
    *, user: User, memory_id: UUID, verdict: Verdict, reopened: Sequence[UUID] = ()
) -> Memory:
    """Undo a verdict; what it had reopened is closed again.

    Raises NotFound, BadRequest, Conflict.
    """
    if verdict == Verdict.FORGET:
        raise BadRequest("What is forgotten cannot be brought back.")
    if verdict == Verdict.WRONG:
        services.restore(user=user, memory_id=memory_id)
        for older_id in reopened:
            _close_again(user, memory_id, older_id)
    memory = _locked(user, memory_id)
    if verdict == Verdict.RIGHT:
        memory.confirmed_at = None
    elif verdict == Verdict.OUTDATED:
        memory.valid_until = None
    elif verdict == Verdict.NEVER_MENTION:
        memory.muted_at = None
    _save(memory)
    log.info("memory.verdict_taken_back", memory=memory.short_id, verdict=verdict.value)
    return memory


def release(*, user: User, memory_id: UUID) -> Memory:
    """What was held back may come up: the person has looked. Raises NotFound."""
    return services.release_held(user, memory_id, at=timezone.now())


@transaction.atomic
def _right(user: User, memory_id: UUID) -> Judged:
    memory = _locked(user, memory_id)
    is_new = memory.confirmed_at is None
    memory.confirmed_at = timezone.now()
    _save(memory)
    used = MemoryAccess.Kind.USED
    accesses.record(user, [memory.id], segment_id=None, kind=used, at=memory.confirmed_at)
    return Judged(verdict=Verdict.RIGHT, has_changed=is_new, memory=memory)


@transaction.atomic
def _outdated(user: User, memory_id: UUID) -> Judged:
    memory, now = _locked(user, memory_id), timezone.now()
    is_new = memory.valid_until is None or memory.valid_until > now
    if is_new:
        memory.valid_until = max(now, memory.valid_from or now)
        _save(memory)
    return Judged(verdict=Verdict.OUTDATED, has_changed=is_new, memory=memory)


@transaction.atomic
def _wrong(user: User, memory_id: UUID) -> Judged:
    memory = _locked(user, memory_id)
    if memory.archived_at is not None:
        return Judged(verdict=Verdict.WRONG, has_changed=False, memory=memory)
    reopened = truth.reopen_replaced_by(user, memory.id, at=timezone.now())
    memory = services.archive(user=user, memory_id=memory_id, reason=WRONG)
    return Judged(verdict=Verdict.WRONG, has_changed=True, memory=memory, reopened=tuple(reopened))


@transaction.atomic
def _never_mention(user: User, memory_id: UUID) -> Judged:
    memory = _locked(user, memory_id)
    is_new = memory.muted_at is None
    if is_new:
        memory.muted_at = timezone.now()
        _save(memory)
    return Judged(verdict=Verdict.NEVER_MENTION, has_changed=is_new, memory=memory)


_VERDICTS = {
    Verdict.RIGHT: _right,
    Verdict.OUTDATED: _outdated,
    Verdict.WRONG: _wrong,
    Verdict.NEVER_MENTION: _never_mention,
}


def _replace(user: User, memory_id: UUID, now_true: str) -> Judged:
    older = _found(user, memory_id)
    newer = services.create(
        user=user, text=now_true, memory_type=older.memory_type, wing=older.wing, room=older.room
    )
    truth.supersede(
        user,
        newer.id,
        memory_id,
        at=timezone.now(),
        reasoning="The person said what is true now.",
        author=MemoryLink.Author.PERSON,
    )
    return Judged(
        verdict=Verdict.OUTDATED,
        has_changed=True,
        memory=_found(user, memory_id),
        replaced_by=newer.id,
    )


def _close_again(user: User, newer_id: UUID, older_id: UUID) -> None:
    try:
        truth.supersede(
            user,
            newer_id,
            older_id,
            at=timezone.now(),
            reasoning="The person took back that it was wrong.",
            author=MemoryLink.Author.PERSON,
        )
    except RequestError as error:  # it is archived or gone by now: nothing is left to close
        log.info("memory.not_closed_again", code=error.code)


def _found(user: User, memory_id: UUID) -> Memory:
    memory: Memory | None = (
        Memory.objects.for_user(user)
        .defer("embedding", "search_vector")
        .filter(id=memory_id)
        .first()
    )
    if memory is None:
        raise NotFound("There is no such memory.")
    return memory


def _locked(user: User, memory_id: UUID) -> Memory:
    storage.lock(user)
    return _found(user, memory_id)


def _save(memory: Memory) -> None:
    memory.save(update_fields=["confirmed_at", "valid_until", "muted_at", "updated_at"])
