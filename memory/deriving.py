"""Derived forms of memories that were stored before there were any: fingerprints, passages, token
vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Length

from memory import derived, passages, storage, token_vectors
from memory.models import Memory
from mira_site.accounts.models import User

BATCH = 100  # memories in one transaction: the person's other writes wait for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Underived:
    """How many memories lack a fingerprint or token vectors, and how many long ones passages."""

    fingerprints: int
    passages: int
    token_vectors: int


def missing(user: User) -> Underived:
    return Underived(
        fingerprints=len(_plain(user)),
        passages=len(_uncut(user)),
        token_vectors=len(_unread(user)),
    )


def write_missing(user: User, *, at: datetime) -> Underived:
    """Write them, of archived memories too, in steps that each stand by themselves.

    Raises EmbeddingsUnavailable; what was written until then stays.
    """
    plain, uncut, unread = _plain(user), _uncut(user), _unread(user)
    wanted = list(dict.fromkeys([*plain, *uncut]))
    for start in range(0, len(wanted), BATCH):
        _write(user, wanted[start : start + BATCH], at=at)
    left = [one for one in unread if one not in set(wanted)]
    for start in range(0, len(left), BATCH):
        _read(user, left[start : start + BATCH])
    return Underived(fingerprints=len(plain), passages=len(uncut), token_vectors=len(unread))


@transaction.atomic
def _write(user: User, memory_ids: Sequence[UUID], *, at: datetime) -> None:
    storage.lock(user)
    rows = Memory.objects.for_user(user).filter(id__in=memory_ids).defer("search_vector")
    derived.write(user, list(rows.order_by("id")), at=at)


@transaction.atomic
def _read(user: User, memory_ids: Sequence[UUID]) -> None:
    """Token vectors alone: a fingerprint that a model made stays."""
    storage.lock(user)
    rows = Memory.objects.for_user(user).filter(id__in=memory_ids).only("id", "text")
    token_vectors.write(user, list(rows.order_by("id")))


def _plain(user: User) -> list[UUID]:
    """Memories without a fingerprint."""
    rows = Memory.objects.for_user(user).filter(fingerprint__isnull=True)
    return list(rows.order_by("created_at", "id").values_list("id", flat=True))


def _unread(user: User) -> list[UUID]:
    """Memories without token vectors."""
    rows = token_vectors.missing(user).order_by("created_at", "id")
    return list(rows.values_list("id", flat=True))


def _uncut(user: User) -> list[UUID]:
    """Memories that need passages and have none; a word piece has a character at least."""
    rows = Memory.objects.for_user(user).annotate(length=Length("text"))
    long = rows.filter(passages__isnull=True, length__gt=passages.PIECES_MAX)
    texts = long.order_by("created_at", "id").values_list("id", "text")
    return [memory_id for memory_id, text in texts.iterator() if passages.spans(text)]
