"""Guards of reals that are left out: the integers are those of the oracle, which has all of them."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql import integers, layers
from discreet.engines.sql.layers import Layers
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Scan
from discreet.plan.types import LARGEST_REAL, Type
from discreet.privacy import Neighbours, Unit
from tests.engines.worlds import SALT

X, Y = (Column("t", name, Type.REAL) for name in "xy")
NASTY = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.0, -1.0, 0.5, 99.5, 2.0**969, LARGEST_REAL,
         -LARGEST_REAL, math.nextafter(LARGEST_REAL, 0), 1e200, -1e200]  # fmt: skip
ONE, ZERO, HUGE = make_literal(1), make_literal(0.0), make_literal(-(2.0**971))
ADDED = {
    "x + 1": make_call("add", X, ONE),
    "1 - x": make_call("subtract", ONE, X),
    "x - 0.5": make_call("subtract", X, make_literal(0.5)),
    "x + 0": make_call("add", X, ZERO),
    "0 - x": make_call("subtract", ZERO, X),
    "x + huge": make_call("add", X, HUGE),
}
CALLS: dict[str, Expression] = {
    **ADDED,
    "x * y": make_call("multiply", X, Y),
    "x * (1 - y)": make_call("multiply", X, make_call("subtract", ONE, Y)),
    "x * y * x": make_call("multiply", make_call("multiply", X, Y), X),
    "x * y * (1 + y)": make_call("multiply", make_call("multiply", X, Y), make_call("add", ONE, Y)),
    "1 / (x + 0)": make_call("divide", ONE, make_call("add", X, ZERO)),
    "x / y": make_call("divide", X, Y),
    "x + huge + y": make_call("add", make_call("add", X, HUGE), Y),
}
GRIDS = {
    "bounds of people": (Fraction(0), Fraction(1, 100), 0, 10_000),
    "around a middle": (Fraction(50), Fraction(1, 16), -800, 800),
    "wide": (Fraction(0), Fraction(2) ** 900, -1000, 1000),
    "to the largest": (Fraction(0), Fraction(LARGEST_REAL) / 1000, -1000, 1000),
    "beyond it": (Fraction(0), Fraction(LARGEST_REAL) / 500, -1000, 1000),
    "nearly to it": (Fraction(0), Fraction(LARGEST_REAL) / 1001, -1000, 1000),
}


def find_disagreements() -> list[str]:
    """The calls and grids for which DuckDB's sums by row are not the oracle's."""
    rows = [(i, x, y) for i, (x, y) in enumerate((x, y) for x in NASTY for y in NASTY)]
    number = Column("t", "i", Type.INTEGER)
    columns = {c.name: (c.type, ColumnFacts()) for c in (number, X, Y)}
    facts = TableFacts(name="t", columns=columns, unit=Unit(None), limits=ContributionLimits())
    catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
    kinds = (("i", pa.int64()), ("x", pa.float64()), ("y", pa.float64()))
    table = pa.table({name: pa.array(values, kind) for (name, kind), values in zip(kinds, zip(*rows))})
    engines = DuckDBEngine({"t": table}, catalog), MemoryEngine({"t": table}, catalog)
    found = []
    for name, call in CALLS.items():
        measures = tuple(
            Measure(counts=counts, argument=call, origin=origin, resolution=step, first=first, last=last)
            for origin, step, first, last in GRIDS.values()
            for counts in (Counts.STEPS, Counts.VALUES)
        )
        bounded = BoundedPlan(source=Scan("t"), keys=(number,), domain=None, unit=None, measures=measures)
        ours, theirs = (engine.run(bounded, salt=SALT) for engine in engines)
        if ours != theirs:
            found.append(name)
    engines[0].close()
    return found


def test_integers_are_the_oracles() -> None:
    assert find_disagreements() == []


@pytest.mark.parametrize(
    ("module", "limit", "found"),
    [(layers, "MOST_ADDED", "x + huge + y"), (integers, "MOST_BOUND", "x * y")],
    ids=["constants", "bounds"],
)
def test_guards_that_are_needed_are_noticed(
    module: object, limit: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: without their conditions, both rules give other integers."""
    monkeypatch.setattr(module, limit, math.inf)
    assert found in find_disagreements()


@pytest.mark.parametrize("name", ADDED)
def test_only_constants_that_cannot_matter_go_without(name: str) -> None:
    written = Layers({X: "x"}, DIALECT)
    written.write_value(ADDED[name])
    clauses, _ = written.write_ctes("base", "e")
    assert ("isfinite" in "".join(clauses)) is (name in ("x + 0", "0 - x", "x + huge"))
