"""Clearing a room, a wing or everything: forgotten for good, as single memories are."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from django.core import signing
from django.db import transaction
from django.utils import timezone

from memory import forgetting, places, storage
from memory.constants import CLEAR_UNASKED_MAX, CONFIRMATION_MAX_AGE_S
from memory.models import ForgetReceipt, Memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, ConfirmationNeeded

log = structlog.get_logger(__name__)

_SALT = "memory.clearing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many memories stood there; no receipt if there were none."""

    count: int
    receipt: ForgetReceipt | None


@transaction.atomic
def clear(
    *, user: User, wing: str | None = None, room: str | None = None, confirm: str = ""
) -> Cleared:
    """Forget what stands in a room, in a whole wing, or, without either, all of the person's.

    Archived memories go too. Above CLEAR_UNASKED_MAX it takes the `confirmation` that the error
    ConfirmationNeeded brings, for this place and this number of memories, within ten minutes.
    Raises BadRequest for a room without a wing and for a name that is empty.
    """
    _check(wing, room)
    storage.lock(user)
    rows = Memory.objects.for_user(user).filter(places.inside(user, wing=wing, room=room))
    ids = list(rows.values_list("id", flat=True))
    if not ids:
        return Cleared(count=0, receipt=None)
    scope = _scope(user, wing, room, len(ids))
    if len(ids) > CLEAR_UNASKED_MAX and not _is_confirmed(confirm, scope):
        raise ConfirmationNeeded(
            f"This forgets {len(ids)} memories for good. To go on, send the same request with this "
            "confirmation within ten minutes.",
            confirmation=signing.dumps(scope, salt=_SALT),
        )
    receipt = forgetting.forget(user, ids, at=timezone.now())
    log.info("memories.cleared", memories=len(ids), receipt=receipt.short_id)
    return Cleared(count=len(ids), receipt=receipt)


def _check(wing: str | None, room: str | None) -> None:
    """An empty name is a mistake of the caller, and must not come to mean everything."""
    given = {"wing": wing, "room": room}
    wrong = {
        name: f"Name the {name}, or leave it out to mean every {name}."
        for name, value in given.items()
        if value is not None and not places.tidy(value)
    }
    if wing is None and room is not None:
        wrong["wing"] = "Name the wing that the room is in."
    if wrong:
        raise BadRequest("Some fields need another value; see errors.", fields=wrong)


def _scope(user: User, wing: str | None, room: str | None, count: int) -> dict[str, str | int]:
    named = {"wing": wing, "room": room}
    places_named = {name: places.same(value) for name, value in named.items() if value is not None}
    return {"user": str(user.pk), "count": count, **places_named}


def _is_confirmed(confirm: str, scope: dict[str, str | int]) -> bool:
    try:
        given = signing.loads(confirm, salt=_SALT, max_age=CONFIRMATION_MAX_AGE_S)
    except signing.BadSignature:
        return False
    return bool(given == scope)
