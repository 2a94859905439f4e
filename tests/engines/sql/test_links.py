"""Joins along foreign keys that read the parent once: the same integers as the oracle's, whoever has repeated keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.bounding.bound import bound
from discreet.bounding.contributions import BoundedPlan
from discreet.codebook import Codebook
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Session
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql import relations
from discreet.engines.sql.links import DroppedLink, drop_link
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog
from discreet.plan.relations import Join, walk_relations
from discreet.privacy import Budget
from tests.engines.answers import as_dict
from tests.engines.conformance.engines import ENGINES, DuckDBOrder
from tests.engines.worlds import SALT

QUESTIONS = (
    "SELECT COUNT(*) AS n, SUM(units) AS s FROM lines",
    "SELECT part, COUNT(*) AS n FROM lines WHERE units > 1 GROUP BY part",
    "SELECT city, COUNT(*) AS n, SUM(units) AS s FROM people p JOIN orders o ON p.person = o.owner "
    "JOIN lines l ON l.number = o.number WHERE day > 2 GROUP BY city",
    "SELECT city, SUM(units) AS s FROM lines l JOIN orders o ON l.number = o.number "
    "JOIN people p ON o.owner = p.person JOIN parts t ON l.part = t.part WHERE grade = 1 GROUP BY city",
    "SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.number = o.number AND units > 2)",
    "SELECT COUNT(*) AS n FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.number = o.number)",
    "SELECT COUNT(*) AS n FROM (SELECT owner, COUNT(*) AS k FROM orders o JOIN lines l ON l.number = o.number "
    "GROUP BY owner) t WHERE k > 2",
    "SELECT COUNT(day) AS n FROM people p LEFT JOIN orders o ON p.person = o.owner",
    "SELECT COUNT(*) AS n, SUM(day) AS s FROM lines l LEFT JOIN orders o ON l.number = o.number",
    "SELECT COUNT(*) AS n FROM orders a JOIN orders b ON a.owner = b.owner",
)
CITIES = ["A", "B", None]


def make_tables(*, repeated: bool) -> dict[str, pa.Table]:
    """Forty people with three orders each and lines of these; some with keys that repeat, or without any.

    Person 3 is there twice, and holds an order of person 4; person 7 has an order four times, in two versions.
    """
    people: list[Any] = [(i, CITIES[i % 3]) for i in range(40)]
    orders: list[Any] = [(10 * i + k, i, (i * 7 + k) % 6) for i in range(40) for k in range(3)]
    lines = [
        (number, f"p{(number + j) % 5}", (number * 3 + j) % 4) for number, _, _ in orders for j in range(number % 4)
    ]
    orders += [(None, 5, 3), (900, None, 4)]
    lines += [(None, "p1", 2), (900, "p2", 3), (901, "p2", 3)]
    if repeated:
        people += [(3, "B"), (None, "A")]
        orders += [(40, 3, 5), (71, 7, 5), (71, 7, 5), (71, 7, 1), (900, None, 4)]
    return {
        "people": _make_table(("person", pa.int64()), ("city", pa.string()), people),
        "orders": _make_table(("number", pa.int64()), ("owner", pa.int64()), ("day", pa.int64()), orders),
        "lines": _make_table(("number", pa.int64()), ("part", pa.string()), ("units", pa.int64()), lines),
        "parts": _make_table(("part", pa.string()), ("grade", pa.int64()), [(f"p{i}", i % 2) for i in range(4)]),
    }


def _make_table(*given: Any) -> pa.Table:
    *columns, rows = given
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(columns)})


def declare(tables: Mapping[str, pa.Table]) -> Catalog:
    return Codebook.from_frames(
        tables,
        unit="people.person",
        public=["parts"],
        unique=["parts.part"],
        foreign_keys={"orders.owner": "people.person", "lines.number": "orders.number"},
        max_rows=4,
        bounds={"units": (0, 3), "day": (0, 5)},
        budget=Budget(epsilon=1, delta=1e-6),
    ).catalog()


def read(text: str, catalog: Catalog) -> BoundedPlan:
    return bound(read_sql.read(text, catalog), catalog).bounded


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("prepared", [False, True])
def test_integers_are_the_oracles(*, repeated: bool, prepared: bool) -> None:
    tables = make_tables(repeated=repeated)
    catalog = declare(tables)
    engine = DuckDBEngine(tables, catalog, threads=1)
    oracle = MemoryEngine(tables, catalog, order=DuckDBOrder())
    catalog = replace(catalog, count_public=engine.count_public)
    if prepared:
        for name in ("people", "orders", "lines"):
            engine.prepare(name)
    for text in QUESTIONS:
        bounded = read(text, catalog)
        assert as_dict(engine.run(bounded, salt=SALT)) == as_dict(oracle.run(bounded, salt=SALT)), text
    engine.close()


@pytest.mark.parametrize("repeated", [False, True])
def test_an_engine_that_keeps_no_keys_has_the_same_integers(*, repeated: bool) -> None:
    """PostgreSQL, in which two columns of one name are refused."""
    postgres = next(engine for engine in ENGINES if engine.name == "postgres")
    if postgres.missing:
        pytest.skip(postgres.missing)
    tables = make_tables(repeated=repeated)
    catalog = declare(tables)
    oracle = postgres.make_oracle(tables, catalog)
    with postgres.open(tables, catalog) as engine:
        catalog = replace(catalog, count_public=engine.count_public)
        for text in QUESTIONS:
            bounded = read(text, catalog)
            assert as_dict(engine.run(bounded, salt=SALT)) == as_dict(oracle.run(bounded, salt=SALT)), text


def test_a_parent_is_read_once() -> None:
    """Rows that are joined with their parent on its key need no second look at it; of others nothing is dropped."""
    catalog = declare(make_tables(repeated=True))
    joined = [node for node in walk_relations(read(QUESTIONS[2], catalog).source) if isinstance(node, Join)]
    assert any(drop_link(node, catalog) is not None for node in joined)
    alone = [node for node in walk_relations(read(QUESTIONS[0], catalog).source) if isinstance(node, Join)]
    assert alone and all(drop_link(node, catalog) is None for node in alone)


def test_a_join_that_forgets_its_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: where the key is dropped with the link, the oracle disagrees."""
    tables = make_tables(repeated=True)
    catalog = declare(tables)

    def forget(relation: Join, catalog: Catalog) -> DroppedLink | None:
        found = drop_link(relation, catalog)
        return None if found is None else replace(found, join=replace(found.join, on=()))

    monkeypatch.setattr(relations, "drop_link", forget)
    bounded = read(QUESTIONS[2], catalog)
    engine, oracle = DuckDBEngine(tables, catalog, threads=1), MemoryEngine(tables, catalog, order=DuckDBOrder())
    assert as_dict(engine.run(bounded, salt=SALT)) != as_dict(oracle.run(bounded, salt=SALT))
    engine.close()


def test_statements_do_not_depend_on_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run for a question is decided by public facts, whoever has repeated keys: else its time would tell."""
    written: dict[bool, list[str]] = {False: [], True: []}
    repeated = False

    def note(work: Any) -> Any:
        def noted(self: Session, sql: str, *given: Any, **more: Any) -> Any:
            # Frames are numbered as they come, and each engine has a folder of its own.
            written[repeated].append(re.sub(r"frame \d+|/[^']*/", "", sql))
            return work(self, sql, *given, **more)

        return noted

    for name in ("read", "run", "stream"):
        monkeypatch.setattr(Session, name, note(getattr(Session, name)))
    for repeated in (False, True):
        tables = make_tables(repeated=repeated)
        catalog = declare(tables)
        engine = DuckDBEngine(tables, catalog, threads=1)
        for text in QUESTIONS:
            engine.run(read(text, catalog), salt=SALT)
        engine.close()
    assert written[True] == written[False] and len(written[True]) >= len(QUESTIONS)
