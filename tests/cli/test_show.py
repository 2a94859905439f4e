"""Pictures from the shell: for eyes, as JSON and CSV, as files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.commands import Run, on_terminal


def test_two_mechanisms_on_one_page(run: Run) -> None:
    """Both captions, one below the other, and nothing wider than the screen."""
    code, shown, _ = run("show", "laplace", "gaussian", "--epsilon", "0.5", width=60)
    assert code == 0 and "Laplace noise of scale 2" in shown and "Gaussian noise" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_numbers_as_json_and_csv(run: Run) -> None:
    """The same probabilities in every form."""
    code, shown, _ = run("show", "rr", "--epsilon", "1", "--json")
    document = json.loads(shown)
    assert code == 0 and document["rr"]["outputs"] == ["yes", "no"]
    code, shown, _ = run("show", "rr", "--epsilon", "1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert code == 0 and [float(row["p"]) for row in rows] == document["rr"]["p"]


@pytest.mark.parametrize("name", ["laws.svg", "laws.png"])
def test_figures_are_written_to_files(run: Run, tmp_path: Path, name: str) -> None:
    """The ending of the file says the format."""
    code, shown, _ = run("show", "composition", "--times", "5", "--out", str(tmp_path / name))
    assert code == 0 and shown == "" and (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("words", [("cauchy",), ("rr", "--epsilon", "0"), ("exponential", "--scores", "a,b")])
def test_wrong_words_are_refused(run: Run, words: tuple[str, ...]) -> None:
    """An unknown name, a loss of zero, scores that are no numbers."""
    code, shown, errors = run("show", *words)
    assert code != 0 and shown == "" and "Traceback" not in errors and errors


def test_in_a_real_terminal() -> None:
    """The picture appears with its bars."""
    code, shown = on_terminal("show", "group", width=80)
    assert code == 0 and "a group of 4" in shown and "█" in shown
