"""From phrases to the memories that answer them.

Each phrase ranks the candidates by meaning and by words, names add a ranking of their own, and rank
fusion joins them. What a memory gets from its best phrase is its relevance, partly from its ranks
and mostly from the values behind them: ranks alone cannot tell an exact match from the least bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.db.models import FloatField, Value
from django.db.models.functions import Cast
from pgvector.django import MaxInnerProduct

from memory import fusion, hubs, links, search, showing
from memory.constants import (
    EMBEDDING_DIMENSIONS,
    FRESH_MIN,
    IMPORTANCE_SHARE,
    KEPT_MAX,
    MEANING_WEIGHT,
    NAME_WEIGHT,
    NEAR_FLOOR,
    OVERLAP_FLOOR,
    PAST_FACTOR,
    PHRASE_STEP,
    RANK_SHARE,
    RECALL_LIMIT,
    REPLACED_FACTOR,
    WORDS_IN_WHY,
    WORDS_WEIGHT,
)
from memory.dates import day
from memory.hubs import HubMemory
from memory.links import Linked
from memory.models import Memory
from memory.search import Asked, Candidate
from memory.types import Compared, LinkedMemory, MemoryView, Parts, Path, Recalled, Why
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable

HUB_LIMIT = 20  # memories by way of names; spec memory 5.5
_VIEW = tuple(field.name for field in fields(MemoryView))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How well a candidate answers the phrase it answers best, the `place`-th."""

    candidate: Candidate
    place: int
    relevance: float
    score: float
    name: str = ""


def recall(
    user: User,
    queries: Sequence[str] | str,
    *,
    limit: int = RECALL_LIMIT,
    now: datetime,
    names: Sequence[str] = (),
    kept_ids: Sequence[UUID] = (),
    past: bool = False,
    wing: str | None = None,
    room: str | None = None,
) -> list[Recalled]:
    """Memories that answer the phrases; an empty list where nothing does.

    The kept ones that may still come up stand first, at most KEPT_MAX of them (the most important)
    and never in the last FRESH_MIN places, then fresh ones, best first; together at most `limit`.
    `names` bring what mentions them. What is past comes only if `past` is asked for; `wing` and
    `room` narrow it all, whatever the case of their letters.

    Four statements (five with names, three where nothing is linked), whatever the number of
    memories. Without embeddings words and names decide.
    """
    asked = search.prepare([queries] if isinstance(queries, str) else queries)
    if not asked.phrases:
        return []
    named = _named(user, asked, names, now=now, past=past)
    kept_ids = list(dict.fromkeys(kept_ids))
    found = search.candidates(
        user,
        asked,
        now=now,
        past=past,
        wanted=list(named),
        excluded=kept_ids,
        wing=wing,
        room=room,
    )
    fresh = matches([one for one in found if one.id not in set(kept_ids)], asked, named, past=past)
    kept = _kept(found, kept_ids, asked, limit=limit)
    chosen = [*kept, *fresh[: max(0, limit - len(kept))]]
    linked = _linked(user, [one.candidate for one in chosen], now=now, past=past)
    ids = [one.candidate.id for one in chosen]
    ids += [one.memory_id for several in linked.values() for one in several]
    views = showing.shown(user, ids, now=now, past=past)
    shaping = _Shaping(asked, views, accounts.zone(user), now)
    return [
        shaping.recalled(one, linked.get(one.candidate.id, ()), is_kept=one in kept)
        for one in chosen
        if one.candidate.id in views
    ]


def found_ids(user: User, query: str, *, now: datetime) -> list[UUID]:
    """Ids of all memories that answer the query, hidden ones too, the most relevant first."""
    asked = search.prepare([query])
    found = search.candidates(user, asked, now=now, include_hidden=True)
    ranked = sorted(matches(found, asked, {}, past=True), key=lambda one: -one.relevance)
    return [one.candidate.id for one in ranked]


