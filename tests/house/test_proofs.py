"""Every mechanism and every node of a plan has a proof, and the proof a function and a test that exist."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from discreet import mechanisms
from discreet.plan.relations import Relation
from tests.house.test_house import ROOT
from tests.house.tracing import TracedRow, count_lines, find_problems, read_rows

FOLDER = "docs/proofs"
PAGE = (ROOT / FOLDER / "README.md").read_text()
ROWS = read_rows(PAGE)
NAMED = {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.statement[:40])
def test_a_proof_can_be_traced(row: TracedRow) -> None:
    assert find_problems(row, FOLDER) == []


def test_all_rows_are_read_and_all_proofs_are_in_them() -> None:
    assert len(ROWS) == count_lines(PAGE) >= 45
    pages = {path.name for path in (ROOT / FOLDER).glob("*.md")} - {"README.md"}
    assert pages == {row.page for row in ROWS}


def test_every_mechanism_has_a_proof() -> None:
    classes = [name for name in mechanisms.__all__ if inspect.isclass(getattr(mechanisms, name))]
    assert len(classes) > 20
    assert [name for name in classes if f"discreet.mechanisms.{name}" not in NAMED] == []


def test_every_node_of_a_plan_has_a_proof() -> None:
    nodes = [node.__name__ for node in get_args(Relation)]
    assert len(nodes) > 8
    assert [name for name in nodes if f"discreet.plan.relations.{name}" not in NAMED] == []


def test_pages_name_their_test() -> None:
    """A reader of a proof finds what checks it without going back to the list."""
    assert [row.page for row in ROWS if "tests/" not in (ROOT / FOLDER / row.page).read_text()] == []
