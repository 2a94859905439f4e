"""What is known of a relation without looking at the data: whose rows they are, and what their columns hold.

One small rule for each node of ``plan.relations``. Each says when the node keeps units apart, and refuses where it
does not, with the condition that is missing.

Privacy: call a private relation *local* if the rows that carry a unit's name are a function of the rows that this unit
has in the tables, of public rows, and of the secret order. Tables are local (``plan.reach``). The rules keep it so:
conditions and new columns look at one row; a join of two private relations pairs rows of the same unit only; a join
with a public one pairs a private row with public rows; features, windows and DISTINCT look at rows of one unit; a
union has the rows of its parts. A local relation is all that ``contributions`` asks for.
A join that does not equate units is allowed only where both sides were truncated: then it is *mixed*, and the number of
its rows that one unit can change is known (``spread_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, reduce

from discreet.bounding.facts import facts_of
from discreet.bounding.limits import added, most_rows, paired
from discreet.bounding.shape import check_shape
from discreet.errors import InternalError, UnitLost, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, Limits
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import call
from discreet.plan.reach import reach
from discreet.plan.relations import (
    Compute,
    Derive,
    Distinct,
    Feature,
    Filter,
    Join,
    JoinKind,
    PerUnit,
    Relation,
    Scan,
    Union,
    Values,
    Window,
    inputs,
)
from discreet.plan.types import Type, Value


class Owner(StrEnum):
    """Whose rows a relation holds."""

    NOBODY = "nobody"  # public
    ROW = "row"  # each row is its own unit
    UNIT = "unit"  # each row names its unit
    MIXED = "mixed"  # rows of several units were joined, after truncation
    LOST = "lost"  # private rows that no longer name their unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a relation.

    ``units`` are expressions that hold the unit of each row, all equal; the first is the one to bound by. ``limits``
    are how much of a unit's rows a question may use. ``spread_rows`` is set where rows of units are mixed: one unit
    adds or takes away at most so many.
    """

    columns: Mapping[Column, ColumnFacts]
    owner: Owner
    units: tuple[Expression, ...] = ()
    limits: Limits = field(default_factory=Limits)
    spread_rows: int | None = None

    @property
    def private(self) -> bool:
        return self.owner is not Owner.NOBODY

    @property
    def unit(self) -> Expression | None:
        return self.units[0] if self.units else None

    def facts(self, column: Column) -> ColumnFacts:
        """The facts of a column."""
        return self.columns[column]


def known(relation: Relation, catalog: Catalog) -> Known:
    """What is known of a relation, bottom up; ``UnitLost`` where it does not keep units apart."""
    sources = [known(source, catalog) for source in inputs(relation)]
    check_shape(relation, *(source.columns for source in sources))
    match relation:
        case Scan():
            return _scan(relation, catalog)
        case Values():
            return _values(relation)
        case Filter():
            return sources[0]
        case Derive():
            return _derive(relation, sources[0])
        case Join():
            return _join(relation, *sources, catalog=catalog)
        case PerUnit():
            return _per_unit(relation, sources[0])
        case Window():
            return _window(relation, sources[0])
        case Distinct():
            return _distinct(sources[0])
        case Union():
            return _union(relation, sources)


def _scan(relation: Scan, catalog: Catalog) -> Known:
    table = catalog.tables.get(relation.table)
    if table is None:
        raise UsageError(f"There is no declared table {relation.table!r}. Nothing was charged.")
    names = {other.unit.column for other in catalog.tables.values() if not other.public} - {None}
    if len(names) > 1:
        raise InternalError("Private tables of one dataset protect different units.")
    columns = {Column(relation.name, name, kind): facts for name, (kind, facts) in table.columns.items()}
    if table.public:
        return Known(columns=columns, owner=Owner.NOBODY)
    unit = table.unit_column
    if unit is not None:
        return Known(
            columns=columns,
            owner=Owner.UNIT,
            units=(Column(relation.name, unit.name, unit.type),),
            limits=table.limits,
        )
    owner = Owner.ROW if table.unit.column is None else Owner.LOST  # linked tables find it again by their join
    return Known(columns=columns, owner=owner, limits=table.limits)


@lru_cache(maxsize=16)
def _values(relation: Values) -> Known:
    """Public rows tell everything about themselves. They may be many, and are asked again for each relation above."""
    columns = {
        Column(relation.name, name, kind): _observed([row[i] for row in relation.rows], kind)
        for i, (name, kind) in enumerate(relation.columns)
    }
    return Known(columns=columns, owner=Owner.NOBODY)


