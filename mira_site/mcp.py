"""MIRA over MCP for one person: the memory tools, and the segments of the thread as resources.

A server is made for each connection and knows its person from the start, so nothing in a request
can name another. Calls run in threads: the scope is set there, around each one, and ends with it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import UUID

import mcp_types as types
from channels.db import database_sync_to_async
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from memory import mcp as memory
from memory import mcp_answers
from mira_site import mcp_segments
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import NotFound, RequestError
from mira_site.isolation import acting_as

NAME, TITLE, VERSION = "mira", "MIRA", "1"
CALLS_AT_ONCE = 8  # of all persons in one process; each may hold a database connection
LEFT = "This account is closed."

_threads = ThreadPoolExecutor(max_workers=CALLS_AT_ONCE, thread_name_prefix="mcp")
_Result = TypeVar("_Result")


def server_for(user_id: UUID) -> Server[Any]:
    """An MCP server that serves this person alone."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=TOOLS)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given = params.arguments or {}
        answer = await _as_person(user_id, lambda user: memory.call(user, params.name, given))
        return _result(answer)

    async def list_resources(
        context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await _as_person(user_id, lambda user: mcp_segments.listed(user, cursor))

    async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[mcp_segments.TEMPLATE])

    async def read_resource(
        context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await _as_person(user_id, lambda user: mcp_segments.read(user, str(params.uri)))

    return Server(
        NAME,
        title=TITLE,
        version=VERSION,
        instructions=memory.INSTRUCTIONS,
        get_tool_input_schema=lambda name: SCHEMAS.get(name),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


async def _as_person(user_id: UUID, work: Callable[[User], _Result]) -> _Result:
    """The work, done as the person in a thread of its own scope. RequestErrors become MCP's."""

    def scoped() -> _Result:
        with acting_as(user_id):
            user = accounts.user(user_id)
            if not user.is_active:
                raise NotFound(LEFT)
            return work(user)

    in_thread = database_sync_to_async(scoped, thread_sensitive=False, executor=_threads)
    try:
        result: _Result = await in_thread()
        return result
    except RequestError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from error


def _result(answer: mcp_answers.Answer) -> types.CallToolResult:
    """An error has no values: they would not fit the tool's output schema."""
    values = None if answer.result is None else mcp_answers.values(answer.result)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=values,
        is_error=answer.is_error,
    )


def _tool(tool: memory.Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.changes,
            destructive_hint=tool.destroys,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


TOOLS = [_tool(tool) for tool in memory.TOOLS.values()]
SCHEMAS = {tool.name: tool.input_schema for tool in TOOLS}
