"""Which memories come up before the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from conversations.constants import QUERY_TURNS, SURFACED_MAX
from conversations.models import Message
from memory import selectors
from memory.types import Recalled
from mira_site.accounts.models import User


def surface(user: User, history: Sequence[Message], *, now: datetime) -> list[Recalled]:
    """Memories for the newest message of the person, best first."""
    return selectors.recall(user, queries(history), limit=SURFACED_MAX, now=now)


def queries(history: Sequence[Message]) -> list[str]:
    """What to look for: the newest message alone, and together with what it may refer back to.

    "And when is hers?" finds nothing by itself.
    """
    said = [message.text for message in history if message.role == Message.Role.USER]
    newest = said[-1]
    before = said[-1 - QUERY_TURNS : -1]
    return [newest, "\n".join([*before, newest])] if before else [newest]
