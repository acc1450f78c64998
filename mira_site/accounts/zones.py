"""IANA time zones: which names are good, and what a browser says its zone is."""

from __future__ import annotations

import functools
from urllib.parse import unquote
from zoneinfo import ZoneInfo, available_timezones

UTC = ZoneInfo("UTC")


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())


def is_known(name: str) -> bool:
    return name in _names()


def zone(name: str) -> ZoneInfo:
    """The zone of that name; UTC for one that this machine does not know."""
    return ZoneInfo(name) if is_known(name) else UTC


def first_known(*claims: str | None) -> str:
    """The first good name among what a browser claims (possibly percent-encoded), else UTC."""
    names = (unquote(claim) for claim in claims if claim)
    return next((name for name in names if is_known(name)), "UTC")
