"""Which memories come up before the answer: those still in use, then fresh ones, under one cap."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from conversations import phrases, selectors
from conversations.constants import (
    KEPT_SHARE,
    KEPT_SIMILARITY,
    SURFACED_BUDGET_TOKENS,
    SURFACED_MAX,
)
from conversations.models import Message, Turn
from conversations.types import Prepared
from memory import selectors as memory
from memory import services as remembering
from memory.types import Compared, Memory, Recalled, Trust
from mira_site import metrics
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User


@metrics.operation("recall")
def surface(turn: Turn, prepared: Prepared, *, now: datetime) -> list[Recalled]:
    """Memories for a message that was prepared for; the kept ones first.

    Only those that the prompt has room for: what the model did not see did not come up.
    """
    found = memory.recall(
        turn.user,
        prepared.phrases,
        limit=SURFACED_MAX,
        now=now,
        names=prepared.names,
        kept_ids=prepared.kept_ids,
        past=prepared.past,
    )
    context = memory.context(
        found, budget_tokens=SURFACED_BUDGET_TOKENS, zone=accounts.zone(turn.user)
    )
    if not turn.is_off_record:
        remembering.note_recall(turn.user, context)
    seen = {item.memory.id for item in context.items}
    return [one for one in found if one.id in seen]


def read_class(recalled: Sequence[Recalled]) -> Trust | None:
    """The least trusted class of what memories bring before MIRA; None where all is the person's
    own world. The same as if a tool had brought them.
    """
    views = (view for item in recalled for view in (item, *item.linked))
    lowest = min(map(memory.trust_of, views), default=None)
    return lowest if lowest in (Trust.OUTSIDE, Trust.TOOL) else None


def offered(user: User, history: Sequence[Message]) -> list[Memory]:
    """What came up for the turn before, in this segment, best first.

    Read from the database: the turn before may have been answered by another worker.
    """
    newest = history[-1].turn_id
    earlier = [one.turn_id for one in history if one.turn_id not in (None, newest)]
    return selectors.recalled_for(user, earlier[-1]) if earlier else []


def kept(
    user: User,
    history: Sequence[Message],
    asked: Sequence[str],
    before: Sequence[UUID],
    *,
    now: datetime,
) -> list[UUID]:
    """Which of the memories of the turn before are still being talked about."""
    compared = memory.compared(user, before, asked, now=now)
    return [one.id for one in compared if is_in_use(one, history)]


def is_in_use(memory_before: Compared, history: Sequence[Message]) -> bool:
    """Whether the talk is still about it.

    It is when it is named by its short id, when the newest message is near to it in meaning, or
    when enough of its telling words are in that message; if the message points back at the answer
    before, the answer's words count as well.
    """
    newest, *before = reversed(history)
    last = [newest, *before[:2]]
    if any(memory_before.id.hex[:8] in message.text.casefold() for message in last):
        return True
    if memory_before.similarity >= KEPT_SIMILARITY:
        return True
    spoken = newest.text
    if before and phrases.points_back(newest.text):
        spoken = f"{before[0].text}\n{spoken}"
    own = {word.casefold() for word in phrases.telling(memory_before.text)}
    shared = own & {word.casefold() for word in phrases.telling(spoken)}
    return bool(own) and len(shared) >= KEPT_SHARE * len(own)
