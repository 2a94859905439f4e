"""From SQL to integers: the DuckDB engine and the oracle agree on what questions about several tables read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from discreet.bounding.bound import bound_all
from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.memory.engine import MemoryEngine
from discreet.frontends import read_sql
from tests.engines.clinics import same_secret_order
from tests.engines.test_agreement import as_dict, duckdb_order
from tests.engines.worlds import ARROW, SALT
from tests.fixtures.cases import QuestionCase, cases
from tests.worlds.plain import Tables, some_tables
from tests.worlds.random_sql import a_question
from tests.worlds.tables import HOSPITAL, PUBLIC, SEVERAL

__all__ = ["duckdb_order"]  # a fixture

FIXTURES = [case for case in cases() if case.file in SEVERAL and not case.expected.startswith("question")]


def frames(tables: Tables) -> dict[str, pa.Table]:
    """The tables in Arrow, with the declared types."""
    return {
        name: pa.table({
            column: pa.array([row[column] for row in tables[name]], ARROW[kind])
            for column, (kind, _) in facts.columns.items()
        })
        for name, facts in HOSPITAL.tables.items()
    }  # fmt: skip  # one table after the other


TABLES = some_tables(5, patients=9)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(frames(TABLES), HOSPITAL, threads=2)
    yield made
    made.close()


def forms(text: str) -> list[BoundedPlan]:
    """The bounded forms of a question, without spreads, which have tests of their own."""
    question = read_sql.read(text, HOSPITAL, PUBLIC)
    return [replace(form.bounded, spreads=()) for form in bound_all(question, HOSPITAL)]


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: f"{case.file}: {case.question[:60]}")
def test_fixtures(
    case: QuestionCase, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, duckdb_order: None
) -> None:
    """Every accepted fixture about several tables, truncated joins included."""
    same_secret_order(monkeypatch)
    for bounded in forms(case.question):
        wanted = as_dict(MemoryEngine(TABLES, HOSPITAL).run(bounded, salt=SALT))
        assert as_dict(engine.run(bounded, salt=SALT)) == wanted


@pytest.mark.parametrize("seed", range(0, 600, 15))
def test_random_questions(seed: int, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, duckdb_order: None) -> None:
    """Random questions, counted."""
    same_secret_order(monkeypatch)
    (bounded,) = forms(" FROM ".join(("SELECT COUNT(*) AS n", a_question(seed).split(" FROM ", 1)[1])))
    wanted = as_dict(MemoryEngine(TABLES, HOSPITAL).run(bounded, salt=SALT))
    assert as_dict(engine.run(bounded, salt=SALT)) == wanted
