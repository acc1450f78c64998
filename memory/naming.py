"""Names as values: how they are cleaned, what makes two of them one, and names seen in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

NAME_MIN_CHARS = 2
NAME_MAX_CHARS = 120
KEY_MAX_CHARS = 40
PERSON = "person"
OTHER = "other"
TYPES = (PERSON, "organisation", "place", "product", "work", "event", OTHER)
_ALIASES = {
    "organization": "organisation", "org": "organisation", "company": "organisation",
    "gpe": "place", "loc": "place", "location": "place", "city": "place", "country": "place",
    "fac": "place", "per": PERSON, "people": PERSON, "book": "work", "film": "work",
    "work_of_art": "work", "animal": PERSON, "pet": PERSON, "technology": "product",
}  # fmt: skip
# Kinds that speakers mix up for one thing: Spotify the company and the app, the university and
# the place, a film and its disc. A person is never a place.
_MIXED_UP = {
    frozenset(pair)
    for pair in (
        ("organisation", "place"),
        ("organisation", "product"),
        ("product", "work"),
        ("work", "event"),
        ("place", "event"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name that a memory mentions, as it was written."""

    name: str
    entity_type: str = OTHER


def known_type(value: Any) -> str:
    """One of TYPES; what nobody knows is OTHER."""
    kind = value.strip().casefold() if isinstance(value, str) else ""
    kind = _ALIASES.get(kind, kind)
    return kind if kind in TYPES else OTHER


def compatible(first: str, second: str) -> bool:
    """Whether things of these two kinds can be one thing."""
    return first == second or OTHER in (first, second) or frozenset((first, second)) in _MIXED_UP


def word_set(words: str) -> frozenset[str]:
    """The words of the text, which has a space between them."""
    return frozenset(words.split())


_SPACES = re.compile(r"[\s\x00]+")
_EDGES = " \t,;:!?…\"'“”„‘’«»()[]{}<>*_`|/\\–—-"
_POSSESSIVE = re.compile(r"['’]s?$")


def cleaned(name: str) -> str:
    """The name as it is shown: one space between words, no quotes around; '' if it is none."""
    text = _SPACES.sub(" ", unicodedata.normalize("NFC", name)).strip()
    text = _POSSESSIVE.sub("", text.strip(_EDGES))
    text = text.removesuffix(".") if text.count(".") == 1 and " " not in text else text
    text = text[:NAME_MAX_CHARS].strip()
    has_substance = any(sign.isalnum() for sign in text)
    return text if len(text) >= NAME_MIN_CHARS and has_substance else ""


_MARKS = re.compile("[\u0300-\u036f]")  # not those of other scripts, which are letters of their own
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ð": "d"})
_SILENT = re.compile(r"(?<!\d)\.|\.(?!\d)|['’`]")
_APART = re.compile(r"[^\w.+#&]+|_")


def key(name: str) -> str:
    """What two spellings of one name share: case, accents, dots and hyphens are folded away.

    Signs that tell things apart stay: C++, C#, 3.11. Never empty for a cleaned name.
    """
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LETTERS)
    text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
    folded = " ".join(_APART.sub(" ", _SILENT.sub("", text)).split())
    return (folded or " ".join(text.split()))[:NAME_MAX_CHARS]