def compared(
    user: User, memory_ids: Sequence[UUID], phrases: Sequence[str], *, now: datetime
) -> list[Compared]:
    """Those of the memories that may still come up, and their cosines to the first phrase.

    All phrases of the recall that follows are given, so that one pass of the model serves both.
    """
    texts = search.phrases(phrases)
    if not memory_ids or not texts:
        return []
    rows = Memory.objects.for_user(user).visible(now).filter(id__in=memory_ids)
    similarity: Any = Value(0.0, output_field=FloatField())
    with suppress(EmbeddingsUnavailable):
        similarity = Cast(
            MaxInnerProduct("embedding", embeddings.embed_queries(texts)[0]), FloatField()
        )
    found = {
        memory_id: Compared(id=memory_id, text=text, similarity=-distance)
        for memory_id, text, distance in rows.annotate(distance=similarity).values_list(
            "id", "text", "distance"
        )
    }
    return [found[memory_id] for memory_id in memory_ids if memory_id in found]


# --- Ranking -----------------------------------------------------------------------------------
def matches(
    candidates: Sequence[Candidate],
    asked: Asked,
    named: Mapping[UUID, HubMemory],
    *,
    past: bool,
) -> list[Match]:
    """The candidates that are good enough for some phrase, best first; equal ones go by id."""
    best: dict[UUID, Match] = {}
    for place in range(len(asked.phrases)):
        for match in _for_phrase(candidates, place, named if place == 0 else {}, past=past):
            other = best.get(match.candidate.id)
            if other is None or match.relevance > other.relevance:
                best[match.candidate.id] = match
    return sorted(best.values(), key=lambda one: (-one.score, one.candidate.id))


def _for_phrase(
    candidates: Sequence[Candidate], place: int, named: Mapping[UUID, HubMemory], *, past: bool
) -> list[Match]:
    near = [one for one in candidates if one.similarities[place] >= NEAR_FLOOR]
    near.sort(key=lambda one: (-one.similarities[place], one.id))
    worded = [one for one in candidates if one.overlaps[place] >= OVERLAP_FLOOR]
    worded.sort(key=lambda one: (-one.overlaps[place], -one.similarities[place], one.id))
    by_name = [one for one in candidates if one.id in named]
    by_name.sort(key=lambda one: (-one.similarities[place], one.id))
    legs = ((near, MEANING_WEIGHT), (worded, WORDS_WEIGHT), (by_name, NAME_WEIGHT))
    fused = fusion.fuse(
        [[one.id for one in leg] for leg, _ in legs], weights=[weight for _, weight in legs]
    )
    first_in_both = (MEANING_WEIGHT + WORDS_WEIGHT) / (fusion.RRF_K + 1)
    by_id = {one.id: one for one in candidates}
    found = []
    for memory_id, rank_score in fused:
        one = by_id[memory_id]
        ranks = min(1.0, rank_score / first_in_both)
        worth = RANK_SHARE * ranks + (1 - RANK_SHARE) * _nearness(one, place)
        found.append(
            Match(
                candidate=one,
                place=place,
                relevance=worth * (1 - PHRASE_STEP * place),
                score=scored(one, worth * (1 - PHRASE_STEP * place), past=past),
                name=named[memory_id].name if memory_id in named else "",
            )
        )
    return found


def _nearness(one: Candidate, place: int) -> float:
    similarity = min(1.0, max(0.0, one.similarities[place]))
    return MEANING_WEIGHT * similarity + WORDS_WEIGHT * one.overlaps[place]


def scored(one: Candidate, relevance: float, *, past: bool) -> float:
    """Relevance × (0.8 + 0.2 × importance): neither drowns the other.

    On eight questions (tests/memory/test_recall.py) an exact match has 1.28 to 2.0 times the
    relevance of what only touches the subject; importance, from its least to its most, weighs
    1.25. So it decides between two that answer alike, and never against the answer.
    """
    score = relevance * (1 - IMPORTANCE_SHARE + IMPORTANCE_SHARE * one.importance)
    if one.is_replaced:
        score *= PAST_FACTOR if past else REPLACED_FACTOR
    return score


