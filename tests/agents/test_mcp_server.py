"""Agents by the reference client: in this process, over standard streams, and over HTTP at the service."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from discreet.agents.desk import Desk
from discreet.agents.mcp_server import UNFORESEEN, find_page, make_server
from tests.agents.agent_calls import call, use
from tests.cli.commands import Run
from tests.remote.remote_hospital import count_charges, reach
from tests.service.served import WARDS, Hospital
from tests.service.test_server import create, start_server

SPENDING = {"sql": WARDS, "at_most": "share 0.02"}


JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
MALFORMED = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": {"at_most": 1}}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "drop", "arguments": {}}}',
    b"[" * 20_000,
]  # fmt: skip


async def check_the_loop(client: Client) -> None:
    """Describe, preview, ask, history, budget, and a refusal."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"describe", "preview", "ask", "history", "budget"}
    assert set(tools["ask"].input_schema["required"]) == {"sql", "at_most"}
    assert not tools["ask"].annotations.read_only_hint and tools["preview"].annotations.read_only_hint  # type: ignore[union-attr]
    assert "visits" in (await use(client, "describe"))[0]
    assert "Nothing was charged" in (await use(client, "preview", **SPENDING))[0]
    told, failed = await use(client, "ask", **SPENDING)
    assert not failed and "between" in told
    assert "1 charge;" in (await use(client, "history"))[0] and "2 %" in (await use(client, "budget"))[0]
    for wrong, words in (
        ({"sql": WARDS}, "at_most"),
        ({"sql": "SELECT * FROM visits", "at_most": "share 0.1"}, "[question]"),
    ):
        told, failed = await use(client, "ask", **wrong)
        assert failed and words in told


async def check_what_teaches(client: Client) -> None:
    """Resources and prompts."""
    (sql,) = (await client.list_resources()).resources
    page: Any = (await client.read_resource(sql.uri)).contents[0]
    assert page.text == find_page("sql")
    table: Any = (await client.read_resource("discreet://codebook/visits")).contents[0]
    assert table.text.startswith("visits: private") and "cost" in table.text
    names = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert names == ["answer_privately", "plan_questions"]
    prompt: Any = await client.get_prompt("answer_privately", {"question": "How many?"})
    assert "Call describe" in prompt.messages[0].content.text


def test_over_standard_streams(hospital: Path) -> None:
    """``discreet mcp CODEBOOK``, as an agent's program starts it."""

    async def work(client: Client) -> None:
        await check_the_loop(client)
        await check_what_teaches(client)

    arguments = ["-m", "discreet.cli.main", "mcp", str(hospital), "--analyst", "bot"]
    call(StdioServerParameters(command=sys.executable, args=arguments), work)


def sign(secret: str) -> httpx2.AsyncClient:
    """A client in the name of a token."""
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"})


def test_over_http_at_the_service(hospital: Path) -> None:
    """Who has no token is not let in; each call has the rights of its own token."""
    secret, other = create(hospital, "bot"), create(hospital, "ben")
    with start_server(hospital, "--mcp") as server:
        url = f"http://127.0.0.1:{server.port}/mcp"

        async def work() -> None:
            async with httpx2.AsyncClient() as http:
                for headers in ({}, {"Authorization": "Bearer discreet_wrong"}):
                    refused = await http.post(
                        url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers
                    )
                    assert refused.status_code == 401 and refused.json()["code"] == "unauthorized"
                foreign = {"Authorization": f"Bearer {secret}", "Sec-Fetch-Site": "cross-site"}
                refused = await http.post(url, json={}, headers=foreign)
                assert refused.status_code == 403 and refused.headers["Cache-Control"] == "no-store"
            async with sign(secret) as http:
                for body in MALFORMED:
                    answered = await http.post(url, content=body, headers=JSON)
                    assert 400 <= answered.status_code < 500 or "error" in answered.text.lower(), body
            async with sign(secret) as http, Client(streamable_http_client(url, http_client=http)) as client:
                await check_the_loop(client)
                await check_what_teaches(client)
            async with sign(other) as http, Client(streamable_http_client(url, http_client=http)) as client:
                assert "Nothing was charged yet" in (await use(client, "history"))[0]

        asyncio.run(work())
        assert secret not in server.log.read_text() and "mcp 200" in server.log.read_text()


def test_what_nobody_foresaw_is_one_constant_sentence(served: Hospital, caplog: pytest.LogCaptureFixture) -> None:
    """Negative control of secrecy: an error with a private value in its words reaches neither the agent nor the log."""

    class Broken(Desk):
        def describe(self) -> str:
            raise RuntimeError("patient 4711 has a visit")

    desk = Broken(curator=reach(served))
    with caplog.at_level(logging.DEBUG), count_charges(served, 0):
        told, failed = call(make_server(lambda _: desk), lambda client: use(client, "describe"))
    assert failed and UNFORESEEN in told and "4711" not in told + caplog.text


def test_without_the_package_there_is_a_word_what_to_install(hospital: Path, run: Run) -> None:
    """Negative control of the extra: nothing is opened, and no trace is shown."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mcp.server", None)
        code, _, told = run("mcp", hospital)
    assert code == 2 and "pip install 'discreet[mcp]'" in told
    code, _, told = run("mcp", "https://curator.example", "--per-query", "1")
    assert code == 2 and "token" in told


def test_the_log_of_the_process_stays_as_it_was(served: Hospital) -> None:
    """The package would set up the root logger when a server is made."""
    before = (list(logging.getLogger().handlers), logging.getLogger().level)
    make_server(lambda _: Desk(curator=reach(served)))
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before
