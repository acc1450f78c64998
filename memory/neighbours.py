"""What is known already near a stretch of conversation, as the reader of it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import rules, short_ids
from memory.constants import KNOWN_SHOWN, QUERIES_MAX, QUERY_MAX_CHARS
from memory.dates import day
from memory.recall import recall
from memory.types import MemoryView, SourceMessage
from mira_site.accounts.models import User
from mira_site.prompts import quoted


def near(user: User, messages: Sequence[SourceMessage], *, now: datetime) -> list[MemoryView]:
    """Memories that may come up and are near what the person said, at most KNOWN_SHOWN."""
    found = recall(user, _phrases(messages), limit=KNOWN_SHOWN, now=now)
    views: dict[UUID, MemoryView] = {one.id: one for one in found}
    return list(views.values())[:KNOWN_SHOWN]


def shown(known: Sequence[MemoryView], zone: ZoneInfo) -> str:
    """One element a memory, escaped, with its short id and since when it is known."""
    return "\n".join(_element(one, zone) for one in known)


def by_short_id(known: Sequence[MemoryView]) -> Mapping[str, UUID]:
    """Ids by the eight digits that were shown; two memories that share them have none."""
    digits = [one.id.hex[:8] for one in known]
    return {one.id.hex[:8]: one.id for one in known if digits.count(one.id.hex[:8]) == 1}


def _element(one: MemoryView, zone: ZoneInfo) -> str:
    said_at = one.sources[-1].said_at if one.sources else one.created_at
    origin = f' origin="{quoted(one.origin)}"' if one.origin else ""
    opening = f'<memory id="{short_ids.short(one.id)}" said_on="{day(said_at, zone)}"{origin}>'
    return f"{opening}{quoted(one.text)}</memory>"


def _phrases(messages: Sequence[SourceMessage]) -> list[str]:
    """The person's statements, joined in their order to as many phrases as one recall takes."""
    texts = [statement.text for statement in rules.statements(messages)]
    size = -(-len(texts) // QUERIES_MAX) or 1
    groups = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [" ".join(group)[:QUERY_MAX_CHARS] for group in groups]
