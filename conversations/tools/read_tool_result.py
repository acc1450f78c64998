"""Tool: the whole of a result that a prompt shows in short."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field

from conversations.constants import RESULT_PAGE_CHARS
from conversations.models import ToolCall
from memory.types import Trust
from mira_site.errors import ToolError
from toolbox.registry import tool
from toolbox.types import Answer, ToolContext

_SHORT = re.compile(r"(?:tr_)?([0-9a-f]{8})", re.IGNORECASE)


class Arguments(BaseModel):
    result_id: str = Field(description="The id that the shortened result names, like tr_1a2b3c4d.")
    page: int = Field(default=1, ge=1, le=100, description="Which page, from 1.")


@tool(
    "read_tool_result",
    arguments=Arguments,
    summary="read a result again",
    parallel=True,
)
def read_tool_result(context: ToolContext, arguments: Arguments) -> Answer:
    """Read a tool's result whole, page by page, where only a shortened one is in front of you.

    Shortened results end with a line that names their id. Read one again only if what was left out
    matters now. It is as it was then; call the tool anew for what is true today.
    """
    match = _SHORT.fullmatch(arguments.result_id.strip())
    if match is None:
        raise ToolError("result_id looks like tr_1a2b3c4d; take it from a shortened result.")
    text = _whole(context, match[1].lower())
    pages = max(1, -(-len(text) // RESULT_PAGE_CHARS))
    if arguments.page > pages:
        raise ToolError(f"It has {pages} pages.")
    start = RESULT_PAGE_CHARS * (arguments.page - 1)
    where = f"\n[Page {arguments.page} of {pages}.]" if pages > 1 else ""
    # Where it came from is not known any more, so it is as little trusted as can be.
    return Answer(text=f"{text[start : start + RESULT_PAGE_CHARS]}{where}", trust=Trust.OUTSIDE)


def _whole(context: ToolContext, prefix: str) -> str:
    of_this_turn = context.results.get(f"tr_{prefix}")
    if of_this_turn is not None:
        return of_this_turn
    rows = ToolCall.objects.for_user(context.user).with_id_prefix(prefix)
    found: ToolCall | None = rows.order_by("-called_at").first()
    if found is None:
        raise ToolError("There is no result with this id any more.")
    return found.result
