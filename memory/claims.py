"""What a statement claims of the person, and which older statement it puts an end to (pure).

Three kinds, in English, German, French and Spanish: a new value of something there is one of ("I
moved to Vienna", "my new phone number is …"), an end ("I no longer drink coffee"), and a plain
value that differs from an older one. Read narrowly: what is missed stays beside the older memory,
what is seen in vain would hide it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from memory import orders
from memory.duplicates import normalised
from memory.quoting import meaning, without_name

Verdict = Literal["replaced", "disputed"]
HOME = "home"
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An attribute of the person and its value; `is_change` if the statement says it is new.

    `is_only` if there is one value at a time. With `ended`, the words of what is no longer so,
    attribute and value are empty.
    """

    attribute: str = ""
    value: str = ""
    is_change: bool = False
    is_only: bool = False
    ended: frozenset[str] = frozenset()


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})", re.IGNORECASE)


_CAPITALISED = r"[^\W\d_a-zß-öø-ÿ][\w'’.-]*"
_NAME = rf"(?P<value>{_CAPITALISED}(?: (?:{_CAPITALISED}|(?:am|an der|de|la)(?!\w)))*)"
_VALUE = r"(?P<value>[^,;.!?]+?)(?=[,;.!?]?(?:\s*$|[,;.!?]\s))"
_NOW = _words(r"(?:now|these days|since|recently|jetzt|nun|inzwischen|seit|neuerdings|maintenant"
              r"|désormais|depuis|ahora|actualmente|desde)(?!\w)")  # fmt: skip
