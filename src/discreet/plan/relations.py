"""Relations: the rows that a question reads, as immutable nodes.

A relation is *public* if the codebook declares it so, or if its rows are written into the question. Otherwise it is
*private*. Every private row belongs to a unit, and every node keeps this true: the rows of a unit in a relation depend
on the unit's rows in the tables, on public rows, and on nothing else. ``bounding.stability`` has one rule for each
node. The rule says when this is true, and refuses the node otherwise.

A column is identified by the name of the relation that defines it. A relation that appears twice has two names, so a
fact about one is never read for the other. Equality in a join never matches NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias, assert_never

from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Expression
from discreet.plan.types import Type, Value


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a declared table. A table that is read twice has an ``alias`` the second time."""

    table: str
    alias: str = ""

    @property
    def name(self) -> str:
        """The name of the relation, by which its columns are identified."""
        return self.alias or self.table


@dataclass(frozen=True, slots=True)
class Values:
    """Public rows that are part of the question: an answer that was released before, or rows that the analyst wrote."""

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
    """New columns, each computed from one row. Only these columns remain, under the name of this relation."""

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
    """Pairs of rows for which each pair of expressions (left, right) is equal and not NULL.

    Without pairs of expressions, each row is paired with each. ``single`` makes the (public) right side a look-up: a
    key that several of its rows have matches nothing. ``caps`` truncate both sides before they are paired.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    on: tuple[tuple[Expression, Expression], ...]
    single: bool = False
    caps: tuple[Caps, Caps] | None = None


class Feature(StrEnum):
    """What can be computed over some rows of one unit. All of it is safe, because it reads no rows of other units."""

    COUNT = "count"  # rows, or values that are not NULL
    COUNT_DISTINCT = "count_distinct"
    SUM = "sum"  # NULL without values; reals are added in tiny steps, so that the sum depends on the values only
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"  # a real; half-way between the two middle values
    ANY = "any"  # true if some value is true
    ALL = "all"  # true if no value is false
    ROW_NUMBER = "row_number"  # this and the following are for windows only
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"


# Features that number the rows of a window. They have no argument.
NUMBERINGS = frozenset({Feature.ROW_NUMBER, Feature.RANK, Feature.DENSE_RANK})
# Features that have no meaning without a window.
WINDOW_FEATURES = NUMBERINGS | {Feature.LAG, Feature.LEAD}


@dataclass(frozen=True, slots=True)
class RowFrame:
    """Some rows around a row, in the order of its window: from ``first`` to ``last`` rows after it; None is no end.

    Negative numbers are rows before it. Rows with equal values of the order stand in the order of all their values.
    """

    first: int | None
    last: int | None

    def __str__(self) -> str:
        first, last = ("no end" if end is None else f"{end:+d}" if end else "this" for end in (self.first, self.last))
        return f"rows from {first} to {last}"


@dataclass(frozen=True, slots=True)
class FeatureCall:
    """A feature of an argument. ``type`` is the type of its result. LAG and LEAD look ``offset`` rows away.

    With a ``frame`` a feature of a window reads these rows only. ``size`` is public: values of a sum or a mean of reals
    count up to it (``plan.real_steps``). Bounding finds it.
    """

    feature: Feature
    argument: Expression | None
    type: Type
    offset: int = 1
    frame: RowFrame | None = None
    size: float | None = None

    def __str__(self) -> str:
        return f"{self.feature}({'*' if self.argument is None else self.argument})"


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit and value of the keys: GROUP BY inside one unit. The unit must be one of the keys."""

    source: Relation
    name: str
    keys: tuple[tuple[str, Expression], ...]
    features: tuple[tuple[str, FeatureCall], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """More columns for each row, computed from the rows of its part. The unit must be one of ``parts``.

    Within a part, rows are sorted by ``order`` and then by all their values, so that only equal rows are tied.
    ``order`` pairs an expression with whether it descends; NULLs come last. Sums and counts with an order are running:
    they go from the start of the part to the row and its peers in ``order`` (not in the tie-break). The steps in
    which reals are added (``plan.real_steps``) are those of the whole part. There are no medians: a running one
    would need all rows of a part in memory.
    """

    source: Relation
    name: str
    parts: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...]
    features: tuple[tuple[str, FeatureCall], ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once. The unit must be one of the columns. Two NULLs are equal here."""

    source: Relation


@dataclass(frozen=True, slots=True)
class Capped:
    """At most ``rows`` rows with the same values of ``by``, of which one is the unit. Two NULLs are equal here.

    Rows without a unit are left out; the unit is the first of ``by``. Which rows remain is decided by a secret order of
    the values of all columns of the source. So what remains of a unit depends on its own rows only, equal rows are
    interchangeable, and two equal sources keep the same rows, whatever they are called.
    """

    source: Relation
    by: tuple[Expression, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all sources, one after the other. Each source is a ``Projection`` with columns of the same types."""

    name: str
    sources: tuple[Projection, ...]


Relation: TypeAlias = Scan | Values | Where | Projection | Join | PerUnit | Window | Distinct | Capped | Union


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """The relations that a relation is made of."""
    match relation:
        case Scan() | Values():
            return ()
        case Join():
            return relation.left, relation.right
        case Union():
            return relation.sources
        case Where() | Projection() | PerUnit() | Window() | Distinct() | Capped():
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
    """A relation without the conditions on top of it, and these conditions in the order they were given."""
    conditions: list[Expression] = []
    while isinstance(relation, Where):
        conditions.append(relation.condition)
        relation = relation.source
    return relation, tuple(reversed(conditions))
