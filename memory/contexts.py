"""What is remembered about a question, as a context within a budget of tokens: recall, allocation,
rendering. The one way memory is chosen and shown: API, MCP, memory_tool, prompt and recall page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from memory import (
    factors,
    fingerprints,
    naming,
    past,
    places,
    recall,
    rendering,
    short_ids,
    showing,
    telling,
)
from memory.allocation import Allocation, Candidate, LeftOut, Rendering, allocate
from memory.constants import DAY_S, RECALL_LIMIT_MAX, SPARE
from memory.models import MemoryLink
from memory.recall import Found
from memory.rendering import Form
from memory.types import (
    ContextItem,
    Factors,
    LeftOutItem,
    RecallContext,
    Recalled,
    Why,
)
from mira_site import metrics, tokens
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.embeddings import Vectors

CAUSAL = ("because", "triggered", "resolves")  # of the types of links
REASONS: Mapping[LeftOut, str] = {
    LeftOut.WORTHLESS: "It is worth nothing for this question.",
    LeftOut.TOO_LONG: "It is longer than the whole budget.",
    LeftOut.NO_ROOM: "It did not fit beside what is worth more.",
    LeftOut.ENOUGH: "More came up than were asked for.",
}
# Of 20 facts, right answers had a weight of 0.006 to 0.72, the nearest wrong ones at most 0.008.
FALLBACK_BELOW = 0.01  # weight of a wing's best under which the fallback wings are tried
NOTHING = Found()


@metrics.operation("recall")
def recall_context(
    user: User,
    query: str,
    *,
    budget_tokens: int,
    now: datetime,
    limit: int = RECALL_LIMIT_MAX,
    wing: str | None = None,
    room: str | None = None,
    fallback_wings: Sequence[str] = (),
) -> RecallContext:
    """Recall for the query, and fill the budget with what came up.

    `wing` and `room` narrow it, whatever the case of their letters; where the wing holds nothing
    good enough, the fallback wings are tried in their order, and what they bring says from which it
    is. `limit` bounds the memories shown.
    """
    asking = partial(
        recall.found,
        user,
        query,
        limit=min(RECALL_LIMIT_MAX, limit + SPARE),
        budget_tokens=budget_tokens,
        now=now,
        names=naming.names_asked_for(query),
        past=past.asks_for_past(query),
        room=room,
    )
    first = asking(wing=wing)
    used, elsewhere = "", NOTHING
    if wing is not None and not _is_good(first):
        others = [one for one in fallback_wings if places.same(one) != places.same(wing)]
        used, elsewhere = _fallen_back(asking, others)
    filled = context(
        sorted([*first.items, *elsewhere.items], key=lambda one: -weight(one)),
        budget_tokens=budget_tokens,
        zone=accounts.zone(user),
        limit=limit,
        elsewhere=[one.id for one in elsewhere.items],
    )
    explained = _explained(user, filled, first, elsewhere, now=now)
    whole = replace(
        explained,
        left_out=(*explained.left_out, *_alike(user, filled.items, now=now)),
        wing=used,
        is_degraded=first.is_degraded,
    )
    telling.recalled(user, whole)
    return whole


def _fallen_back(asking: Callable[..., Found], wings: Sequence[str]) -> tuple[str, Found]:
    """The first of the wings with something good; without one the first with anything."""
    first = ("", NOTHING)
    for wing in wings:
        found = asking(wing=wing)
        if _is_good(found):
            return wing, found
        if found.items and not first[1].items:
            first = wing, found
    return first


def _is_good(found: Found) -> bool:
    return max(map(weight, found.items), default=0.0) >= FALLBACK_BELOW


def context(
    memories: Sequence[Recalled],
    *,
    budget_tokens: int,
    zone: ZoneInfo,
    limit: int | None = None,
    elsewhere: Collection[UUID] = (),
) -> RecallContext:
    """The memories that are worth most within the budget, each in the detail that it is worth.

    They stand by day, the day with the most relevant one first, and within a day as they were said.
    Those from `elsewhere` say which wing they are of. Of the factors only relevance is told.
    """
    with metrics.stage("allocate"):  # what each form costs, and the choice
        forms = {
            one.id: rendering.forms(one, zone=zone, shows_wing=one.id in elsewhere)
            for one in memories
        }
        frame = tokens.estimate(f"{rendering.OPENING}\n{rendering.CLOSING}")
        allocation = allocate(
            [_candidate(one, forms[one.id], zone) for one in memories],
            budget_tokens=max(0, budget_tokens - frame),
            frames=frames(memories, zone=zone),
            most=limit,
        )
    with metrics.stage("render"):
        items = _in_order(_items(memories, forms, allocation), zone)
        lines = _lines(items, zone)
        text = "\n".join([rendering.OPENING, *lines, rendering.CLOSING]) if lines else ""
    return RecallContext(
        text=text,
        tokens=tokens.estimate(text),
        budget_tokens=budget_tokens,
        items=items,
        left_out=tuple(
            LeftOutItem(
                memory=one,
                reason=REASONS[allocation.left_out[one.id]],
                factors=Factors(relevance=weight(one)),
            )
            for one in memories
            if one.id in allocation.left_out
        ),
        quality=allocation.quality,
    )


def weight(memory: Recalled) -> float:
    """How much the memory is wanted, 0 to 1: recall's order is the order of weights."""
    return min(1.0, max(0.0, memory.score))


