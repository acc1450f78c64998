"""Words in a memory that say how it hangs together with an earlier one (pure).

The cues are those of spec recall 5.1, in English and French, as whole words with their accents;
"however" is none. Most have an everyday use that joins nothing ("after lunch", "since 2019", "looks
after", "la règle"): where the words around show it, there is no cue. The words after a cue say what
it is about; where they say nothing ("because of that") it points at what came before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.quoting import meaning
from memory.sentences import sentences

CUES_MAX = 4  # of one memory; a text with more tells a story of its own
HEAD_WORDS = 4  # content words after a cue that say what it is about
STEM_MIN = 4  # letters that two inflections share: leaks, leaking
INFLECTION_MAX = 3  # letters that may follow them


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """A relation that a text claims, by which cue, and the words it is about.

    Without words it only points: at "that", "it", "cela".
    """

    relation: str
    cue: str
    words: tuple[str, ...]

    def is_about(self, text: str) -> bool:
        """Whether the text holds half of the words or more."""
        others = _WORD.findall(text.casefold())
        held = sum(any(_alike(word, other) for other in others) for word in self.words)
        return 2 * held >= len(self.words) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A cue; none after some words, before some, without some, or anywhere beside some."""

    relation: str
    cue: re.Pattern[str]
    not_after: frozenset[str]
    not_before: re.Pattern[str] | None
    only_before: re.Pattern[str] | None
    not_beside: re.Pattern[str] | None


def _any(words: str) -> re.Pattern[str] | None:
    return re.compile(rf"(?<![\w])(?:{words})(?!\w)", re.IGNORECASE) if words else None


def _rule(
    relation: str,
    cue: str,
    *,
    not_after: str = "",
    not_before: str = "",
    only_before: str = "",
    not_beside: str = "",
) -> _Rule:
    # A cue that ends in an apostrophe is followed by its word at once.
    end = "" if cue.endswith("')") else r"(?![\w-])"
    return _Rule(
        relation=relation,
        cue=re.compile(rf"(?<![\w-])(?:{cue}){end}", re.IGNORECASE),
        not_after=frozenset(not_after.split()),
        not_before=_any(not_before),
        only_before=_any(only_before),
        not_beside=_any(not_beside),
    )


