"""From phrases to the memories that answer them.

What speaks for a candidate is weighed for each phrase (ranking.py); its best phrase gives it its
relevance, and its importance a small share of the score. Each score part is told in `why.parts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.db.models import Case, FloatField, Value, When
from django.db.models.functions import Cast
from pgvector.django import MaxInnerProduct

from memory import alike, asking, excerpts, hubs, links, ranking, search, showing
from memory.alike import ALIKE_COSINE
from memory.asking import Asked
from memory.constants import (
    EMBEDDING_DIMENSIONS,
    FRESH_MIN,
    IMPORTANCE_SHARE,
    KEPT_MAX,
    NEAR_FLOOR,
    PAST_FACTOR,
    RECALL_LIMIT,
    REPLACED_FACTOR,
    WORDS_IN_WHY,
)
from memory.dates import day
from memory.fitting import Fitting
from memory.hubs import HubMemory
from memory.index import Places
from memory.links import Linked
from memory.models import Memory
from memory.search import Candidate, Floats, Pool
from memory.types import Compared, LinkedMemory, MemoryView, Parts, Path, Recalled, Why
from mira_site import embeddings, metrics
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors
from mira_site.errors import EmbeddingsUnavailable

ALIKE_DEPTH = 2  # times as many as are wanted are looked through for what says the same
HUB_LIMIT = 20  # memories by way of names; spec memory 5.5
_SHOWN_SIGNALS = ("late", "session", "month", "other_speaker", "asks", "particular", "named")
_VIEW = tuple(one.name for one in fields(MemoryView))
_VALUES = attrgetter(*_VIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How well a candidate answers the phrase it answers best, the `place`-th; its `row` in the
    pool."""

    row: int
    candidate: Candidate
    place: int
    relevance: float
    score: float
    signals: Mapping[str, float]
    name: str = ""
    also: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a recall brought. `is_degraded`: without embeddings, by words and names alone.

    `vectors` are those of the items, of about unit length; `is_linked`: any of them has a link.
    """

    items: tuple[Recalled, ...] = ()
    is_degraded: bool = False
    vectors: Mapping[UUID, Vectors] = field(default_factory=dict, repr=False, compare=False)
    is_linked: bool = False


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
    """Memories that answer the phrases; an empty list where nothing does. See `found`."""
    result = found(
        user, queries, limit=limit, now=now, names=names, kept_ids=kept_ids, past=past,
        wing=wing, room=room,
    )  # fmt: skip
    return list(result.items)


def found(
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
    without: frozenset[str] = frozenset(),
    budget_tokens: int | None = None,
) -> Found:
    """Memories that answer the phrases; none where nothing does.

    The kept ones that may still come up stand first, at most KEPT_MAX of them (the most important)
    and never in the last FRESH_MIN places, then fresh ones, best first; together at most `limit`.
    `names` bring what mentions them. What is past comes only if `past` is asked for; `wing` and
    `room` narrow it all, whatever the case of their letters. Signals of ranking.WEIGHTS that are
    named in `without` count nothing. Where a budget of tokens is to be filled, there are no more
    than may fit and a few to take their place.

    Four statements (six with names and links), whatever the number of memories. Without
    embeddings words and names decide.
    """
    asked = asking.prepare([queries] if isinstance(queries, str) else queries)
    if not asked.phrases:
        return Found()
    named = _named(user, asked, names, now=now, past=past)
    kept_ids = list(dict.fromkeys(kept_ids))
    with metrics.stage("candidates"):
        pool = search.candidates(
            user, asked, now=now, past=past, wanted=list(named), excluded=kept_ids,
            wing=wing, room=room,
        )  # fmt: skip
    zone = accounts.zone(user)
    with metrics.stage("rank"):
        matches = _Matches(pool, named, zone, past=past, without=without)
    _note(asked, len(pool))
    kept = _kept(matches.of(kept_ids), limit=limit)
    fresh = matches.best(max(0, limit - len(kept)), excluded=kept_ids, budget_tokens=budget_tokens)
    chosen = [*kept, *fresh]
    linked = _linked(user, [one.candidate for one in chosen], now=now, past=past)
    ids = [one.candidate.id for one in chosen]
    ids += [one.memory_id for several in linked.values() for one in several]
    views = showing.shown(user, ids, now=now, past=past)
    shaping = _Shaping(asked, views, _excerpts(user, asked, chosen, views), zone, now)
    items = (
        shaping.recalled(one, linked.get(one.candidate.id, ()), is_kept=one in kept)
        for one in chosen
        if one.candidate.id in views
    )
    return Found(
        items=tuple(items),
        is_degraded=not asked.vectors,
        vectors=matches.vectors_of(chosen),
        is_linked=any(one.candidate.is_linked for one in chosen),
    )


def _note(asked: Asked, in_pool: int) -> None:
    """How many were looked at, and what this recall had to do without."""
    metrics.looked_at(in_pool)
    if not asked.vectors:
        metrics.degraded("embeddings")
    if not asked.terms:
        metrics.lexical_failed()


@metrics.operation("search")
def found_ids(user: User, query: str, *, now: datetime) -> list[UUID]:
    """Ids of all memories that answer the query, hidden ones too, the most relevant first."""
    asked = asking.prepare([query])
    if not asked.phrases:
        return []
    pool = search.candidates(user, asked, now=now, include_hidden=True)
    matches = _Matches(pool, {}, accounts.zone(user), past=True)
    return matches.relevant()


def compared(
    user: User, memory_ids: Sequence[UUID], phrases: Sequence[str], *, now: datetime
) -> list[Compared]:
    """Those of the memories that may still come up, and their cosines to the first phrase.

    All phrases of the recall that follows are given, so that one pass of the model serves both.
    """
    texts = asking.phrases(phrases)
    if not memory_ids or not texts:
        return []
    rows = Memory.objects.for_user(user).visible(now).filter(id__in=memory_ids)
    similarity: Any = Value(0.0, output_field=FloatField())
    with suppress(EmbeddingsUnavailable):
        distance = MaxInnerProduct("embedding", embeddings.embed_queries(texts)[0])
        similarity = Case(
            When(embedding_model=embeddings.model_id(), then=Cast(distance, FloatField())),
            default=similarity,
        )
    found = {
        memory_id: Compared(id=memory_id, text=text, similarity=-distance)
        for memory_id, text, distance in rows.annotate(distance=similarity).values_list(
            "id", "text", "distance"
        )
    }
    return [found[memory_id] for memory_id in memory_ids if memory_id in found]


# --- Ranking -----------------------------------------------------------------------------------
class _Matches:
    """The candidates of a pool by what they are worth."""

    def __init__(
        self,
        pool: Pool,
        named: Mapping[UUID, HubMemory],
        zone: ZoneInfo,
        *,
        past: bool,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._pool, self._named = pool, named
        names = {memory_id: hub.name for memory_id, hub in named.items()}
        self._ranked = ranking.ranked(pool, names, zone, without=without)
        self._signals = {name: values.tolist() for name, values in self._ranked.signals.items()}
        self._scores = self._ranked.relevance * (
            1 - IMPORTANCE_SHARE + IMPORTANCE_SHARE * pool.importance
        )
        self._scores[pool.is_replaced] *= PAST_FACTOR if past else REPLACED_FACTOR

    def best(
        self, count: int, *, excluded: Sequence[UUID] = (), budget_tokens: int | None = None
    ) -> list[Match]:
        """The first `count` that are good enough for some phrase, best first, equal ones by id; of
        those that say nearly the same the best, which names the others. Fewer where texts that
        were taken in that order would fill the budget, see fitting.py.

        Relevance × (0.8 + 0.2 × importance): neither drowns the other. Importance decides between
        two that answer alike, and never against the answer (tests/memory/test_recall.py).
        """
        rows = self._order(self._scores)
        if excluded:
            out = set(excluded)
            rows = np.array([row for row in rows if self._pool.ids[row] not in out], dtype=np.intp)
        rows = rows[: ALIKE_DEPTH * count]
        near = self._near(rows)
        fitting = Fitting(budget_tokens)
        also: dict[int, list[UUID]] = {}  # by place in `rows`: those that stand back for it
        for place, row in enumerate(rows.tolist()):
            likes = (one for one in near.get(place, ()) if one in also)
            first = next((one for one in likes if self._says(rows[one], row)), -1)
            if first >= 0:
                also[first].append(self._pool.ids[row])
            elif len(also) < count:
                also[place] = []
                count = min(
                    count, len(also) + fitting.spare(self._pool.texts[row], self._pool.said_at[row])
                )
        return [self._match(int(rows[place]), tuple(others)) for place, others in also.items()]

    def _near(self, rows: Places) -> Mapping[int, Sequence[int]]:
        """Of each place in `rows` the places before it that are near in meaning, in their order."""
        vectors = self._pool.vectors[rows]
        later, earlier = np.nonzero(np.tril(vectors @ vectors.T >= ALIKE_COSINE, -1))
        found: dict[int, list[int]] = {}
        for place, before in zip(later.tolist(), earlier.tolist(), strict=True):
            found.setdefault(place, []).append(before)
        return found

    def vectors_of(self, matches: Sequence[Match]) -> Mapping[UUID, Vectors]:
        rows = np.array([one.row for one in matches], dtype=np.intp)
        ids = (one.candidate.id for one in matches)
        return dict(zip(ids, self._pool.vectors[rows], strict=True))

    def relevant(self) -> list[UUID]:
        """All that are good enough, the most relevant first."""
        return [self._pool.ids[row] for row in self._order(self._ranked.relevance)]

    def _order(self, values: Floats) -> Places:
        order = np.argsort(-values, kind="stable")
        return order[self._ranked.is_answer[order]]

    def _says(self, one: int, other: int) -> bool:
        pool = self._pool
        return pool.conditions[one] == pool.conditions[other] and alike.may_stand_for(
            pool.texts[one], pool.texts[other]
        )

    def of(self, memory_ids: Sequence[UUID]) -> list[Match]:
        """Those of the memories that may still come up, in the order given."""
        row_of = {memory_id: row for row, memory_id in enumerate(self._pool.ids)}
        return [self._match(row_of[one]) for one in memory_ids if one in row_of]

    def _match(self, row: int, also: tuple[UUID, ...] = ()) -> Match:
        candidate = self._pool.candidate(row)
        return Match(
            row=row,
            also=also,
            candidate=candidate,
            place=int(self._ranked.places[row]),
            relevance=float(self._ranked.relevance[row]),
            score=float(self._scores[row]),
            signals={name: values[row] for name, values in self._signals.items()},
            name=self._named[candidate.id].name if candidate.id in self._named else "",
        )


def _kept(kept: Sequence[Match], *, limit: int) -> list[Match]:
    """In the order given; of too many the most important."""
    most = max(0, min(KEPT_MAX, limit - FRESH_MIN))
    by_importance = sorted(kept, key=lambda one: (-one.candidate.importance, one.candidate.id))
    stay = {one.candidate.id for one in by_importance[:most]}
    return [one for one in kept if one.candidate.id in stay]


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


def _excerpts(
    user: User, asked: Asked, chosen: Sequence[Match], views: Mapping[UUID, MemoryView]
) -> Mapping[UUID, str]:
    if not asked.vectors:
        return {}
    texts = {one.candidate.id: views[one.candidate.id].text for one in chosen
             if one.candidate.id in views}  # fmt: skip
    return excerpts.of(user, texts, {one.candidate.id: asked.vectors[one.place] for one in chosen})


# --- Shaping -----------------------------------------------------------------------------------
class _Shaping:
    """Matches as what is shown of them."""

    def __init__(
        self,
        asked: Asked,
        views: Mapping[UUID, MemoryView],
        excerpts: Mapping[UUID, str],
        zone: ZoneInfo,
        now: datetime,
    ) -> None:
        self._asked, self._views, self._zone, self._now = asked, views, zone, now
        self._excerpts = excerpts

    def recalled(self, match: Match, linked: Sequence[Linked], *, is_kept: bool) -> Recalled:
        view = self._views[match.candidate.id]
        return Recalled(
            **given(view),
            score=match.score,
            why=self._why(match, view, is_kept=is_kept),
            is_past=view.valid_until is not None and view.valid_until <= self._now,
            also=match.also,
            excerpt=self._excerpts.get(view.id, ""),
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
        elif one.similarities[place] < NEAR_FLOOR:
            path, reason = "meaning", "told along with what is asked for"
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
                **{name: match.signals[name] for name in _SHOWN_SIGNALS},
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
            **given(view),
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


def given(view: MemoryView) -> dict[str, Any]:
    """What is shown of a memory, by the names of Recalled."""
    return dict(zip(_VIEW, _VALUES(view), strict=True))


def _source(view: MemoryView) -> dict[str, Any]:
    if not view.sources:
        return {}
    return {"sentence": view.sources[-1].sentence, "said_at": view.sources[-1].said_at}
