"""The README: its code and commands run as they stand, its claims lead to what shows them, its pictures are small."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from website.readme_pictures import QUESTION, draw_terminal

from discreet import curate, demo
from tests.cli.commands import Run
from tests.house.page_commands import run_page
from tests.house.test_house import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHOWN_BY = re.compile(r"\]\(((?:tests|benchmarks)/[\w./-]+)\)")


def list_claims(text: str) -> list[str]:
    """The claims of a README: the points of its section about them."""
    section = text.partition("\n## Claims")[2].partition("\n## ")[0]
    return re.split(r"^- ", section, flags=re.MULTILINE)[1:]


def find_unshown(text: str) -> list[str]:
    """Claims without a link to a test or a benchmark that exists."""
    return [claim for claim in list_claims(text) if not any((ROOT / to).is_file() for to in SHOWN_BY.findall(claim))]


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block, in order, in one namespace, in a folder with the demo's codebook."""
    demo.write(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"frame": demo.make_tables()["visits"]}
    assert len(BLOCKS) >= 3
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own page
    assert callable(curate)
    answer = names["answer"]
    assert answer.table.column_names[:3] == ["ward", "n", "n_low"]  # type: ignore[attr-defined]  # an Answer


def test_commands_show_what_the_page_shows(
    files: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question and its output are real."""
    shutil.copytree(files, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    assert run_page(re.sub(r"```python\n.*?```", "", README, flags=re.DOTALL), tmp_path, run) == 1
    assert QUESTION in README


def test_every_claim_leads_to_what_shows_it() -> None:
    """A test or a benchmark that exists."""
    assert len(list_claims(README)) >= 6
    assert find_unshown(README) == []


def test_a_claim_without_a_test_is_seen() -> None:
    """Negative control."""
    text = "\n## Claims\n\n- fast ([test](tests/nowhere.py))\n- good ([test](tests/test_odds.py))\n\n## More\n\n- x\n"
    assert find_unshown(text) == ["fast ([test](tests/nowhere.py))\n"]


def test_pictures_are_small_and_load_nothing() -> None:
    """An answer and a page; python -m website.readme_pictures makes them."""
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([\w./-]+)\)", README)
    assert pictures == ["docs/pictures/answer.svg", "docs/pictures/page.png"]
    assert all((ROOT / picture).stat().st_size < 100_000 for picture in pictures)
    drawn = (ROOT / pictures[0]).read_text()
    assert "COUNT(*)" in drawn and "Cardiology" in drawn and drawn.count("http") == 1  # the name of SVG itself


def test_lines_of_a_terminal_keep_their_marks() -> None:
    assert "&lt;b&gt;" in draw_terminal(["$ a <b>", "", "x"]) and draw_terminal(["a", "", "b"]).count("<text") == 2
