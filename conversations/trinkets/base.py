"""What a trinket is: a named section of the prompt with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from conversations.types import TurnContext

Render = Callable[[TurnContext], str]


class Slot(IntEnum):
    """From the cached prefix to the volatile end."""

    CONSTANT = 1  # the same for everybody, always
    SEGMENT = 2  # the same for the length of a segment
    HUD = 3  # new with every turn, just before the newest message


@dataclass(frozen=True, slots=True, kw_only=True)
class Trinket:
    name: str
    slot: Slot
    order: int
    render: Render


_registered: dict[str, Trinket] = {}


def trinket(name: str, *, slot: Slot, order: int) -> Callable[[Render], Render]:
    """Register a section. Raises ValueError if its name or its place is taken."""

    def register(render: Render) -> Render:
        for other in _registered.values():
            if other.name == name or (other.slot, other.order) == (slot, order):
                raise ValueError(f"Trinket {name!r}: its name or place belongs to {other.name!r}.")
        _registered[name] = Trinket(name=name, slot=slot, order=order, render=render)
        return render

    return register


def in_order() -> list[Trinket]:
    return sorted(_registered.values(), key=lambda item: (item.slot, item.order))
