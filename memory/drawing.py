"""Where the memories of a small graph stand in its picture: in rings around the one in view."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

RING = 100.0  # between two hops
NODE_RADIUS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """From the rim of one circle to the rim of another."""

    start: Point
    end: Point


def layout(depths: Mapping[UUID, int], edges: Sequence[tuple[UUID, UUID]]) -> dict[UUID, Point]:
    """A place for each memory: its ring is its depth, its angle near that of what it hangs on."""
    angles: dict[UUID, float] = {}
    places: dict[UUID, Point] = {}
    for depth in range(max(depths.values(), default=0) + 1):
        ring = [memory_id for memory_id, hops in depths.items() if hops == depth]
        inner = {memory_id: _angle_inside(memory_id, edges, angles) for memory_id in ring}
        ring.sort(key=lambda memory_id: inner[memory_id])
        for place, memory_id in enumerate(ring):
            angles[memory_id] = 2 * math.pi * place / len(ring)
            places[memory_id] = _at(RING * depth, angles[memory_id])
    return places


def line(one: Point, two: Point) -> Line:
    """Between two circles; of no length if they lie on each other."""
    length = math.hypot(two.x - one.x, two.y - one.y)
    if length <= 2 * NODE_RADIUS:
        return Line(start=one, end=one)
    dx, dy = (two.x - one.x) / length * NODE_RADIUS, (two.y - one.y) / length * NODE_RADIUS
    return Line(
        start=_rounded(one.x + dx, one.y + dy),
        end=_rounded(two.x - dx, two.y - dy),
    )


def _angle_inside(
    memory_id: UUID, edges: Sequence[tuple[UUID, UUID]], angles: Mapping[UUID, float]
) -> float:
    """The angle of a neighbour that is placed already, 0 if there is none."""
    for one, two in edges:
        if memory_id == one and two in angles:
            return angles[two]
        if memory_id == two and one in angles:
            return angles[one]
    return 0.0


def _at(radius: float, angle: float) -> Point:
    return _rounded(radius * math.sin(angle), -radius * math.cos(angle))


def _rounded(x: float, y: float) -> Point:
    return Point(x=round(x, 1) + 0.0, y=round(y, 1) + 0.0)
