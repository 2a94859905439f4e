"""The suite itself: gaps name tests that exist, are strict, and an engine that breaks the contract is seen."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engines.conformance.engines import DUCKDB, ENGINES, MEMORY, EngineUnderTest, find_gap

HERE = Path(__file__).resolve().parent


def list_tests(path: Path) -> set[str]:
    """The tests of a file, as ``module.test``."""
    tree = ast.parse(path.read_text())
    return {f"{path.stem}.{n.name}" for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}


TESTS = {name for path in HERE.glob("test_*.py") for name in list_tests(path)}


def unknown_gaps(engine: EngineUnderTest) -> list[str]:
    return [gap for gap in engine.gaps if gap.partition("[")[0] not in TESTS or not engine.gaps[gap].strip()]


def test_every_gap_names_a_test_and_a_reason() -> None:
    assert [(engine.name, gap) for engine in ENGINES for gap in unknown_gaps(engine)] == []
    assert unknown_gaps(replace(MEMORY, gaps={"test_measures.test_of_nothing": "why"})) == [
        "test_measures.test_of_nothing"
    ]
    assert unknown_gaps(replace(MEMORY, gaps={"test_agreement.test_worlds_are_worth_testing": " "})) != []


def test_what_is_left_to_long_runs_is_a_test() -> None:
    left = {name.partition("[")[0] for engine in ENGINES for name in engine.left_to_long_runs}
    assert left and left <= TESTS


def test_names_of_engines_differ() -> None:
    """So that a gap belongs to one engine, and a test that failed says on which."""
    names = [engine.name for engine in ENGINES]
    assert len(set(names)) == len(names) and all(name.isidentifier() for name in names)
    assert all(engine.variant_of in ("", *names) for engine in ENGINES)


@pytest.mark.parametrize("name", ["test_a[duckdb]", "test_a[x-duckdb]", "test_a[duckdb-x]", "test_a[x-duckdb-y]"])
def test_a_gap_may_be_of_all_parameters_or_of_some(name: str) -> None:
    """With or without its parameters, the engine not among them; other engines and tests have no such gap."""
    some = name.replace("duckdb-", "").replace("-duckdb", "").replace("[duckdb]", "")
    for gap in ("test_m.test_a", f"test_m.{some}"):
        assert find_gap(replace(DUCKDB, gaps={gap: "why"}), "test_m", name) == "why"
    assert find_gap(replace(DUCKDB, gaps={"test_m.test_a[z]": "why"}), "test_m", name) is None
    assert find_gap(replace(DUCKDB, gaps={"test_n.test_a": "why"}), "test_m", name) is None
    assert find_gap(MEMORY, "test_m", name) is None


PROBE = """
from tests.engines.conformance import engines
from dataclasses import replace
engines.ENGINES = (replace(engines.MEMORY, gaps={
    "test_probe.test_fails": "a gap that is there", "test_probe.test_passes": "a gap that is no more"}),)
engines.MEMORY = engines.ENGINES[0]
from tests.engines.conformance.conftest import pytest_collection_modifyitems, pytest_generate_tests
"""
PROBE_TESTS = """
def test_fails(engine):
    raise AssertionError

def test_passes(engine):
    pass
"""


def test_a_gap_that_no_longer_fails_is_noticed(tmp_path: Path) -> None:
    """Negative control, in a run of its own: a gap that fails is expected, and one that passes is a failure."""
    (tmp_path / "conftest.py").write_text(PROBE)
    (tmp_path / "test_probe.py").write_text(PROBE_TESTS)
    root = HERE.parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    assert "1 failed, 1 xfailed" in found.stdout, found.stdout + found.stderr
    assert "XPASS(strict)" in found.stdout
