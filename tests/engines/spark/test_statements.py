"""One statement a question, and rows that move at most twice: once to their unit, once to their group."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.bounding.contributions import BoundedPlan, Counts, Measure
from discreet.engines.spark import session
from discreet.engines.spark.dialect import DIALECT, SparkDialect
from discreet.engines.spark.session import SparkQuestion
from discreet.engines.tabulation import TableCounter
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Scan, Where
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.conformance.engines import DUCKDB, SPARK
from tests.engines.conformance.test_tabulation import make_tabulation, tabulate
from tests.engines.spark.clinic import QUESTION, write_clinic
from tests.engines.spark.loading import missing, spark
from tests.engines.worlds import UNIT, a_world

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
DAYS = Column("visits", "days", Type.INTEGER)
LIMITS = {
    "each row for itself": ("row", ""),
    "rows of a unit": ("patient_id", "max_rows = 3"),
    "groups and rows of a unit": ("patient_id", "max_groups = 2\nmax_rows_per_group = 2"),
}


class Plans:
    """The physical plans of statements, as they are run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # As on a cluster: several partitions, and public keys, which are few, are sent to the rows, but not counts.
        cluster = {"spark.sql.autoBroadcastJoinThreshold": "2000", "spark.sql.shuffle.partitions": "3"}
        settings = {**session.SETTINGS, **cluster}
        monkeypatch.setattr(session, "SETTINGS", settings)
        self.moves: list[int] = []
        self.rows: list[int] = []
        run = SparkQuestion.run

        def running(question: SparkQuestion, sql: str, parameters: Any = None) -> Any:
            found = run(question, sql, parameters)
            given = {name: text for name, text in (parameters or {}).items() if f"(:{name} AS " in sql}
            frame = question.spark.sql(sql, args=given)
            plan = frame._jdf.queryExecution().executedPlan().toString()
            self.moves.append(len(re.findall(r"\bExchange (?!.*broadcast)", plan)))
            self.rows.append(found.num_rows)
            return found

        monkeypatch.setattr(SparkQuestion, "run", running)


@pytest.mark.parametrize("limits", LIMITS)
def test_rows_move_at_most_twice(limits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one statement answers; what comes back is groups."""
    unit, words = LIMITS[limits]
    spark()
    with discreet.open(write_clinic(tmp_path, unit=unit, limits=words)) as curator:
        plans = Plans(monkeypatch)
        curator.ask(QUESTION, epsilon=1)
    assert len(plans.moves) == 1 and plans.rows == [2]
    assert plans.moves[0] == (1 if unit == "row" else 2)


def test_a_join_of_counts_moves_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would see it."""
    spark()
    monkeypatch.setattr(SparkDialect, "counts_by_window", property(lambda _: False))
    with discreet.open(write_clinic(tmp_path)) as curator:
        plans = Plans(monkeypatch)
        curator.ask(QUESTION, epsilon=1)
    assert plans.moves[0] > 2


def test_tables_are_counted_where_the_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement for all tables, no more rows than cells, and none of them counted here."""
    monkeypatch.setattr(TableCounter, "add", lambda *_: pytest.fail("rows came here"))
    plans, tabulation = Plans(monkeypatch), make_tabulation(UNIT)
    tabulate(SPARK, a_world(3, unit=UNIT, most=14).rows, tabulation)
    assert len(plans.moves) == 1 and plans.moves[0] <= 2
    cells = sum(int(np.prod(tabulation.shape(i))) for i in range(len(tabulation.tables)))
    assert plans.rows[0] <= cells


def test_compiled_statements_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests run statements as they stand; here Spark compiles them, as it does for everybody else."""
    settings = {**session.SETTINGS, "spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    monkeypatch.setattr(session, "SETTINGS", settings)
    rows, tabulation = a_world(5, unit=UNIT, most=14).rows, make_tabulation(UNIT)
    assert tabulate(SPARK, rows, tabulation) == tabulate(DUCKDB, rows, tabulation)


def measure_plan(depth: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How long the optimised plan of a question is whose condition nests calls."""
    nested: Expression = DAYS
    for _ in range(depth):
        nested = make_call("divide", nested, make_literal(3.0))
    condition = make_call("less", nested, make_literal(5.0))
    rows = Measure(counts=Counts.ROWS)
    asked = BoundedPlan(source=Where(Scan("visits"), condition), keys=(), domain=None, unit=None, measures=(rows,))
    found, run = list[int](), SparkQuestion.run

    def running(question: SparkQuestion, sql: str, parameters: Any = None) -> Any:
        found.append(len(question.spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()))
        return run(question, sql, parameters)

    facts = TableFacts(
        name="visits", columns={"days": (Type.INTEGER, ColumnFacts())}, unit=Unit(), limits=ContributionLimits()
    )
    catalog = Catalog(tables={"visits": facts}, neighbours=Neighbours.ADD_REMOVE)
    with monkeypatch.context() as patch:
        patch.setattr(SparkQuestion, "run", running)
        groups = SPARK.run({"visits": pa.table({"days": [1, 20, 300]})}, catalog, asked)
    assert groups.values[0][0] == sum(bool(evaluate(condition, {DAYS: days})) for days in (1, 20, 300))
    return found[0]


def test_plans_grow_with_the_question_and_not_with_its_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every guard reads its value several times; a condition that is moved below it would repeat it every time."""
    one, two, twelve = (measure_plan(depth, monkeypatch) for depth in (1, 2, 12))
    assert two < 2 * one and twelve < 12 * one
    moved = {name: value for name, value in session.SETTINGS.items() if "excludedRules" not in name}
    monkeypatch.setattr(session, "SETTINGS", moved)
    assert measure_plan(2, monkeypatch) > 2 * two  # the test would see it


SIZES = (1, 2**15, 2**16 - 1, 2**16, 2**31 + 5, 2**32 - 1, 2**32, 2**47 + 3, 2**48 - 1, 2**48, 2**62 - 1)


@pytest.mark.parametrize("most", SIZES)
def test_sums_in_parts_are_exact(most: int) -> None:
    """Of the largest values of both signs, and of nothing."""
    values = [most, -most, most, most - 1, -1, 0, 1, None]
    listed = ", ".join("(NULL)" if value is None else f"(CAST('{value}' AS BIGINT))" for value in values)
    total = DIALECT.bounded_sum("x", most)
    with SparkQuestion(spark()) as question:
        ((found, nothing),) = question.read(
            f"SELECT {total}, {total.replace('sum(', 'sum(NULL + ')} FROM VALUES {listed} AS given(x)", {}
        )
    assert int(found) == sum(value or 0 for value in values) and nothing is None


def test_parts_of_a_sum_stay_within_64_bits() -> None:
    """By their sizes: every part is below 2^16, and 2^47 of these stay below 2^63. Sums beyond three parts are wide."""
    for most in SIZES:
        parts = DIALECT.bounded_sum("x", most).count("sum(")
        shift = 16 * (parts - 1)
        wide = "DECIMAL" in DIALECT.bounded_sum("x", most).partition("sum(")[2][:20]
        assert wide or (most >> shift) < 2**16
