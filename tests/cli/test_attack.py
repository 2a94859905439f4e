"""The lessons from the shell: the list, one lesson as a picture and as JSON, and wrong names."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import discreet.attacks
from discreet.attacks import LESSONS, find
from discreet.errors import UsageError
from tests.cli.commands import Run

PACKAGE = Path(discreet.attacks.__file__).parent


@pytest.fixture
def run(run: Run) -> Run:
    """``discreet attack`` in a narrow terminal."""
    return partial(run, "attack", width=80)


def test_without_a_name_all_are_listed(run: Run) -> None:
    """The list names every lesson and what it is about, as text and as JSON."""
    code, shown, _ = run()
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines() if line.split()[0] in LESSONS] == list(LESSONS)
    code, shown, _ = run("--json")
    assert code == 0
    assert json.loads(shown) == dict(LESSONS)


def test_one_lesson_as_a_picture(run: Run) -> None:
    """Both rates, the bound and the lesson, within 80 columns."""
    code, shown, _ = run("float-bits")
    assert code == 0
    for words in ("naive floats, all bits", "discreet, all bits", "blind guess", "the bound", "73.1 %", "█"):
        assert words in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_one_lesson_as_json(run: Run) -> None:
    """Rates and bound under the agreed names."""
    code, shown, _ = run("sum-order", "--json")
    found = json.loads(shown)
    assert code == 0
    assert found["name"] == "sum-order"
    assert 0.95 <= found["raw"] <= 1
    assert 0 <= found["private"] <= found["bound"] + 3 * found["standard_error"]


@pytest.mark.parametrize("name", ["", "nothing", "-", "s"])
def test_unknown_names_are_told_the_known_ones(run: Run, name: str) -> None:
    """Exit code 2 and the list of names; a letter that many names have is no name."""
    code, shown, errors = run(*(["--", name] if name.startswith("-") else [name]))
    assert (code, shown) == (2, "")
    assert "differencing" in errors
    with pytest.raises(UsageError):
        find(name)


def test_wrong_names_in_json(run: Run) -> None:
    """With --json the error is JSON, too."""
    code, shown, _ = run("nothing", "--json")
    assert code == 2
    assert json.loads(shown)["error"]["code"] == "usage"


@pytest.mark.parametrize("name", LESSONS)
def test_names_are_found_however_they_are_written(name: str) -> None:
    """Capitals, underscores and spaces do not matter."""
    assert find(name.upper()) == find(name.replace("-", "_")) == find(name.replace("-", " ")) == name


def test_listing_loads_nothing_heavy() -> None:
    """The list needs no engine, no data and no numbers."""
    code = (
        "import sys\nfrom discreet import attacks\nimport discreet.cli.attack\nassert len(attacks.LESSONS) > 20\n"
        "assert not {'duckdb', 'scipy', 'pyarrow', 'sqlglot'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # our own program


def test_attackers_use_public_names_only() -> None:
    """What a lesson imports from the rest of the house has no underscore: attackers have no key to it."""
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet"):
                assert not any(alias.name.startswith("_") for alias in node.names), path
                assert not any(part.startswith("_") for part in (node.module or "").split(".")), path


def test_every_lesson_is_on_the_page() -> None:
    """docs/attacks.md has a section for each."""
    page = (PACKAGE.parents[2] / "docs" / "attacks.md").read_text()
    assert [name for name in LESSONS if f"\n## {name}\n" not in page] == []
