"""Memories by the short ids that models see: `mem_` and the first eight hex digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from memory.models import Memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound

PREFIX = "mem_"
_SHORT = re.compile(r"(?:mem_)?([0-9a-f]{8}[0-9a-f-]{0,28})", re.IGNORECASE)


def short(memory_id: UUID) -> str:
    return PREFIX + memory_id.hex[:8]


def resolve(user: User, given: str) -> UUID:
    """The person's live memory of this id: eight hex digits or more, in any case.

    The prefix may be missing. Raises BadRequest for what is no id or fits several memories,
    NotFound for what fits none.
    """
    match = _SHORT.fullmatch(given.strip().strip("[]<>`'\""))
    digits = match[1].replace("-", "").lower() if match else ""
    if not 8 <= len(digits) <= 32:
        raise BadRequest("A memory's id looks like mem_1a2b3c4d. Copy it from a search result.")
    rows = Memory.objects.for_user(user).live().with_id_prefix(digits)
    found = list(rows.values_list("id", flat=True)[:2])
    if not found:
        raise NotFound("There is no such memory, or it is archived. Search for it to get its id.")
    if len(found) > 1:
        raise BadRequest("Several memories begin with this id. Give more of its digits.")
    return found[0]  # type: ignore[no-any-return]


def resolve_all(user: User, given: Iterable[str]) -> list[UUID]:
    """Each resolved, without repeats. Raises as `resolve` does."""
    return list(dict.fromkeys(resolve(user, one) for one in given))
