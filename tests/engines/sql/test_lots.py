"""Units within the limits are added up among the totals, and the others by lot: together they are the oracle's."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql import lots
from discreet.engines.sql.statement import BoundedStatement
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import Scan
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.conformance.engines import DuckDBOrder
from tests.engines.worlds import SALT

WHO, KEY = Column("t", "who", Type.INTEGER), Column("t", "k", Type.TEXT)
GROUPS = BoundedPlan(
    source=Scan("t"),
    keys=(KEY,),
    domain=None,
    unit=WHO,
    measures=(Measure(counts=Counts.NAMED), Measure(counts=Counts.WEIGHT, last=1000), Measure(counts=Counts.ROWS)),
    max_groups=3,
    max_rows_per_group=2,
    weight_bits=20,
)
PLANS = {
    "groups": GROUPS,
    "one group": replace(GROUPS, max_groups=1),
    "rows": replace(GROUPS, max_groups=None, max_rows_per_group=None, max_rows=6),
    "names alone": replace(GROUPS, measures=GROUPS.measures[:1]),
}


def find_disagreements() -> list[str]:
    """The plans for which DuckDB's integers are not the oracle's. Person i has i groups, of one row or of two."""
    rows = [(i, f"key {j * 7 % 11}" if j else None) for i in range(9) for j in range(i) for _ in range(1 + (i + j) % 2)]
    table = pa.table({"who": [who for who, _ in rows], "k": [key for _, key in rows]})
    columns = {column.name: (column.type, ColumnFacts()) for column in (WHO, KEY)}
    facts = TableFacts(name="t", columns=columns, unit=Unit("who"), limits=ContributionLimits())
    catalog = Catalog(tables={"t": facts}, neighbours=Neighbours.ADD_REMOVE)
    engine = DuckDBEngine({"t": table}, catalog)
    oracle = MemoryEngine({"t": table}, catalog, order=DuckDBOrder())
    found = [name for name, plan in PLANS.items() if engine.run(plan, salt=SALT) != oracle.run(plan, salt=SALT)]
    engine.close()
    return found


def test_integers_are_the_oracles() -> None:
    assert find_disagreements() == []


@pytest.mark.parametrize(("groups", "rows"), [(1000, 1000), (4, 8)])
def test_units_that_are_wrongly_taken_for_calm_are_noticed(
    groups: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: whoever is beyond a limit and is not chosen from gives other integers."""

    def write(statement: BoundedStatement) -> str:
        return f"g > {groups}" if statement.bounded.max_rows is None else f"everywhere > {rows}"

    monkeypatch.setattr(lots, "_write_beyond", write)
    assert find_disagreements() == list(PLANS)
