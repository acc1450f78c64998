"""The page "What MIRA sees": the context of a turn, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from conversations import context_selectors, ledger
from conversations import context_wording as wording
from conversations.constants import CONTEXT_KEPT_DAYS, OFFLINE_MODEL
from conversations.context_selectors import Seen, SeenSection, Spent
from conversations.models import Message, Observation, Turn
from memory.types import Memory
from mira_site.accounts import selectors as accounts
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import NotFound

MESSAGE_CHARS = 140  # of a message in the list of those that went along
QUESTION_CHARS = 240
MESSAGES_SHOWN = 60  # of those that went along, the newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section as it is shown."""

    title: str
    says: str
    section: SeenSection
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The sections of a slot, with their sum."""

    slot: str
    title: str
    says: str
    parts: Sequence[Part]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of the overview: what part of the whole prompt it is."""

    label: str
    tokens: int
    percent: float
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message that went along."""

    message: Message
    by: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """An observation in words."""

    row: Observation
    title: str
    turns_left: int
    is_critical: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a job cost, in words."""

    title: str
    spent: Spent
    cached: int


@require_GET
@login_required
@never_cache
def newest(request: SignedInRequest) -> HttpResponse:
    turn_id = context_selectors.newest(request.user)
    if turn_id is None:
        return render(request, "conversations/context.html", {"seen": None})
    return _page(request, turn_id)


@require_GET
@login_required
@never_cache
def turn(request: SignedInRequest, turn_id: UUID) -> HttpResponse:
    return _page(request, turn_id)


def _page(request: SignedInRequest, turn_id: UUID) -> HttpResponse:
    try:
        seen = context_selectors.seen(request.user, turn_id)
    except NotFound as error:
        raise Http404(str(error)) from error
    with timezone.override(accounts.zone(request.user)):
        return render(request, "conversations/context.html", _shown(seen))


def _shown(seen: Seen) -> Mapping[str, Any]:
    whole = seen.composed.tokens if seen.composed else 0
    groups = _groups(seen, whole)
    lines = [_line(message) for message in seen.messages]
    record = seen.subcortical
    return {
        "seen": seen,
        "question": ledger.cut(seen.asked.text, QUESTION_CHARS) if seen.asked else "",
        "groups": groups,
        "bars": _bars(seen, groups, whole) if whole else [],
        "lines": lines[-MESSAGES_SHOWN:],  # `messages` are the toasts of the page
        "lines_before": max(0, len(lines) - MESSAGES_SHOWN),
        "kept": _named(seen, record.kept_ids if record else []),
        "dropped": _named(
            seen,
            [one for one in record.offered_ids if one not in record.kept_ids] if record else [],
        ),
        "reason": wording.reason(record.reason) if record else "",
        "advice": [_advice(row, seen) for row in seen.advice],
        "past": [_advice(row, seen) for row in seen.past],
        "costs": [
            Cost(title=wording.job(one.job), spent=one, cached=_share(one)) for one in seen.spent
        ],
        "cached": _cached(seen.spent),
        "days": CONTEXT_KEPT_DAYS,
        "nothing": wording.NOTHING_KEPT[_missing(seen.turn, timezone.now())],
    }


def _missing(turn: Turn, now: datetime) -> str:
    """Why nothing is kept of an answer that nobody waits for any more; wording.NOTHING_KEPT."""
    rested_at = turn.segment.collapsed_at
    if turn.is_off_record:
        return "off_record"
    if rested_at is not None and rested_at < now - timedelta(days=CONTEXT_KEPT_DAYS):
        return "expired"
    if turn.model == OFFLINE_MODEL:
        return "quoted"
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        return "broken"
    return "stopped" if turn.status == Turn.Status.STOPPED else "gone"


def _groups(seen: Seen, whole: int) -> list[Group]:
    """In the order of the prompt, slot by slot."""
    groups = []
    for slot, (title, says) in wording.SLOTS.items():
        parts = [_part(one, whole) for one in seen.sections if one.slot == slot]
        total = sum(part.section.tokens for part in parts)
        if parts:
            groups.append(Group(slot=slot, title=title, says=says, parts=parts, tokens=total))
    return groups


def _part(one: SeenSection, whole: int) -> Part:
    title, says = wording.section(one.name)
    return Part(title=title, says=says, section=one, percent=_percent(one.tokens, whole))


def _bars(seen: Seen, groups: Iterable[Group], whole: int) -> list[Bar]:
    """In the order in which the provider reads it: tools first, the newest words last."""
    assert seen.composed is not None  # noqa: S101 (the caller has looked)
    by_slot = {group.slot: group for group in groups}
    found = [("Tools", seen.tools_tokens, "tools")]
    found += [
        (by_slot[slot].title, by_slot[slot].tokens, slot)
        for slot in ("constant", "segment")
        if slot in by_slot
    ]
    found.append(("Our words", seen.composed.history_tokens, "words"))
    if "hud" in by_slot:
        found.append((by_slot["hud"].title, by_slot["hud"].tokens, "hud"))
    return [
        Bar(label=label, tokens=count, percent=_percent(count, whole), anchor=anchor)
        for label, count, anchor in found
    ]


def _line(message: Message) -> Line:
    by = "You" if message.role == Message.Role.USER else "MIRA"
    return Line(message=message, by=by, text=ledger.cut(message.text, MESSAGE_CHARS))


def _named(seen: Seen, ids: Iterable[str]) -> list[Memory | None]:
    """Memories that the subcortical record names, None for one that was forgotten since."""
    return [seen.memories.get(UUID(one)) for one in ids]


def _advice(row: Observation, seen: Seen) -> Advice:
    return Advice(
        row=row,
        title=wording.ACTIONS[row.action],
        turns_left=row.expires_after_turn - seen.turn.number + 1,
        is_critical=row.severity == Observation.Severity.CRITICAL,
    )


def _cached(spent: Iterable[Spent]) -> int | None:
    """Percent of the answer's own prompts that the provider still had; None without an answer."""
    reply = next((one for one in spent if one.job == "reply"), None)
    return _share(reply) if reply else None


def _share(spent: Spent) -> int:
    """Percent of its prompts that the provider still had; a hundred only if it was all of them."""
    return 100 if spent.cache_share == 1 else min(99, round(100 * spent.cache_share))


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
