"""What to look for, what to keep, and how hard to think, before a message is answered.

The fast model is asked, for two seconds at most; without it, or when it is slow or wrong, rules
stand in. Its word is never alone: the message itself is searched for too, and what is still being
talked about stays whatever it says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from django.utils import timezone
from pydantic import BaseModel, Field, field_validator

from conversations import ledger, phrases, surfacing
from conversations.constants import (
    CONTEXT_MESSAGE_CHARS,
    CONTEXT_PAIRS,
    EXPANSION_MAX,
    OFFERED_WORDS,
    PHRASES_MAX,
    SUBCORTICAL_LIMIT_S,
    SURFACED_MAX,
)
from conversations.models import Message, SubcorticalRecord, Turn
from conversations.types import Complexity, Prepared
from memory import selectors as memory
from memory.types import Memory
from mira_site.llm.jobs import Job
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

EFFORT: Mapping[Complexity, str] = {"straightforward": "medium", "complex": "high"}
NOT_CONFIGURED = "not_configured"
_NAMED = re.compile(r"mem_([0-9a-f]{8})", re.IGNORECASE)


class SubcorticalAnswer(BaseModel):
    """What to look for in memory before the newest message is answered."""

    phrases: list[str] = Field(
        min_length=1,
        max_length=EXPANSION_MAX,
        description="2-4 concrete phrases; the first is the topic with pronouns resolved.",
    )
    entities: list[str] = Field(
        default_factory=list, max_length=20, description="Names of people, places, things."
    )
    keep: list[str] = Field(
        default_factory=list, max_length=20, description="Ids of memories that are still in use."
    )
    complexity: Complexity = "complex"

    @field_validator("complexity", mode="before")
    @classmethod
    def known(cls, value: object) -> object:
        """Whatever is no plain `straightforward` counts as complex."""
        return value if value == "straightforward" else "complex"

    @field_validator("phrases")
    @classmethod
    def filled(cls, value: list[str]) -> list[str]:
        found = [" ".join(one.split())[:200] for one in value if one.strip()]
        if not found:
            raise ValueError("Give at least one phrase.")
        return found


SUBCORTICAL = Job(
    "subcortical",
    Tier.FAST,
    prompt=("conversations", "subcortical"),
    answer=SubcorticalAnswer,
    max_tokens=1_000,
    deadline_s=SUBCORTICAL_LIMIT_S,
    tries=1,
)


def prepare(
    turn: Turn,
    history: Sequence[Message],
    *,
    now: datetime,
    meanwhile: Callable[[], object] = lambda: None,
) -> Prepared:
    """For the newest message, which is the last of `history`.

    `meanwhile` may be called, and more than once, while the model is asked; so are the rules.
    """
    started = time.perf_counter()
    offered = surfacing.offered(turn.user, history)
    ruled = cache(partial(_by_rule, turn, history, offered, now=now))
    if not history[-1].text.strip():  # only a file: what was looked for last is looked for again
        return ruled()
    outcome = SUBCORTICAL.ask_outcome(
        _values(history, offered),
        otherwise=lambda: SubcorticalAnswer(phrases=list(ruled().phrases[:EXPANSION_MAX])),
        meanwhile=lambda: (ruled(), meanwhile()),
    )
    if outcome.by_model:
        prepared = _with_model(ruled(), outcome.answer, history, offered)
    elif outcome.reason == NOT_CONFIGURED:
        prepared = replace(ruled(), reason=NOT_CONFIGURED)
    else:  # a model that fails makes nobody forget what was being talked about
        kept = tuple(one.pk for one in _most_important(offered))
        prepared = replace(ruled(), kept_ids=kept, reason=(outcome.reason or "")[:40])
    return replace(prepared, took_ms=round((time.perf_counter() - started) * 1000))


def _by_rule(
    turn: Turn, history: Sequence[Message], offered: Sequence[Memory], *, now: datetime
) -> Prepared:
    asked = phrases.queries(history) or _last_phrases(turn)
    kept = surfacing.kept(turn.user, history, asked, [one.pk for one in offered], now=now)
    return Prepared(
        phrases=tuple(asked),
        names=tuple(phrases.names(history)),
        kept_ids=tuple(kept),
        past=memory.asks_for_past(history[-1].text),
        complexity="complex",
        offered_ids=tuple(one.pk for one in offered),
    )


def _last_phrases(turn: Turn) -> list[str]:
    rows = SubcorticalRecord.objects.for_user(turn.user_id).filter(
        turn__segment_id=turn.segment_id, turn__number__lt=turn.number
    )
    found = rows.order_by("-turn__number").values_list("phrases", flat=True).first()
    return list(found or [])


def _with_model(
    ruled: Prepared,
    answer: SubcorticalAnswer,
    history: Sequence[Message],
    offered: Sequence[Memory],
) -> Prepared:
    named = {prefix.lower() for one in _recent(history, len(offered)) for prefix in _named(one)}
    picked = {prefix.lower() for one in answer.keep for prefix in _NAMED.findall(one)}
    stay = [
        one for one in offered if one.pk.hex[:8] in named | picked or one.pk in set(ruled.kept_ids)
    ]
    asked = list(dict.fromkeys([*answer.phrases, *ruled.phrases[:1]]))
    return replace(
        ruled,
        phrases=tuple(asked[:PHRASES_MAX]),
        names=tuple(dict.fromkeys([*filter(str.strip, answer.entities), *ruled.names])),
        kept_ids=tuple(one.pk for one in _most_important(stay)),
        complexity=answer.complexity,
        effort=EFFORT[answer.complexity],
        by_model=True,
    )


def _most_important(memories: Sequence[Memory]) -> list[Memory]:
    """At most memory.KEPT_MAX, in the order given."""
    best = sorted(memories, key=lambda one: (-one.importance, one.pk))[: memory.KEPT_MAX]
    return [one for one in memories if one in best]


# --- The question ------------------------------------------------------------------------------
def _values(history: Sequence[Message], offered: Sequence[Memory]) -> dict[str, str]:
    recent = _recent(history, len(offered))
    return {
        "turns": "\n".join(map(_said, recent)) or "none",
        "memories": "\n".join([*_pressure(len(offered)), *map(_offered, offered)]) or "none",
        "message": quoted(ledger.flat(history[-1].text)[:CONTEXT_MESSAGE_CHARS]),
    }


def _recent(history: Sequence[Message], offered: int) -> list[Message]:
    """The last pairs before the newest message, fewer where many memories are in front already."""
    pairs = CONTEXT_PAIRS - (offered >= memory.KEPT_MAX)
    found: list[Message] = []
    for message in reversed(history[:-1]):
        if message.role == Message.Role.ASSISTANT and len(found) >= 2 * pairs:
            break
        found.append(message)
    return [one for one in reversed(found[: 2 * pairs]) if one.text.strip()]


def _said(message: Message) -> str:
    text = ledger.flat(message.text)[:CONTEXT_MESSAGE_CHARS]
    return f'<said by="{ledger.by(message)}">{quoted(text)}</said>'


def _offered(one: Memory) -> str:
    words = ledger.flat(one.text).split()
    text = " ".join(words[:OFFERED_WORDS]) + (" …" if len(words) > OFFERED_WORDS else "")
    filled = min(5, max(1, int(one.importance * 5) + 1)) if one.importance > 0 else 1
    gauge = "●" * filled + "○" * (5 - filled)
    return f'<memory id="mem_{one.pk.hex[:8]}" importance="{gauge}">{quoted(text)}</memory>'


def _pressure(offered: int) -> list[str]:
    if offered >= SURFACED_MAX:
        return [
            f"<notice>Full: at most {memory.KEPT_MAX} may stay, the least important beyond that "
            f"are dropped. Let at least {max(1, offered - memory.KEPT_MAX)} go.</notice>"
        ]
    if offered >= memory.KEPT_MAX:
        return ["<notice>Be choosy: what stays takes the place of what could be found.</notice>"]
    return []


def _named(message: Message) -> list[str]:
    return _NAMED.findall(message.text)


# --- What is kept of it ------------------------------------------------------------------------
def record(turn: Turn, prepared: Prepared) -> None:
    """Keep what was understood, for the page that shows it; a retry replaces it.

    Nothing is kept of what is off the record.
    """
    if turn.is_off_record:
        return
    made = {
        "phrases": list(prepared.phrases),
        "entities": list(prepared.names),
        "offered_ids": [str(one) for one in prepared.offered_ids],
        "kept_ids": [str(one) for one in prepared.kept_ids],
        "complexity": prepared.complexity,
        "by": SubcorticalRecord.By.MODEL if prepared.by_model else SubcorticalRecord.By.RULE,
        "reason": prepared.reason,
        "took_ms": prepared.took_ms,
        "made_at": timezone.now(),
    }
    SubcorticalRecord.objects.bulk_create(
        [SubcorticalRecord(turn=turn, user_id=turn.user_id, **made)],
        update_conflicts=True,
        unique_fields=["turn"],
        update_fields=list(made),
    )