def _kept(
    candidates: Sequence[Candidate], kept_ids: Sequence[UUID], asked: Asked, *, limit: int
) -> list[Match]:
    """Those that may still come up, in the order given; of too many the most important."""
    by_id = {one.id: one for one in candidates}
    kept = [by_id[memory_id] for memory_id in kept_ids if memory_id in by_id]
    most = max(0, min(KEPT_MAX, limit - FRESH_MIN))
    stay = sorted(kept, key=lambda one: (-one.importance, one.id))[:most]
    found = []
    for one in kept:
        if one in stay:
            places = range(len(asked.phrases))
            place = max(places, key=lambda place: (_nearness(one, place), -place))
            relevance = _nearness(one, place)
            score = scored(one, relevance, past=False)
            found.append(Match(candidate=one, place=place, relevance=relevance, score=score))
    return found


def _named(
    user: User, asked: Asked, names: Sequence[str], *, now: datetime, past: bool
) -> dict[UUID, HubMemory]:
    if not names:
        return {}
    vector = asked.vectors[0] if asked.vectors else np.zeros(EMBEDDING_DIMENSIONS, np.float32)
    found = hubs.hub_memories(user, names, vector, limit=HUB_LIMIT, now=now, past=past)
    return {one.id: one for one in found}


def _linked(
    user: User, chosen: Sequence[Candidate], *, now: datetime, past: bool
) -> Mapping[UUID, Sequence[Linked]]:
    if not any(one.is_linked for one in chosen):
        return {}
    return links.beside(user, [one.id for one in chosen], now=now, past=past)


# --- Shaping -----------------------------------------------------------------------------------
class _Shaping:
    """Matches as what is shown of them."""

    def __init__(
        self, asked: Asked, views: Mapping[UUID, MemoryView], zone: ZoneInfo, now: datetime
    ) -> None:
        self._asked, self._views, self._zone, self._now = asked, views, zone, now

    def recalled(self, match: Match, linked: Sequence[Linked], *, is_kept: bool) -> Recalled:
        view = self._views[match.candidate.id]
        return Recalled(
            **_given(view),
            score=match.score,
            why=self._why(match, view, is_kept=is_kept),
            is_past=view.valid_until is not None and view.valid_until <= self._now,
            linked=tuple(self._linked(one, view) for one in linked if one.memory_id in self._views),
        )

    def _why(self, match: Match, view: MemoryView, *, is_kept: bool) -> Why:
        one, place = match.candidate, match.place
        words = one.words[place]
        path: Path
        if is_kept:
            path, reason = "kept", "still being talked about"
        elif words:
            shown = ", ".join(f"“{word}”" for word in words[:WORDS_IN_WHY])
            path, reason = "words", f"matches {shown}"
        elif match.name and one.similarities[place] < NEAR_FLOOR:
            path, reason = "entity", f"mentions {match.name}"
        else:
            path, reason = "meaning", "close in meaning"
        return Why(
            text=f"{reason}, {self._since(view)}",
            path=path,
            phrase=self._asked.phrases[place],
            words=words,
            name=match.name,
            parts=Parts(
                similarity=max(0.0, one.similarity),
                overlap=one.overlap,
                relevance=match.relevance,
                importance=one.importance,
            ),
            **_source(view),
        )

    def _linked(self, linked: Linked, primary: MemoryView) -> LinkedMemory:
        view = self._views[linked.memory_id]
        # Without the primary's words: this is kept with the other memory, and one of the two may
        # be forgotten.
        why = Why(
            text=f"linked to another that came up ({linked.link_type}), {self._since(view)}",
            path="link",
            linked_to=primary.id,
            **_source(view),
        )
        return LinkedMemory(
            **_given(view),
            link_type=linked.link_type,
            outward=linked.outward,
            bond=linked.bond,
            reasoning=linked.reasoning,
            depth=linked.depth,
            score=linked.score,
            why=why,
        )

    def _since(self, view: MemoryView) -> str:
        if view.sources:
            return f"said on {day(view.sources[-1].said_at, self._zone)}"
        return f"noted on {day(view.created_at, self._zone)}"


def _given(view: MemoryView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in _VIEW}


def _source(view: MemoryView) -> dict[str, Any]:
    if not view.sources:
        return {}
    return {"sentence": view.sources[-1].sentence, "said_at": view.sources[-1].said_at}
