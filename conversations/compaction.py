"""Live compaction: the older part of a segment that is still talked in, told in one rolling brief.

It shapes prompts only. The messages stay where they are, and the brief goes when the segment
collapses, whose summary is made of the messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, Field

from conversations import file_blocks, ledger, passages, quotations, threads
from conversations.constants import (
    BRIEF_MAX_TOKENS,
    BRIEF_MIN_CHARS,
    BRIEF_MIN_SHARE,
    COMPACTION_CLAIM_S,
    COMPACTION_MESSAGES,
    COMPACTION_RAW_TURNS,
    COMPACTION_STEP_TOKENS,
    COMPACTION_STEP_TURNS,
    COMPACTION_TRIGGER_TOKENS,
    SUMMARY_MAX_CHARS,
)
from conversations.models import CompactionBrief, Message, Segment, ToolCall, Turn
from mira_site import tokens
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import WorkLeftDue
from mira_site.llm.jobs import Job, leave_due
from mira_site.llm.types import Tier
from mira_site.prompts import in_quotes, quoted

log = structlog.get_logger(__name__)

RESULT_CHARS = 500  # of a tool's result in what is compacted; spec conversations 4


class BriefAnswer(BaseModel):
    """The state of a conversation at its boundary, so that it can go on without the older part."""

    state: str = Field(
        min_length=20, max_length=4_000, description="What is being talked about, last request."
    )
    preferences: list[str] = Field(
        default_factory=list, description="What the person wants or rules out, in exact words."
    )
    decisions: list[str] = Field(
        default_factory=list, description="Decided, answered, promised, ruled out."
    )
    references: list[str] = Field(
        default_factory=list, description="Names, numbers, dates, links, files, what tools brought."
    )
    open_threads: list[str] = Field(default_factory=list, description="Unresolved or pending.")
    synopsis: str = Field(
        min_length=40, max_length=6_000, description="One dense paragraph of what was said."
    )


COMPACTION = Job(
    "compaction", Tier.BACKGROUND, prompt=("conversations", "compaction"), answer=BriefAnswer
)
_LISTS = (
    ("preferences", "What the person wants"),
    ("decisions", "Decided, answered, promised, ruled out"),
    ("references", "Names, numbers, dates, links, results"),
    ("open_threads", "Still open"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Messages to be told in short next, oldest first, and the brief of those before them."""

    segment: Segment
    before: CompactionBrief | None
    messages: tuple[Message, ...]

    @property
    def digest(self) -> str:
        """Of all that was read; another one later means that somebody changed it."""
        texts = (f"{one.pk} {one.text}" for one in self.messages)
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def is_due(turn: Turn, prompt_tokens: int) -> bool:
    """Whether the prompt of this turn was long enough for its older part to be told in short.

    Or of so many messages: a prompt reads HISTORY_MESSAGES_MAX of them and no more.
    """
    if turn.is_off_record:
        return False
    if prompt_tokens >= COMPACTION_TRIGGER_TOKENS:
        return True
    told = CompactionBrief.objects.for_user(turn.user_id).filter(segment=turn.segment_id)
    told_to = told.values_list("covered_to_position", flat=True).first() or 0
    rows = Message.objects.for_user(turn.user_id).filter(segment=turn.segment_id)
    return bool(rows.filter(position__gt=told_to).count() >= COMPACTION_MESSAGES)


def compact(
    user: User, segment_id: UUID, *, raw_turns: int = COMPACTION_RAW_TURNS
) -> CompactionBrief | None:
    """Bring the brief up to all but the last `raw_turns` turns. None where nothing was done.

    One at a time for a segment. Without a model, or with an answer that is no plausible brief, the
    brief of before stays and the messages stay in the prompt; then it is left alone for a while, or
    each turn would pay for another one.
    """
    claim = f"compaction:{segment_id}"
    if not cache.add(claim, 1, timeout=COMPACTION_CLAIM_S):
        return None
    found = _slice(user, segment_id, raw_turns=raw_turns)
    if found is None or not (is_hard(raw_turns) or is_worth_it(found)):
        cache.delete(claim)
        return None
    brief = _written(user, found)
    if brief is not None:
        cache.delete(claim)
    return brief


def is_hard(raw_turns: int) -> bool:
    """Whether the prompt must become shorter, whatever that costs."""
    return raw_turns < COMPACTION_RAW_TURNS


def is_worth_it(found: Slice) -> bool:
    """With a brief all that stands behind it is paid for anew, so a few short turns can wait."""
    turns = sum(one.role == Message.Role.USER for one in found.messages)
    if found.before is None or turns >= COMPACTION_STEP_TURNS:
        return True
    costs = (tokens.estimate(one.text) + file_blocks.cost_tokens(one) for one in found.messages)
    return sum(costs) >= COMPACTION_STEP_TOKENS


