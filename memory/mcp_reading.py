"""The mira_* tools that look things up: recall, load, causal chain, timeline,
status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import selectors, showing, upkeep_selectors
from memory.dates import day
from memory.instructions import reads_like_an_instruction
from memory.mcp_answers import (
    IS_DATA,
    Answer,
    ChainResult,
    ChainStep,
    Loaded,
    LoadedSource,
    RecalledItem,
    RecallResult,
    StatusResult,
    TimelineEntry,
    TimelineResult,
    WingCount,
    resolved,
)
from memory.mcp_arguments import CausalChain, Load, Nothing, Recall, Timeline
from memory.models import Memory, MemorySource
from memory.places import Wing
from memory.short_ids import short
from memory.types import CausalNode, ContextItem, MemoryView, RecallContext, Trust
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.prompts import in_quotes, quoted

WINGS_SHOWN = 20  # spec recall 5.7
PAST = ' past="yes"'
SUSPECT = ' reads_like="an instruction"'  # as rendering.py writes it
NOTHING = "Nothing is remembered about this. Say so, or ask with other words."
NOTHING_HERE = (
    "Nothing is remembered about this there. mira_status tells which wings and rooms there are; "
    "without a wing and a room, everything is searched."
)
NO_ENTRIES = (
    "There is nothing like that in this wing. mira_status tells which wings and rooms there are."
)
TOO_SMALL = "Something is remembered about this, but nothing fits into the budget. Raise it."
NOT_SHOWN = (
    "This memory may not come up now: it has expired, or the person has hidden it or has yet to "
    "look at it. Only they can show it, on their page of memories."
)


def recall(user: User, asked: Recall, *, now: datetime) -> Answer:
    """The context exactly as the prompt of MIRA itself would carry it."""
    found = selectors.recall_context(
        user,
        asked.query,
        budget_tokens=asked.budget,
        now=now,
        limit=asked.limit,
        wing=asked.wing,
        room=asked.room,
        fallback_wings=asked.fallback_wings,
    )
    result = RecallResult(
        context=found.text,
        tokens=found.tokens,
        budget=found.budget_tokens,
        allocation_quality=found.quality,
        wing=found.wing,
        is_degraded=found.is_degraded,
        left_out=len(found.left_out),
        items=[_item(item) for item in found.items],
    )
    return Answer(text=found.text or _why_empty(asked, found), result=result)


def _why_empty(asked: Recall, found: RecallContext) -> str:
    if found.left_out:
        return TOO_SMALL
    return NOTHING_HERE if asked.wing or asked.room else NOTHING


def _item(item: ContextItem) -> RecalledItem:
    memory = item.memory
    return RecalledItem(
        id=short(memory.id),
        uuid=memory.id,
        mode=str(item.mode),
        text=item.text,
        tokens=item.tokens,
        score=memory.score,
        said_at=memory.said_at,
        type=memory.memory_type,
        wing=memory.wing,
        room=memory.room,
        why=memory.why.text,
        factors=asdict(item.factors),
    )


def load(user: User, asked: Load, *, now: datetime) -> Answer:
    """The whole text (T0), what it rests on, and when that was said."""
    memory_id = resolved(user, asked.id)
    memory = showing.shown(user, [memory_id], now=now, past=True).get(memory_id)
    if memory is None:
        raise NotFound(NOT_SHOWN)
    sources = MemorySource.objects.for_user(user).filter(memory=memory_id)
    spans = dict(sources.values_list("message_id", "span"))
    metrics = Memory.objects.for_user(user).values_list("metrics", flat=True).get(id=memory_id)
    text, trust = selectors.opened(user, memory_id, now=now)
    lines = [IS_DATA, text]
    if metrics:
        lines.append(f"<metrics>{quoted(json.dumps(metrics, ensure_ascii=False))}</metrics>")
    result = _loaded(memory, trust, spans, metrics or {})
    return Answer(text="\n".join(lines), result=result)


def _loaded(
    memory: MemoryView, trust: Trust, spans: Mapping[UUID, str], metrics: dict[str, Any]
) -> Loaded:
    fingerprint: dict[str, Any] = json.loads(memory.fingerprint) if memory.fingerprint else {}
    return Loaded(
        id=short(memory.id),
        uuid=memory.id,
        text=memory.text,
        type=memory.memory_type,
        wing=memory.wing,
        room=memory.room,
        created_at=memory.created_at,
        said_at=memory.said_at,
        happens_at=memory.happens_at,
        expires_at=memory.expires_at,
        valid_until=memory.valid_until,
        origin=memory.origin,
        reads_like_an_instruction=reads_like_an_instruction((memory.text,), trust),
        replaced_by=[short(one) for one in memory.replaced_by],
        fingerprint=fingerprint,
        metrics=metrics,
        notes=[note.text for note in memory.notes],
        sources=[
            LoadedSource(
                said_at=source.said_at,
                sentence=source.sentence,
                span=spans.get(source.message_id, ""),
                message=source.message_id,
                segment=source.segment_id,
            )
            for source in memory.sources
        ],
    )


def causal_chain(user: User, asked: CausalChain, *, now: datetime) -> Answer:
    """What led to a memory and, where asked for, what came of it."""
    memory_id = resolved(user, asked.id)
    chain = selectors.causal_chain(
        user,
        memory_id,
        max_depth=asked.max_depth,
        include_consequences=asked.include_consequences,
        now=now,
    )
    result = ChainResult(
        id=short(memory_id),
        uuid=memory_id,
        causes=[_step(node) for node in chain.causes],
        consequences=[_step(node) for node in chain.consequences],
    )
    zone = accounts.zone(user)
    lines = [f'<causes of="{result.id}">', *_steps(result.causes, zone), "</causes>"]
    if asked.include_consequences:
        steps = _steps(result.consequences, zone)
        lines += [f'<consequences of="{result.id}">', *steps, "</consequences>"]
    return Answer(text="\n".join([IS_DATA, *lines]), result=result)


def _step(node: CausalNode) -> ChainStep:
    return ChainStep(
        id=short(node.id),
        uuid=node.id,
        depth=node.depth,
        relation=node.relation,
        via=short(node.via_id),
        weight=node.weight,
        type=node.memory_type,
        said_at=node.said_at,
        is_past=node.is_past,
        is_confirmed=node.confirmed_at is not None,
        reads_like_an_instruction=node.reads_like_an_instruction,
        text=node.text,
    )


def _steps(steps: Sequence[ChainStep], zone: ZoneInfo) -> list[str]:
    """A line each, nearest first; without any it says so."""
    return [
        f'<memory id="{step.id}" depth="{step.depth}" relation="{step.relation}" via="{step.via}" '
        f'weight="{step.weight:.2f}" type="{step.type}" said_on="{day(step.said_at, zone)}"'
        f"{PAST if step.is_past else ''}{SUSPECT if step.reads_like_an_instruction else ''}"
        f">{quoted(step.text)}</memory>"
        for step in steps
    ] or ["Nothing is known."]


def when(user: User, asked: Timeline, *, now: datetime) -> Answer:
    """What was said in a wing, a line each, in the order of time."""
    page = selectors.timeline(
        user,
        wing=asked.wing,
        room=asked.room,
        memory_type=asked.type,
        since=asked.since,
        until=asked.until,
        limit=asked.limit,
        cursor=asked.cursor,
        newest_first=asked.order == "newest",
        now=now,
    )
    entries = [
        TimelineEntry(
            id=short(item.id),
            uuid=item.id,
            said_at=item.said_at,
            type=item.memory_type,
            wing=item.wing,
            room=item.room,
            reads_like_an_instruction=item.reads_like_an_instruction,
            summary=item.summary,
        )
        for item in page.items
    ]
    result = TimelineResult(items=entries, next_cursor=page.next_cursor)
    if not entries:
        return Answer(text=NO_ENTRIES, result=result)
    zone = accounts.zone(user)
    lines = [
        f'<memory id="{entry.id}" said_at="{entry.said_at.astimezone(zone):%Y-%m-%d %H:%M}" '
        f'type="{entry.type}" room="{in_quotes(entry.room)}"'
        f"{SUSPECT if entry.reads_like_an_instruction else ''}>{quoted(entry.summary)}</memory>"
        for entry in entries
    ]
    more = [f"next_cursor: {page.next_cursor}"] if page.next_cursor else []
    opening = f'<timeline wing="{in_quotes(asked.wing)}">'
    text = "\n".join([IS_DATA, opening, *lines, "</timeline>", *more])
    return Answer(text=text, result=result)


def status(user: User, asked: Nothing, *, now: datetime) -> Answer:
    """How much is remembered; the largest wings first."""
    found = selectors.status(user)
    largest = sorted(found.wings, key=lambda wing: -wing.memories)[:WINGS_SHOWN]
    result = StatusResult(
        memories=found.memories,
        archived=found.archived,
        held_back=upkeep_selectors.waiting(user, now=now).held_back,
        fingerprints=found.fingerprints,
        passages=found.passages,
        by_another_model=found.by_another_model,
        entities=found.entities,
        tokens=found.tokens,
        types=dict(found.types),
        links=dict(found.links),
        wings=[_wing(wing) for wing in largest],
        more_wings=len(found.wings) - len(largest),
    )
    lines = [
        f"Memories: {result.memories}, about {result.tokens} tokens of text",
        f"By type: {_counted(result.types)}",
        f"Archived, restorable: {result.archived}",
        f"Held back until the person has looked: {result.held_back}",
        f"Fingerprints: {result.fingerprints}; names: {result.entities}",
        *_waiting(found.by_another_model),
        f"Links: {_counted(result.links)}",
        "Wings and their rooms:",
        *(
            f"- {quoted(wing.name)} ({wing.memories}): {_counted(wing.rooms)}"
            for wing in result.wings
        ),
        *([f"- and {result.more_wings} more wings"] if result.more_wings else []),
    ]
    return Answer(text="\n".join(lines), result=result)


def _waiting(count: int | None) -> list[str]:
    return [f"Found by words alone until they are embedded anew: {count}"] if count else []


def _wing(wing: Wing) -> WingCount:
    rooms = {room.name: room.memories for room in wing.rooms}
    return WingCount(name=wing.name, memories=wing.memories, rooms=rooms)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{quoted(name)} {count}" for name, count in counts.items()) or "none"
