"""Joins of two tables whose keys are read as numbers: the integers of one statement, and of the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb import joined_tables
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.joined_tables import JoinedTables
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql.relations import StoredTable
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call
from discreet.plan.relations import Join, JoinKind, Scan
from discreet.plan.types import Type
from discreet.privacy import Unit
from tests.engines.worlds import CODE, COST, SALT, UNIT, a_world, catalog, frame

PERSON = Column("o", "unit", Type.INTEGER)
# Names that tables of our own have, too.
PLACE, LEVEL = Column("o", "k0", Type.TEXT), Column("o", "code", Type.INTEGER)
FACTS = TableFacts(
    name="o",
    columns={column.name: (column.type, ColumnFacts()) for column in (PERSON, PLACE, LEVEL)},
    unit=Unit("unit"),
    limits=ContributionLimits(),
)
DECLARED = Catalog(tables={**catalog(UNIT).tables, "o": FACTS}, neighbours=catalog(UNIT).neighbours)
BOUNDED = BoundedPlan(
    source=Join(Scan("t"), Scan("o"), JoinKind.INNER, ((UNIT, PERSON),)),
    keys=(PLACE, LEVEL),
    domain=None,
    unit=UNIT,
    measures=(
        Measure(counts=Counts.ROWS),
        Measure(counts=Counts.STEPS, argument=COST, first=-3, last=9),
        Measure(counts=Counts.UNITS),
    ),
    max_groups=2,
    max_rows_per_group=3,
    weight_bits=16,
)
PLANS = {
    "two keys": (BOUNDED, True),
    "one key": (replace(BOUNDED, keys=(PLACE,)), True),
    "the key is summed": (
        replace(BOUNDED, keys=(LEVEL,), measures=(Measure(counts=Counts.STEPS, argument=LEVEL, last=9),)),
        False,
    ),
    "the key is joined": (
        replace(BOUNDED, source=Join(Scan("t"), Scan("o"), JoinKind.INNER, ((UNIT, PERSON), (CODE, LEVEL)))),
        False,
    ),
    "the other table twice": (
        replace(
            BOUNDED,
            source=Join(BOUNDED.source, Scan("o", "p"), JoinKind.INNER, ((UNIT, Column("p", "unit", Type.INTEGER)),)),
        ),
        False,
    ),
    "a computed key": (replace(BOUNDED, keys=(make_call("lower", PLACE),)), None),
}


@pytest.fixture
def tables() -> dict[str, Any]:
    """People without a row on the other side, places that nobody is at, and a key that is NULL."""
    people = [None, *range(1, 40)]
    places = [("A", "a", None, "it's", "", "nobody's")[i % 6] for i in range(40)]
    levels = [(None, 1, 2, -(2**63))[i % 4] for i in range(40)]
    other = pa.table({"unit": pa.array(people, pa.int64()), "k0": places, "code": pa.array(levels, pa.int64())})
    return {"t": frame(a_world(17, unit=UNIT, units=30, most=20).rows), "o": pa.concat_tables([other, other[5:30]])}


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each question, whether keys are read as numbers."""
    found: list[bool] = []
    find = joined_tables.find_joined

    def note(*given: Any) -> Any:
        answer = find(*given)
        if answer is not None:
            found.append(answer.coded[0] != "")
        return answer

    monkeypatch.setattr("discreet.engines.duckdb.unit_tally.find_joined", note)
    return found


def run(tables: dict[str, Any], bounded: BoundedPlan, least_tallied: int) -> Groups:
    engine = DuckDBEngine(tables, DECLARED, threads=2, least_tallied=least_tallied)
    try:
        return engine.run(bounded, salt=SALT)
    finally:
        engine.close()


@pytest.mark.parametrize("name", PLANS)
def test_numbers_change_nothing(name: str, tables: dict[str, Any], coded: list[bool]) -> None:
    bounded, is_coded = PLANS[name]
    found = run(tables, bounded, 0)
    assert coded == ([] if is_coded is None else [is_coded])
    assert found == run(tables, bounded, 10**9)
    rows = {table: given.to_pylist() for table, given in tables.items()}
    assert found == MemoryEngine(rows, DECLARED).run(bounded, salt=SALT) and found.keys


def test_rows_whose_key_had_no_number_would_be_missed(tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with keys that lack one, the comparison sees it."""
    wanted, find = run(tables, BOUNDED, 0), joined_tables.find_joined

    def forget(*given: Any) -> Any:
        answer = find(*given)
        return None if answer is None else replace(answer, keys=f"{answer.keys} WHERE k0 = 'A'")

    monkeypatch.setattr("discreet.engines.duckdb.unit_tally.find_joined", forget)
    assert run(tables, BOUNDED, 0) != wanted


def test_other_tables_stay_as_they_are() -> None:
    stored = StoredTable("somewhere", {"k0": '"k0"'})
    joined = JoinedTables(("somewhere",), "SELECT 1", ("o", ("k0",)))
    assert joined.code_keys("t", stored) is stored
    assert joined.code_keys("o", stored).columns == {"k0": '"group number"'}
