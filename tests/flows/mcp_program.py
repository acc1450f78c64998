"""Somebody's AI program: the MCP SDK's own client, in a process of its own.

Its argument is JSON: {"url", "token"} or {"command", "args", "env", "cwd"}, and "mode". Then each
line of input is a list of steps, done at the same time, and each line of output their outcomes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(given: dict[str, Any]) -> None:
    mode = given.pop("mode")
    if "url" in given:
        headers = {"Authorization": given["token"]} if given["token"] else {}
        web = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(60))
        transport = streamable_http_client(given["url"], http_client=web)
    else:
        transport = stdio_client(StdioServerParameters(**given))
    async with Client(transport, mode=mode, cache=None) as client:
        say({"ready": client.session.protocol_version})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            say(await together(client, json.loads(line)))


async def together(client: Client, steps: list[dict[str, Any]]) -> list[Any]:
    outcomes: list[Any] = [None] * len(steps)

    async def one(number: int, step: dict[str, Any]) -> None:
        try:
            outcomes[number] = await done(client, **step)
        except MCPError as error:
            outcomes[number] = {"code": error.code, "message": error.message}

    async with anyio.create_task_group() as tasks:
        for number, step in enumerate(steps):
            tasks.start_soon(one, number, step)
    return outcomes


async def done(client: Client, do: str, **given: Any) -> Any:
    match do:
        case "tools":
            return dumped(await client.list_tools())["tools"]
        case "call":
            result = dumped(await client.call_tool(given["name"], given.get("arguments", {})))
            return {
                "text": result["content"][0]["text"],
                "values": result.get("structuredContent"),
                "is_error": result.get("isError", False),
            }
        case "resources":
            return dumped(await client.list_resources(cursor=given.get("cursor")))
        case "templates":
            return dumped(await client.list_resource_templates())["resourceTemplates"]
        case "read":
            return dumped(await client.read_resource(given["uri"]))["contents"]
        case "instructions":
            return client.instructions
    raise ValueError(do)


def dumped(result: Any) -> dict[str, Any]:
    values: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return values


def say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        anyio.run(main, json.loads(sys.argv[1]))
    except BaseExceptionGroup as group:
        while isinstance(group, BaseExceptionGroup):
            group = group.exceptions[0]
        say({"failed": f"{type(group).__name__}: {group}"})
        sys.exit(1)
    except MCPError as error:
        say({"failed": f"MCPError: {error}"})
        sys.exit(1)