def _observed(values: Sequence[Value], kind: Type) -> ColumnFacts:
    distinct = tuple(sorted(set(values), key=lambda value: (value is None, value)))
    numbers = [value for value in distinct if isinstance(value, int | float) and kind.is_number]
    return ColumnFacts(
        nullable=None in distinct,
        low=Fraction(numbers[0]) if numbers else None,  # they are sorted
        high=Fraction(numbers[-1]) if numbers else None,
        keys=distinct,
        resolution=Fraction(1) if kind is Type.INTEGER else None,
        unique=len(distinct) == len(values),
    )


def _derive(relation: Derive, source: Known) -> Known:
    columns = {
        Column(relation.name, name, expression.type): facts_of(expression, source)
        for name, expression in relation.columns
    }
    kept = tuple(
        Column(relation.name, name, expression.type)
        for name, expression in relation.columns
        if expression in source.units
    )
    owner = Owner.LOST if source.owner is Owner.UNIT and not kept else source.owner
    return replace(source, columns=columns, units=kept, owner=owner)


def _join(relation: Join, left: Known, right: Known, *, catalog: Catalog) -> Known:
    if left.owner is Owner.LOST and isinstance(relation.left, Scan):
        return _reached(relation, relation.left, left, right, catalog)
    _check_owners(left, right)
    if relation.single and right.private:
        raise InternalError("Only a public relation can be a look-up.")
    if relation.caps is not None and not (left.private and right.private):
        raise UnitLost(TRUNCATED)
    columns = _joined_columns(relation.kind, left, right)
    match left.private, right.private:
        case False, False:
            return Known(columns=columns, owner=Owner.NOBODY)
        case True, False:
            return _with_public(relation, left, columns, private_side=JoinKind.LEFT)
        case False, True:
            return _with_public(relation, right, columns, private_side=JoinKind.RIGHT)
        case _:
            return _both_private(relation, left, right, columns, catalog)


def _reached(relation: Join, scan: Scan, left: Known, right: Known, catalog: Catalog) -> Known:
    """Rows that refer to others take their unit from them, by the declared foreign key and in no other way."""
    if relation != reach(scan.table, catalog, scan.alias).relation:
        raise UnitLost(NO_UNIT)
    return Known(
        columns=_joined_columns(relation.kind, left, right), owner=Owner.UNIT, units=right.units, limits=left.limits
    )


NO_UNIT = (
    "These rows no longer say whose they are. Keep the column that names the unit in the subquery. Nothing was charged."
)


TRUNCATED = (
    "Rows are truncated by the values of a join only where both sides are private and units are not kept together: "
    "else whether a row remains would depend on other units. Nothing was charged."
)


def _check_owners(*sides: Known) -> None:
    for side in sides:
        if side.owner is Owner.LOST:
            raise UnitLost(NO_UNIT)
        if side.owner is Owner.MIXED:
            raise UnitLost(
                "A join that does not keep units together can be aggregated, and nothing else: no further join, "
                "grouping or window. Join on the unit first. Nothing was charged."
            )


