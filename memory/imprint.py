"""By which words a forgotten memory is recognised in other texts (pure).

Made while it is being forgotten, and never stored. It errs on the generous side: a text that is
wrongly taken for a quotation is only written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log

from memory.duplicates import normalised
from memory.sentences import sentences

QUOTED_SHARE = 0.6  # of a statement's words, by weight, that make a text a quotation of it
QUOTED_WORDS_MIN = 2
STATEMENT_WORDS_MIN = 3  # a shorter one is found in anything
INFLECTION_MAX = 2  # letters that may differ at the end: boat, boats
STEM_MIN = 4

_WORD = re.compile(r"[^\W_][\w'’-]*")
_POSSESSIVE = re.compile(r"['’]s?$")
# Words that tell nothing about what was said, in the languages most often met.
_COMMON_WORDS = """
    the and for that this with have has had having was were are been being you your yours mine our
    ours his her hers she him them they their theirs its what when where which who whom whose why
    how not but can could would should will shall may might must from about into onto than then
    there here just like likes liked very really some any all both each every also only even still
    again does did doing don doesn didn isn wasn because while since until after before during over
    under between through said says say told tell tells called call name named user person one
    today tomorrow yesterday now always never often usually sometimes know knows think thinks want
    wants make makes made get gets got getting going goes went let more most much many other
    thing things something in on at to as is if it i'm my me we us no so or an of by be do he
    der die das dem den des und ist sind war waren nicht ein eine einen einem einer ich mein meine
    meinen meinem meiner mit auf für von dass wir uns sie ihr ihre sein seine aber oder wenn weil
    seit nach vor bei als auch noch nur schon sehr immer nie heute morgen gestern sagte heißt habe
    hat haben wird werden im am an zu er es du so
    les une est sont pas mais pour avec dans mon mes que qui sur par elle nous vous ils elles son
    ses aussi très toujours jamais hier demain dit appelle suis été il je tu la le un en et
    los las del con para una por mis sus pero como más muy siempre nunca hoy ayer dijo llama soy
    estoy tengo el yo mi su es no
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Imprint:
    """What to look for: whole phrases, statements as sets of words, and words that tell alone."""

    phrases: tuple[str, ...]
    statements: tuple[frozenset[str], ...]
    weights: Mapping[str, float]
    telling: frozenset[str]

    def is_in(self, text: str) -> bool:
        """Whether the text says it, wholly or for the most part."""
        plain = f" {normalised(text)} "
        if any(f" {phrase} " in plain for phrase in self.phrases):
            return True
        words = _words(text)
        if any(_has(words, word) for word in self.telling):
            return True
        return any(self._is_covered(statement, by=words) for statement in self.statements)

    def without(self, text: str) -> str:
        """The text without the sentences that say it."""
        return " ".join(one for one in sentences(text) if not self.is_in(one))

    def _is_covered(self, statement: frozenset[str], *, by: frozenset[str]) -> bool:
        found = [word for word in statement if _has(by, word)]
        whole = sum(self._weight(word) for word in statement)
        share = sum(map(self._weight, found)) / whole
        return len(found) >= QUOTED_WORDS_MIN and share >= QUOTED_SHARE

    def _weight(self, word: str) -> float:
        return self.weights.get(word, 1.0)


def words_of(statements: Iterable[str]) -> frozenset[str]:
    """The words by which the statements could be recognised, for counting them elsewhere."""
    return frozenset[str]().union(*map(_words, statements))


def imprint(
    statements: Iterable[str], *, seen: Mapping[str, int], known: int, but: Iterable[str] = ()
) -> Imprint:
    """Of what the statements say; `seen` tells how many of the `known` other memories hold a word.

    A name or a number that none of them holds gives the statement away alone. `but` are texts
    whose words never do, such as the person's own name.
    """
    kept = [one for one in dict.fromkeys(statements) if one.strip()]
    ignored = words_of(but)
    names = {_plain(word) for one in kept for word in _WORD.findall(one) if _may_be_name(word)}
    phrases = [normalised(one) for one in kept]
    return Imprint(
        phrases=tuple(one for one in phrases if len(one.split()) >= STATEMENT_WORDS_MIN),
        statements=tuple(words for one in kept if (words := _words(one) - ignored)),
        weights={word: 1 + log((known + 1) / (count + 1)) for word, count in seen.items()},
        telling=frozenset(
            word for word in names - ignored - _COMMON if len(word) > 1 and seen.get(word, 0) == 0
        ),
    )


def _may_be_name(word: str) -> bool:
    return word[0].isupper() or any(character.isdigit() for character in word)


def _words(text: str) -> frozenset[str]:
    plain = (_plain(word) for word in _WORD.findall(text))
    return frozenset(
        word for word in plain if (len(word) > 2 or word.isdigit()) and word not in _COMMON
    )


def _plain(word: str) -> str:
    return _POSSESSIVE.sub("", word).casefold()


def _has(words: frozenset[str], wanted: str) -> bool:
    return wanted in words or (wanted.isalpha() and any(_same_stem(wanted, one) for one in words))


def _same_stem(one: str, other: str) -> bool:
    stem = max(len(one), len(other)) - INFLECTION_MAX
    return stem >= STEM_MIN and other.isalpha() and one[:stem] == other[:stem]
