"""Tests of ``discreet help``: every code has its section, and the wheel carries the pages."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from discreet import errors
from discreet.cli import help_pages
from tests.cli.commands import Run

ROOT = Path(__file__).resolve().parents[2]
CODES = sorted(
    kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DiscreetError)
)


def test_every_code_has_help(run: Run) -> None:
    found = help_pages.list_topics()
    assert set(CODES) <= found.keys() and all(found.values())
    code, out, _ = run("help", "budget-exceeded")
    assert code == 0 and out.startswith("BudgetExceeded")
    code, out, _ = run("help", "--json")
    assert code == 0 and set(json.loads(out)) == found.keys()


def test_pages_have_no_links_and_no_comments(run: Run) -> None:
    code, out, _ = run("help", "sql", width=80)
    assert code == 0 and "](" not in out and "<!--" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_unknown_topics_are_refused_with_those_that_exist(run: Run) -> None:
    code, _, err = run("help", "budgets")
    assert code == 2 and "budget-exceeded" in err


def test_an_error_names_the_command_that_explains_it(run: Run, tmp_path: Path) -> None:
    code, _, err = run("budget", tmp_path / "missing.toml")
    assert code == 2 and "discreet help " in err and "docs/" not in err
    named = err.rpartition("discreet help ")[2].strip()
    assert run("help", named)[0] == 0


def test_the_wheel_carries_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build puts them where the package looks first; where there are none the error says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for name in help_pages.PAGES:
        assert included[f"docs/{name}.md"] == f"discreet/{help_pages.SHIPPED.as_posix()}/{name}.md"
    monkeypatch.setattr(help_pages, "_PLACES", (tmp_path,))
    with pytest.raises(errors.UsageError, match="has no pages"):
        help_pages.list_topics()
