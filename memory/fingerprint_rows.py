"""Fingerprints as rows: read from memories' texts by rule, and by a model where one gave fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory import fingerprint_rules, fingerprints
from memory.fingerprints import Fingerprint
from memory.models import Fingerprint as Row
from memory.models import Memory, MemoryEntity
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User


def write(
    user: User,
    memories: Sequence[Memory],
    *,
    given: Mapping[UUID, Fingerprint],
    at: datetime,
) -> None:
    """Write the memories' fingerprints, in the place of older ones; two statements for all.

    `given` are fields that a model found, by memory; none of them is empty altogether. Names are
    those that the memories mention already.
    """
    if not memories:
        return
    zone, person = accounts.zone(user), user.get_short_name()
    named = _named(user, memories)
    rows = []
    for memory in memories:
        found = fingerprint_rules.read(
            memory.text,
            memory_type=memory.memory_type,
            on=memory.said_at.astimezone(zone).date(),
            entities=named.get(memory.id, ()),
            person=person,
        )
        by_model = given.get(memory.id)
        if by_model is not None:
            found = fingerprints.completed(found, by_model)
        text = fingerprints.canonical(found)
        rows.append(
            Row(
                user=user,
                memory=memory,
                canonical=text,
                sha256=fingerprints.sha256(text),
                fact_count=fingerprints.fact_count(found),
                author=Row.Author.MODEL if by_model else Row.Author.RULE,
                made_at=at,
            )
        )
    Row.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["memory"],
        update_fields=["canonical", "sha256", "fact_count", "author", "made_at"],
    )


def retype(user: User, memory: Memory) -> None:
    """The memory is of another type now, and says what it said."""
    for row in Row.objects.for_user(user).filter(memory=memory):
        found = replace(fingerprints.parse(row.canonical), type=memory.memory_type)
        row.canonical = fingerprints.canonical(found)
        row.sha256 = fingerprints.sha256(row.canonical)
        row.save(update_fields=["canonical", "sha256"])


def _named(user: User, memories: Sequence[Memory]) -> dict[UUID, list[str]]:
    rows = MemoryEntity.objects.for_user(user).filter(memory__in=[one.id for one in memories])
    found: dict[UUID, list[str]] = {}
    for memory_id, name in rows.values_list("memory_id", "entity__name"):
        found.setdefault(memory_id, []).append(name)
    return found