_LIVES = (
    r"(?:live|lives|living|reside|resides|(?:am|'m|is) based) (?:now )?in ",
    r"(?:wohne|wohnt|lebe|lebt) (?:\w+ ){0,2}?in ",
    r"(?:habite|vis|vit) (?:\w+ ){0,1}?(?:à|en|au|aux) ",
    r"(?:vivo|vive|resido) (?:\w+ ){0,1}?en ",
)
_MOVED = (
    r"(?:have|has|'ve|just|recently|we|i)? ?moved (?:from [\w-]+ )?(?:back |over )?to ",
    r"(?:bin|ist|sind) (?:\w+ ){0,4}?nach (?=(?:[\w-]+ ){1,3}(?:um)?gezogen)",
    r"(?:ziehe|zieht|zog) (?:\w+ ){0,3}?nach ",
    r"(?:ai|a|avons) déménagé (?:\w+ ){0,2}?(?:à|en|au|aux) ",
    r"(?:me he mudado|se ha mudado|me mudé|se mudó|nos mudamos) (?:\w+ ){0,2}?a ",
)
_WORKS = (
    r"(?:started|began) (?:working |work |a (?:new )?job |my (?:new )?job )?(?:at|for|with) ",
    r"(?:work|works|working) now (?:at|for) ",
    r"now (?:work|works|working) (?:at|for) ",
    r"(?:arbeite|arbeitet) (?:jetzt|nun|inzwischen) (?:bei|für) ",
    r"(?:travaille) (?:maintenant|désormais) (?:chez|pour) ",
    r"(?:ahora trabajo|ahora trabaja|trabajo ahora|trabaja ahora) (?:en|para) ",
)
_WORKED = (
    r"(?:work|works|working) (?:at|for) ",
    r"(?:arbeite|arbeitet) (?:bei|für) ",
    r"(?:travaille) (?:chez|pour) ",
    r"(?:trabajo|trabaja) (?:en|para) ",
)
_PLACED: Sequence[tuple[str, bool, re.Pattern[str]]] = (
    (HOME, True, _words(*(f"{verb}" for verb in _MOVED))),
    (HOME, False, _words(*_LIVES)),
    ("employer", True, _words(*_WORKS)),
    ("employer", False, _words(*_WORKED)),
)
_VALUE_HERE = re.compile(_NAME)
# Who lives or works there is not always the person.
_SUBJECT = re.compile(
    r"\A\W*(?:(?:yes|no|so|and|but|well|also|by the way|actually|und|aber|übrigens|et|mais|y|pero)"
    r",? )?(?:(?:since|last|this|in|im|am|seit|letzt\w*|en|depuis|desde)(?: [\w.-]+){1,3},? )?"
    r"(?:(?:now|jetzt|nun|inzwischen|maintenant|ahora|recently),? )?"
    r"(?:i|i['’]\w+|we|we['’]\w+|ich|wir|je|j['’]\w+|nous|yo|vivo|resido|trabajo|me|nos|ahora"
    r"|(?:wohne|lebe|arbeite|bin|ziehe|zog)|live|lives|moved|has|have|is|now|works?|started"
    r"|wohnt|lebt|arbeitet|ist|habite|vit|travaille|vive|trabaja|se)(?!\w)",
    re.IGNORECASE,
)
# There is one of these at a time; a plain new value is enough.
_ONE = re.compile(
    r"(?<!\w)(?:my|mein\w*|mon|ma|mi) (?P<thing>(?:favou?rite|lieblings-?|liebst\w+ |plat préféré"
    r"|couleur préférée|comida favorita|color favorito)[ ]?[\w -]{0,30}?"
    r"|(?:[\w-]+ ){0,2}?(?:number|address|e-?mail|weight|age|job title|telefonnummer|nummer|adresse"
    r"|numéro|dirección|teléfono|número))"
    r" (?:is|ist|est|es|lautet) (?:now |jetzt |maintenant |ahora )?" + _VALUE,
    re.IGNORECASE,
)
_ONE_OF_NAME = re.compile(
    r"\A(?P<thing>favou?rite [\w -]{1,30}?) is (?:now )?" + _VALUE, re.IGNORECASE
)
_NEW = re.compile(
    r"(?<!\w)(?:my new|mein\w* neue[rsnm]?|mon nouveau|mon nouvel|ma nouvelle|mi nuev[oa])"
    r" (?P<thing>[\w-]+(?: number| address)?)"
    r" (?:is(?: called| named)?|ist|heißt|est|s['’]appelle|es|se llama|lautet) " + _VALUE,
    re.IGNORECASE,
)
_THING = re.compile(
    r"(?<!\w)(?:my(?: old)?|mein\w*|mon|ma|mi|^)\s*(?P<thing>[\w-]+(?: number| address)?)"
    r" (?:is(?: called| named)?|ist|heißt|est|s['’]appelle|es|se llama|lautet) " + _VALUE,
    re.IGNORECASE,
)
# A new one of these often joins the others.
_SEVERAL = re.compile(
    r"(?:friend|cat|dog|pet|colleague|neighbou?r|child|baby|son|daughter|book|plant|game|project"
    r"|idea|hobby|freund(?:in)?|katze|hund|kollegin|kollege|nachbar(?:in)?|kind|buch|projekt"
    r"|amie?|chat|chien|collègue|voisine?|livre|projet|amig[oa]|gat[oa]|perr[oa]|vecin[oa]"
    r"|libro|proyecto)",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"(?<!\w)(?:would|'d|want|wants|wish|could|might|hope|hopes|dream|plan|plans|if|maybe|perhaps"
    r"|möchte|würde|will|könnte|wenn|falls|vielleicht|hoffe|voudrais|veux|aimerais|si|peut-être"
    r"|quiero|quisiera|gustaría|ojalá|quizás?)(?!\w)",
    re.IGNORECASE,
)
_RELATED = re.compile(
    r"(?<!\w)(?:wife|husband|partner|son|daughter|mother|father|mum|mom|dad|sister|brother|friend"
    r"|boss|colleague|neighbou?r|child|children|frau|mann|sohn|tochter|mutter|vater|schwester"
    r"|bruder|freund(?:in)?|kind(?:er)?|femme|mari|fils|fille|mère|père|sœur|frère|amie?|esposa"
    r"|marido|hij[oa]|madre|padre|herman[oa]|amig[oa])(?!\w)",
    re.IGNORECASE,
)
_ENDS = _words(
    r"no longer(?!\w)", r"(?:do not|don['’]t|does not|doesn['’]t|am not|['’]m not|is not|isn['’]t"
    r"|can['’]t|cannot)(?= .*any ?more)", r"not(?= .{0,60}any ?more)", r"any ?more(?!\w)",
    r"(?:have |has |['’]ve )?(?:stopped|quit|gave up|given up)(?!\w)", r"nicht mehr(?!\w)",
    r"kein\w* (?=.{0,40}\bmehr\b)", r"ne (?=.{1,40}\bplus\b)", r"n['’](?=\w.{0,40}\bplus\b)",
    r"ya no(?!\w)", r"(?:habe )?aufgehört(?!\w)",
)  # fmt: skip
_AROUND_END = re.compile(
    r"(?<!\w)(?:i|i['’]m|am|is|are|do|does|did|don['’]t|doesn['’]t|not|any ?more|anymore|mehr|plus"
    r"|ich|bin|je|j['’]?|ne|n['’]?|pas|yo|ya|no|the|a|an|my|at|in|for|to|with|de|du|la|le|les|el"
    r"|en|der|die|das|den|und|and|now|jetzt|since|so|bei|im|kein\w*|since|of|have|has|zu)(?!\w)",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"(?<!\w)(?:no longer|not|never|don['’]t|doesn['’]t|nicht|kein\w*|nie|pas|jamais|ya no|no"
    r"|nunca|used to|früher)(?!\w)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{2,}")
