"""A small declared dataset that many tests share: visits of patients, with everything a codebook can say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.expressions import Expression
from discreet.plan.nodes import Aggregate, Output, Question
from discreet.plan.relations import Scan, Where
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit

COLUMNS: dict[str, tuple[Type, ColumnFacts]] = {
    "patient": (Type.INTEGER, ColumnFacts()),
    "ward": (Type.TEXT, ColumnFacts(keys=("A", "B", "C"))),
    "town": (Type.TEXT, ColumnFacts()),
    "sex": (Type.TEXT, ColumnFacts(keys=("f", "m"), constant=True)),
    "age": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(110), resolution=Fraction(1))),
    "cost": (Type.REAL, ColumnFacts(low=Fraction(0), high=Fraction(1000), resolution=Fraction(1, 4))),
    "free": (Type.REAL, ColumnFacts()),
}
GROUPS = ContributionLimits(max_groups=2, max_rows_per_group=3)
ROWS = ContributionLimits(max_rows=4)


def catalog(
    *,
    unit: str | None = "patient",
    limits: ContributionLimits = GROUPS,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Catalog:
    """The declared table, for this unit and these limits."""
    table = TableFacts(name="visits", columns=COLUMNS, unit=Unit(unit), limits=limits)
    return Catalog(tables={"visits": table}, neighbours=neighbours)


def column(name: str) -> Expression:
    """A column of the declared table."""
    return catalog().find_table("visits").find_column(name)


def ask(*aggregates: Aggregate, keys: tuple[str, ...] = (), where: Expression | None = None) -> Question:
    """A question that shows its keys and aggregates under the names k0, k1, ... and a0, a1, ..."""
    source = Scan("visits") if where is None else Where(Scan("visits"), where)
    bare = Question(source=source, keys=tuple(map(column, keys)), aggregates=aggregates)
    outputs = [Output(f"k{i}", bare.refer_to_key(i)) for i in range(len(keys))]
    outputs += [Output(f"a{i}", bare.refer_to_aggregate(i)) for i in range(len(aggregates))]
    return replace(bare, outputs=tuple(outputs))


COUNT = Aggregate(Statistic.COUNT)
UNITS = Aggregate(Statistic.COUNT_UNITS)


def of(statistic: Statistic, name: str) -> Aggregate:
    """A statistic of a column."""
    return Aggregate(statistic, column(name))
