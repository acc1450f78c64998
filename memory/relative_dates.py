"""Words like "tomorrow" or "letzten Freitag" to dates, in English, German, French and Spanish."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A relative date as it stands in a text, and the day it means."""

    words: str
    on: date


_WEEKDAYS = {
    name: number
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunes martes miércoles jueves viernes sábado domingo",
    )
    for number, name in enumerate(names.split())
} | {"sonnabend": 5}
_NUMBERS = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten",
        "einem zwei drei vier fünf sechs sieben acht neun zehn",
        "un deux trois quatre cinq six sept huit neuf dix",
        "uno dos tres cuatro cinco seis siete ocho nueve diez",
    )
    for number, word in enumerate(words.split(), start=1)
} | {"a": 1, "an": 1, "einer": 1, "une": 1, "una": 1}
_DAY = "|".join(_WEEKDAYS)
_COUNT = r"\d{1,3}|" + "|".join(_NUMBERS)
_DAYS = "days?|tag(?:en?)?|jours?|días?"
_WEEKS = "weeks?|wochen?|semaines?|semanas?"

_OFFSETS = {
    0: r"today|tonight|this (?:morning|afternoon|evening)|heute|aujourd['’]hui|ce soir|hoy"
    r"|esta noche",
    1: r"tomorrow|demain|(?<!la )(?<!esta )(?<!pasado )mañana"
    r"|(?<!guten )(?<!am )(?<!heute )(?<!gestern )(?-i:morgen)",
    2: r"(?:the )?day after tomorrow|übermorgen|après-demain|pasado mañana",
    -1: r"yesterday|last night|gestern|hier|ayer|anoche",
    -2: r"(?:the )?day before yesterday|vorgestern|avant-hier|anteayer",
}
# "hier" is yesterday in French and "here" in German; only a French sentence has these words.
_FRENCH = re.compile(
    r"\b(?:je|j['’]\w+|nous|on|mon|ma|mes|notre|le|les|la|une|est)\b", re.IGNORECASE
)


def mentions(text: str, today: date) -> list[Mention]:
    """The relative dates in the text, in its order, none inside another.

    `today` is the person's day when it was said. "Next Friday" is the Friday of the week after this
    one, a bare or "this" weekday the coming one, "last Friday" the latest one gone by.
    """
    found: dict[int, tuple[int, Mention]] = {}
    for pattern, resolve in _RULES:
        for match in pattern.finditer(text):
            if match[0].casefold() == "hier" and not _FRENCH.search(text):
                continue
            try:
                on = resolve(match, today)
            except OverflowError:
                continue
            found.setdefault(match.start(), (match.end(), Mention(words=match[0], on=on)))
    kept: list[Mention] = []
    covered = 0
    for start, (end, mention) in sorted(found.items()):
        if start >= covered:
            kept.append(mention)
            covered = end
    return kept


def _following(match: re.Match[str], today: date) -> date:
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7)
    return monday + timedelta(days=_WEEKDAYS[match["day"].casefold()])


def _coming(match: re.Match[str], today: date) -> date:
    ahead = (_WEEKDAYS[match["day"].casefold()] - today.weekday()) % 7
    return today + timedelta(days=ahead or 7)


def _latest(match: re.Match[str], today: date) -> date:
    back = (today.weekday() - _WEEKDAYS[match["day"].casefold()]) % 7
    return today - timedelta(days=back or 7)


def _counted(sign: int, unit_days: int) -> Callable[[re.Match[str], date], date]:
    def resolve(match: re.Match[str], today: date) -> date:
        count = match["count"].casefold()
        number = int(count) if count.isdigit() else _NUMBERS[count]
        return today + timedelta(days=sign * number * unit_days)

    return resolve


def _shifted(days: int) -> Callable[[re.Match[str], date], date]:
    return lambda match, today: today + timedelta(days=days)


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


_RULES: list[tuple[re.Pattern[str], Callable[[re.Match[str], date], date]]] = [
    *((_rule(_OFFSETS[days]), _shifted(days)) for days in (2, -2, 1, -1, 0)),
    (_rule(rf"(?:next|nächste[nr]?|el próximo|próximo) (?P<day>{_DAY})"), _following),
    (_rule(rf"(?P<day>{_DAY}) prochain"), _following),
    (_rule(rf"(?:last|letzten?) (?P<day>{_DAY})"), _latest),
    (_rule(rf"(?:el )?(?P<day>{_DAY}) (?:dernier|pasado)"), _latest),
    (_rule(rf"(?:this|on|diesen|am|ce|este) (?P<day>{_DAY})"), _coming),
]
for _unit, _length in ((_DAYS, 1), (_WEEKS, 7)):
    _RULES += [
        (_rule(rf"(?:in|dans|en) (?P<count>{_COUNT}) (?:{_unit})"), _counted(1, _length)),
        (_rule(rf"(?P<count>{_COUNT}) (?:{_unit}) ago"), _counted(-1, _length)),
        (_rule(rf"(?:vor|il y a|hace) (?P<count>{_COUNT}) (?:{_unit})"), _counted(-1, _length)),
    ]
