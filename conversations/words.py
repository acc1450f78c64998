"""Which messages may hold the words of a query, newest first, without reading the others.

Row-level security lets no index answer `@@`, but it lets one answer what is equal. So the places of
words are kept for each full block of messages (models/words.py); what is newer is not looked up but
read. A query costs a row for each of its words in each block, and the messages that hold them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from conversations import tsquery
from conversations.models import WordPlaces
from mira_site.accounts.models import User

BLOCK = 1_024  # messages
BUCKETS = 256
# A code is the rest of a word's hash (21 bits) and the place of a message in its block (10 bits);
# migration 0011 writes them.
PLACE_BITS, PLACE_MASK = 10, BLOCK - 1
BUCKET_BITS, REST_MASK = 8, (1 << 21) - 1
BLOCKS_FIRST = 8  # blocks looked at together; what many messages hold is found in these …
BLOCKS_GROWTH = 16  # … and each time after them in so many times as many

_ASKED = """
SELECT websearch_to_tsquery('english', %s)::text,
       (SELECT max(block) FROM conversations_word_places WHERE user_id = %s AND bucket = 0)
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
    user: User, condition: tsquery.Condition, *, first: int, last: int
) -> Iterator[list[int]]:
    """Positions in the full blocks from that of `first` to that of `last` which meet the condition.

    Newest first, in some parts; each part is looked up when it is wanted. Words of one hash are one
    word here, so a position may be of a message that holds none of them.
    """
    top, bottom, size = last // BLOCK, first // BLOCK, BLOCKS_FIRST
    hashes = _hashes(tsquery.words(condition)) if top >= bottom else {}
    while top >= bottom:
        lowest = max(bottom, top - size + 1)
        held = tsquery.holding(condition, _places(user, hashes, lowest, top))
        yield (np.flatnonzero(held)[::-1] + lowest * BLOCK).tolist()
        top, size = lowest - 1, size * BLOCKS_GROWTH


def _hashes(words: set[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word, hashtext(word) FROM unnest(%s::text[]) AS word", [sorted(words)]
        )
        return dict(cursor.fetchall())


def _places(
    user: User, hashes: Mapping[str, int], lowest: int, top: int
) -> Mapping[str, NDArray[np.bool_]]:
    """For each word, whether it stands at each position of the blocks."""
    found = {word: np.zeros((top - lowest + 1) * BLOCK, dtype=np.bool_) for word in hashes}
    rows = WordPlaces.objects.for_user(user).filter(
        bucket__in={number % BUCKETS for number in hashes.values()}, block__range=(lowest, top)
    )
    for block, bucket, codes in rows.values_list("block", "bucket", "codes"):
        here = np.frombuffer(codes, dtype=">i4")
        for word, number in hashes.items():
            if number % BUCKETS == bucket:
                rest = number >> BUCKET_BITS & REST_MASK
                places = here[here >> PLACE_BITS == rest] & PLACE_MASK
                found[word][(block - lowest) * BLOCK + places] = True
    return found
