"""One statement a question, and rows that move at most twice: once to their unit, once to their group."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.bounding.contributions import BoundedPlan, Counts, Measure, Spread
from discreet.engines.order import EngineHash
from discreet.engines.spark import session
from discreet.engines.spark.dialect import DIALECT, SparkDialect
from discreet.engines.spark.session import SparkQuestion
from discreet.engines.sql.statement import BoundedStatement, RowSource
from discreet.engines.sql.unit_sums import write_by_units
from discreet.engines.tabulation import TableCounter
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Expression
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import Projection, Scan, Where
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from tests.engines.conformance.engines import DUCKDB, SPARK
from tests.engines.conformance.generated import a_question
from tests.engines.conformance.test_generated import compare_form
from tests.engines.conformance.test_tabulation import make_tabulation, tabulate
from tests.engines.spark.clinic import QUESTION, write_clinic
from tests.engines.spark.loading import NEEDS_SPARK, spark
from tests.engines.worlds import SALT, UNIT, a_world

pytestmark = NEEDS_SPARK
DAYS = Column("visits", "days", Type.INTEGER)
SEARCHES = {
    "spark.sql.optimizer.dynamicPartitionPruning.enabled",
    "spark.sql.optimizer.runtime.bloomFilter.enabled",
}
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
    monkeypatch.setattr(SparkDialect, "counts_groups_by_window", property(lambda _: False))
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


VISITS = TableFacts(
    name="visits", columns={"days": (Type.INTEGER, ColumnFacts())}, unit=Unit(), limits=ContributionLimits()
)


def nest(value: Expression, depth: int) -> Expression:
    """Calls in calls, each with a guard that reads its value several times."""
    for _ in range(depth):
        value = make_call("divide", value, make_literal(3.0))
    return value


def measure_plan(depth: int, monkeypatch: pytest.MonkeyPatch, given: Expression = DAYS) -> int:
    """How long the optimised plan of a question is whose condition nests calls of what a query below gives."""
    source, days = Projection(Scan("visits"), "below", (("given", given),)), Column("below", "given", given.type)
    condition = make_call("less", nest(days, depth), make_literal(5.0))
    rows = Measure(counts=Counts.ROWS)
    asked = BoundedPlan(source=Where(source, condition), keys=(), domain=None, unit=None, measures=(rows,))
    found, run = list[int](), SparkQuestion.run

    def running(question: SparkQuestion, sql: str, parameters: Any = None) -> Any:
        plan = question.spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()
        found.append(sum(len(line.lstrip(" :+-")) for line in plan.splitlines()))
        return run(question, sql, parameters)

    catalog = Catalog(tables={"visits": VISITS}, neighbours=Neighbours.ADD_REMOVE)
    with monkeypatch.context() as patch:
        patch.setattr(SparkQuestion, "run", running)
        groups = SPARK.run({"visits": pa.table({"days": [1, 20, 300]})}, catalog, asked)
    each = [evaluate(condition, {days: evaluate(given, {DAYS: value})}) for value in (1, 20, 300)]
    assert groups.values[0][0] == sum(map(bool, each))
    return found[0]


def merge_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing sets layers apart."""
    monkeypatch.setattr(SparkDialect, "stacked_table", lambda own, name, query, _: own.common_table(name, query))


def test_plans_grow_with_the_question_and_not_with_its_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every guard reads its value several times; a condition that is moved below it would repeat it every time."""
    two, twelve = (measure_plan(depth, monkeypatch) for depth in (2, 12))
    assert twelve < 8 * two
    moved = {name: value for name, value in session.SETTINGS.items() if "excludedRules" not in name}
    monkeypatch.setattr(session, "SETTINGS", moved)
    merge_layers(monkeypatch)
    assert measure_plan(3, monkeypatch) > 3 * two  # the test would see it


def test_constants_of_a_query_below_are_not_written_out_in_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would do so before it computes any of them. Here it computes none, so that plans show what it wrote."""
    rules = "spark.sql.optimizer.excludedRules"
    computing = f"{session.SETTINGS[rules]},org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
    monkeypatch.setattr(session, "SETTINGS", {**session.SETTINGS, rules: computing})
    three = make_literal(3)
    four, twelve = (measure_plan(depth, monkeypatch, three) for depth in (4, 12))
    assert twelve < 3 * four
    merge_layers(monkeypatch)
    assert measure_plan(3, monkeypatch, three) > 3 * four  # the test would see it


