"""What is known of a relation without reading the data: to whom its rows belong, and what its columns hold.

There is one small rule for each node of ``plan.relations``. The rule says when the node keeps units apart. Otherwise it
refuses the node and names the condition that is missing.

Privacy: call a private relation *local* if the rows that name a unit are a function of the rows that this unit has in
the tables, of public rows, and of the secret order. Tables are local (``plan.reach``). Each rule keeps relations local:
conditions and new columns read one row; a join of two private relations pairs rows of the same unit only; a join with a
public relation pairs a private row with public rows; features, windows, DISTINCT and caps read rows of one unit; a
union has the rows of its parts. ``contributions`` needs a local relation and nothing more.
A join that does not equate units is allowed only where both sides were truncated. Then the relation is *mixed*, and the
number of its rows that one unit can change is known (``spread_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, reduce
from typing import assert_never

from discreet.bounding.facts import facts_of, narrow_columns
from discreet.bounding.fan_out import (
    ONE_ROW,
    FanOut,
    PairedSide,
    Pairing,
    add_parts,
    bound_rows,
    check_rows,
    count_matches,
    pair_private,
    pair_public,
)
from discreet.bounding.lengths import check_texts, sum_lengths
from discreet.bounding.limits import add_limits, find_reference, have_key, limit_pairs, most_rows
from discreet.bounding.shape import check_shape
from discreet.errors import InternalError, UnitLost, UsageError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits
from discreet.plan.expressions import Column, Expression
from discreet.plan.functions import make_call
from discreet.plan.reach import reach
from discreet.plan.relations import (
    Capped,
    Distinct,
    Feature,
    FeatureCall,
    Join,
    JoinKind,
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


class Owner(StrEnum):
    """To whom the rows of a relation belong."""

    NOBODY = "nobody"  # public
    ROW = "row"  # each row is its own unit
    UNIT = "unit"  # each row names its unit
    MIXED = "mixed"  # rows of several units were joined, after truncation
    LOST = "lost"  # private rows that do not name their unit


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFacts:
    """What is known of a relation.

    ``units`` are expressions that give the unit of each row. All are equal, and the first is used for bounding.
    ``limits`` say how many rows of a unit a question may use. ``stored_text`` is how many code points of text the rows
    of the tables below may hold together (``lengths``). ``rows`` says how many rows a unit may have (``fan_out``), and
    ``single`` names the relations below of which it has no row twice. ``spread_rows`` is set where rows of units are
    mixed: one unit adds or takes away at most so many rows.
    """

    columns: Mapping[Column, ColumnFacts]
    owner: Owner
    units: tuple[Expression, ...] = ()
    limits: ContributionLimits = field(default_factory=ContributionLimits)
    stored_text: int = 0
    rows: FanOut = field(default_factory=FanOut)
    single: frozenset[str] = frozenset()
    spread_rows: int | None = None

    @property
    def private(self) -> bool:
        return self.owner is not Owner.NOBODY

    @property
    def unit(self) -> Expression | None:
        return self.units[0] if self.units else None

    def find_facts(self, column: Column) -> ColumnFacts:
        """The facts of a column."""
        return self.columns[column]


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
            return _facts_of_join(relation, *sources, catalog=catalog)
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


def _facts_of_join(relation: Join, left: RelationFacts, right: RelationFacts, *, catalog: Catalog) -> RelationFacts:
    if left.owner is Owner.LOST and isinstance(relation.left, Scan):
        return _facts_of_link(relation, relation.left, left, right, catalog)
    _check_owners(left, right)
    if relation.single and right.private:
        raise InternalError("Only a public relation can be a look-up.")
    if relation.caps is not None and not (left.private and right.private):
        raise UnitLost(TRUNCATED)
    columns = _join_columns(relation.kind, left, right)
    if left.private and right.private:
        return _join_private(relation, left, right, columns, catalog)
    if left.private or right.private:
        private, side = (left, JoinKind.LEFT) if left.private else (right, JoinKind.RIGHT)
        facts = _join_public(relation, private, columns, private_side=side)
        pairing = pair_sides(relation, left, right, catalog)
        return replace(facts, rows=pairing.rows, single=_find_single(pairing, left, right))
    return RelationFacts(columns=columns, owner=Owner.NOBODY)


def pair_sides(relation: Join, left: RelationFacts, right: RelationFacts, catalog: Catalog) -> Pairing:
    """How many rows a join makes of a unit's rows, and how its private sides have to be capped."""
    if left.private and right.private:
        sides = (_find_side(relation, i, (left, right), catalog) for i in (0, 1))
        return pair_private(relation.kind, *sides)
    private, public = (left, 1) if left.private else (right, 0)
    other = (relation.left, relation.right)[public]
    unique = any(facts_of(pair[public], (left, right)[public]).unique for pair in relation.on)
    once = unique or relation.single or relation.kind in (JoinKind.SEMI, JoinKind.ANTI)
    matches = 1 if once else count_matches(relation, other, public, catalog)
    found = pair_public(PairedSide(private.rows, most_rows(private.limits)), matches)
    return found if public else found.exchange()