_NOT = "not n't never pas non "
_SUBJECT = "i|we|he|she|it|they|you|there|nobody|no|my|our|your|his|her|their|the|this|that|these"
_OBJECT = "the|an?|my|our|your|his|her|their|its|this|that|these|those|all|it|them"
_A_THING = rf"{_OBJECT}|(?-i:[A-Z0-9][\w.-]*)"
_DAYS = (
    "(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july"
    "|august|september|october|november|december|spring|summer|autumn|winter|christmas|easter"
)
_TIMES = rf"\d[\w:.]*|{_DAYS}|last|then|yesterday|today|tomorrow|childhood|birth|noon|midnight"
_SPANS = "while|long|short|bit|few|couple|hours?|days?|weeks?|months?|years?|weekends?|minutes?"
_WHOSE = "a|an|the|my|our|his|her|their|your"
_ROUTINE = (
    "work|school|class(?:es)?|lunch|dinner|breakfast|supper|bed|shower|church|practice|care|sales"
    "|walk|coffee|nap|shift|workout|gym|hours|dark|sunset|sunrise|training|yoga"
)
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|some|each|every"
_NOUN_BEFORE = (
    "the a an my our your his her their its these those some any no more for of on with new latest"
    " bug software security email e-mail mail status two few many and get gets install have has had"
    " about from avoid "
)
_A, _DE = "(?:à|au|aux)", "(?:de|du|des)"
_ENGLISH = (
    _rule(
        "triggered", "following",
        not_after=_NOT + "the am is are was were be been being by keep keeps kept of like 'm 're 's"
        " started stopped enjoy enjoys love loves without still",
        only_before=_A_THING,
        not_before=r"(?:\w+ ){1,2}(?:dreams?|passions?|heart|lead|footsteps|recipes?"
        r"|rules?|news|instructions?|advice|examples?|paths?"
        rf"|trail|signs?|diet|guidelines?|{_SPANS})",
    ),
    _rule(
        "triggered", "after",
        not_after=_NOT + "look looks looked looking take takes took taking taken name named called"
        " ask asks asked asking run runs ran running chase chases chased chasing be"
        " am is are was were 'm 're 's go goes going went day"
        " days week weeks month months year years time one minute minutes hour hours",
        not_before=rf"{_TIMES}|all|me|him|us|{_NUMBERS}|(?:(?:{_WHOSE}) )?(?:{_ROUTINE}|{_SPANS})",
    ),
    _rule("triggered", "in response to", not_after=_NOT),
    _rule("triggered", "triggered by", not_after=_NOT),
    _rule("because", "because(?: of)?", not_after=_NOT),
    _rule(
        "because", "since",
        not_after=_NOT + "ever long years months weeks days",
        only_before=rf"{_SUBJECT}|(?-i:[A-Z][\w-]*)",
        not_before=rf"(?:the |my |our )?(?:{_TIMES}|when|beginning|start|end|age|{_SPANS})",
        # "I have lived here since my divorce": a time, no reason.
        not_beside="have|has|had|i've|we've|they've|you've|he's been|she's been|it's been|always"
        "|ever",
    ),
    _rule(
        "because", "due to",
        not_after=_NOT,
        not_before="be|arrive|start|begin|end|leave|expire|come|go|happen|close|open|finish|meet"
        "|land|give|have|get|return|move|retire|speak|marry|take",
    ),
    _rule("because", "as a result of", not_after=_NOT),
    _rule("conflicts", "contradicts"),
    _rule("conflicts", "conflicts with", not_after=_NOUN_BEFORE),
    _rule("conflicts", "is inconsistent with"),
    _rule("supersedes", "updates", not_after=_NOUN_BEFORE, only_before=_A_THING),
    _rule("supersedes", "replaces", only_before=_A_THING),
    _rule("supersedes", "supersedes", only_before=_A_THING),
    _rule("resolves", "resolves", only_before=_A_THING),
    _rule("resolves", "solves", only_before=_A_THING),
    _rule("resolves", "fixes", not_after=_NOUN_BEFORE, only_before=_A_THING),
    _rule("resolves", "addresses", not_after=_NOUN_BEFORE, only_before=_A_THING),
)  # fmt: skip
_FR_DETERMINERS = "le la les l' un une des du de d' ce cette mon ma ta sa notre votre leur au en "
_FRENCH = (
    _rule("triggered", rf"suite {_A}", not_after="la"),
    _rule("triggered", rf"à la suite (?:{_DE}(?!\w)|d')"),
    _rule("triggered", rf"consécutivement {_A}"),
    _rule(
        "triggered", "après",
        not_after="d' jour jours peu an ans mois semaine court soupire soupirer courir crier",
        not_before=r"-|tout|demain|coup|midi|minuit|moi|toi|lui|eux|\d\w*|\w+di|quelques|deux|trois"
        r"|(?:une? |l')?(?:heures?|jours?|semaines?|mois|ans?)|(?:le |la |les |mon |ma |l')?"
        r"(?:travail|boulot|déjeuner|dîner|petit-déjeuner|repas|école|week-end|cours|douche|sieste"
        r"|sport)",
    ),
    _rule("because", r"parce qu(?:e(?!\w)|')", not_after=_NOT),
    _rule("because", "car", not_after=_FR_DETERMINERS + "par grand"),
    _rule("because", rf"en raison (?:{_DE}(?!\w)|d')", not_after=_NOT),
    _rule("because", rf"grâce {_A}", not_after=_NOT),
    _rule("conflicts", "contredit", not_after="je se s' me"),
    _rule("conflicts", "est incompatible avec", not_after="n'"),
    _rule("conflicts", rf"s'oppose {_A}"),
    _rule("supersedes", "met à jour", not_after="se"),
    _rule("supersedes", "remplace", not_after="je me"),
    _rule("supersedes", "actualise", not_after="j' je s'"),
    _rule("resolves", "résout", not_after="se je"),
    _rule("resolves", "règle", not_after=_FR_DETERMINERS + "je se bonne", not_before="générale"),
    _rule("resolves", "corrige", not_after="je se"),
    _rule("resolves", "solutionne", not_after="je"),
)  # fmt: skip
# A text is French if it has more of these words than of the others: a car is no reason.
_FRENCH_WORDS = _any(
    "je|j|tu|il|elle|on|nous|vous|ils|elles|le|la|les|un|une|des|du|de|et|est|sont|que|qui|qu|dans"
    "|pour|pas|ne|avec|sur|mon|ma|mes|son|sa|ses|au|aux|ce|cette|c|d|l|n|été|plus"
)
_ENGLISH_WORDS = _any(
    "i|you|he|she|it|we|they|the|an?|and|is|are|was|were|that|who|in|for|not|with|my|his|her|our"
    "|to|of|this|has|have|had|at|from|by"
)
# What may not be so settles, replaces and contradicts nothing yet.
_UNREAL = _any(
    "if|would|could|might|may|hope|hopes|hopefully|wish|maybe|perhaps|should|whether|unless|until"
    "|si|peut-être|pourrait|devrait|espère|espérons|faudrait"
)
_POINTING = re.compile(
    r"(?:this|that|these|those|it|them|ça|cela|ceci|cette|ce)(?!\w)", re.IGNORECASE
)
_ASSERTED = ("conflicts", "supersedes", "resolves")

