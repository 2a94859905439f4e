"""The commands of a page, run one after the other in a folder, and compared with what the page shows."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

from discreet.codebook import Codebook
from tests.cli.commands import Run

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
"""A block of code: its language and its lines."""

# Commands whose numbers have noise, or are of one moment.
_NOISY = {"ask", "bounds", "publish", "ledger", "local", "token", "attack"}
_FILE = re.compile(r"# ([\w.-]+\.toml)\n")


def flatten(text: str) -> str:
    """The words of a text, on whatever lines they are; lines of a table are left out."""
    return " ".join(text.replace("─", " ").split())


def blur(text: str) -> str:
    """Words with every number the same, for answers that have noise, and without bars, which are as long as numbers."""
    return flatten(re.sub(r"[█▒░▓▌]+", " ", re.sub(r"[0-9][0-9,.]*", "0", text)))


def list_commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the lines that the page shows of its output."""
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    found = (re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.S) for part in parts)
    return [(match[1].replace("\\\n", " "), match[2]) for match in found if match is not None]


def run_page(text: str, folder: Path, run: Run) -> int:
    """Run all blocks of a page in a folder: programs, files and commands. How many commands there were."""
    names: dict[str, Any] = {}
    commands = 0
    for kind, block in BLOCK.findall(text):
        match kind:
            case "python":
                exec(compile(block, "page", "exec"), names)  # noqa: S102  # our own page
            case "toml":
                _keep_file(block, folder)
            case "" if block.startswith("$ "):
                for command, shown in list_commands(block):
                    _run_command(command, shown, run)
                    commands += 1
            case _:
                pass
    return commands


def _keep_file(block: str, folder: Path) -> None:
    """A block that begins with the name of a file is that file; a codebook among them is read."""
    named = _FILE.match(block)
    document = tomllib.loads(block)
    if named is not None:
        (folder / named[1]).write_text(block)
        if "tables" in document:
            Codebook.load(folder / named[1])


def _run_command(command: str, shown: str, run: Run) -> None:
    words = shlex.split(command)
    assert words[0] == "discreet", command
    code, out, err = run(*words[1:], width=200)
    refused = shown.startswith("✗")
    assert code == (2 if refused else 0), (command, err)
    same = blur if words[1] in _NOISY else flatten
    for line in shown.splitlines():
        assert same(line) in same(err if refused else out), (command, line, out, err)
