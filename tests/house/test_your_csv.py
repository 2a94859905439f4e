"""The page "your CSV in five minutes" runs as it stands: its file is made, its commands give what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from discreet.codebook.data_files import inspect
from discreet.errors import UsageError
from tests.cli.commands import Run
from tests.house.test_house import ROOT

PAGE = (ROOT / "docs" / "your-csv.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def flatten(text: str) -> str:
    """The words of a text, on whatever lines they are."""
    return " ".join(text.split())


def blur(text: str) -> str:
    """Words with every number the same, for answers that have noise."""
    return re.sub(r"[0-9][0-9,.]*", "0", flatten(text))


def edit(codebook: Path, lines: list[str]) -> None:
    """Put lines in place of those with the same key, as in an editor; a new one goes behind the line before it."""
    text, last = codebook.read_text(), ""
    for line in lines:
        key = line.partition(" = ")[0]
        found = re.search(rf"^(?:# )?{key} = .*$", text, re.MULTILINE)
        old, new = (last, f"{last}\n{line}") if found is None else (found[0], line)
        text, last = text.replace(old, new, 1), line
    codebook.write_text(text)


def test_the_page_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for kind, block in BLOCKS:
        if kind == "python":
            exec(compile(block, "your-csv.md", "exec"), {})  # noqa: S102  # our own page
        elif kind == "toml":
            edit(tmp_path / "trips.toml", block.splitlines())
        else:
            command, _, shown = block.removeprefix("$ ").partition("\n")
            words = shlex.split(command)
            code, out, err = run(*words[1:], width=80)
            assert words[0] == "discreet" and code == 0, err
            same = blur if words[1] == "ask" else flatten
            for paragraph in re.split(r"\n(?=\S|  ?\S)", shown):
                assert same(paragraph) in same(out), (command, paragraph, out)
            commands += 1
    assert commands == 6


def test_other_files_of_the_page_are_refused_with_a_command(tmp_path: Path) -> None:
    """What the table promises of files that cannot be read as they are."""
    (tmp_path / "year=2024").mkdir()
    for name in ("trips.jsonl", "shop.sqlite", "trips.xlsx", "https://example.org/trips.csv", "s3://b/trips.csv"):
        with pytest.raises(UsageError, match=r"discreet import|python -c|curl|aws"):
            inspect(name)
    with pytest.raises(UsageError, match="discreet import"):
        inspect(str(tmp_path))