def _find_single(pairing: Pairing, left: RelationFacts, right: RelationFacts) -> frozenset[str]:
    """The relations of which a unit has no row twice in a join."""
    found = (side.single if once else frozenset[str]() for side, once in zip((left, right), pairing.once))
    return frozenset[str]().union(*found)


def _find_side(relation: Join, i: int, sides: tuple[RelationFacts, RelationFacts], catalog: Catalog) -> PairedSide:
    """A private side of a join of private rows on the unit."""
    ours, theirs, side = (relation.left, relation.right)[i], (relation.left, relation.right)[1 - i], sides[i]
    on = [pair[i] for pair in relation.on]
    capped = isinstance(ours, Capped) and ours.rows == 1 and all(e in on or e in side.units for e in ours.by)
    grouped = isinstance(ours, PerUnit) and all(
        Column(ours.name, name, key.type) in (*on, *side.units) for name, key in ours.keys
    )
    declared = most_rows(side.limits)
    alone = all(pair[0] in sides[0].units and pair[1] in sides[1].units for pair in relation.on)
    single: tuple[Expression, ...] | None = () if alone and declared == 1 else None
    reference = find_reference([(pair[1 - i], pair[i]) for pair in relation.on], theirs, ours, catalog)
    if reference and all(mine.table in side.single for _, mine in reference):
        single = tuple(mine for _, mine in reference)
    return PairedSide(side.rows, declared, once=capped or grouped or side.rows.most == 1, single=single)


def _facts_of_link(
    relation: Join, scan: Scan, left: RelationFacts, right: RelationFacts, catalog: Catalog
) -> RelationFacts:
    """The facts of a linked table: each row has the unit of the row that its declared foreign key refers to.

    Any other join of such a table is refused, such as one on some of the columns of a foreign key.
    """
    if relation != reach(scan.table, catalog, scan.alias).relation:
        raise UnitLost(NO_UNIT)
    return RelationFacts(
        columns=_join_columns(relation.kind, left, right),
        owner=Owner.UNIT,
        units=right.units,
        limits=left.limits,
        single=frozenset({scan.name}),
    )


NO_UNIT = (
    "These rows no longer say whose they are. Keep the column that names the unit in the subquery. Nothing was charged."
)


TRUNCATED = (
    "Rows are truncated by the values of a join only where both sides are private and units are not kept together: "
    "else whether a row remains would depend on other units. Nothing was charged."
)


def _check_owners(*sides: RelationFacts) -> None:
    for side in sides:
        if side.owner is Owner.LOST:
            raise UnitLost(NO_UNIT)
        if side.owner is Owner.MIXED:
            raise UnitLost(
                "A join that does not keep units together can be aggregated, and nothing else: no further join, "
                "grouping or window. Join on the unit first. Nothing was charged."
            )