def test_joins_by_deep_keys_are_planned() -> None:
    """A histogram by a logarithm: its groups are joined to the rows by a key of many layers."""
    question = a_question(3)
    (key,) = question.bounded.keys
    assert isinstance(key, Call) and key.function == "log2" and question.bounded.spreads
    tables, catalog = question.data.tables, question.data.catalog
    found, wanted = (run(tables, catalog, question.bounded) for run in (SPARK.run, SPARK.run_oracle))
    assert compare_form(found) == compare_form(wanted)


def time_search(depth: int) -> float:
    """Seconds that Spark looks for filters through the joins of a histogram by a key that nests calls."""
    rules = spark()._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor
    rules.resetMetrics()
    asked = BoundedPlan(source=Scan("visits"), keys=(nest(DAYS, depth),), domain=None, unit=None,
                        measures=(Measure(counts=Counts.ROWS),), spreads=(Spread(argument=DAYS, last=9),))  # fmt: skip
    catalog = Catalog(tables={"visits": VISITS}, neighbours=Neighbours.ADD_REMOVE)
    SPARK.run({"visits": pa.table({"days": [1, 20, 300]})}, catalog, asked)
    told = re.findall(r"\.(?:PartitionPruning|InjectRuntimeFilter) +\d+ / (\d+)", str(rules.dumpTimeSpent()))
    assert len(told) == 2
    return sum(map(int, told)) / 1e9


def test_no_filters_are_looked_for_through_deep_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer of a key would take several times as long as the one below; a logarithm would take for ever."""
    own = time_search(5)
    searching = {name: "true" if name in SEARCHES else value for name, value in session.SETTINGS.items()}
    monkeypatch.setattr(session, "SETTINGS", searching)
    three, five = map(time_search, (3, 5))
    assert 10 * own < three and 4 * three < five


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


@pytest.mark.parametrize(("weight", "values"), [
    (3, [2**62, 2**62, 2**62, -(2**62), -(2**62), -(2**62), 5]),
    (0, [2**62, 2**62, 2**62]),
    (2**24, [2**37, -(2**63), 2**63 - 1, None]),
    (1, [2**61 - 1, -(2**63), 2**63 - 1, 1]),
])  # fmt: skip  # sums on the way are beyond 64 bits, and products are not beyond 62
def test_low_sums_wrap_and_their_products_are_exact(weight: int, values: list[int | None]) -> None:
    listed = ", ".join("(NULL)" if value is None else f"(CAST('{value}' AS BIGINT))" for value in values)
    product = DIALECT.low_product(f"CAST('{weight}' AS BIGINT)", f"coalesce({DIALECT.low_sum('x')}, 0)")
    with SparkQuestion(spark()) as question:
        ((found,),) = question.read(f"SELECT {product} FROM VALUES {listed} AS given(x)", {})
    assert found == weight * sum(value or 0 for value in values) and abs(found) < 2**62


def write_sum(*measures: Measure) -> str:
    """The statement of a question about units."""
    unit = Column("visits", "unit", Type.INTEGER)
    asked = BoundedPlan(
        source=Scan("visits"), keys=(), domain=None, unit=unit, measures=measures, max_rows_per_group=2, weight_bits=24
    )
    rows = RowSource("visits", {unit: "unit", DAYS: "days"}, {})
    return write_by_units(BoundedStatement(asked, rows, DIALECT, EngineHash(), SALT))


STEPS = Measure(counts=Counts.STEPS, argument=DAYS, resolution=Fraction(1), first=0, last=30)


@pytest.mark.parametrize(("low", "measures"), [
    (True, (STEPS,)),
    (False, (replace(STEPS, last=2**40),)),
    (False, (STEPS, replace(STEPS, partial=(0, 40)))),
])  # fmt: skip  # weighed within 62 bits, beyond them, and clamped beside it
def test_only_sums_that_are_weighed_within_62_bits_are_low(low: bool, measures: tuple[Measure, ...]) -> None:
    """Where the sum itself is read, or its product is long, the sum is wide."""
    assert (f"{DIALECT.low_sum('v0')} AS s0" in write_sum(*measures)) is low
