"""Which messages may hold the words of a query, newest first, without reading the others.

Row-level security lets no index answer `@@`, but it lets one answer what is equal. So the places of
words are kept for each full block of messages (models/words.py); what is newer is not looked up but
read. A query costs a row for each of its words in each block, and the messages that hold them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from conversations import tsquery
from mira_site.accounts.models import User

BLOCK = 1_024  # messages
# A code is the rest of a word's hash (21 bits) and the place of a message in its block (10 bits);
# the last 8 bits of the hash name the row. Migration 0011 writes them.
PLACE_BITS, PLACE_MASK = 10, BLOCK - 1
BUCKET_BITS, REST_MASK = 8, (1 << 21) - 1
BLOCKS = 8  # looked at together for what the newest messages say …
BLOCKS_RARE = 128  # … and for what none of them says
BLOCKS_GROWTH = 16  # each time after the first in so many times as many

_ASKED = """
SELECT websearch_to_tsquery('english', %s)::text,
       (SELECT max(block) FROM conversations_word_places WHERE user_id = %s AND bucket = 0)
"""
# OFFSET 0 has the rows looked up for each word, and not all rows of the person read for a join.
_PLACES = """
SELECT asked.word, asked.hash, kept.block, kept.codes
FROM (SELECT word, hashtext(word) AS hash FROM unnest(%s::text[]) AS word) AS asked,
LATERAL (
    SELECT block, codes FROM conversations_word_places
    WHERE user_id = %s AND bucket = asked.hash & 255 AND block BETWEEN %s AND %s
    OFFSET 0
) AS kept
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as PostgreSQL takes it in web-search syntax, empty without a word to look for.

    Messages from position `unkept_from` on are in no full block yet, and must be read themselves.
    """

    text: str
    unkept_from: int


def asked(user: User, query: str) -> Asked:
    with connection.cursor() as cursor:
        cursor.execute(_ASKED, [query, user.pk])
        text, newest = cursor.fetchone()
    return Asked(text=text, unkept_from=0 if newest is None else (newest + 1) * BLOCK)


def positions(
    user: User, condition: tsquery.Condition, *, first: int, last: int, is_rare: bool = False
) -> Iterator[list[int]]:
    """Positions in the full blocks from that of `first` to that of `last` which meet the condition.

    Newest first, in some parts; each part is looked up when it is wanted, the first for many blocks
    if it `is_rare`. Words of one hash are one word here: one message in millions that has a word is
    given in error, or left out where it must not have it.
    """
    wanted = sorted(tsquery.words(condition))
    top, bottom, size = last // BLOCK, first // BLOCK, BLOCKS_RARE if is_rare else BLOCKS
    while top >= bottom:
        lowest = max(bottom, top - size + 1)
        held = tsquery.holding(condition, _places(user, wanted, lowest, top))
        yield (np.flatnonzero(held)[::-1] + lowest * BLOCK).tolist()
        top, size = lowest - 1, size * BLOCKS_GROWTH


def _places(
    user: User, wanted: Sequence[str], lowest: int, top: int
) -> Mapping[str, NDArray[np.bool_]]:
    """For each word, whether it stands at each position of the blocks."""
    found = {word: np.zeros((top - lowest + 1) * BLOCK, dtype=np.bool_) for word in wanted}
    with connection.bound_cursor(binary=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_PLACES, [wanted, user.pk, lowest, top])
        rows = cursor.fetchall()
    for word, number, block, codes in rows:
        here = np.frombuffer(codes, dtype=">i4")
        places = here[here >> PLACE_BITS == number >> BUCKET_BITS & REST_MASK] & PLACE_MASK
        found[word][(block - lowest) * BLOCK + places] = True
    return found