def _slice(user: User, segment_id: UUID, *, raw_turns: int) -> Slice | None:
    segment = Segment.objects.for_user(user).filter(pk=segment_id).first()
    if segment is None or segment.status != Segment.Status.ACTIVE:
        return None
    before = CompactionBrief.objects.for_user(user).filter(segment=segment).first()
    messages = [
        one
        for one in passages.readable(user, segment_id)
        if (before is None or one.position > before.covered_to_position) and not one.is_off_record
    ]
    asked = [one.position for one in messages if one.role == Message.Role.USER]
    if len(asked) <= raw_turns:
        return None
    first_raw = asked[-raw_turns] if raw_turns else messages[-1].position + 1
    older = tuple(one for one in messages if one.position < first_raw)
    return Slice(segment=segment, before=before, messages=older) if older else None


def _written(user: User, found: Slice) -> CompactionBrief | None:
    written = _transcript(user, found.messages)
    until = accounts.local_now(user, found.messages[-1].created_at)
    try:
        answer = COMPACTION.ask(
            {
                "before": quoted(found.before.text) if found.before else "none",
                "transcript": written,
                "until": f"{until:%d %B %Y, %H:%M}",
            },
            otherwise=leave_due,
        )
    except WorkLeftDue:
        log.warning("step.skipped", step="compaction")
        return None
    text = rendered(answer)
    if not is_plausible(text, of=written, before=found.before.text if found.before else ""):
        log.warning("compaction.refused", characters=len(text), of=len(written))
        return None
    return _stored(user, found, text)


def rendered(answer: BriefAnswer) -> str:
    """The answer under its fixed headings; what is empty says so."""
    parts = [f"Where it stands: {answer.state.strip()}"]
    for name, heading in _LISTS:
        items = [" ".join(item.split()) for item in getattr(answer, name) if item.strip()]
        parts.append("\n".join([f"{heading}:", *(f"- {item}" for item in items or ["nothing"])]))
    return "\n\n".join([*parts, f"In short: {answer.synopsis.strip()}"])


def is_plausible(text: str, *, of: str, before: str) -> bool:
    """Neither a stub, nor shorter than what it replaces can be told, nor a copy."""
    least = max(BRIEF_MIN_CHARS, int(BRIEF_MIN_SHARE * min(len(of), SUMMARY_MAX_CHARS)))
    if before:
        least = max(least, len(before) // 3)
    return len(text) >= least and tokens.estimate(text) <= BRIEF_MAX_TOKENS


@transaction.atomic
def _stored(user: User, found: Slice, text: str) -> CompactionBrief | None:
    """The brief, unless the segment collapsed, was changed or got another one meanwhile."""
    threads.lock_thread(user)
    quotations.lock(user.pk)
    last = found.messages[-1]
    now = _slice(user, found.segment.pk, raw_turns=0)
    if now is None or (now.before and now.before.count) != (found.before and found.before.count):
        return None
    still = tuple(one for one in now.messages if one.position <= last.position)
    if Slice(segment=now.segment, before=now.before, messages=still).digest != found.digest:
        return None
    first_at = found.before.covered_from_at if found.before else found.messages[0].created_at
    brief, _ = CompactionBrief.objects.update_or_create(
        segment=found.segment,
        defaults={
            "user": user,
            "text": text,
            "covered_to_position": last.position,
            "covered_from_at": first_at,
            "covered_to_at": last.created_at,
            "count": found.before.count + 1 if found.before else 1,
            "updated_at": timezone.now(),
        },
    )
    log.info("segment.compacted", segment=found.segment.short_id, messages=len(found.messages))
    return brief


def _transcript(user: User, messages: Sequence[Message]) -> str:
    calls: dict[UUID, list[ToolCall]] = {}
    turn_ids = [one.turn_id for one in messages if one.role == Message.Role.ASSISTANT]
    for call in ToolCall.objects.for_user(user).filter(turn__in=turn_ids):
        calls.setdefault(call.turn_id, []).append(call)
    file_blocks.load(messages)
    lines: list[str] = []
    for message in messages:
        by = ledger.by(message)
        if message.role == Message.Role.ASSISTANT and message.turn_id is not None:
            lines += [_used(call) for call in calls.get(message.turn_id, ())]
        files = file_blocks.first_lines(message)
        lines.append(f'<said by="{by}">{quoted(message.text)}{files}</said>')
    return ledger.without_middle(lines)


def _used(call: ToolCall) -> str:
    result = quoted(ledger.cut(call.result, RESULT_CHARS))
    return f'<tool name="{in_quotes(call.name)}">{result}</tool>'


def forget(user: User, segment_ids: Sequence[UUID]) -> int:
    """Briefs of these segments go: what they told stands in the messages, or is to be gone."""
    gone, _ = CompactionBrief.objects.for_user(user).filter(segment__in=segment_ids).delete()
    return gone
