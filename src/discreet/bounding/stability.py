"""What is known of a relation without reading the data: to whom its rows belong, and what its columns hold.

There is one small rule for each node of ``plan.relations``. The rule says when the node keeps units apart. Otherwise it
refuses the node and names the condition that is missing.

Privacy: call a private relation *local* if the rows that name a unit are a function of the rows that this unit has in
the tables, of public rows, and of the secret order. Tables are local (``plan.reach``). Each rule keeps relations local:
conditions and new columns read one row; a join of two private relations pairs rows of the same unit only; a join with a
public relation pairs a private row with public rows; features, windows, DISTINCT and caps read rows of one unit; a
union has the rows of its parts. ``contributions`` needs a local relation and nothing more.
A join that does not equate units is allowed only where both sides were truncated. Then the relation is *mixed*, and the
number of its rows that one unit can change is known (``spread_rows``). The rules for joins are in ``join_facts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import assert_never

from discreet.bounding.facts import facts_of, narrow_columns
from discreet.bounding.fan_out import (
    ONE_ROW,
    FanOut,
    add_parts,
    bound_rows,
    check_rows,
)
from discreet.bounding.join_facts import facts_of_join
from discreet.bounding.lengths import check_texts, sum_lengths
from discreet.bounding.limits import add_limits, have_key, most_rows
from discreet.bounding.relation_facts import Owner, RelationFacts, check_owners, make_nullable
from discreet.bounding.shape import check_shape
from discreet.errors import InternalError, UnitLost, UsageError
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import (
    Capped,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
    inputs_of,
)
from discreet.plan.types import Type, Value, sort_values


def find_relation_facts(relation: Relation, catalog: Catalog) -> RelationFacts:
    """What is known of a relation, computed from its inputs. Raises ``UnitLost`` where it does not keep units apart."""
    sources = [find_relation_facts(source, catalog) for source in inputs_of(relation)]
    check_shape(relation, *(source.columns for source in sources))
    stored = sum(source.stored_text for source in sources)
    check_texts(relation, [source.columns for source in sources], stored)
    facts = _apply_rule(relation, sources, catalog)
    check_rows(facts.rows, catalog.max_joined_rows)
    return replace(facts, stored_text=stored if sources else sum_lengths(facts.columns))


def _apply_rule(relation: Relation, sources: Sequence[RelationFacts], catalog: Catalog) -> RelationFacts:
    match relation:
        case Scan():
            return _facts_of_scan(relation, catalog)
        case Values():
            return _facts_of_values(relation)
        case Where():
            source = sources[0]
            return replace(source, columns=narrow_columns(source.columns, relation.condition, source))
        case Projection():
            return _facts_of_projection(relation, sources[0])
        case Join():
            return facts_of_join(relation, *sources, catalog=catalog)
        case PerUnit():
            return _facts_of_per_unit(relation, sources[0], catalog)
        case Window():
            return _facts_of_window(relation, sources[0])
        case Distinct():
            return _facts_of_distinct(sources[0])
        case Capped():
            return _facts_of_capped(relation, sources[0])
        case Union():
            return _facts_of_union(relation, sources)
        case _:
            assert_never(relation)


def _facts_of_scan(relation: Scan, catalog: Catalog) -> RelationFacts:
    table = catalog.tables.get(relation.table)
    if table is None:
        raise UsageError(f"There is no declared table {relation.table!r}. Nothing was charged.")
    names = {other.unit.column for other in catalog.tables.values() if not other.public} - {None}
    if len(names) > 1:
        raise InternalError("Private tables of one dataset protect different units.")
    columns = {Column(relation.name, name, kind): facts for name, (kind, facts) in table.columns.items()}
    if table.public:
        return RelationFacts(columns=columns, owner=Owner.NOBODY)
    unit = table.unit_column
    if unit is not None:
        return RelationFacts(
            columns=columns,
            owner=Owner.UNIT,
            units=(Column(relation.name, unit.name, unit.type),),
            limits=table.limits,
            single=frozenset({relation.name}),
        )
    # A linked table gets its unit by the join that ``plan.reach`` adds.
    owner = Owner.ROW if table.unit.column is None else Owner.LOST
    rows = ONE_ROW if owner is Owner.ROW else FanOut()
    return RelationFacts(columns=columns, owner=owner, limits=table.limits, rows=rows)


@lru_cache(maxsize=16)
def _facts_of_values(relation: Values) -> RelationFacts:
    """The facts of public rows, read from the rows themselves.

    Rows may be many, and every relation above asks again, so the result is cached.
    """
    columns = {
        Column(relation.name, name, kind): _observe_values([row[i] for row in relation.rows], kind)
        for i, (name, kind) in enumerate(relation.columns)
    }
    return RelationFacts(columns=columns, owner=Owner.NOBODY)


def _observe_values(values: Sequence[Value], kind: Type) -> ColumnFacts:
    distinct = sort_values(set(values))
    texts = kind is Type.TEXT
    numbers = [value for value in distinct if isinstance(value, int | float) and kind.is_number]
    return ColumnFacts(
        nullable=None in distinct,
        low=Fraction(numbers[0]) if numbers else None,  # they are sorted
        high=Fraction(numbers[-1]) if numbers else None,
        keys=distinct,
        resolution=Fraction(1) if kind is Type.INTEGER else None,
        unique=len(distinct) == len(values),
        max_length=max((len(value) for value in values if isinstance(value, str)), default=0) if texts else None,
    )


def _facts_of_projection(relation: Projection, source: RelationFacts) -> RelationFacts:
    columns = {
        Column(relation.name, name, expression.type): facts_of(expression, source)
        for name, expression in relation.columns
    }
    units = tuple(
        Column(relation.name, name, expression.type)
        for name, expression in relation.columns
        if expression in source.units
    )
    owner = Owner.LOST if source.owner is Owner.UNIT and not units else source.owner
    return replace(source, columns=columns, units=units, owner=owner, single=frozenset())


def _check_within_unit(source: RelationFacts, expressions: Sequence[Expression], what: str) -> None:
    """Refuse a node that would read rows of several units at once."""
    check_owners(source)
    if source.owner is Owner.NOBODY or any(expression in source.units for expression in expressions):
        return
    if source.owner is Owner.ROW:
        raise UnitLost(f"Each row is its own unit, so {what} would look at several units. Nothing was charged.")
    raise UnitLost(f"{what} would look at several units. Add {source.unit} to it. Nothing was charged.")


def _facts_of_per_unit(relation: PerUnit, source: RelationFacts, catalog: Catalog) -> RelationFacts:
    keys = [expression for _, expression in relation.keys]
    _check_within_unit(source, keys, "A GROUP BY inside the question")
    columns = {Column(relation.name, name, key.type): facts_of(key, source) for name, key in relation.keys}
    for name, call in relation.features:
        columns[Column(relation.name, name, call.type)] = _facts_of_feature(call, source)
    units = tuple(Column(relation.name, name, key.type) for name, key in relation.keys if key in source.units)
    alone = bool(keys) and all(key in source.units for key in keys)
    rows = ONE_ROW if alone else source.rows
    keyed = have_key([key for key in keys if key not in source.units], relation.source, catalog)
    limits = source.limits if keyed else _limits_of_groups(source, keys)
    return replace(source, columns=columns, units=units, limits=limits, rows=rows, single=frozenset())


def _limits_of_groups(source: RelationFacts, keys: Sequence[Expression]) -> ContributionLimits:
    """The limits after grouping: one row for each unit if the unit is the only key, else one row in each group."""
    if all(key in source.units for key in keys):
        return ContributionLimits(max_rows=1)
    if source.limits.max_rows is not None or source.owner is Owner.NOBODY:
        return source.limits
    return replace(source.limits, max_rows_per_group=1)


def _facts_of_feature(call: FeatureCall, source: RelationFacts) -> ColumnFacts:
    """The facts of a feature. Its bounds assume that a unit has no more rows than the limits allow."""
    rows = Fraction(most_rows(source.limits))
    public = source.owner is Owner.NOBODY
    facts = ColumnFacts() if call.argument is None else facts_of(call.argument, source)
    match call.feature:
        case Feature.COUNT | Feature.COUNT_DISTINCT | Feature.ROW_NUMBER | Feature.RANK | Feature.DENSE_RANK:
            high = None if public else rows
            return ColumnFacts(nullable=False, low=Fraction(0), high=high, resolution=Fraction(1))
        case Feature.SUM:
            if facts.low is None or facts.high is None or public:
                return ColumnFacts()
            low, high = min(facts.low, facts.low * rows), max(facts.high, facts.high * rows)
            return ColumnFacts(nullable=True, low=low, high=high, resolution=facts.resolution)
        case Feature.MIN | Feature.MAX | Feature.LAG | Feature.LEAD:
            return make_nullable(replace(facts, constant=False))
        case Feature.MEAN | Feature.MEDIAN:
            return ColumnFacts(nullable=True, low=facts.low, high=facts.high)
        case Feature.ANY | Feature.ALL:
            return ColumnFacts(nullable=True, keys=(False, True, None))
        case _:
            assert_never(call.feature)


def _facts_of_window(relation: Window, source: RelationFacts) -> RelationFacts:
    _check_within_unit(source, relation.parts, "A window")  # a frame reads fewer rows of the same part
    columns = dict(source.columns)
    for name, call in relation.features:
        columns[Column(relation.name, name, call.type)] = _facts_of_feature(call, source)
    return replace(source, columns=columns)


def _facts_of_capped(relation: Capped, source: RelationFacts) -> RelationFacts:
    """The facts of a relation of which some rows of each unit remain.

    Privacy: it stays local. Why: the unit is one of ``by``, so rows are compared with rows of their own unit only, in
    an order that follows from their values and the salt.
    """
    check_owners(source)
    if source.owner is not Owner.UNIT or not relation.by or relation.by[0] not in source.units:
        raise UnitLost("A cap on rows that does not keep units apart. Cap the rows of each unit. Nothing was charged.")
    if any(expression not in source.units for expression in relation.by):
        return source
    counted = source.rows.most
    most = relation.rows if counted is None else min(relation.rows, counted)
    return replace(source, rows=bound_rows(most))


def _facts_of_distinct(source: RelationFacts) -> RelationFacts:
    _check_within_unit(source, list(source.columns), "DISTINCT inside the question")
    return source


def _facts_of_union(relation: Union, sources: Sequence[RelationFacts]) -> RelationFacts:
    """The facts of a union. A fact holds for a column if it holds in every branch."""
    check_owners(*sources)
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
            source.find_facts(Column(branch.name, branch.columns[i][0], branch.columns[i][1].type))
            for branch, source in zip(relation.sources, sources)
        ]
        columns[column] = reduce(_merge_facts, parts)
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
    limits = reduce(add_limits, (source.limits for source in sources))
    rows = add_parts([source.rows for source in sources])
    return RelationFacts(columns=columns, owner=owner, units=tuple(units), limits=limits, rows=rows)


def _merge_facts(one: ColumnFacts, two: ColumnFacts) -> ColumnFacts:
    """The facts that hold in both branches."""
    keys = None
    if one.keys is not None and two.keys is not None:
        keys = sort_values({*one.keys, *two.keys})
    return ColumnFacts(
        nullable=one.nullable or two.nullable,
        low=None if one.low is None or two.low is None else min(one.low, two.low),
        high=None if one.high is None or two.high is None else max(one.high, two.high),
        keys=keys,
        resolution=one.resolution if one.resolution == two.resolution else None,
        max_length=None if one.max_length is None or two.max_length is None else max(one.max_length, two.max_length),
        max_values=None if one.max_values is None or two.max_values is None else one.max_values + two.max_values,
    )
