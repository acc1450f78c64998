"""What is remembered about a question, as a context within a budget of tokens: recall, allocation,
rendering. The one way memory is chosen and shown: API, MCP, memory_tool, prompt and recall page.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memory import naming, past, recall, rendering
from memory.constants import RECALL_LIMIT_MAX
from memory.types import RecallContext
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User


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
    good enough, the fallback wings are tried in their order. `limit` bounds the memories shown.
    """
    found = recall.recall(
        user,
        query,
        limit=limit,
        now=now,
        names=naming.names_asked_for(query),
        past=past.asks_for_past(query),
    )
    return rendering.context(found, budget_tokens=budget_tokens, zone=accounts.zone(user))
