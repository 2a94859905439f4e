"""Units that have one row each, because their rows were brought together before: nothing is counted again."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Session
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.sql.statement import BoundedStatement
from tests.engines.answers import as_dict
from tests.engines.conformance.engines import ENGINES, DuckDBOrder
from tests.engines.sql.test_links import declare, make_tables, read
from tests.engines.worlds import SALT

EACH = "(SELECT owner, COUNT(*) AS k, MAX(day) AS last, AVG(day) AS mean FROM orders GROUP BY owner) AS t"
ONE_ROW = (
    f"SELECT k, COUNT(*) AS n FROM {EACH} GROUP BY k",
    f"SELECT last, COUNT(*) AS n, SUM(k) AS s FROM {EACH} WHERE k > 2 GROUP BY last",
    f"SELECT COUNT(last) AS c, SUM(last) AS s, VARIANCE(last) AS v, COUNT(DISTINCT owner) AS u FROM {EACH}",
    f"SELECT AVG(mean) AS m, SUM(last * last) AS s FROM {EACH}",
)
SEVERAL_ROWS = (
    "SELECT day, COUNT(*) AS n FROM orders GROUP BY day",
    "SELECT k, COUNT(*) AS n FROM (SELECT owner, number, COUNT(*) AS k FROM orders GROUP BY owner, number) GROUP BY k",
)


def list_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that is read from now on."""
    found, read_all = list[str](), Session.read

    def note(session: Session, sql: str, *given: Any) -> Any:
        found.append(sql)
        return read_all(session, sql, *given)

    monkeypatch.setattr(Session, "read", note)
    return found


@pytest.mark.parametrize("repeated", [False, True])
def test_integers_are_the_oracles(monkeypatch: pytest.MonkeyPatch, *, repeated: bool) -> None:
    tables = make_tables(repeated=repeated)
    catalog = declare(tables)
    engine, oracle = DuckDBEngine(tables, catalog, threads=1), MemoryEngine(tables, catalog, order=DuckDBOrder())
    statements = list_statements(monkeypatch)
    for text in (*ONE_ROW, *SEVERAL_ROWS):
        bounded = read(text, catalog)
        assert as_dict(engine.run(bounded, salt=SALT)) == as_dict(oracle.run(bounded, salt=SALT)), text
        assert (" owners AS " in statements[-1] or "crowded AS" in statements[-1]) is (text in SEVERAL_ROWS), text
    engine.close()


def test_another_engine_has_the_same_integers() -> None:
    postgres = next(engine for engine in ENGINES if engine.name == "postgres")
    if postgres.missing:
        pytest.skip(postgres.missing)
    tables = make_tables(repeated=True)
    catalog = declare(tables)
    oracle = postgres.make_oracle(tables, catalog)
    with postgres.open(tables, catalog) as engine:
        for text in ONE_ROW:
            bounded = read(text, catalog)
            assert as_dict(engine.run(bounded, salt=SALT)) == as_dict(oracle.run(bounded, salt=SALT)), text


@pytest.mark.parametrize("text", SEVERAL_ROWS)
def test_rows_that_are_not_brought_together_are_noticed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The control: where units with many rows are taken for units with one, their rows are not weighed."""
    tables = make_tables(repeated=True)
    catalog = declare(tables)
    engine, oracle = DuckDBEngine(tables, catalog, threads=1), MemoryEngine(tables, catalog, order=DuckDBOrder())
    bounded = read(text, catalog)
    monkeypatch.setattr(BoundedStatement, "one_row", property(lambda _: True))
    assert as_dict(engine.run(bounded, salt=SALT)) != as_dict(oracle.run(bounded, salt=SALT))
    engine.close()
