"""How likely it is that a memory is needed for a phrase: what speaks for it, weighed and added.

The weights are those of a softmax over the turns of five LoCoMo dialogues, rounded; the sum is
turned into a probability by a logistic fitted on the same. docs/recall.md has what each is worth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from memory import token_vectors
from memory.constants import NEAR_FLOOR, OVERLAP_FLOOR, PHRASE_STEP
from memory.index import Places
from memory.search import Floats, Pool

# What speaks for a memory, each from 0 to 1, and how much it counts.
WEIGHTS: Mapping[str, float] = {
    "meaning": 2.5,  # cosine of the question and the memory
    "words": 0.5,  # share of the question's words that it holds
    "session": 3.0,  # shares of the best five of its session
    "late": 11.0,  # late interaction, what was said around it counting too
    "month": 4.5,  # said in the month that the question names
    "other_speaker": -2.0,  # said by another than the one whom the question names
    "asks": -0.6,  # it is a question itself
    "particular": 0.9,  # it names somebody or something, as answers do
    "named": 1.0,  # mentions a name that the question holds by another word
}
TELLING_MAX = 6.0  # of a word's weight in late interaction: the rarest is not all that counts
SLOPE, MIDDLE = 0.7, 12.7  # the score at which a memory is as likely needed as not
RELEVANCE_FLOOR = 0.0025  # that makes a memory an answer; docs/recall.md
# Without token vectors, or without embeddings, what they would about say.
LATE_GUESS = {"meaning": 0.2, "words": 0.3, "session": 0.15, "": 0.09}
MEANING_GUESS = 0.3
# A word with a capital inside a sentence. Where all nouns have one, it says nothing of any.
_NAME = re.compile(r"(?<=[a-zß-ÿ,;] )[A-ZÀ-Þ][a-zß-ÿ]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The candidates of a pool as they answer the phrase that each answers best.

    `places` is that phrase, `relevance` the probability, `is_answer` whether the memory is near
    enough in meaning, words, by name or all told to be shown at all; `signals` are what WEIGHTS
    weighs, by name.
    """

    places: Places
    relevance: Floats
    is_answer: npt.NDArray[np.bool_]
    signals: Mapping[str, Floats]


def ranked(
    pool: Pool,
    named: Mapping[UUID, str],
    zone: ZoneInfo,
    *,
    without: frozenset[str] = frozenset(),
) -> Ranked:
    """Each candidate by its best phrase; `named` mention a name of the first one: that name.

    A further phrase counts a little less than the one before. Signals `without` count nothing.
    """
    signals = _signals(pool, named, zone)
    score = sum(
        (WEIGHTS[name] * values for name, values in signals.items() if name not in without),
        np.zeros_like(pool.similarities),
    )
    relevance = 1 / (1 + np.exp(SLOPE * (MIDDLE - score)))
    relevance *= 1 - PHRASE_STEP * np.arange(relevance.shape[1])
    is_answer = (pool.similarities >= NEAR_FLOOR) | (pool.overlaps >= OVERLAP_FLOOR)
    if named:
        is_answer[:, 0] |= np.array([one in named for one in pool.ids], dtype=np.bool_)
    if pool.asked.vectors:
        is_answer |= relevance >= RELEVANCE_FLOOR
    places = np.argmax(np.where(is_answer, relevance + 1, relevance), axis=1)
    rows = np.arange(len(pool))
    return Ranked(
        places=places,
        relevance=relevance[rows, places],
        is_answer=is_answer[rows, places],
        signals={name: values[rows, places] for name, values in signals.items()},
    )


def _signals(pool: Pool, named: Mapping[UUID, str], zone: ZoneInfo) -> dict[str, Floats]:
    phrases = pool.similarities.shape[1]
    words, session = pool.overlaps, pool.sessions
    meaning = np.clip(pool.similarities, 0, 1)
    if not pool.asked.vectors:
        meaning = np.full_like(meaning, MEANING_GUESS)
    asks = np.array(["?" in text for text in pool.texts], dtype=np.float64)
    return {
        "meaning": meaning,
        "words": words,
        "session": session,
        "late": _late(pool, meaning),
        "month": _month(pool, zone),
        "other_speaker": _other_speaker(pool),
        "asks": np.repeat(asks[:, None], phrases, axis=1),
        "particular": np.repeat(_particular(pool)[:, None], phrases, axis=1),
        "named": _named(pool, named),
    }


def _late(pool: Pool, meaning: Floats) -> Floats:
    """The words of each phrase by the best answers to them, telling words weighing more."""
    asked = pool.asked
    guess = (
        LATE_GUESS["meaning"] * meaning
        + LATE_GUESS["words"] * pool.overlaps
        + LATE_GUESS["session"] * pool.sessions
        + LATE_GUESS[""]
    )
    if not len(asked.pieces):
        return guess
    found = token_vectors.answers(asked.pieces, pool.token_vectors)
    found = token_vectors.with_beside(found, pool.before, pool.after)
    telling = np.minimum(TELLING_MAX, pool.weights[asked.piece_terms])
    late = guess.copy()
    has_vectors = np.array([bool(one) for one in pool.token_vectors], dtype=np.bool_)
    for place in range(late.shape[1]):
        of_phrase = asked.piece_places == place
        whole = telling[of_phrase].sum()
        if whole > 0:
            answered = found[:, of_phrase] @ telling[of_phrase] / whole
            late[has_vectors, place] = answered[has_vectors]
    return late


def _particular(pool: Pool) -> Floats:
    """Holds a name, other than that of somebody who talks in it or in others."""
    talking = {one.split()[0].capitalize() for one in pool.speakers if one}
    return np.array(
        [any(name not in talking for name in _NAME.findall(text)) for text in pool.texts],
        dtype=np.float64,
    )


def _named(pool: Pool, named: Mapping[UUID, str]) -> Floats:
    """Mentions the name by another word: the name itself is told by words and word pieces."""
    found = np.zeros_like(pool.similarities)
    if not named:
        return found
    found[:, 0] = [
        one in named and named[one].casefold() not in text.casefold()
        for one, text in zip(pool.ids, pool.texts, strict=True)
    ]
    return found


def _month(pool: Pool, zone: ZoneInfo) -> Floats:
    found = np.zeros_like(pool.similarities)
    for place, months in enumerate(pool.asked.months):
        if months:
            found[:, place] = [
                months.fit(datetime.fromtimestamp(at, zone).date()) for at in pool.said_at
            ]
    return found


def _other_speaker(pool: Pool) -> Floats:
    """Said by somebody else than the one speaker whom the phrase names by the first name."""
    found = np.zeros_like(pool.similarities)
    first = [one.casefold().split()[0] if one else "" for one in pool.speakers]
    for place in range(len(pool.asked.phrases)):
        named = (set(first) - {""}) & pool.asked.words(place)
        if len(named) == 1:
            found[:, place] = [bool(one) and one not in named for one in first]
    return found
