"""When may two names be of one thing? A guess to be asked about, never a reason to merge.

What tells things apart is looked at first: kinds, numbers, generations, and the ends of given names
(Anna and Annika, Jan and Jana, Maria and Mario).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from memory import naming

STRONG = 0.92  # from here on a model may be asked; below, only the person
_MALE = naming.word_set("mr herr sir señor don")
_FEMALE = naming.word_set("mrs ms miss frau mme madame señora doña lady")
_TITLES = _MALE | _FEMALE | naming.word_set("dr prof professor doctor mag dipl ing")
_DEGREES = naming.word_set("phd md msc bsc ma ba")
_FORMS = naming.word_set(
    "gmbh ag inc ltd llc corp corporation co company kg ug plc bv nv srl spa oy sarl ev se"
)
_GENERATIONS = naming.word_set("jr sr junior senior")
_ROMAN = re.compile(r"(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3})")
_SMALL = naming.word_set("of for and the de der die das des du la le für und & von van et")
_UMLAUT = re.compile(r"([aou])e")
_INITIALS_MAX = 6
_INITIALS_MIN = 3
_TYPO_MIN_CHARS = 5
_LONE_PERSON_MIN_CHARS = 6  # Paula and Paola are two; Kathrin and Katrin may be one
_TWO_EDITS_MIN_CHARS = 9
_ENDING_CHARS = 2  # where given names bend: Daniel, Daniela; Christian, Christina


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two names are, 0 to 1, and in what way."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Name:
    tokens: tuple[str, ...]
    core: tuple[str, ...]  # without titles, legal forms and a leading article
    is_person: bool
    is_written_in_capitals: bool


def alike(first: str, first_type: str, second: str, second_type: str) -> Likeness | None:
    """How the names are alike; None if they name two things for all one can tell."""
    if not naming.compatible(first_type, second_type):
        return None
    is_person = naming.PERSON in (first_type, second_type)
    one, two = _read(first, is_person), _read(second, is_person)
    if _told_apart(one.tokens, two.tokens):
        return None
    for rule in (_same_core, _initials, _middle_name, _first_initial, _part, _typo):
        if found := rule(one, two):
            return found
    return None


def search_keys(name: str) -> set[str]:
    """What names that `alike` may accept have in common: at least one of these."""
    read = _read(name, is_person=False)
    keys = {f"w:{token}" for token in read.core}
    for token in read.core:
        if len(token) >= _TYPO_MIN_CHARS:
            keys |= {f"b:{token[:3]}", f"e:{token[0]}{token[-4:]}"}
    keys |= {f"i:{initials}" for initials in _initials_of(read.core)}
    if len(read.core) == 1 and _INITIALS_MIN <= len(read.core[0]) <= _INITIALS_MAX:
        keys.add(f"i:{read.core[0]}")
    return {key[: naming.KEY_MAX_CHARS] for key in keys}


def word_keys(name: str) -> set[str]:
    """The keys of the name's words: what names that contain it all have."""
    return {key for key in search_keys(name) if key.startswith("w:")}


def _read(name: str, is_person: bool) -> _Name:
    tokens = tuple(_plain(token) for token in naming.key(name).split())
    kept = tuple(token for token in tokens if token not in _TITLES | _DEGREES | _FORMS)
    kept = kept[1:] if len(kept) > 1 and kept[0] == "the" else kept
    return _Name(tokens, kept or tokens, is_person, name.isupper())


def _plain(token: str) -> str:
    """Müller is folded to muller already; Mueller is here."""
    return _UMLAUT.sub(r"\1", token) if len(token) >= _TYPO_MIN_CHARS else token


def _told_apart(one: Sequence[str], two: Sequence[str]) -> bool:
    if _marks(one) != _marks(two):
        return True
    genders = [bool(set(names) & titles) for names in (one, two) for titles in (_MALE, _FEMALE)]
    return (genders[0] and genders[3]) or (genders[1] and genders[2])


def _marks(tokens: Sequence[str]) -> list[str]:
    """Numbers, Roman ones too, and generations, in order."""
    return [
        token
        for token in tokens
        if any(sign.isdigit() for sign in token)
        or token in _GENERATIONS
        or (len(token) > 1 and _ROMAN.fullmatch(token))
    ]


def _same_core(one: _Name, two: _Name) -> Likeness | None:
    if sorted(one.core) != sorted(two.core):
        return None
    if one.tokens == two.tokens:
        return Likeness(score=0.97, reason="the same but for spelling")
    if sorted(one.tokens) == sorted(two.tokens):
        return Likeness(score=0.95, reason="the same words in another order")
    if one.is_person and len(one.core) == 1:
        return Likeness(score=0.75, reason="the same surname with a title")  # of a family, perhaps
    return Likeness(score=0.96, reason="the same but for a title or legal form")


def _initials_of(core: Sequence[str]) -> set[str]:
    if len(core) < 2:
        return set()
    every = "".join(token[0] for token in core)
    weighty = "".join(token[0] for token in core if token not in _SMALL)
    return {text for text in (every, weighty) if len(text) >= _INITIALS_MIN}


def _initials(one: _Name, two: _Name) -> Likeness | None:
    for short, long in ((one, two), (two, one)):
        if (
            short.is_written_in_capitals
            and len(short.core) == 1
            and short.core[0] in _initials_of(long.core)
        ):
            return Likeness(score=0.94, reason="initials")
    return None


def _middle_name(one: _Name, two: _Name) -> Likeness | None:
    short, long = sorted((one.core, two.core), key=len)
    if not one.is_person or len(short) != 2 or len(long) != 3:
        return None
    if (short[0], short[-1]) != (long[0], long[-1]):
        return None
    is_initial = len(long[1]) == 1
    return Likeness(score=0.93 if is_initial else 0.88, reason="the same but for a middle name")


def _first_initial(one: _Name, two: _Name) -> Likeness | None:
    """J. Novak may be Jana Novak, and may be Jan."""
    if len(one.core) != 2 or len(two.core) != 2 or one.core[1] != two.core[1]:
        return None
    short, long = sorted((one.core[0], two.core[0]), key=len)
    if len(short) == 1 and long.startswith(short):
        return Likeness(score=0.8, reason="an initial and the same surname")
    return None


def _part(one: _Name, two: _Name) -> Likeness | None:
    short, long = sorted((one.core, two.core), key=len)
    if not one.is_person or len(short) != 1 or len(long) < 2 or len(short[0]) < 3:
        return None
    if short[0] == long[0]:
        return Likeness(score=0.7, reason="the same given name")
    return None


def _typo(one: _Name, two: _Name) -> Likeness | None:
    if len(one.core) != len(two.core):
        return None
    differing = [(x, y) for x, y in zip(one.core, two.core, strict=True) if x != y]
    if len(differing) != 1:
        return None
    x, y = differing[0]
    is_lone_person = one.is_person and len(one.core) == 1
    shortest = _LONE_PERSON_MIN_CHARS if is_lone_person else _TYPO_MIN_CHARS
    if min(len(x), len(y)) < shortest or not (x + y).isalpha() or x[0] != y[0]:
        return None
    if one.is_person and x[-_ENDING_CHARS:] != y[-_ENDING_CHARS:]:
        return None
    allowed = 2 if min(len(x), len(y)) >= _TWO_EDITS_MIN_CHARS else 1
    if OSA.distance(x, y, score_cutoff=allowed) > allowed:
        return None
    score = fuzz.ratio(" ".join(one.core), " ".join(two.core)) / 100
    return Likeness(score=round(score, 2), reason="nearly the same spelling")
