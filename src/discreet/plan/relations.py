"""Relations: the rows that a question reads, as immutable nodes.

A relation is *public* (declared so, or written into the question), or *private*. Every private row belongs to a unit,
and every node keeps it so: what a unit has in a relation depends on what it has in the tables, on public rows, and on
nothing else. ``bounding.stability`` holds one rule for each node that says when this is true, and refuses the rest.

Columns are identified by the name of the relation that defines them. A relation that appears twice has two names, so
no fact about one is ever read for the other. Equality in a join never matches NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from discreet.plan.expressions import Expression
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a declared table. ``alias`` tells a second reading of the same table from the first."""

    table: str
    alias: str = ""

    @property
    def name(self) -> str:
        """The name that its columns carry."""
        return self.alias or self.table


@dataclass(frozen=True, slots=True)
class Values:
    """Public rows that are part of the question: an answer released before, or a list that the analyst brought."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Value, ...], ...]

    def __repr__(self) -> str:
        return f"Values({self.name!r}, {self.columns!r}, {self.rows!r})"


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which a condition is true (not false, not NULL)."""

    source: Relation
    condition: Expression


@dataclass(frozen=True, slots=True)
class Projection:
    """New columns computed from each row alone; only these remain, under this relation's name."""

    source: Relation
    name: str
    columns: tuple[tuple[str, Expression], ...]


class JoinKind(StrEnum):
    """Which rows of the two sides remain."""

    INNER = "inner"
    LEFT = "left"  # unmatched rows of the left side remain, with NULLs
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"  # rows of the left side that match at least once; no columns of the right side
    ANTI = "anti"  # rows of the left side that match nothing


@dataclass(frozen=True, slots=True)
class Caps:
    """How many rows of a side may take part in a join that pairs rows of different units.

    First at most ``rows`` of each unit remain, then at most ``frequency`` with the same value of all join expressions.
    Rows without a unit, or with a NULL among these values, are left out. Which rows remain is decided by a secret order
    of the values of the side's columns, so equal rows are interchangeable. ``unit`` names the unit on that side.
    """

    unit: Expression
    rows: int
    frequency: int


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows for which each pair of expressions (left, right) is equal and not NULL. No pairs: all with all.

    ``single`` makes the (public) right side a look-up: keys that several of its rows hold match nothing. ``caps``
    truncates both sides before they are paired.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    on: tuple[tuple[Expression, Expression], ...]
    single: bool = False
    caps: tuple[Caps, Caps] | None = None


class Feature(StrEnum):
    """What can be computed over some rows of one unit. Any of it is fine: nobody else's rows are looked at."""

    COUNT = "count"  # rows, or values that are not NULL
    COUNT_DISTINCT = "count_distinct"
    SUM = "sum"  # NULL without values; of reals in ascending order, so that it is a function of the values
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"  # a real; half-way between the two middle values
    ANY = "any"  # true if some value is true
    ALL = "all"  # true if no value is false
    ROW_NUMBER = "row_number"  # windows only, from here on
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"


@dataclass(frozen=True, slots=True)
class FeatureCall:
    """A feature of an argument. ``type`` is what it yields; ``offset`` is how far LAG and LEAD look."""

    feature: Feature
    argument: Expression | None
    type: Type
    offset: int = 1

    def __str__(self) -> str:
        return f"{self.feature}({'*' if self.argument is None else self.argument})"


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit and value of the keys: GROUP BY inside one person. The unit must be among the keys."""

    source: Relation
    name: str
    keys: tuple[tuple[str, Expression], ...]
    features: tuple[tuple[str, FeatureCall], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """More columns for each row, from the other rows of its part. The unit must be among what divides the parts.

    Within a part, rows stand in the order of ``order`` and then of all their values, so that only equal rows are tied.
    ``order`` pairs an expression with whether it descends; NULLs come last. Sums and counts with an order are running:
    from the start of the part to the row and its peers in ``order`` (not in the tie-break). Running sums of reals are
    taken in whole steps that are tiny beside the part's largest value (``engines.features``), again in no order.
    """

    source: Relation
    name: str
    parts: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...]
    features: tuple[tuple[str, FeatureCall], ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once. The unit must be one of the columns. NULLs are equal here."""

    source: Relation


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all sources, one after the other: each source a ``Projection`` with columns of the same types."""

    name: str
    sources: tuple[Projection, ...]


Relation: TypeAlias = Scan | Values | Where | Projection | Join | PerUnit | Window | Distinct | Union


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """The relations that a relation is made of."""
    match relation:
        case Scan() | Values():
            return ()
        case Join():
            return relation.left, relation.right
        case Union():
            return relation.sources
        case Where() | Projection() | PerUnit() | Window() | Distinct():
            return (relation.source,)
        case _:
            assert_never(relation)


def walk_relations(relation: Relation) -> Iterator[Relation]:
    """The relation and everything it is made of, outermost first."""
    yield relation
    for source in inputs_of(relation):
        yield from walk_relations(source)


def find_tables(relation: Relation) -> tuple[str, ...]:
    """The declared tables that are read, each once, sorted."""
    return tuple(sorted({node.table for node in walk_relations(relation) if isinstance(node, Scan)}))


def split(relation: Relation) -> tuple[Relation, tuple[Expression, ...]]:
    """A relation without the conditions on top of it, and these in the order they were given."""
    found: list[Expression] = []
    while isinstance(relation, Where):
        found.append(relation.condition)
        relation = relation.source
    return relation, tuple(reversed(found))


def add_conditions(relation: Relation, *conditions: Expression) -> Relation:
    """The rows of a relation for which all conditions are true."""
    for condition in conditions:
        relation = Where(relation, condition)
    return relation
