"""How long the provider keeps a prompt, and what that means for the next one (pure).

It forgets a prompt five minutes after it was last read. Until then what is cached costs a tenth,
so nothing that stands before the newest words changes without need; afterwards the whole prompt is
paid for anew, and what waited to be told finds its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from conversations.models import Message
from mira_site.llm.types import Effort

LASTS = timedelta(minutes=5)  # platform.claude.com, "Prompt caching": the lifetime of a cache entry
HARDER: tuple[Effort, ...] = ("", "low", "medium", "high")


def since(history: Sequence[Message]) -> datetime:
    """When the run of messages began, up to the newest, in which the cache never grew cold."""
    at = history[-1].created_at
    for message in reversed(history[:-1]):
        if at - message.created_at > LASTS:
            break
        at = message.created_at
    return at


def effort(wished: Effort, history: Sequence[Message]) -> Effort:
    """While the cache is warm an effort rises and does not fall: it is part of what is cached.

    Expects selectors.history.
    """
    before = history[-2] if len(history) > 1 else None
    if before is None or before.turn_id is None or since(history[-2:]) != before.created_at:
        return wished
    used = next((one for one in HARDER if one == before.turn_effort), wished)
    return max(wished, used, key=HARDER.index)
