"""The trace of a segment: by the background model, or by quoting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from pydantic import BaseModel, Field, field_validator

from conversations import file_blocks, ledger, offline, selectors
from conversations.models import Message, Segment, ToolCall
from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import Conflict
from mira_site.llm.jobs import Job
from mira_site.llm.types import Tier
from mira_site.prompts import in_quotes, quoted

COMPLEXITIES = (0.5, 1.0, 2.0, 3.0)
TITLE_MAX = 200


class ClaimLost(Conflict):
    """Another worker took the collapse over; nothing was written."""

    code = "claim_lost"


class SummaryAnswer(BaseModel):
    """A segment as MIRA will remember it."""

    trace: str = Field(min_length=30, max_length=4000, description="3-4 sentences, first person.")
    precis: str = Field(min_length=10, max_length=1200, description="The same in two sentences.")
    title: str = Field(min_length=2, max_length=TITLE_MAX, description="At most eight words.")
    complexity: float = Field(default=2.0, description="0.5, 1, 2 or 3.")

    @field_validator("complexity", mode="before")
    @classmethod
    def nearest(cls, value: object) -> float:
        """A missing or odd figure costs nobody a summary; spec conversations 3.2."""
        if isinstance(value, int | float):
            return min(COMPLEXITIES, key=lambda known: abs(known - float(value)))
        return 2.0


SUMMARY = Job("summary", Tier.BACKGROUND, prompt=("conversations", "summary"), answer=SummaryAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSummary:
    trace: str
    precis: str
    title: str
    complexity: float
    by_model: bool
    embedding: np.ndarray  # float32 (384,), unit length, of title and trace


def summarise(user: User, segment: Segment, messages: Sequence[Message]) -> SegmentSummary:
    """Trace, precis, title, complexity and embedding. Raises EmbeddingsUnavailable."""
    name = user.first_name or user.username
    opened = accounts.local_now(user, segment.opened_at)
    closed = accounts.local_now(user, segment.last_message_at)
    said = [message.text for message in messages if message.role == Message.Role.USER]
    files = [file for message in messages for file in file_blocks.names(message)]
    subjects = said if any(said) else files

    def by_rule() -> SummaryAnswer:
        return SummaryAnswer(
            trace=offline.trace(said, name=name, opened=opened, files=files),
            precis=offline.precis(subjects, name=name, opened=opened)[:1200],
            title=offline.title(subjects)[:TITLE_MAX],
            complexity=offline.complexity(len(messages), sum(len(text) for text in said)),
        )

    if not messages:  # all of it was forgotten: nothing to ask a model about
        return _summary(by_rule(), by_model=False)
    file_blocks.load(messages)
    outcome = SUMMARY.ask_outcome(
        {
            "opened": f"{opened:%A, %d %B %Y, %H:%M}",
            "closed": f"{closed:%A, %d %B %Y, %H:%M}",
            "name": quoted(name),
            "earlier": _earlier(user, segment),
            "transcript": transcript(messages, name=name, used=_used(user, segment)),
        },
        otherwise=by_rule,
    )
    return _summary(outcome.answer, by_model=outcome.by_model)


def _summary(answer: SummaryAnswer, *, by_model: bool) -> SegmentSummary:
    return SegmentSummary(
        trace=answer.trace.strip(),
        precis=answer.precis.strip(),
        title=" ".join(answer.title.split()),
        complexity=answer.complexity,
        by_model=by_model,
        embedding=embeddings.embed([meaning(answer.title, answer.trace)])[0],
    )


def meaning(title: str, trace: str) -> str:
    """What a segment is found by: the text that its vector is of."""
    return f"{title}. {trace}"


def transcript(messages: Sequence[Message], *, name: str, used: Mapping[UUID, str]) -> str:
    """Who said what, escaped. A very long one loses its middle and says so.

    `used` names the tools of a turn: that they were used is told, not what they returned.
    """
    lines: list[str] = []
    for message in messages:
        is_person = message.role == Message.Role.USER
        by = f' by="{in_quotes(name) if is_person else "MIRA"}"'
        tools = "" if is_person or message.turn_id is None else used.get(message.turn_id, "")
        with_tools = f' tools_used="{in_quotes(tools)}"' if tools else ""
        said = f"{quoted(message.text)}{file_blocks.first_lines(message)}"
        lines.append(f"<said{by}{with_tools}>{said}</said>")
    return ledger.without_middle(lines)


def _used(user: User, segment: Segment) -> dict[UUID, str]:
    """The tools that each turn of the segment used, each once, in order."""
    rows = ToolCall.objects.for_user(user).filter(turn__segment=segment, is_error=False)
    names: dict[UUID, dict[str, None]] = {}
    for turn_id, name in rows.order_by("turn", "position").values_list("turn_id", "name"):
        names.setdefault(turn_id, {})[name] = None
    return {turn_id: ", ".join(found) for turn_id, found in names.items()}


def _earlier(user: User, segment: Segment) -> str:
    summaries = selectors.summaries(user, before=segment.opened_at)
    if not summaries:
        return "This is the first part of the conversation."
    return "\n".join(
        f'<trace title="{in_quotes(summary.title)}">{quoted(summary.trace)}</trace>'
        for summary in summaries
    )