def _join_columns(kind: JoinKind, left: RelationFacts, right: RelationFacts) -> dict[Column, ColumnFacts]:
    """The columns of both sides. A side that may be missing may be NULL, and no column is known to be unique."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return dict(left.columns)
    columns = {}
    for side, missing in ((left, (JoinKind.RIGHT, JoinKind.FULL)), (right, (JoinKind.LEFT, JoinKind.FULL))):
        for column, facts in side.columns.items():
            columns[column] = _make_nullable(facts) if kind in missing else replace(facts, unique=False)
    return columns


def _make_nullable(facts: ColumnFacts) -> ColumnFacts:
    keys = facts.keys
    if keys is not None and None not in keys:
        keys = (*keys, None)
    return replace(facts, nullable=True, keys=keys, unique=False)


def _join_public(
    relation: Join, private: RelationFacts, columns: Mapping[Column, ColumnFacts], *, private_side: JoinKind
) -> RelationFacts:
    """The facts of a join of private rows with public ones.

    Joins that keep unmatched public rows are refused: such a row belongs to nobody, and it would show that nobody
    matches it.
    """
    allowed = {JoinKind.INNER, private_side} | (
        {JoinKind.SEMI, JoinKind.ANTI} if private_side is JoinKind.LEFT else set()
    )
    if relation.kind not in allowed:
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


def _join_private(
    relation: Join, left: RelationFacts, right: RelationFacts, columns: Mapping[Column, ColumnFacts], catalog: Catalog
) -> RelationFacts:
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
        return _mix_units(relation, left, right, columns)
    if relation.caps is not None:
        raise UnitLost(TRUNCATED)
    pairing = pair_sides(relation, left, right, catalog)
    # Where no row of the left side is in two pairs, the join has no more rows than that side.
    met_once = relation.kind in (JoinKind.INNER, JoinKind.LEFT) and pairing.once[0]
    limits = left.limits if met_once else limit_pairs(relation, left.limits, right.limits, catalog)
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
            units = (make_call("coalesce", ours, theirs),)
        case _:
            assert_never(relation.kind)
    single = _find_single(pairing, left, right)
    return RelationFacts(
        columns=columns, owner=Owner.UNIT, units=units, limits=limits, rows=pairing.rows, single=single
    )


def _mix_units(
    relation: Join, left: RelationFacts, right: RelationFacts, columns: Mapping[Column, ColumnFacts]
) -> RelationFacts:
    """A join that pairs rows of different units, after both sides were truncated by unit and then by key (``Caps``).

    Privacy: one unit adds or takes away at most ``spread_rows`` rows. Why: after the truncation by unit it has at most
    a rows on the left. One row more or less changes a side that is truncated by key by at most two rows: the row itself
    comes, and another row of its key goes. So the left side changes by at most 2a rows. Each of them pairs with at most
    k′ rows of the right side, which has no more rows of one key. The same holds for the unit's b rows on the right and
    k rows of one key on the left. If first one side changes and then the other, old and new pairs differ by at most
    2a·k′ + 2b·k rows. Half of them come and half of them go, at most: of the 2a rows a come and a go, and so on.
    """
    caps = relation.caps
    if caps is None or relation.kind is not JoinKind.INNER:
        ours, theirs = left.unit, right.unit
        raise UnitLost(
            "This join would pair rows of different units. "
            f"Add ON {_write_qualified(ours)} = {_write_qualified(theirs)}, or "
            "declare max_frequency for the join columns in the codebook and use a plain JOIN. Nothing was charged."
        )
    one, two = caps
    if one.unit not in left.units or two.unit not in right.units or not relation.on:
        raise InternalError("A truncation that is not by unit.")
    spread = 2 * one.rows * two.frequency + 2 * two.rows * one.frequency
    return RelationFacts(columns=columns, owner=Owner.MIXED, spread_rows=spread)


def _write_qualified(unit: Expression | None) -> str:
    return f"{unit.table}.{unit.name}" if isinstance(unit, Column) else str(unit)


def _check_within_unit(source: RelationFacts, expressions: Sequence[Expression], what: str) -> None:
    """Refuse a node that would read rows of several units at once."""
    _check_owners(source)
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
            return _make_nullable(replace(facts, constant=False))
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
    _check_owners(source)
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
