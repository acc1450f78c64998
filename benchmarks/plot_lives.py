"""Draws docs/images/lives.svg: the importance of a few memories over ninety use-days.

The curves are `memory.scoring.importance` itself, so the picture cannot differ from the code.

    .venv/bin/python -m benchmarks.plot_lives [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory.scoring import (
    ARCHIVE_BELOW,
    SURFACED_WEIGHT,
    USED_WEIGHT,
    Signals,
    Stakes,
    importance,
)

FILE = Path(__file__).resolve().parent.parent / "docs" / "images" / "lives.svg"
DAYS = 90
WIDTH, HEIGHT = 980, 460
LEFT, TOP, RIGHT, BOTTOM = 50, 24, 310, 46
EVENT_DAY, EXPIRY_DAY = 60, 30
LABEL_GAP = 17  # pixels between two names, so that none covers another


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    name: str
    colour: str
    signals: Callable[[int], Signals]


def accessed(day: int, on: range | tuple[int, ...], weight: float) -> Signals:
    """A memory that came up or was used on these days."""
    past = [when for when in on if when <= day]
    return Signals(
        age=day,
        idle=day - max(past, default=0),
        accesses=weight * len(past),
        mentions=len(past) if weight == USED_WEIGHT else 0,
    )


LIVES = (
    Life(
        name="used on days 5, 12 and 30",
        colour="#1b7f4d",
        signals=lambda day: accessed(day, (5, 12, 30), USED_WEIGHT),
    ),
    Life(
        name="surfaced every third day",
        colour="#2f6fb3",
        signals=lambda day: accessed(day, range(3, DAYS, 3), SURFACED_WEIGHT),
    ),
    Life(
        name="vital, never touched",
        colour="#7a4fb0",
        signals=lambda day: Signals(age=day, idle=day, stakes=Stakes.VITAL),
    ),
    Life(
        name=f"an event on day {EVENT_DAY}",
        colour="#c2571a",
        signals=lambda day: Signals(age=day, idle=day, happens_in_days=EVENT_DAY - day),
    ),
    Life(
        name="ordinary, never touched",
        colour="#5c6670",
        signals=lambda day: Signals(age=day, idle=day),
    ),
    Life(
        name="trivial, never touched",
        colour="#9a8c2c",
        signals=lambda day: Signals(age=day, idle=day, stakes=Stakes.TRIVIAL),
    ),
    Life(
        name=f"used twice, expires on day {EXPIRY_DAY}",
        colour="#b3365b",
        signals=lambda day: expiring(day),
    ),
)


def expiring(day: int) -> Signals:
    used = accessed(day, (10, 20), USED_WEIGHT)
    return Signals(
        age=used.age,
        idle=used.idle,
        accesses=used.accesses,
        mentions=used.mentions,
        expires_in_days=EXPIRY_DAY - day,
    )


def curve(life: Life) -> list[tuple[int, float]]:
    """(day, score) to the end, or to the day on which it is archived."""
    points = []
    for day in range(DAYS + 1):
        score = importance(life.signals(day))
        points.append((day, score))
        if score < ARCHIVE_BELOW:
            break
    return points


def x(day: float) -> float:
    return round(LEFT + day / DAYS * (WIDTH - LEFT - RIGHT), 1)


def y(score: float) -> float:
    return round(TOP + (1 - score) * (HEIGHT - TOP - BOTTOM), 1)


def spread(wanted: list[float]) -> list[float]:
    """The same heights, from the top down, none nearer to the next than LABEL_GAP."""
    placed: list[float] = []
    for height in wanted:
        placed.append(max(height, placed[-1] + LABEL_GAP) if placed else height)
    over = placed[-1] - (HEIGHT - BOTTOM + 4)
    for index in reversed(range(len(placed))):
        ceiling = placed[index + 1] - LABEL_GAP if index + 1 < len(placed) else placed[index] - over
        placed[index] = min(placed[index], ceiling) if over > 0 else placed[index]
    return placed


def grid() -> list[str]:
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fcfbf8"/>']
    for tenth in range(0, 11, 2):
        height = y(tenth / 10)
        parts.append(f'<path d="M{LEFT} {height}H{x(DAYS)}" stroke="#e2dfd8"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{height + 4}" text-anchor="end">{tenth / 10:.1f}</text>'
        )
    parts += [
        f'<text x="{x(day)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{day}</text>'
        for day in range(0, DAYS + 1, 15)
    ]
    middle = x(DAYS / 2)
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">use-days</text>')
    line = y(ARCHIVE_BELOW)
    parts.append(f'<path d="M{LEFT} {line}H{x(DAYS)}" stroke="#8a8578" stroke-dasharray="4 4"/>')
    parts.append(f'<text x="{LEFT + 6}" y="{line - 5}" fill="#6d685c">archived below</text>')
    return parts


def drawn() -> str:
    lives = [(life, curve(life)) for life in LIVES]
    # Equal ends are named in the order in which they end, the longest life first.
    lives.sort(key=lambda pair: (y(pair[1][-1][1]), -pair[1][-1][0]))
    heights = spread([y(points[-1][1]) for _, points in lives])
    parts = grid()
    for (life, points), height in zip(lives, heights, strict=True):
        path = "L".join(f"{x(day)} {y(score)}" for day, score in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{life.colour}" stroke-width="2.2"/>')
        day, score = points[-1]
        if score < ARCHIVE_BELOW:
            parts.append(f'<circle cx="{x(day)}" cy="{y(score)}" r="4" fill="{life.colour}"/>')
        end = f", archived on {day}" if score < ARCHIVE_BELOW else ""
        parts.append(
            f'<text x="{x(DAYS) + 8}" y="{round(height + 4, 1)}" fill="{life.colour}">'
            f"{life.name}{end}</text>"
        )
    title = "Importance of seven memories over ninety use-days"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif" font-size="12" fill="#4a463d">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> int:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(drawn(), encoding="utf-8")
    print(f"{file}: {len(LIVES)} lives.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