# --- Names seen in a text, without a model -----------------------------------------------------
# Words that open a sentence with a capital and are no part of the name that may follow.
_OPENERS = word_set(
    """
    a about after all also although always an and another any are as at because been before both
    but by can could did do does during each even every finally for from had has have he her here
    his how however i if in is it its just last later let like maybe my never next no not now of
    often oh okay on once one only or other our out over perhaps please really recently she since
    so some sometimes soon still such than that the their then there these they this those though
    through to today tomorrow tonight too under until up usually very was we well were what when
    where which while who why will with without yes yesterday yet you your dear remember meet met
    called named everyone somebody nobody nothing something two three four five
    aber alle als am an auch auf aus bei beim bin bis da dann das dein dem den der des die dies
    diese dieser doch du ein eine einen einer er es für gestern hat heute hier ich ihr im in ist
    ja jetzt kein man manchmal mein meine meinem meinen meiner mit morgen nach nachdem nein nicht
    noch nun nur oder ob oft schon sein seine seit sie sind so sogar trotzdem und uns unser unsere
    unter vielleicht vom von vor war was weil wenn wer wie wir wo zu zum zur zwischen über übrigens
    à au aussi avec ce ces cet cette chez comme dans de depuis des du elle elles en et eux hier il
    ils je la le les leur lui mais ma mes mon ne nos notre nous on ou où par parce pas pendant peut
    plus pour quand que qui sa sans se ses si son sous sur ta tes ton tous toujours toute très tu
    un une vous aujourd'hui demain
    ahora al algunos antes aunque ayer como con cuando de del desde después el ella ellos en entre
    era es esa ese esta este esto hasta hay hoy la las lo los mañana me mi mis muy no nosotros
    nuestra nuestro nunca o para pero por porque que quien se si sin sobre su sus también te todo
    tu tus un una vamos y ya yo
    il lo gli uno una che di da con su per tra fra mia mio questo questa anche ma sono ho het een
    ik mijn wij zij maar niet ook van met op
    """
)
# Capitalised in English wherever they stand, and no entities of the person's world.
_COMMON = word_set(
    """
    i monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december english german french spanish italian
    dutch portuguese russian polish czech chinese japanese korean arabic turkish swedish danish
    norwegian finnish greek latin american british european asian african christmas easter
    halloween thanksgiving mum mom dad mama papa grandma grandpa mother father mr mrs ms dr prof
    herr frau sir madam god ok tv pdf usa uk eu am pm bc ad ai it id
    """
)
_PARTICLES = word_set("of de la le del della di da dos van von der den du y the and & al")
_TITLES = word_set("mr mrs ms dr prof herr frau sir st mme don doña señor señora")
_WORD = re.compile(r"[^\W_][\w'’&+#-]*(?:\.(?=\w)[\w'’-]+)*\.?")
_BREAK = re.compile(r"[,;:!?()\[\]“”„\"«»\n—–…]")
_ENDS = re.compile(r"[.!?…:]\W*\s|\n|[“„«\"]\s*$")
_GERMAN = re.compile(
    r"(?<!\w)(?:der|das|und|ich|ist|nicht|mein\w*|ein|eine[mnrs]?|mit|wir|auf|für|von|hat|habe|bei"
    r"|im|zum|zur|heißt|wohnt)(?!\w)",
    re.IGNORECASE,
)
_GERMAN_NEEDED = 2  # such words make a text German, where a capital is no sign of a name
_GERMAN_CUE = re.compile(
    r"(?:heiß(?:t|en)|namens|genannt|nennt sich|Frau|Herrn?|Dr\.|Prof\.|Schwester|Bruder|Mutter"
    r"|Vater|Tochter|Sohn|Freund(?:in)?|Mann|Hund|Katze|Kater|Kolleg(?:e|en|in)|Chef(?:in)?|Stadt"
    r"|Onkel|Tante|Oma|Opa|Nachbar(?:in)?|Firma|Cousine?|Neffe|Nichte|Boot|Schiff)\s*$"
)
_LOUD_SHARE = 0.75  # of the words: in a title or a shout a capital means nothing
_LOUD_WORDS = 4
_RUN_MAX_WORDS = 5
_NUMBER = re.compile(r"\d{1,3}")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    opens: bool

    @property
    def folded(self) -> str:
        return self.text.rstrip(".").casefold()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper() and any(sign.isalpha() for sign in self.text)


def names_in(text: str, *, known: Collection[str] = ()) -> list[str]:
    """Names in the text by their capitals, cleaned, in order, without repeats; rather too few.

    A word that opens a sentence is a name only if it stands elsewhere in the text with a capital,
    if its key is in `known`, or if another capital follows and it is no common opener. In German,
    where every noun has a capital, only what is known or follows a word like "heißt" or "Frau".
    """
    words = list(_words(text))
    capitals = [word for word in words if word.is_capital]
    if _is_loud(words):
        capitals = [word for word in capitals if key(word.text) in known]
    certain = {word.folded for word in capitals if not word.opens}
    is_german = len(_GERMAN.findall(text)) >= _GERMAN_NEEDED
    found: dict[str, str] = {}
    for run in _runs(text, words, {word.start for word in capitals}):
        kept = _without_opener(run, certain, known)
        if is_german:
            kept = _german_name(text, kept, known)
        if kept and not _is_common(kept):
            name = cleaned(text[kept[0].start : kept[-1].start + len(kept[-1].text)])
            if name:
                found.setdefault(key(name), name)
    return list(found.values())


