"""Days as a person reads them, in the person's zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def day(moment: datetime, zone: ZoneInfo) -> str:
    """For example "28 November 2026"; no locale of the machine has a say."""
    return written(moment.astimezone(zone).date())


def written(on: date) -> str:
    return f"{on.day} {_MONTHS[on.month - 1]} {on.year}"


def parsed(text: str, zone: ZoneInfo) -> datetime | None:
    """An ISO 8601 date or time, in UTC; without an offset it is the person's own clock.

    None where it is no such thing.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def start_of(on: date, zone: ZoneInfo) -> datetime:
    """The first moment of that day in the zone, in UTC."""
    return datetime.combine(on, time.min, tzinfo=zone).astimezone(UTC)


def end_of(on: date, zone: ZoneInfo) -> datetime:
    """The last moment of that day in the zone, in UTC."""
    return datetime.combine(on, time.max, tzinfo=zone).astimezone(UTC)