_LAST_WORD = re.compile(r"(n't|'\w+|\w+'|[\w-]+)\s*\Z", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_CLAUSE_END = re.compile(
    r"[,;:.!?()«»“”\"–—]|\s(?:so|but|and then|then|donc|mais|puis|alors)\s"
    r"|(?<=\w)\s(?:i|we|he|she|they|je|nous|ils|elles)(?=['\s])|\sj'",
    re.IGNORECASE,
)
_SAYS_NOTHING = """
    i me my mine we us our you your he him his she her it its they them their this that these those
    there here the a an and or of to in on at by for from with as is are am was were be been being
    has have had do does did not no so such what which who when where how all any some one ones
    thing things something everything nothing new old earlier previous former last first same other
    very much more most too also just only got get gets went go goes said says made make makes can
    could will would about into out up down off over than then il elle nous vous ils elles je tu le
    la les un une des du de d l et ou à au aux en dans sur par pour avec sans ce cette ces cet ça
    cela ceci celui celle qui que qu quoi dont où est sont était été suis sommes ai ont avait avais
    avez être avoir fait faire ne n pas plus mon ma mes ton ta tes son sa ses notre nos votre vos
    leur leurs se s y c j m t nouveau nouvelle ancien ancienne vieux vieille premier première
    dernier dernière même très aussi tout tous toute toutes si couldn didn wasn weren isn aren don
    doesn haven hasn hadn won wouldn ve re ll talk talked talking love loved loves like liked likes
    want wanted wants think thought know knew feel felt see saw seen look looked come came coming
    take took taken put putting try tried help helped helps keep kept use used need needs needed
    start started find found tell told ask asked give gave during while someone somebody anyone
    everyone really good great amazing awesome nice lot lots time times day days people life many
    way bit long back ever never always still yet even well each both between through until aime
    aimé veux voulu voulais peux peut vois vu sais dit dire bien bon bonne beaucoup temps jour jours
    gens vie encore toujours jamais puis alors quand comme trop peu entre chez away
"""
_EMPTY = frozenset(_SAYS_NOTHING.split())


def cues(text: str) -> list[Cue]:
    """What the memory, or the statement it quotes, claims of what came before; English first."""
    found: list[Cue] = []
    for sentence in sentences(meaning(text).replace("’", "'")):
        if sentence.endswith("?"):  # a question claims nothing
            continue
        rules = _ENGLISH + _FRENCH if _is_french(sentence) else _ENGLISH
        unreal = _found(_UNREAL, sentence)
        for rule in rules:
            if not (unreal and rule.relation in _ASSERTED):
                found += _of(rule, sentence)
    return list(dict.fromkeys(found))[:CUES_MAX]


def _of(rule: _Rule, sentence: str) -> Iterator[Cue]:
    if _found(rule.not_beside, sentence):
        return
    for match in rule.cue.finditer(sentence):
        rest = sentence[match.end() :].lstrip(" ")
        if _last_word(sentence[: match.start()]) in rule.not_after:
            continue
        if rule.not_before is not None and rule.not_before.match(rest):
            continue
        if rule.only_before is not None and not rule.only_before.match(rest):
            continue
        words = _head(rest)
        if words or _POINTING.match(rest):
            yield Cue(relation=rule.relation, cue=match[0].casefold(), words=words)


def _found(pattern: re.Pattern[str] | None, sentence: str) -> bool:
    return pattern is not None and pattern.search(sentence) is not None


def _is_french(sentence: str) -> bool:
    return _count(_FRENCH_WORDS, sentence) > _count(_ENGLISH_WORDS, sentence)


def _count(pattern: re.Pattern[str] | None, sentence: str) -> int:
    return 0 if pattern is None else len(pattern.findall(sentence))


def _last_word(before: str) -> str:
    """The word before a cue; of a contraction its part: `n't`, `'m`, `l'`."""
    found = _LAST_WORD.search(before)
    return found[1].casefold() if found else ""


def _head(rest: str) -> tuple[str, ...]:
    """The first content words of what follows a cue, up to the end of the clause."""
    end = _CLAUSE_END.search(rest, 1)
    clause = rest[: end.start()] if end else rest
    words = (word for word in _WORD.findall(clause.casefold()) if word not in _EMPTY)
    return tuple(dict.fromkeys(word for word in words if len(word) > 1))[:HEAD_WORDS]


def _alike(one: str, other: str) -> bool:
    """The same word, or two inflections of it; never a number and another."""
    if one == other:
        return True
    short, long = sorted((len(one), len(other)))
    stem = max(STEM_MIN, long - INFLECTION_MAX)
    return short >= stem and one.isalpha() and one[:stem] == other[:stem]
