"""Which month or year a question names, and how well a day fits it (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

JUST_AFTER_DAYS = 10  # of the next month: what happened is told a little later
SAME_MONTH, JUST_AFTER, SAME_YEAR = 1.0, 0.5, 0.3

# English, German, French, Spanish; "may", "mars" and "mayo" are months only with a capital.
_NAMES = """
    january januar janvier enero
    february februar février febrero
    march märz mars marzo
    april avril abril
    may mai mayo
    june juni juin junio
    july juli juillet julio
    august août agosto
    september septembre septiembre
    october oktober octobre octubre
    november novembre noviembre
    december dezember décembre diciembre
"""
_MONTHS = {
    name: number
    for number, line in enumerate(_NAMES.strip().splitlines(), start=1)
    for name in line.split()
}
_CAPITAL = {"may", "mars", "march"}
_WORD = re.compile(r"[^\W\d_]+|(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class Months:
    """Months (1 to 12) and years that a text names; of a month without a year any year's."""

    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.months or self.years)

    def fit(self, day: date) -> float:
        """1 in a month that is named, less just after it or where only the year is named, or 0."""
        if not self.months:
            return SAME_YEAR if day.year in self.years else 0.0
        if self._names(day.year, day.month):
            return SAME_MONTH
        before = (day.year, day.month - 1) if day.month > 1 else (day.year - 1, 12)
        return JUST_AFTER if self._names(*before) and day.day <= JUST_AFTER_DAYS else 0.0

    def _names(self, year: int, month: int) -> bool:
        return month in self.months and (not self.years or year in self.years)


def named(text: str) -> Months:
    """The months and years that the text names."""
    months, years = set(), set()
    for word in _WORD.findall(text):
        if word.isdigit():
            years.add(int(word))
        elif word not in _CAPITAL and word.casefold() in _MONTHS:
            months.add(_MONTHS[word.casefold()])
    return Months(frozenset(months), frozenset(years))