def names_asked_for(text: str) -> list[str]:
    """Names in a question, rather too many: a lone first word is one unless it is an opener."""
    return names_in(text, known=openings(text))


def openings(text: str) -> set[str]:
    """Keys of the words and pairs of words in the text that could be names if they are known."""
    capitals = [word for word in _words(text) if word.is_capital]
    singles = {key(word.text) for word in capitals}
    return singles | {key(f"{one.text} {two.text}") for one, two in pairwise(capitals)}


def _is_loud(words: Sequence[_Word]) -> bool:
    inner = [word for word in words if not word.opens]
    capitals = sum(word.is_capital for word in inner)
    return len(words) >= _LOUD_WORDS and capitals > _LOUD_SHARE * len(inner)


def _words(text: str) -> Iterator[_Word]:
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        between = text[end : match.start()]
        before = text[end - 1 : match.start()] if end else ""
        opens = end == 0 or bool(_ENDS.search(before)) or bool(_BREAK.search(between[-1:]))
        stripped = word if word.rstrip(".").casefold() in _TITLES else word.rstrip(".")
        yield _Word(stripped, match.start(), opens)
        end = match.end()


def _runs(text: str, words: Sequence[_Word], capital: set[int]) -> Iterator[list[_Word]]:
    """Capitalised words that belong together, with the particles between them."""
    run: list[_Word] = []
    held: list[_Word] = []  # particles, kept only if a capital follows
    for word in words:
        joins = bool(run) and not _parted(text, (held or run)[-1], word)
        if word.start in capital and word.folded != "i":
            if run and not joins:
                yield run[:_RUN_MAX_WORDS]
                run, held = [], []
            run, held = [*run, *held, word], []
        elif joins and not held and _closes_with_number(text, word):
            yield [*run, word]
            run = []
        elif joins and word.folded in _PARTICLES and word.folded not in {"and", "y"}:
            held.append(word)
        else:
            if run:
                yield run[:_RUN_MAX_WORDS]
            run, held = [], []
    if run:
        yield run[:_RUN_MAX_WORDS]


def _parted(text: str, one: _Word, two: _Word) -> bool:
    between = text[one.start + len(one.text) : two.start]
    if between == ". " and len(one.text) == 1:
        return False  # an initial: J. Novak
    return between.strip(" &") != "" or "  " in between


def _closes_with_number(text: str, word: _Word) -> bool:
    """Tesla Model 3, and not: saw Anna 3 times."""
    if not _NUMBER.fullmatch(word.text):
        return False
    after = text[word.start + len(word.text) :]
    return not after.strip() or bool(_BREAK.match(after)) or after.startswith(".")


def _german_name(text: str, run: list[_Word], known: Collection[str]) -> list[_Word]:
    """What of the run stands behind a cue ("Schwester Anna"), or is known."""
    for index, word in enumerate(run):
        if _GERMAN_CUE.search(text[: word.start]):
            return run[index:]
    whole = " ".join(word.text for word in run)
    if key(whole) in known:
        return run
    return next(([word] for word in run if key(word.text) in known), [])


def _without_opener(
    run: list[_Word], certain: Collection[str], known: Collection[str]
) -> list[_Word]:
    first = run[0]
    if not first.opens:
        return run if first.folded not in _OPENERS else run[1:]
    if first.folded in _OPENERS or (first.folded in _COMMON and first.folded not in _TITLES):
        return run[1:]
    if len(run) > 1 or first.folded in certain or key(first.text) in known:
        return run
    return []


def _is_common(run: Sequence[_Word]) -> bool:
    """Nothing but months, languages and the like, or a title alone."""
    return all(word.folded in _COMMON or word.folded in _TITLES for word in run)
