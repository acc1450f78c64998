"""Derived forms of memories that were stored before there were any: fingerprints and passages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Length

from memory import derived, passages, storage
from memory.models import Memory
from mira_site.accounts.models import User

BATCH = 200  # memories in one transaction: the person's other writes wait for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Underived:
    """How many memories lack a fingerprint, and how many that are long lack their passages."""

    fingerprints: int
    passages: int


def missing(user: User) -> Underived:
    return Underived(
        fingerprints=_plain(user).count(),
        passages=sum(
            bool(passages.spans(text)) for text in _long(user).values_list("text", flat=True)
        ),
    )


def write_missing(user: User, *, at: datetime) -> Underived:
    """Write them, archived memories' too, in steps that each stand by themselves.

    Raises EmbeddingsUnavailable; what was written until then stays.
    """
    found = missing(user)
    while _write(user, list(_plain(user).values_list("id", flat=True)[:BATCH]), at=at):
        pass
    for memory_id, text in list(_long(user).values_list("id", "text")):
        if passages.spans(text):
            _write(user, [memory_id], at=at)
    return found


@transaction.atomic
def _write(user: User, memory_ids: list[object], *, at: datetime) -> bool:
    storage.lock(user)
    rows = Memory.objects.for_user(user).filter(id__in=memory_ids).defer("search_vector")
    found = list(rows.order_by("id"))
    derived.write(user, found, at=at)
    return bool(found)


def _plain(user: User) -> QuerySet[Memory]:
    """Memories without a fingerprint."""
    rows = Memory.objects.for_user(user).filter(fingerprint__isnull=True)
    return rows.order_by("created_at", "id")


def _long(user: User) -> QuerySet[Memory]:
    """Memories without passages whose text may need them: a word piece has a character at least."""
    rows = Memory.objects.for_user(user).annotate(length=Length("text"))
    return rows.filter(passages__isnull=True, length__gt=passages.PIECES_MAX)