_STEM = 4  # letters that two inflections share: trinke, trinkt; work, working


def claim(text: str, *, name: str = "") -> Claim | None:
    """What the memory or statement claims; None if it is nothing that another one could replace."""
    said = orders.without(without_name(meaning(text), name)).replace("’", "'")
    if _ENDS.search(said):
        rest = _ENDS.sub(" ", said)
        words = _stems(_AROUND_END.sub(" ", rest))
        return Claim(ended=words, is_change=True) if words else None
    return _new(said) or _one(said) or _placed(said)


def judged(
    new: Claim, older: Mapping[_Key, tuple[str, Claim | None]]
) -> tuple[_Key, Verdict] | None:
    """The one older memory that the claim replaces or disputes: by key, text and claim of each.

    None where none or several would be meant.
    """
    if new.ended:
        gone = [key for key, (text, _) in older.items() if _is_ended(new.ended, text)]
        return (gone[0], "replaced") if len(gone) == 1 else None
    differing = {
        key: one
        for key, (_, one) in older.items()
        if one is not None and one.attribute == new.attribute and _differs(one.value, new.value)
    }
    if len(differing) != 1:
        return None
    (key,) = differing
    if new.is_change or new.is_only:
        return key, "replaced"
    return (key, "disputed") if new.attribute == HOME else None


def _new(said: str) -> Claim | None:
    match = _NEW.search(said)
    if match is None:
        return None
    return _of_thing(match, is_change=_SEVERAL.fullmatch(match["thing"]) is None)


def _one(said: str) -> Claim | None:
    match = _ONE.search(said) or _ONE_OF_NAME.search(said)
    if match is not None:
        return _of_thing(match, is_only=True)
    match = _THING.search(said)
    return _of_thing(match) if match else None


def _of_thing(match: re.Match[str], *, is_change: bool = False, is_only: bool = False) -> Claim:
    return Claim(
        attribute=f"thing:{normalised(match['thing'])}",
        value=normalised(match["value"]),
        is_change=is_change,
        is_only=is_only,
    )


def _placed(said: str) -> Claim | None:
    if not _SUBJECT.match(said) or _DENIAL.search(said) or _UNREAL.search(said):
        return None
    for attribute, is_change, pattern in _PLACED:
        match = pattern.search(said)
        value = _VALUE_HERE.match(said, match.end()) if match else None
        if value is None:
            continue
        return Claim(
            attribute=attribute,
            value=normalised(value["value"]),
            is_change=is_change or _NOW.search(said) is not None,
        )
    return None


def _differs(one: str, other: str) -> bool:
    """Two values, neither of which is a part of the other: Vienna, and not Vienna in Austria."""
    first, second = set(one.split()), set(other.split())
    return not (first <= second or second <= first)


def _is_ended(words: frozenset[str], text: str) -> bool:
    said = meaning(text)
    others = _stems(" ".join(_RELATED.findall(said)))  # what a brother does is not ended by mine
    return not _DENIAL.search(said) and others <= words <= _stems(said)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.casefold()[:_STEM] for word in _WORD.findall(text))
