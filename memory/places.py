"""Wings and rooms: where memories belong, as the person names it.

A wing is a project, a team, a part of life; a room is a corner of one. A name means the same
whatever the case of its letters: within a person's memories the spelling that is there already is
used again. Cases are compared here and not by the database, whose locale may know only ASCII.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Q

from memory.constants import DEFAULT_WING, PLACE_MAX_CHARS, ROOM_OF_TYPE
from memory.models import Memory
from mira_site.accounts.models import User

Place = tuple[str, str]  # wing, room


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    name: str
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wing:
    """A wing with its rooms, both by name; archived memories are not counted."""

    name: str
    memories: int
    rooms: tuple[Room, ...]


def tidy(name: str) -> str:
    """As it is stored: composed, single spaces, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def same(name: str) -> str:
    """What two spellings of one name have in common."""
    return unicodedata.normalize("NFC", tidy(name).casefold())


def objection(name: str) -> str:
    """What is wrong with a tidy name, or ''; an empty one stands for the default."""
    if len(name) > PLACE_MAX_CHARS:
        return f"At most {PLACE_MAX_CHARS} characters."
    if name and not (all(map(_may_stand, name)) and unicodedata.category(name[0])[0] != "M"):
        return "Use letters, digits, spaces, hyphens and underscores."
    return ""


def _may_stand(char: str) -> bool:
    """Letters of any language with their marks, decimal digits, `_`, `-` and the space."""
    category = unicodedata.category(char)
    return char in "_- " or category[0] in "LM" or category == "Nd"


class Spellings:
    """The names a person's memories have so far; those given in the meantime are among them."""

    def __init__(self, user: User) -> None:
        self._wings: dict[str, str] = {}
        self._rooms: dict[tuple[str, str], str] = {}
        for wing, room in in_use(user):
            self._add(wing, room)

    def settle(self, wing: str, room: str, memory_type: str) -> Place:
        """Where a memory of this type goes, in the spelling there is; '' means the default."""
        wing = tidy(wing) or DEFAULT_WING
        room = tidy(room) or ROOM_OF_TYPE.get(memory_type, memory_type)
        return self._add(wing, room)

    def _add(self, wing: str, room: str) -> Place:
        known = self._wings.setdefault(same(wing), wing)
        return known, self._rooms.setdefault((same(wing), same(room)), room)


def moved(user: User, memory: Memory, changes: Mapping[str, Any]) -> dict[str, str]:
    """Where the memory stands after these changes of its fields; empty if they do not move it.

    A room that came with the kind of memory changes with the kind. Callers hold storage.lock(user).
    """
    if not changes.keys() & {"wing", "room", "memory_type"}:
        return {}
    kind = changes.get("memory_type", memory.memory_type)
    by_kind = same(memory.room) == same(ROOM_OF_TYPE.get(memory.memory_type, memory.memory_type))
    room = changes.get("room", "" if by_kind else memory.room)
    wing, room = Spellings(user).settle(changes.get("wing", memory.wing), room, kind)
    return {"wing": wing, "room": room}


# Jumps from one pair to the next in the index, however many memories share a pair.
_IN_USE = """
WITH RECURSIVE places AS (
    (SELECT wing, room FROM memory_memories WHERE user_id = %(user)s ORDER BY wing, room LIMIT 1)
    UNION ALL
    SELECT following.wing, following.room
    FROM places CROSS JOIN LATERAL (
        SELECT m.wing, m.room FROM memory_memories AS m
        WHERE m.user_id = %(user)s AND (m.wing, m.room) > (places.wing, places.room)
        ORDER BY m.wing, m.room LIMIT 1
    ) AS following
)
SELECT wing, room FROM places
"""


def in_use(user: User) -> list[Place]:
    """Every wing and room that a memory of the person has, archived ones too."""
    with connection.cursor() as cursor:
        cursor.execute(_IN_USE, {"user": user.pk})
        return [(wing, room) for wing, room in cursor.fetchall()]


def inside(user: User, *, wing: str | None = None, room: str | None = None) -> Q:
    """The memories of a wing and of a room, as a filter; None does not narrow."""
    if wing is None and room is None:
        return Q()
    wanted = [
        (one, other)
        for one, other in in_use(user)
        if (wing is None or same(one) == same(wing)) and (room is None or same(other) == same(room))
    ]
    by_wing: dict[str, list[str]] = {}
    for one, other in wanted:
        by_wing.setdefault(one, []).append(other)
    found = Q(pk__in=[])
    for one, rooms in by_wing.items():
        found |= Q(wing=one) if room is None else Q(wing=one, room__in=rooms)
    return found


def wings(user: User) -> tuple[Wing, ...]:
    """The wings that hold memories, by name, with their rooms."""
    rows = Memory.objects.for_user(user).live().values_list("wing", "room")
    counted = rows.annotate(memories=Count("id")).order_by("wing", "room")
    found: dict[str, dict[str, Room]] = {}
    spelt: dict[str, str] = {}
    for wing, room, memories in counted:
        spelt.setdefault(same(wing), wing)
        rooms = found.setdefault(same(wing), {})
        before = rooms.get(same(room), Room(name=room, memories=0))
        rooms[same(room)] = Room(name=before.name, memories=before.memories + memories)
    return tuple(_wing(spelt[key], found[key].values()) for key in sorted(found))


def _wing(name: str, rooms: Iterable[Room]) -> Wing:
    ordered = tuple(sorted(rooms, key=lambda room: same(room.name)))
    return Wing(name=name, memories=sum(room.memories for room in ordered), rooms=ordered)
