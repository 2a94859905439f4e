"""Reals that are summed within a person count far beyond their bounds, in steps that are public."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.bounding.bound import bound
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.frontends import read_sql
from discreet.plan.real_steps import MARGIN
from discreet.plan.relations import PerUnit, Projection, Relation, Where, Window, walk_relations
from discreet.privacy import Budget

TABLE = pa.table(
    {
        "who": [1, 1, 2, 2, 3],
        "cost": [10.0, 900.0, 1.0, None, -7.0],
        "weight": [0.5] * 5,
        "days": [1, 2, 3, 4, 5],
    }
)
SALT = bytes(range(16))


def clinic() -> discreet.Curator:
    return discreet.curate(
        {"data": TABLE},
        unit="who",
        max_rows=10,
        budget=Budget(epsilon=10),
        bounds={"cost": (0, 100), "days": (0, 3)},
    )


def features_of(text: str) -> list[str]:
    catalog = clinic().catalog
    source = bound(read_sql.read(text, catalog), catalog).bounded.source
    nodes = (node for node in walk_relations(source) if isinstance(node, PerUnit | Window))
    return [f"{call} {(call.size or 0) / MARGIN:g}" for node in nodes for _, call in node.features]


def describe(feature: str) -> str:
    return f"SELECT COUNT(*) AS n FROM (SELECT who, {feature} AS x FROM data GROUP BY who) WHERE x > 5"


@pytest.mark.parametrize(
    ("feature", "wanted"),
    [
        ("SUM(cost)", "sum(cost) 100"),
        ("AVG(cost)", "mean(cost) 100"),
        ("SUM(cost * 2 - 1)", "sum(subtract(multiply(cost, 2), 1)) 199"),
        ("SUM(clamp(cost, 0, 1000))", "sum(clamp(cost, 0, 1000)) 1000"),
        ("SUM(weight)", "sum(weight) 0"),  # no bounds are declared
        ("MAX(cost)", "max(cost) 0"),
        ("MEDIAN(cost)", "median(cost) 0"),
        ("SUM(days)", "sum(days) 0"),  # integers are added as they are
    ],
)
def test_which_features_get_a_size(feature: str, wanted: str) -> None:
    assert features_of(describe(feature)) == [wanted]


def test_features_are_found_everywhere() -> None:
    """In windows, below joins, in parts of unions, and in features of features."""
    window = (
        "SELECT COUNT(*) AS n FROM (SELECT SUM(cost) OVER (PARTITION BY who ORDER BY days) AS s FROM data) WHERE s > 5"
    )
    assert features_of(window) == ["sum(cost) 100"]
    grouped = "SELECT who, SUM(cost) AS s FROM data WHERE cost > 20 GROUP BY who"
    joined = f"SELECT COUNT(*) AS n FROM data d JOIN ({grouped}) g ON d.who = g.who WHERE g.s > 5"
    assert features_of(joined) == ["sum(cost) 100"]
    union = f"SELECT COUNT(*) AS n FROM ({grouped} UNION ALL {grouped}) WHERE s > 5"
    assert features_of(union) == ["sum(cost) 100"] * 2
    nested = "SELECT who, days, SUM(cost) AS s FROM data GROUP BY who, days"
    twice = f"SELECT COUNT(*) AS n FROM (SELECT who, AVG(s) AS x FROM ({nested}) GROUP BY who) WHERE x > 5"
    assert features_of(twice) == ["mean(s) 1000", "sum(cost) 100"]


def test_a_value_beyond_its_bounds_counts_as_it_is() -> None:
    """Within the unit: 900 stays 900, and -7 is -7. What is known of the sum bounds it where it is measured."""
    holder = clinic()
    engine = DuckDBEngine({"data": TABLE}, holder.catalog)
    shown = {}
    for argument in ("cost", "clamp(cost, 0, 1000)", "clamp(cost, 0, 100)"):
        text = f"SELECT SUM(x) AS s FROM (SELECT who, SUM({argument}) AS x FROM data GROUP BY who)"
        form = bound(read_sql.read(text, holder.catalog), holder.catalog)
        (steps,) = (i for i, measure in enumerate(form.bounded.measures) if measure.argument is not None)
        measure = form.bounded.measures[steps]
        (total,) = engine.run(form.bounded, salt=SALT).values[steps]
        shown[argument] = (float(total * measure.resolution), float(measure.last * measure.resolution))
    assert shown == {
        "cost": (911.0, 1000.0),
        "clamp(cost, 0, 1000)": (911.0, 10_000.0),
        "clamp(cost, 0, 100)": (111.0, 1000.0),
    }


def test_a_size_that_somebody_brings_is_replaced() -> None:
    """A question may hold anything; only facts decide how large values count."""
    catalog = clinic().catalog
    question = read_sql.read(describe("SUM(weight)"), catalog)

    def plant(relation: Relation) -> Relation:
        match relation:
            case PerUnit():
                features = tuple((name, replace(call, size=1e-9)) for name, call in relation.features)
                return replace(relation, features=features)
            case Projection() | Where():
                return replace(relation, source=plant(relation.source))
            case _:
                raise AssertionError(relation)

    planted = replace(question, source=plant(question.source))
    assert planted != question
    assert bound(planted, catalog).bounded == bound(question, catalog).bounded


def test_rows_are_read_once_where_steps_are_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is joined to itself: the statement reads the table once. Without bounds, it is read twice."""
    from discreet.engines.duckdb.session import Session

    written: list[str] = []
    read = Session.read

    def keep(self: Session, sql: str, *more: Any, **others: Any) -> Any:
        written.append(sql)
        return read(self, sql, *more, **others)

    monkeypatch.setattr(Session, "read", keep)
    catalog = clinic().catalog
    engine = DuckDBEngine({"data": TABLE}, catalog)
    joins = {}
    for column in ("cost", "weight"):
        form = bound(read_sql.read(describe(f"SUM({column})"), catalog), catalog)
        engine.run(form.bounded, salt=SALT)
        joins[column] = written[-1].count("max(abs(")
    assert joins == {"cost": 0, "weight": 1}
