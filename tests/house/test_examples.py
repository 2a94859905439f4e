"""The programs in examples/ run as they are, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"

# Something that only a run to the end prints.
SHOWN = {
    "accounting_by_hand.py": ["8 adaptive questions fit", "buys Gaussian noise with σ = 7.071"],
    "audit_own_mechanism.py": ["right_total: holds", "wrong_total: broken", "something went around the mechanisms"],
    "first_question.py": ["again is free: True", "neither in GROUP BY nor inside an aggregate"],
    "local_survey.py": ["never: 0.", "1 report in 30 days, which cost ε 1"],
    "several_tables.py": ["protects  one patient_id", "would pair rows of different units"],
}


def test_every_example_is_run_and_listed() -> None:
    """A new program comes with what it shows, and with a line on the page."""
    assert {path.name for path in FOLDER.glob("*.py")} == SHOWN.keys()
    page = (FOLDER / "README.md").read_text()
    assert all(f"[{name}]({name})" in page for name in SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """To the end, without a warning."""
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    out = capsys.readouterr().out
    assert [words for words in SHOWN[name] if words not in out] == []


def test_an_import_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Negative control: the words come from running the program, and not from reading it."""
    runpy.run_path(str(FOLDER / "accounting_by_hand.py"), run_name="example")
    assert capsys.readouterr().out == ""
