"""Keys that repeat are left out where tables are read: the oracle's integers, and no rows that meet before a cap."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Session
from discreet.engines.memory.engine import MemoryEngine
from tests.engines.answers import as_dict
from tests.engines.conformance.engines import DuckDBOrder
from tests.engines.sql.test_links import CITIES, QUESTIONS, declare, make_tables, read
from tests.engines.worlds import SALT

WORLDS = 6


def make_world(seed: int) -> dict[str, pa.Table]:
    """A few people whose keys are drawn from so few that many repeat, within a unit and across units, or are NULL."""
    draw = random.Random(seed)  # noqa: S311  # test data

    def pick(most: int) -> int | None:
        return None if draw.random() < 0.1 else draw.randrange(most)

    people = [(pick(8), draw.choice(CITIES)) for _ in range(12)]
    orders = [(pick(9), pick(8), draw.randrange(6)) for _ in range(25)]
    lines = [(pick(10), f"p{draw.randrange(5)}", draw.randrange(4)) for _ in range(40)]
    kept = make_tables(repeated=False)
    given: dict[str, list[Any]] = {"people": people, "orders": orders, "lines": lines}
    return {name: _fill(kept[name].schema, given[name]) if name in given else kept[name] for name in kept}


def _fill(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    return pa.table([pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)], schema=schema)


def find_differences(tables: Mapping[str, pa.Table], *, prepared: bool = False) -> Iterator[str]:
    """The questions to which DuckDB and the oracle have different integers."""
    catalog = declare(tables)
    engine, oracle = DuckDBEngine(tables, catalog, threads=1), MemoryEngine(tables, catalog, order=DuckDBOrder())
    catalog = replace(catalog, count_public=engine.count_public)
    for name in ("people", "orders", "lines") if prepared else ():
        engine.prepare(name)
    for text in QUESTIONS:
        bounded = read(text, catalog)
        if as_dict(engine.run(bounded, salt=SALT)) != as_dict(oracle.run(bounded, salt=SALT)):
            yield text
    engine.close()


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("seed", range(WORLDS))
def test_integers_are_the_oracles_whatever_repeats(seed: int, *, prepared: bool) -> None:
    assert not list(find_differences(make_world(seed), prepared=prepared))


def test_keys_that_are_not_noticed_to_repeat_change_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: where every key is taken to be alone, the oracle disagrees."""
    assert not list(find_differences(make_world(0)))
    run = Session.run
    monkeypatch.setattr(Session, "run", lambda self, sql, *more: run(self, sql.replace("count(*) > 1", "false"), *more))
    assert list(find_differences(make_world(0)))


def test_rows_with_repeated_keys_meet_nobody_before_they_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person has an order 300 times, with 300 lines: no step of a question has their 90,000 pairs."""
    tables = make_tables(repeated=True)
    schemas = {name: table.schema for name, table in tables.items()}
    tables["orders"] = pa.concat_tables(
        [tables["orders"], _fill(schemas["orders"], [(50, 5, i % 6) for i in range(300)])]
    )
    tables["lines"] = pa.concat_tables(
        [tables["lines"], _fill(schemas["lines"], [(50, "p1", i % 4) for i in range(300)])]
    )
    largest: list[int] = []
    run = Session.read

    def explain(self: Session, sql: str, parameters: Any = None, *more: Any) -> Any:
        found = self._connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}", parameters or {}).fetchall()
        largest.append(max(_count_rows(json.loads(found[0][1])["operator"])))
        return run(self, sql, parameters, *more)

    monkeypatch.setattr(Session, "read", explain)
    catalog = declare(tables)
    engine = DuckDBEngine(tables, catalog, threads=1)
    catalog = replace(catalog, count_public=engine.count_public)
    for text in QUESTIONS[:6]:
        engine.run(read(text, catalog), salt=SALT)
    engine.close()
    assert len(largest) >= 6 and max(largest) < 2000


def _count_rows(operators: list[dict[str, Any]]) -> Iterator[int]:
    for operator in operators:
        yield operator["intermediate_rows"]
        yield from _count_rows(operator.get("children", []))
