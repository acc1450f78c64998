"""Which names a memory mentions: get-or-create of entities, never by likeness.

Callers hold `storage.lock(user)` in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from memory import naming, near_names, quoting
from memory.models import Entity, Memory, MemoryEntity
from memory.naming import OTHER, Named
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User

NAMES_PER_MEMORY_MAX = 12  # a longer list is a list, not a memory


def attach(user: User, named: Mapping[UUID, Sequence[Named]], *, at: datetime) -> None:
    """Note that these memories mention these names, under a name's own key and a fitting kind.

    A name that was archived, with what it is a name of, is back. The person's own name is left
    out: it would lead to everything. A dozen statements, however many memories; attaching twice
    changes nothing.
    """
    own = _own_keys(user)
    wanted = {memory_id: _distinct(names, without=own) for memory_id, names in named.items()}
    every = [one for names in wanted.values() for one in names]
    if not every:
        return
    known = _Known(user, every, at=at, use_day=accounts.use_days(user))
    MemoryEntity.objects.bulk_create(
        [
            MemoryEntity(user=user, memory_id=memory_id, entity_id=entity_id)
            for memory_id, names in wanted.items()
            for entity_id in dict.fromkeys(known.entity(one).id for one in names)
        ],
        ignore_conflicts=True,
    )


def spotted(user: User, texts: Mapping[UUID, str]) -> dict[UUID, list[Named]]:
    """Names in memories' texts by rule; one statement finds which of them are known already."""
    statements = {memory_id: quoting.meaning(text) for memory_id, text in texts.items()}
    openings: set[str] = set().union(*map(naming.openings, statements.values()))
    known = set(
        Entity.objects.for_user(user)
        .filter(normalised__in=openings)
        .values_list("normalised", flat=True)
    )
    return {
        memory_id: [Named(name=name) for name in naming.names_in(text, known=known)]
        for memory_id, text in statements.items()
    }


def read_again(user: User, memory: Memory, *, at: datetime) -> None:
    """After an edit: names that the text no longer holds are let go, new ones attached by rule."""
    text = f" {naming.key(memory.text)} "
    mentioned = MemoryEntity.objects.for_user(user).filter(memory=memory).select_related("entity")
    gone = [mention.id for mention in mentioned if f" {mention.entity.normalised} " not in text]
    MemoryEntity.objects.for_user(user).filter(id__in=gone).delete()
    attach(user, spotted(user, {memory.id: memory.text}), at=at)


def _own_keys(user: User) -> set[str]:
    names = (user.first_name, user.get_full_name(), user.get_username())
    return {naming.key(name) for name in names if name}


def _distinct(names: Iterable[Named], *, without: set[str]) -> list[Named]:
    """Cleaned, one of each key, the first with a definite kind."""
    found: dict[str, Named] = {}
    for one in names:
        name, kind = naming.cleaned(one.name), naming.known_type(one.entity_type)
        key = naming.key(name)
        if not name or key in without:
            continue
        if key not in found or found[key].entity_type == OTHER:
            found[key] = Named(name=name, entity_type=kind)
    return list(found.values())[:NAMES_PER_MEMORY_MAX]


class _Known:
    """The person's entities under the keys in hand; what is missing is made at once."""

    def __init__(self, user: User, names: Sequence[Named], *, at: datetime, use_day: int) -> None:
        self._by_key: dict[str, list[Entity]] = {}
        keys = {naming.key(one.name) for one in names}
        stored = Entity.objects.for_user(user).filter(normalised__in=keys)
        for entity in stored.order_by("created_at", "id"):
            self._by_key.setdefault(entity.normalised, []).append(entity)
        new: list[Entity] = []
        settled: list[Entity] = []
        # A definite kind comes first: OTHER is then served by it.
        for one in sorted(names, key=lambda one: one.entity_type == OTHER):
            found = self._find(one)
            if found is None:
                new.append(self._made(user, one, at))
            elif found.entity_type == OTHER != one.entity_type:
                found.entity_type = one.entity_type
                settled.append(found)
        Entity.objects.bulk_create(new)
        Entity.objects.bulk_update([one for one in settled if one not in new], ["entity_type"])
        used = [self.entity(one) for one in names]
        ids = {entity.id for entity in used} | {entity.root_id for entity in used}
        Entity.objects.for_user(user).filter(id__in=ids).update(
            named_use_day=use_day, archived_at=None
        )
        near_names.index(user, new)
        near_names.propose(user, new, at=at)

    def entity(self, named: Named) -> Entity:
        """What stands for the name, which is one of those given at the start."""
        found = self._find(named)
        if found is None:
            raise KeyError(named.entity_type)
        return found

    def _find(self, named: Named) -> Entity | None:
        """Of the same kind, or else of one that fits; live before archived, old before new."""
        fitting = [
            entity
            for entity in self._by_key.get(naming.key(named.name), [])
            if naming.compatible(entity.entity_type, named.entity_type)
        ]
        fitting.sort(
            key=lambda entity: (
                entity.entity_type != named.entity_type,
                entity.archived_at is not None,
            )
        )
        return fitting[0] if fitting else None

    def _made(self, user: User, named: Named, at: datetime) -> Entity:
        entity = Entity(
            user=user,
            name=named.name,
            normalised=naming.key(named.name),
            entity_type=named.entity_type,
            created_at=at,
        )
        self._by_key.setdefault(entity.normalised, []).append(entity)
        return entity
