"""Several sources of different kinds in one question, raw and prepared, and joins in little memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call
from discreet.plan.relations import Join, JoinKind, Relation, Scan
from discreet.plan.types import Type
from tests.engines.answers import as_dict
from tests.engines.conformance.test_relations import catalog_of
from tests.engines.worlds import SALT

N, R, X = Type.INTEGER, Type.REAL, Type.TEXT


HOSPITAL = catalog_of(
    {
        "patients": ({"pid": N, "sex": X}, {"owner": "pid"}),
        "visits": ({"unit": N, "visit": N, "ward": X}, {}),
        "wards": ({"ward": X, "floor": N}, {"public": True}),
        "floors": ({"floor": N, "head": X}, {"public": True}),
        "doors": ({"floor": N, "width": R}, {"public": True}),
    }
)
HOSPITAL_TABLES = {
    "patients": pa.table({"pid": [1, 2, 3, 4], "sex": ["f", "m", "f", None]}),
    "visits": pa.table({"unit": [1, 1, 2, 9, None], "visit": [1, 2, 3, 4, 5], "ward": ["A", "B", "A", "A", "B"]}),
    "wards": pa.table({"ward": ["A", "B"], "floor": [1, 2]}),
    "floors": pa.table({"floor": [1, 2], "head": ["it's", 'me"']}),
    "doors": pa.table({"floor": [1, 2, 2], "width": [0.5, 1.5, 2.5]}),
}


def whole_hospital() -> BoundedPlan:
    """A question that reads all five tables."""
    source: Relation = Scan("visits")
    pairs: Sequence[tuple[str, Column, Column]] = (
        ("patients", Column("visits", "unit", N), Column("patients", "pid", N)),
        ("wards", Column("visits", "ward", X), Column("wards", "ward", X)),
        ("floors", Column("wards", "floor", N), Column("floors", "floor", N)),
        ("doors", Column("wards", "floor", N), Column("doors", "floor", N)),
    )
    for table, ours, theirs in pairs:
        source = Join(source, Scan(table), JoinKind.INNER, ((ours, theirs),))
    keys = (Column("patients", "sex", X), Column("floors", "head", X), Column("doors", "width", R))
    measures = (Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS))
    return BoundedPlan(
        source=source, keys=keys, domain=None, unit=Column("visits", "unit", N), measures=measures,
        max_groups=9, max_rows_per_group=9,
    )  # fmt: skip


def test_several_sources_at_once(tmp_path: Path) -> None:
    """Parquet, CSV, a frame, and two tables of one DuckDB file in one question; raw, and prepared."""
    pq.write_table(HOSPITAL_TABLES["patients"], tmp_path / "patients.parquet")
    pyarrow.csv.write_csv(HOSPITAL_TABLES["visits"], tmp_path / "visits.csv")
    with duckdb.connect(str(tmp_path / "place's.duckdb")) as connection:
        for name in ("wards", "floors"):
            connection.register("incoming", HOSPITAL_TABLES[name])
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
    sources = {
        "patients": tmp_path / "patients.parquet",
        "visits": tmp_path / "visits.csv",
        "wards": tmp_path / "place's.duckdb",
        "floors": tmp_path / "place's.duckdb",
        "doors": HOSPITAL_TABLES["doors"],
    }
    wanted = {
        ("f", "it's", 0.5): (1, 1), ("f", 'me"', 1.5): (1, 1), ("f", 'me"', 2.5): (1, 1), ("m", "it's", 0.5): (1, 1),
    }  # fmt: skip
    engine = DuckDBEngine(sources, HOSPITAL, threads=2)
    assert as_dict(engine.run(whole_hospital(), salt=SALT)) == wanted
    for table in HOSPITAL.tables:
        engine.prepare(table)
    assert as_dict(engine.run(whole_hospital(), salt=SALT)) == wanted
    engine.close()
    assert as_dict(MemoryEngine(HOSPITAL_TABLES, HOSPITAL).run(whole_hospital(), salt=SALT)) == wanted


@pytest.mark.parametrize("prepared", [(), ("visits",), ("patients", "wards"), tuple(HOSPITAL_TABLES)])
def test_some_tables_may_be_prepared(prepared: tuple[str, ...]) -> None:
    """Prepared and raw tables mix; a single table under another name reads its prepared copy, too."""
    engine = DuckDBEngine(HOSPITAL_TABLES, HOSPITAL)
    wanted = as_dict(engine.run(whole_hospital(), salt=SALT))
    alias = BoundedPlan(
        source=Scan("visits", 'v"'), keys=(Column('v"', "ward", X),), domain=None, unit=Column('v"', "unit", N),
        measures=(Measure(counts=Counts.ROWS),), max_rows=9,
    )  # fmt: skip
    other = replace(alias, unit=Column('v"', "visit", N))
    for table in prepared:
        engine.prepare(table)
    assert as_dict(engine.run(whole_hospital(), salt=SALT)) == wanted
    assert as_dict(engine.run(alias, salt=SALT)) == {("A",): (3,), ("B",): (1,)}
    # A unit that the copy is not ordered by. The copy leaves out rows without the declared unit.
    known = (make_call("is_null", Column('v"', "unit", N)),)
    assert as_dict(engine.run(replace(other, keys=known, max_rows=1), salt=SALT))[False,] == (4,)
    lost = 1 if "visits" in prepared else 2
    assert as_dict(engine.run(other, salt=SALT)) == {("A",): (3,), ("B",): (lost,)}


def test_joins_fit_into_little_memory(tmp_path: Path) -> None:
    """Two million rows join two hundred thousand where DuckDB may hold 200 MB."""
    many, few = 2_000_000, 200_000
    rng = np.random.default_rng(1)
    visits = pa.table({"unit": rng.integers(0, few, many), "ward": rng.integers(0, 20, many), "cost": rng.random(many)})
    people = pa.table({"unit": np.arange(few), "region": rng.integers(0, 10, few)})
    pq.write_table(visits, tmp_path / "visits.parquet")
    pq.write_table(people, tmp_path / "people.parquet")
    catalog = catalog_of({"visits": ({"unit": N, "ward": N, "cost": R}, {}), "people": ({"unit": N, "region": N}, {})})
    unit = Column("visits", "unit", N)
    joined = Join(Scan("visits"), Scan("people"), JoinKind.INNER, ((unit, Column("people", "unit", N)),))
    sources = {name: tmp_path / f"{name}.parquet" for name in ("visits", "people")}
    engine = DuckDBEngine(sources, catalog, memory_limit="200MB", threads=2)
    bounded = BoundedPlan(
        source=joined, keys=(Column("people", "region", N),), domain=None, unit=unit,
        measures=(Measure(counts=Counts.UNITS), Measure(counts=Counts.ROWS)), max_groups=2, max_rows_per_group=100,
    )  # fmt: skip
    found = as_dict(engine.run(bounded, salt=SALT))
    assert sum(rows for _, rows in found.values()) == many
    assert sum(units for units, _ in found.values()) == len(np.unique(visits["unit"]))
    engine.close()
