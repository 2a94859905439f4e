"""The how-to guides run as they stand: files are made, and commands give what the pages show."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from mcp import Client

import discreet
from discreet.agents.desk import Desk
from discreet.agents.mcp_server import make_server
from tests.agents.agent_calls import call, use
from tests.cli.commands import Run
from tests.house.page_commands import blur, list_commands, run_page
from tests.house.test_house import ROOT
from tests.service.served import Hospital
from tests.service.test_server import create, start_server

PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "how-to").glob("*.md"))}
# How many commands each page has; its sessions (>>>) are run by doctest.
COMMANDS = {
    "agents": 0,
    "audit-it": 3,
    "choose-epsilon": 2,
    "collect-locally": 4,
    "connect-a-tool": 0,
    "dbapi": 0,
    "many-rows": 3,
    "move-here": 0,
    "postgres-and-spark": 0,
    "publish-a-table": 4,
    "read-a-receipt": 4,
    "remote": 1,
    "run-the-service": 2,
    "several-tables": 4,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_guide_runs(name: str, files: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks in order, in a folder with the demo's data."""
    shutil.copytree(files, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGES[name], tmp_path, run) == COMMANDS[name]
    others = (">>> ", "# clinic.toml", "curl ", "```py\n", "\n> describe {}")
    assert COMMANDS[name] or any(words in PAGES[name] for words in others), "a guide without anything to run"


def list_requests(text: str) -> list[tuple[str, bytes | None, dict[str, str]]]:
    """The requests of a page, as curl would send them: the path, the body and the headers."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for command in re.findall(r"^curl (?:[^\n]*\\\n)*[^\n]*", block, re.M):
            words = shlex.split(command.replace("\\\n", " "))
            options = list(pairwise(words))
            heads = [value.partition(": ") for option, value in options if option == "-H"]
            body = next((value.encode() for option, value in options if option == "-d"), None)
            path = words[-1].partition("/api/v1/")[2]
            found.append((path, body, {name.lower(): value for name, _, value in heads if name != "Authorization"}))
    return found


@pytest.mark.parametrize("name", ["connect-a-tool", "run-the-service"])
def test_requests_of_guides_are_answered(name: str, served: Hospital) -> None:
    """By the service itself, in the form that they accept; the same key again is the same answer."""
    rows = []
    for path, body, headers in list_requests(PAGES[name]):
        method = "GET" if body is None else "POST"
        answer = served.send("ana", method, path, body, **{key.replace("-", "_"): headers[key] for key in headers})
        assert answer.status == 200, answer.body
        assert answer.media == headers.get("accept", "application/json")
        rows.append(answer.body)
    assert len(rows) == {"connect-a-tool": 5, "run-the-service": 1}[name]
    assert len(served.dataset.curator.history()) == 1
    assert list_requests("```sh\ncurl -H 'A: b' \\\n  -d '{}' http://x/api/v1/y\n```") == [("y", b"{}", {"a": "b"})]


@pytest.mark.parametrize(("name", "blocks"), [("remote", 1), ("dbapi", 2)])
def test_programs_of_guides_run_against_a_server(
    name: str, blocks: int, hospital: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand, but for the port; with the token in the environment, and in a folder with the demo's data."""
    monkeypatch.setenv("DISCREET_TOKEN", create(hospital, "ana"))
    shutil.copytree(hospital.parent, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"```py\n(.*?)```", PAGES[name], re.S)
    assert len(found) == blocks
    with start_server(hospital) as server:
        for block in found:
            program = block.replace("127.0.0.1:8780", f"127.0.0.1:{server.port}")
            exec(compile(program, name, "exec"), {})  # noqa: S102  # our own page


def test_the_transcript_of_agents_is_real(hospital: Path) -> None:
    """Every call of the page, by the reference client, says what the page shows; numbers of noise aside."""
    (shown,) = re.findall(r"```text\n(> .*?)```", PAGES["agents"], re.S)
    parts = re.findall(r"^> (\w+) (\{.*?\})\n(.*?)(?=^> |\Z)", shown, re.S | re.M)
    assert len(parts) == 9
    with discreet.open(hospital) as curator:
        desk = Desk(curator=curator, names={"analyst": "agent", "project": ""})

        async def work(client: Client) -> list[tuple[str, bool]]:
            return [await use(client, tool, **json.loads(arguments)) for tool, arguments, _ in parts]

        for (_, _, page), (told, failed) in zip(parts, call(make_server(lambda _: desk), work), strict=True):
            marks = r"request id \S+|confirm='\w+'|\d{4}-\d\d-\d\dT\S+"
            expected = [blur(re.sub(marks, "", part)) for part in page.split("\n...\n")]
            real = blur(re.sub(marks, "", ("error: " if failed else "") + told))
            assert real.startswith(expected[0]) and real.endswith(expected[-1])


def test_guides_are_short() -> None:
    """One task on one page."""
    assert PAGES.keys() == COMMANDS.keys()
    assert {name for name, text in PAGES.items() if len(text.splitlines()) > 150} == set()


def test_the_runner_sees_what_differs(files: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: other words, another exit code and other numbers without noise are noticed."""
    shutil.copytree(files, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    question = '"SELECT COUNT(*) AS n FROM visits" --epsilon 0.5'
    run_page(f"```\n$ discreet preview demo/hospital.toml {question}\n ± 120\n```\n", tmp_path, run)
    for wrong in (f"preview demo/hospital.toml {question}\n ± 121", "preview nowhere.toml x --epsilon 1\n"):
        with pytest.raises(AssertionError):
            run_page(f"```\n$ discreet {wrong}\n```\n", tmp_path, run)
    assert list_commands("$ a \\\n  b\nx\n$ c\n") == [("a    b", "x\n"), ("c", "")]
    assert blur("n 12 ██▒") == blur("n 7,000 █") != blur("m 12")
