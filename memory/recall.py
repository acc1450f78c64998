"""From a query to the memories that answer it, and to the text that enters a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import fusion, search
from memory.constants import NEAR_FLOOR, OVERLAP_FLOOR, RECALL_LIMIT, WORDS_IN_WHY
from memory.dates import day
from memory.models import Memory
from memory.search import Candidate
from memory.types import ContextItem, RecallContext, Recalled, SourceRef
from mira_site import tokens
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.prompts import quoted

CONTEXT_OPENING = "<memories>"
CONTEXT_CLOSING = "</memories>"


def recall(
    user: User, queries: Sequence[str] | str, *, limit: int = RECALL_LIMIT, now: datetime
) -> list[Recalled]:
    """Memories that answer the queries, best first; an empty list where nothing does.

    Meaning and words are ranked apart and fused. Archived and expired memories stay out. Two
    statements, whatever the number of memories; without embeddings the words alone decide.
    """
    asked = [queries] if isinstance(queries, str) else queries
    found = {candidate.id: candidate for candidate in search.candidates(user, asked, now=now)}
    best = ranked(list(found.values()))[:limit]
    if not best:
        return []
    rows = _rows(user, [memory_id for memory_id, _ in best])
    zone = accounts.zone(user)
    return [
        _recalled(rows[memory_id], found[memory_id], score, zone)
        for memory_id, score in best
        if memory_id in rows
    ]


def ranked(candidates: Sequence[Candidate]) -> list[tuple[UUID, float]]:
    """The candidates that are good enough for either leg, fused, best first."""
    near = [one for one in candidates if one.similarity >= NEAR_FLOOR]
    worded = [one for one in candidates if one.overlap >= OVERLAP_FLOOR]
    near.sort(key=lambda one: (-one.similarity, one.id))
    worded.sort(key=lambda one: (-one.overlap, -one.similarity, one.id))
    return fusion.fuse([[one.id for one in near], [one.id for one in worded]])


def context(memories: Sequence[Recalled], *, budget_tokens: int, zone: ZoneInfo) -> RecallContext:
    """The memories as a prompt may carry them: escaped, labelled, dated, within the budget.

    They are taken in their order; one that no longer fits is left out and a shorter one may follow.
    """
    frame = tokens.estimate(f"{CONTEXT_OPENING}\n{CONTEXT_CLOSING}\n")
    left = budget_tokens - frame
    items: list[ContextItem] = []
    for memory in memories:
        text = _rendered(memory, zone)
        cost = tokens.estimate(text + "\n")
        if cost <= left:
            left -= cost
            items.append(ContextItem(memory=memory, mode="verbatim", text=text, tokens=cost))
    if not items:
        return RecallContext(text="", tokens=0, budget_tokens=budget_tokens, items=())
    lines = [CONTEXT_OPENING, *(item.text for item in items), CONTEXT_CLOSING]
    whole = "\n".join(lines)
    return RecallContext(
        text=whole, tokens=tokens.estimate(whole), budget_tokens=budget_tokens, items=tuple(items)
    )


def _rendered(memory: Recalled, zone: ZoneInfo) -> str:
    said_at = memory.sources[-1].said_at if memory.sources else memory.created_at
    said_on = said_at.astimezone(zone).date().isoformat()
    return f'<memory id="{memory.short_id}" said_on="{said_on}">{quoted(memory.text)}</memory>'


_COLUMNS = ("id", "text", "created_at", "happens_at")
_SOURCE_COLUMNS = ("message_id", "segment_id", "sentence", "said_at")


def _rows(user: User, ids: Sequence[UUID]) -> dict[UUID, tuple[tuple, list[SourceRef]]]:
    """Text, dates and sources of the final few, in one statement."""
    joined = (
        Memory.objects.for_user(user)
        .filter(id__in=ids)
        .order_by("sources__said_at", "sources__message_id")
        .values_list(*_COLUMNS, *(f"sources__{name}" for name in _SOURCE_COLUMNS))
    )
    rows: dict[UUID, tuple[tuple, list[SourceRef]]] = {}
    for record in joined:
        memory, source = record[: len(_COLUMNS)], record[len(_COLUMNS) :]
        _, sources = rows.setdefault(memory[0], (memory, []))
        if source[0] is not None:
            sources.append(SourceRef(**dict(zip(_SOURCE_COLUMNS, source, strict=True))))
    return rows


def _recalled(
    row: tuple[tuple, list[SourceRef]], candidate: Candidate, score: float, zone: ZoneInfo
) -> Recalled:
    (memory_id, text, created_at, happens_at), sources = row
    return Recalled(
        id=memory_id,
        short_id=memory_id.hex[:8],
        text=text,
        created_at=created_at,
        happens_at=happens_at,
        score=score,
        why=_why(candidate, sources, created_at, zone),
        sources=tuple(sources),
        similarity=max(0.0, candidate.similarity),
        overlap=candidate.overlap,
    )


def _why(
    candidate: Candidate, sources: Sequence[SourceRef], created_at: datetime, zone: ZoneInfo
) -> str:
    words = ", ".join(f"“{word}”" for word in candidate.words[:WORDS_IN_WHY])
    reason = f"matches {words}" if words else "close in meaning"
    if sources:
        return f"{reason}, said on {day(sources[-1].said_at, zone)}"
    return f"{reason}, noted on {day(created_at, zone)}"