def candidates(memories: Sequence[Recalled], *, zone: ZoneInfo) -> list[Candidate]:
    """As the allocator sees them, in the same order: all forms at what they really cost."""
    return [_candidate(one, rendering.forms(one, zone=zone), zone) for one in memories]


def frames(memories: Sequence[Recalled], *, zone: ZoneInfo) -> dict[Hashable, int]:
    """What the line of each day costs."""
    moments = {_day(one, zone): one.said_at for one in memories}
    return {
        on: rendering.line_tokens(rendering.heading(moment, zone)) for on, moment in moments.items()
    }


def _day(memory: Recalled, zone: ZoneInfo) -> date:
    return memory.said_at.astimezone(zone).date()


def _candidate(memory: Recalled, forms: Sequence[Form], zone: ZoneInfo) -> Candidate:
    return Candidate(
        id=memory.id,
        weight=weight(memory),
        renderings=tuple(
            Rendering(mode=form.mode, fidelity=form.fidelity, tokens=form.tokens) for form in forms
        ),
        at=memory.said_at.timestamp(),
        group=_day(memory, zone),
    )


def _items(
    memories: Sequence[Recalled], forms: Mapping[UUID, Sequence[Form]], allocation: Allocation
) -> list[ContextItem]:
    """What was chosen, in the order of choosing."""
    of_id = {one.id: one for one in memories}
    items = []
    for choice in allocation.choices:
        (form,) = (form for form in forms[choice.id] if form.mode is choice.mode)
        items.append(
            ContextItem(
                memory=of_id[choice.id],
                mode=choice.mode,
                shown=form.shown,
                text=form.text,
                tokens=choice.tokens,
                gain=choice.gain,
                factors=Factors(relevance=weight(of_id[choice.id])),
            )
        )
    return items


def _in_order(items: Sequence[ContextItem], zone: ZoneInfo) -> tuple[ContextItem, ...]:
    best: dict[date, float] = {}
    days = [_day(item.memory, zone) for item in items]
    for on, item in zip(days, items, strict=True):
        best[on] = max(best.get(on, 0.0), item.factors.relevance)

    def place(pair: tuple[date, ContextItem]) -> tuple[float, int, datetime, UUID]:
        on, item = pair
        return (-best[on], -on.toordinal(), item.memory.said_at, item.memory.id)

    return tuple(item for _, item in sorted(zip(days, items, strict=True), key=place))


def _lines(items: Sequence[ContextItem], zone: ZoneInfo) -> list[str]:
    lines: list[str] = []
    above = ""
    for item in items:
        heading = rendering.heading(item.memory.said_at, zone)
        if heading != above:
            lines.append(heading)
            above = heading
        lines.append(item.text)
    return lines


