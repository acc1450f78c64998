"""The stretch of a message around the sentence that a memory rests on (T0), bounded.

It is text of the person: it changes and goes with the message, and loses what is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memory.imprint import INFLECTION_MAX, Imprint
from memory.models import MemorySource
from memory.sentences import SPAN_MAX_CHARS as SPAN_MAX_CHARS
from memory.sentences import around
from mira_site.accounts.models import User

SPANS_MAX_CHARS = 65_536  # of one memory in all; spec recall 1.1
PREFIX_MIN = 3  # letters of a word that are looked for at least

_WORD = re.compile(r"\w+")


_BOUND = """
UPDATE memory_sources AS s SET span = ''
FROM (
    SELECT id, sum(length(span)) OVER (PARTITION BY memory_id ORDER BY said_at DESC, id) AS total
    FROM memory_sources WHERE user_id = %(user)s AND memory_id = ANY(%(ids)s)
) AS counted
WHERE s.user_id = %(user)s AND s.id = counted.id AND counted.total > %(most)s AND s.span <> ''
"""


def bound(user: User, memory_ids: Collection[UUID]) -> None:
    """All spans of one memory together are SPANS_MAX_CHARS at most: the oldest ones go."""
    if not memory_ids:
        return
    values: dict[str, Any] = {"user": user.pk, "ids": list(memory_ids), "most": SPANS_MAX_CHARS}
    with connection.cursor() as cursor:
        cursor.execute(_BOUND, values)


def message_changed(user: User, message_id: UUID, text: str) -> None:
    """The message says `text` now: spans of it are cut anew, or go where the sentence has gone."""
    rows = list(MemorySource.objects.for_user(user).filter(message_id=message_id))
    for row in rows:
        still = row.sentence and row.sentence in text
        row.span = around(text, row.sentence) if still else ""
    MemorySource.objects.for_user(user).bulk_update(rows, ["span"], batch_size=500)


def forget(user: User, traces: Imprint, *, message_ids: Collection[UUID]) -> int:
    """Take what is being forgotten, said in these messages, out of all spans, wherever they stand.

    Sentence by sentence. Returns how many changed.
    """
    rows = [row for row in _suspects(user, traces, message_ids) if traces.is_in(row.span)]
    for row in rows:
        kept = traces.without(row.span)
        # Said across two sentences, neither of which says it alone: nothing of the span stays.
        row.span = "" if traces.is_in(kept) else kept
    MemorySource.objects.for_user(user).bulk_update(rows, ["span"], batch_size=500)
    return len(rows)


def _suspects(user: User, traces: Imprint, message_ids: Collection[UUID]) -> Sequence[MemorySource]:
    """Sources of the messages, and those whose span holds a beginning of what is looked for.

    The imprint decides; reading every span with it would take minutes where there are many.
    """
    words = {word for statement in traces.statements for word in statement} | traces.telling
    words |= {max(found, key=len) for one in traces.phrases if (found := _WORD.findall(one))}
    where = Q(message_id__in=message_ids)
    if words:
        where |= Q(span__iregex="|".join(sorted(map(_beginning, words))))
    return list(MemorySource.objects.for_user(user).exclude(span="").filter(where).order_by("id"))


def _beginning(word: str) -> str:
    """A pattern of a casefolded word's first letters; any letters for those with other cases."""
    kept = word[: max(PREFIX_MIN, len(word) - INFLECTION_MAX)]
    signs = (re.escape(sign) if sign.isascii() else ".{1,3}" for sign in kept)
    return "".join(signs).replace("ss", "(ss|.)")
