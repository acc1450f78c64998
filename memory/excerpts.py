"""Of a long memory the passage that answers best: what a small budget has room for.

A text of some pages either fits a context whole or would stand there as a line of facts. Its
nearest passage is cut to whole sentences and stays in the text's own frame (`Alice read: “…”`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from memory.quoting import meaning
from memory.storage import literal
from mira_site import embeddings
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

FROM_CHARS = 1_500  # a shorter text costs hardly more than its best passage
TRIMMED_MAX = 0.25  # of a passage, at each end, for the sake of whole sentences
GAP = "…"

_BREAK = re.compile(r"(?<=[.!?…。！？])[\"”’»)\]]*\s+|\n+")
_NEAREST = """
SELECT DISTINCT ON (p.memory_id) p.memory_id, p.start, p."end"
FROM unnest(%(ids)s::uuid[], %(vectors)s::vector[]) AS long (memory_id, vector)
JOIN memory_passages AS p ON p.memory_id = long.memory_id AND p.user_id = %(user)s
WHERE p.embedding_model = %(model)s
ORDER BY p.memory_id, p.embedding <#> long.vector, p.position
"""


def of(user: User, texts: Mapping[UUID, str], asked: Mapping[UUID, Vectors]) -> dict[UUID, str]:
    """The excerpt of each long one of the memories, for the phrase that it answers.

    One statement, and none where no text is long. What was not cut into passages has none.
    """
    long = [one for one, text in texts.items() if len(text) >= FROM_CHARS and one in asked]
    if not long:
        return {}
    values: dict[str, Any] = {
        "user": user.pk,
        "ids": long,
        "vectors": [literal(asked[one]) for one in long],
        "model": embeddings.model_id(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST, values)
        return {one: cut(texts[one], start, end) for one, start, end in cursor.fetchall()}


def cut(text: str, start: int, end: int) -> str:
    """That stretch of the text, in whole sentences where they end near, gaps marked, framed."""
    statement = meaning(text)
    first = text.find(statement)
    last = first + len(statement)
    most = int((end - start) * TRIMMED_MAX)
    breaks = [(match.start(), match.end()) for match in _BREAK.finditer(text, start, end)]
    if start > first:
        start = next((after for _, after in breaks if after <= start + most), start)
    if end < last:
        end = next((before for before, _ in reversed(breaks) if before >= end - most), end)
    shown = text[start:end].strip()
    opening = f"{GAP} " if start > first else ""
    closing = f" {GAP}" if end < last else ""
    return f"{text[:first]}{opening}{shown}{closing}{text[last:]}"
