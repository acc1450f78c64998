"""IANA time zones: which names are good, and what a browser says its zone is."""

from __future__ import annotations

import functools
from urllib.parse import unquote
from zoneinfo import ZoneInfo, available_timezones

UTC = ZoneInfo("UTC")
_PLACES = (
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe",
    "Indian", "Pacific",
)  # fmt: skip


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())


def is_known(name: str) -> bool:
    return name in _names()


@functools.cache
def listed() -> tuple[str, ...]:
    """The names to choose from: places, not the aliases of old."""
    return (*sorted(name for name in _names() if name.split("/")[0] in _PLACES), "UTC")


def find(said: str) -> str | None:
    """The zone a person means by its name or by its city, however written; None if unclear."""
    wanted = "_".join(said.split()).casefold()
    by_name = [name for name in _names() if name.casefold() == wanted]
    by_city = [name for name in listed() if name.rpartition("/")[2].casefold() == wanted]
    if by_name:
        return by_name[0]
    return by_city[0] if len(by_city) == 1 else None


def zone(name: str) -> ZoneInfo:
    """The zone of that name; UTC for one that this machine does not know."""
    return ZoneInfo(name) if is_known(name) else UTC


def first_known(*claims: str | None) -> str:
    """The first good name among what a browser claims (possibly percent-encoded), else UTC."""
    names = (unquote(claim) for claim in claims if claim)
    return next((name for name in names if is_known(name)), "UTC")
