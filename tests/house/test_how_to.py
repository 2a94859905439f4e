"""The how-to guides run as they stand: files are made, and commands give what the pages show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.commands import Run
from tests.house.page_commands import blur, list_commands, run_page
from tests.house.test_house import ROOT

PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "how-to").glob("*.md"))}
# How many commands each page has; its sessions (>>>) are run by doctest.
COMMANDS = {
    "audit-it": 3,
    "choose-epsilon": 2,
    "collect-locally": 4,
    "many-rows": 3,
    "move-here": 0,
    "postgres-and-spark": 0,
    "publish-a-table": 4,
    "read-a-receipt": 4,
    "run-the-service": 2,
    "several-tables": 4,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_guide_runs(name: str, files: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks in order, in a folder with the demo's data."""
    shutil.copytree(files, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGES[name], tmp_path, run) == COMMANDS[name]
    assert COMMANDS[name] or ">>> " in PAGES[name] or "# clinic.toml" in PAGES[name], "a guide without anything to run"


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