# --- What spoke for each -----------------------------------------------------------------------
def _explained(user: User, filled: RecallContext, *found: Found, now: datetime) -> RecallContext:
    """With all factors of what was chosen and of what was not, all `found`."""
    chosen = [item.memory for item in filled.items]
    others = [item.memory for item in filled.left_out]
    if not chosen:
        return filled
    vectors = {memory_id: one for few in found for memory_id, one in few.vectors.items()}
    overlaps = _overlaps(vectors, chosen, others)
    is_linked = any(few.is_linked for few in found)
    causal = _causally_joined(user, chosen, others) if is_linked else set()
    sessions = _sessions([*chosen, *others])

    def of(memory: Recalled) -> Factors:
        age = (now - memory.said_at).total_seconds() / DAY_S
        return Factors(
            relevance=weight(memory),
            density=factors.density(_facts(memory), text_tokens=tokens.estimate(memory.text)),
            recency=factors.recency(memory.memory_type, age_days=age),
            overlap=overlaps.get(memory.id, 0.0),
            session=sessions[memory.id],
            causal=float(memory.id in causal),
        )

    return replace(
        filled,
        items=tuple(replace(item, factors=of(item.memory)) for item in filled.items),
        left_out=tuple(replace(item, factors=of(item.memory)) for item in filled.left_out),
    )


def _alike(user: User, items: Sequence[ContextItem], *, now: datetime) -> list[LeftOutItem]:
    """Those that stood back because one that is shown says nearly the same."""
    stands_for = {other: item.memory for item in items for other in item.memory.also}
    views = showing.shown(user, list(stands_for), now=now, past=True)
    why = Why(text="says nearly the same as another that came up", path="meaning")
    return [
        LeftOutItem(
            memory=Recalled(**recall.given(views[one]), score=0, why=why),
            reason=f"It says nearly the same as {short_ids.short(shown.id)}.",
        )
        for one, shown in stands_for.items()
        if one in views
    ]


def _facts(memory: Recalled) -> int:
    """How many facts its fingerprint holds; without one it is a fact itself."""
    if not memory.fingerprint:
        return 1
    return fingerprints.fact_count(fingerprints.parse(memory.fingerprint))


def _overlaps(
    vectors: Mapping[UUID, Vectors], chosen: Sequence[Recalled], others: Sequence[Recalled]
) -> dict[UUID, float]:
    """The largest cosine of each to what is worth more and was chosen."""
    ids = [one.id for one in sorted(chosen, key=lambda one: (-weight(one), one.id))]
    every = np.stack([vectors[one] for one in (*ids, *(one.id for one in others))])
    cosines = np.clip(every @ every[: len(ids)].T, 0, 1)
    largest = np.tril(cosines, -1).max(axis=1).round(4).tolist()
    return dict(zip((*ids, *(one.id for one in others)), largest, strict=True))


def _causally_joined(
    user: User, chosen: Sequence[Recalled], others: Sequence[Recalled]
) -> set[UUID]:
    """Those that a link of cause and effect joins with one that was chosen."""
    shown = {one.id for one in chosen}
    ids = [*shown, *(one.id for one in others)]
    links = MemoryLink.objects.for_user(user).filter(
        link_type__in=CAUSAL, source__in=ids, target__in=ids
    )
    joined: set[UUID] = set()
    for source, target in links.values_list("source_id", "target_id"):
        joined |= ({target} if source in shown else set()) | (
            {source} if target in shown else set()
        )
    return joined


def _sessions(memories: Sequence[Recalled]) -> dict[UUID, float]:
    """The worth of each memory's conversation beside that of the conversation worth most."""
    sums: dict[UUID, float] = {}
    for one in memories:
        session = one.segment_id or one.id
        sums[session] = sums.get(session, 0.0) + weight(one)
    most = max(sums.values(), default=0.0) or 1.0
    return {one.id: round(sums[one.segment_id or one.id] / most, 6) for one in memories}
