"""What a message must hold to answer a query of PostgreSQL's full text (pure).

A tree of words of which all or any must be there, or must not. Phrases count as their words, and a
phrase that must not be there does not count: whoever uses it asks PostgreSQL about each message
that it lets through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TOKEN = re.compile(r"'((?:[^'\\]|''|\\\\)*)'|(<(?:-|\d+)>)|([&|!()])")


@dataclass(frozen=True, slots=True)
class Word:
    text: str


@dataclass(frozen=True, slots=True)
class Without:
    text: str


@dataclass(frozen=True, slots=True)
class Both:
    one: Condition
    other: Condition


@dataclass(frozen=True, slots=True)
class Either:
    one: Condition
    other: Condition


Condition = Word | Without | Both | Either


def condition(tsquery: str) -> Condition | None:
    """Of a query as PostgreSQL writes it: `'boat' & ( 'red' <-> 'sail' | !'oar' )`.

    None if any message may answer it, whatever words are in it.
    """
    return _Reader(tsquery).either()


def words(tree: Condition) -> set[str]:
    if isinstance(tree, Word | Without):
        return {tree.text}
    return words(tree.one) | words(tree.other)


def holding(tree: Condition, places: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Whether each place meets the condition, by whether each word stands there."""
    if isinstance(tree, Word):
        return places[tree.text]
    if isinstance(tree, Without):
        return ~places[tree.text]
    one, other = holding(tree.one, places), holding(tree.other, places)
    return one & other if isinstance(tree, Both) else one | other


class _Reader:
    """By descent: `!` binds most, then `<->`, then `&`, then `|`."""

    def __init__(self, tsquery: str) -> None:
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(tsquery)
        self._next = next(self._tokens, None)

    def either(self) -> Condition | None:
        found = self._both()
        while self._takes("|"):
            other = self._both()
            found = Either(found, other) if found and other else None
        return found

    def _both(self) -> Condition | None:
        found = self._one()
        while self._takes("&", "<"):
            other = self._one()
            found = Both(found, other) if found and other else found or other
        return found

    def _one(self) -> Condition | None:
        if self._takes("!"):
            excluded = self._one()
            return Without(excluded.text) if isinstance(excluded, Word) else None
        if self._takes("("):
            inner = self.either()
            self._takes(")")
            return inner
        token, self._next = self._next, next(self._tokens, None)
        if token is None or token[1] is None:
            raise ValueError("No word stands where one must in this query.")
        return Word(token[1].replace("''", "'").replace("\\\\", "\\"))

    def _takes(self, *signs: str) -> bool:
        """Whether one of these stands next, which is read then."""
        if self._next is None or self._next[1] is not None or self._next[0][0] not in signs:
            return False
        self._next = next(self._tokens, None)
        return True
