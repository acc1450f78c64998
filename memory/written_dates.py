"""Days written out, such as 15/03/2027, "15 March" or "by Friday", to dates (pure)."""

from __future__ import annotations

import re
from datetime import date

from memory import relative_dates

_MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), start=1)
} | {"sept": 9, "fevrier": 2, "aout": 8, "decembre": 12}
_NAMES = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?!\d)")
_NUMBERS = re.compile(
    r"(?<![\d/.-])(?P<day>\d{1,2})(?P<sign>[/.-])(?P<month>\d{1,2})(?P=sign)"
    r"(?P<year>\d{4}|\d{2})(?!\d)"
)
_DAY_FIRST = re.compile(
    rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?(?: of| de)? (?P<name>{_NAMES})\.?"
    r"(?:,? (?:de )?(?P<year>\d{4}))?(?!\w)",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"(?<!\w)(?P<name>{_NAMES})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>\d{{4}}))?"
    r"(?!\w)",
    re.IGNORECASE,
)
_BARE_WEEKDAY = re.compile(
    r"(?:by|before|until|till|due(?: on)?|avant|d['’]ici|pour|:)\s+(?:the |le )?"
    r"(?P<day>monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)(?! prochain| dernier)(?!\w)",
    re.IGNORECASE,
)


def first_day(text: str, today: date) -> date | None:
    """The day that the text names first, written out or relative to `today`; None if it names none.

    Numbers are read day, month, year. Without a year it is the next such day from `today` on.
    """
    found = [
        (match.start(), on)
        for pattern in (_ISO, _NUMBERS, _DAY_FIRST, _MONTH_FIRST)
        for match in pattern.finditer(text)
        if (on := _written(match.groupdict(), today)) is not None
    ]
    # A weekday behind "by" is the coming one; relative_dates knows it behind "on" and "this".
    plain = _BARE_WEEKDAY.sub(lambda match: f"this {match['day']}", text)
    mentions = relative_dates.mentions(plain, today)
    found.extend((plain.find(mention.words), mention.on) for mention in mentions)
    return min(found)[1] if found else None


def with_days(text: str, today: date) -> str:
    """The text with relative dates written as days: tomorrow's memory has another tomorrow."""
    for mention in relative_dates.mentions(text, today):
        text = text.replace(mention.words, mention.on.isoformat(), 1)
    return text


def _written(given: dict[str, str | None], today: date) -> date | None:
    name = given.get("name")
    month = _MONTHS[name.casefold()] if name else int(given["month"] or 0)
    day, year = int(given["day"] or 0), given["year"]
    if year is None:
        this = _day(today.year, month, day)
        return this if this is None or this >= today else _day(today.year + 1, month, day)
    return _day(int(year) + (2000 if len(year) == 2 else 0), month, day)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
