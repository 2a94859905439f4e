"""Calls of the reference client, as an agent makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client


def call(server: Any, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """Connect to a server, do some work, and disconnect."""

    async def run() -> Any:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(run())


async def use(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    """What a tool said, and whether it was an error."""
    result: Any = await client.call_tool(tool, arguments)
    (content,) = result.content
    return str(content.text), bool(result.is_error)
