"""What to look for, what to keep, and how hard to think, before a message is answered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from conversations import phrases, surfacing
from conversations.models import Message, Turn
from conversations.types import Prepared
from memory import selectors as memory


def prepare(turn: Turn, history: Sequence[Message], *, now: datetime) -> Prepared:
    """For the newest message, which is the last of `history`."""
    asked = phrases.queries(history)
    return Prepared(
        phrases=tuple(asked),
        names=tuple(phrases.names(history)),
        kept_ids=tuple(surfacing.kept(turn.user, history, asked, now=now)),
        past=memory.asks_for_past(history[-1].text),
        complexity="complex",
    )