def _joined_columns(kind: JoinKind, left: Known, right: Known) -> dict[Column, ColumnFacts]:
    """The columns of both sides; those of a side that may be missing may be NULL. Nothing is unique any more."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return dict(left.columns)
    columns = {}
    for side, missing in ((left, (JoinKind.RIGHT, JoinKind.FULL)), (right, (JoinKind.LEFT, JoinKind.FULL))):
        for column, facts in side.columns.items():
            columns[column] = _perhaps_missing(facts) if kind in missing else replace(facts, unique=False)
    return columns


def _perhaps_missing(facts: ColumnFacts) -> ColumnFacts:
    keys = facts.keys
    if keys is not None and None not in keys:
        keys = (*keys, None)
    return replace(facts, nullable=True, keys=keys, unique=False)


def _with_public(
    relation: Join, private: Known, columns: Mapping[Column, ColumnFacts], *, private_side: JoinKind
) -> Known:
    """Private rows beside public ones. Public rows that match nobody would say that nobody is there."""
    kept = {JoinKind.INNER, private_side} | ({JoinKind.SEMI, JoinKind.ANTI} if private_side is JoinKind.LEFT else set())
    if relation.kind not in kept:
        raise UnitLost(
            f"A {str(relation.kind).upper()} JOIN keeps public rows that belong to nobody. "
            "Use JOIN, or put the private table on the side that is kept; groups without rows are shown anyway where "
            "the keys are public. Nothing was charged."
        )
    once = relation.kind in (JoinKind.SEMI, JoinKind.ANTI) or (relation.single and private_side is JoinKind.LEFT)
    if private.owner is Owner.ROW and not once:
        raise UnitLost(
            "Each row is its own unit, so it may match one public row at most. Put the private table first and declare "
            "the public table's key as unique. Nothing was charged."
        )
    constants = {column: replace(facts, constant=False) for column, facts in columns.items()}
    if private.owner is Owner.UNIT:
        constants = {
            column: facts if column in private.columns else replace(facts, constant=False)
            for column, facts in columns.items()
        }
    return replace(private, columns=constants)


def _both_private(
    relation: Join, left: Known, right: Known, columns: Mapping[Column, ColumnFacts], catalog: Catalog
) -> Known:
    if Owner.ROW in (left.owner, right.owner):
        raise UnitLost(
            "Each row is its own unit, so rows of two private tables cannot be joined: a pair would belong to two. "
            "Declare a unit in the codebook. Nothing was charged."
        )
    ours, theirs = left.unit, right.unit
    if ours is None or theirs is None or ours.type is not theirs.type:
        raise UnitLost(
            "The unit is not of the same type on both sides, so it cannot be told whose rows belong together. Declare "
            "it with one type in all tables. Nothing was charged."
        )
    if not any(a in left.units and b in right.units for a, b in relation.on):
        return _mixed(relation, left, right, columns)
    if relation.caps is not None:
        raise UnitLost(TRUNCATED)
    limits = paired(relation, left.limits, right.limits, catalog)
    match relation.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return replace(left, columns=columns)
        case JoinKind.INNER:
            units = (*left.units, *right.units)
        case JoinKind.LEFT:
            units = left.units
        case JoinKind.RIGHT:
            units = right.units
        case JoinKind.FULL:
            units = (call("coalesce", ours, theirs),)
    return Known(columns=columns, owner=Owner.UNIT, units=units, limits=limits)


def _mixed(relation: Join, left: Known, right: Known, columns: Mapping[Column, ColumnFacts]) -> Known:
    """A join that pairs rows of different units, after both sides were truncated by unit and then by key (``Caps``).

    Privacy: one unit adds or takes away at most ``spread_rows`` rows. Why: truncated, it has at most a rows on the
    left. One row more or less changes a side truncated by key by two rows at most (it comes, and another goes). So the
    left side changes by 2a rows, each of which pairs with at most k′ rows of the right, which holds no more of a key;
    and likewise for b rows on the right. One side after the other, old and new pairs differ by at most
    2a·k′ + 2b·k rows.
    """
    caps = relation.caps
    if caps is None or relation.kind is not JoinKind.INNER:
        ours, theirs = left.unit, right.unit
        raise UnitLost(
            f"This join would pair rows of different units. Add ON {_qualified(ours)} = {_qualified(theirs)}, or "
            "declare max_frequency for the join columns in the codebook and use a plain JOIN. Nothing was charged."
        )
    one, two = caps
    if one.unit not in left.units or two.unit not in right.units or not relation.on:
        raise InternalError("A truncation that is not by unit.")
    spread = 2 * one.rows * two.frequency + 2 * two.rows * one.frequency
    return Known(columns=columns, owner=Owner.MIXED, spread_rows=spread)


def _qualified(unit: Expression | None) -> str:
    return f"{unit.table}.{unit.name}" if isinstance(unit, Column) else str(unit)


def _within_unit(source: Known, expressions: Sequence[Expression], what: str) -> None:
    """Refuse what would look at rows of several units."""
    _check_owners(source)
    if source.owner is Owner.NOBODY or any(expression in source.units for expression in expressions):
        return
    if source.owner is Owner.ROW:
        raise UnitLost(f"Each row is its own unit, so {what} would look at several units. Nothing was charged.")
    raise UnitLost(f"{what} would look at several units. Add {source.unit} to it. Nothing was charged.")


def _per_unit(relation: PerUnit, source: Known) -> Known:
    keys = [expression for _, expression in relation.keys]
    _within_unit(source, keys, "A GROUP BY inside the question")
    columns = {Column(relation.name, name, key.type): facts_of(key, source) for name, key in relation.keys}
    for name, compute in relation.features:
        columns[Column(relation.name, name, compute.type)] = _feature(compute, source)
    units = tuple(Column(relation.name, name, key.type) for name, key in relation.keys if key in source.units)
    return replace(source, columns=columns, units=units, limits=_grouped(source, keys))


def _grouped(source: Known, keys: Sequence[Expression]) -> Limits:
    """One row a unit if it alone is the key; else as many as before, one in each group."""
    if all(key in source.units for key in keys):
        return Limits(max_rows=1)
    if source.limits.max_rows is not None or source.owner is Owner.NOBODY:
        return source.limits
    return replace(source.limits, max_rows_per_group=1)


def _feature(compute: Compute, source: Known) -> ColumnFacts:
    """What is known of a feature. The rows that count are those that the limits allow, for want of better knowledge."""
    rows = Fraction(most_rows(source.limits))
    public = source.owner is Owner.NOBODY
    facts = ColumnFacts() if compute.argument is None else facts_of(compute.argument, source)
    match compute.feature:
        case Feature.COUNT | Feature.COUNT_DISTINCT | Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
            high = None if public else rows
            return ColumnFacts(nullable=False, low=Fraction(0), high=high, resolution=Fraction(1))
        case Feature.SUM if facts.low is not None and facts.high is not None and not public:
            low, high = min(facts.low, facts.low * rows), max(facts.high, facts.high * rows)
            return ColumnFacts(nullable=True, low=low, high=high, resolution=facts.resolution)
        case Feature.MIN | Feature.MAX | Feature.LAG | Feature.LEAD:
            return _perhaps_missing(replace(facts, constant=False))
        case Feature.MEAN | Feature.MEDIAN:
            return ColumnFacts(nullable=True, low=facts.low, high=facts.high)
        case Feature.ANY | Feature.ALL:
            return ColumnFacts(nullable=True, keys=(False, True, None))
    return ColumnFacts()


def _window(relation: Window, source: Known) -> Known:
    _within_unit(source, relation.parts, "A window")
    columns = dict(source.columns)
    for name, compute in relation.features:
        columns[Column(relation.name, name, compute.type)] = _feature(compute, source)
    return replace(source, columns=columns)


def _distinct(source: Known) -> Known:
    _within_unit(source, list(source.columns), "DISTINCT inside the question")
    return source


def _union(relation: Union, sources: Sequence[Known]) -> Known:
    """Branch by branch, column by column: what holds for a column holds in every branch."""
    _check_owners(*sources)
    owners = {source.owner for source in sources}
    if len(owners) != 1:
        raise UnitLost("UNION ALL mixes private rows and public ones. Ask about each by itself. Nothing was charged.")
    if owners == {Owner.ROW}:
        raise UnitLost(
            "Each row is its own unit, so a union could count one twice. Declare a unit in the codebook. "
            "Nothing was charged."
        )
    width = len(relation.sources[0].columns)
    columns, units = {}, []
    for i in range(width):
        name, expression = relation.sources[0].columns[i]
        column = Column(relation.name, name, expression.type)
        parts = [
            source.facts(Column(branch.name, branch.columns[i][0], branch.columns[i][1].type))
            for branch, source in zip(relation.sources, sources)
        ]
        columns[column] = reduce(_either, parts)
        if all(
            Column(branch.name, branch.columns[i][0], branch.columns[i][1].type) in source.units
            for branch, source in zip(relation.sources, sources)
        ):
            units.append(column)
    (owner,) = owners
    if owner is Owner.UNIT and not units:
        raise UnitLost(
            "The parts of a UNION ALL must name the unit in the same column. Select it in the same place in each. "
            "Nothing was charged."
        )
    limits = reduce(added, (source.limits for source in sources))
    return Known(columns=columns, owner=owner, units=tuple(units), limits=limits)


def _either(one: ColumnFacts, two: ColumnFacts) -> ColumnFacts:
    """What holds whichever branch a row is from."""
    keys = None
    if one.keys is not None and two.keys is not None:
        keys = tuple(sorted({*one.keys, *two.keys}, key=lambda value: (value is None, value)))
    return ColumnFacts(
        nullable=one.nullable or two.nullable,
        low=None if one.low is None or two.low is None else min(one.low, two.low),
        high=None if one.high is None or two.high is None else max(one.high, two.high),
        keys=keys,
        resolution=one.resolution if one.resolution == two.resolution else None,
    )
