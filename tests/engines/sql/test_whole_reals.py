"""Integers that are added up as doubles: the sums are the oracle's, and integers stay where doubles would not do."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql import integers, statement
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import LARGEST_REAL, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import SALT

WHO, KEY, X = Column("t", "who", Type.INTEGER), Column("t", "k", Type.TEXT), Column("t", "x", Type.REAL)
VALUES = [None, math.nan, math.inf, -math.inf, -0.0, 0.4, 0.5, -0.5, 1.5, -7.0, 2.0**44 - 1, -(2.0**44) + 1,
          2.0**47 - 1, -(2.0**47) + 3, 2.0**51 - 1, 2.0**51 + 2, -(2.0**52) - 1, 2.0**53 - 1, 1e30, -1e300,
          LARGEST_REAL]  # fmt: skip
# Bounds of which sums over all rows, or weighed sums of one person, are below 2^53, and others beyond it.
ENDS = [(0, 100), (-3, 7), (-9, -2), (5, 5), (0, 2**27 - 1), (-(2**44) + 1, 2**44 - 1), (0, 2**47 - 1),
        (-(2**51), 2**51 - 1), (1, 2**51), (0, 2**52), (-(2**53), 2**53 - 1)]  # fmt: skip
MEASURES = tuple(
    Measure(counts=Counts.STEPS, argument=X, origin=origin, resolution=Fraction(1), first=first, last=last)
    for first, last in ENDS
    for origin in (Fraction(0), Fraction(3))
)
BY_ROWS = BoundedPlan(source=Scan("t"), keys=(KEY,), domain=None, unit=None, measures=MEASURES)
GROUPS = replace(BY_ROWS, unit=WHO, max_groups=2, max_rows_per_group=3, weight_bits=20)
FORMS = {
    "rows": BY_ROWS,
    "max_rows": replace(BY_ROWS, unit=WHO, max_rows=4, weight_bits=20),
    "groups": GROUPS,
    "all rows of a group": replace(GROUPS, max_rows_per_group=2**30),
}
COLUMNS = {column.name: (column.type, ColumnFacts()) for column in (WHO, KEY, X)}


def find_disagreements(times: int = 16) -> list[str]:
    """The forms in which DuckDB's integers are not the oracle's. Everybody has every value in one of three groups."""
    rows = [(i % 5, f"key {(i + j) % 3}", x) for i in range(times) for j, x in enumerate(VALUES)]
    kinds = (("who", pa.int64()), ("k", pa.string()), ("x", pa.float64()))
    table = pa.table({name: pa.array(values, kind) for (name, kind), values in zip(kinds, zip(*rows))})
    found = []
    for name, bounded in FORMS.items():
        unit = Unit(None if bounded.unit is None else "who")
        facts = TableFacts(name="t", columns=COLUMNS, unit=unit, limits=ContributionLimits())
        catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
        ours, theirs = (kind({"t": table}, catalog).run(bounded, salt=SALT) for kind in (DuckDBEngine, MemoryEngine))
        if ours != theirs:
            found.append(name)
    return found


def test_sums_are_the_oracles() -> None:
    assert find_disagreements() == []


def test_sums_of_doubles_that_are_rounded_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without their condition, sums of doubles give other integers.

    Under ``max_rows`` each row is weighed, and what is summed there are integers.
    """
    monkeypatch.setattr(statement, "EXACT", 2.0**1000)
    assert find_disagreements() == [form for form in FORMS if form != "max_rows"]


def test_bounds_by_sums_that_are_rounded_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: larger doubles are not brought within their bounds by sums, as rows are that stand alone."""
    monkeypatch.setattr(integers, "MOST_CLAMPED", 2.0**1000)
    assert find_disagreements() == ["rows"]
