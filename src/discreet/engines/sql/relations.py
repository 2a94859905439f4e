"""Relations in SQL: one common table expression for each node of ``plan.relations``, innermost first.

Every column of every node gets a name of its own (c1, c2 …), and only columns that are read above are carried along.
Texts are bound, names from codebooks are quoted, and nothing else that anybody wrote becomes part of a statement.
What a relation holds is a function of the values in its tables: where rows are chosen or numbered, a keyed hash of all
their values decides and then these values themselves, so only equal rows are ever tied.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, assert_never

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.sql import per_unit
from discreet.engines.sql.caps import write_capped
from discreet.engines.sql.clauses import Clauses, CommonTable
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.joins import write_join
from discreet.engines.sql.layers import Layers
from discreet.engines.sql.links import drop_link
from discreet.engines.sql.repeated_keys import KnownRepeats, Repeats, ScanPart, add_alone, know_nothing
from discreet.engines.sql.row_origins import follow_link, trace_rows, trace_values
from discreet.engines.sql.statement import RowSource
from discreet.engines.sql.sunk_conditions import StoredValue, sink_conditions, write_stored
from discreet.engines.sql.unit_groups import write_groups
from discreet.engines.sql.windows import write_window
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import load_arrow_types
from discreet.plan.catalog import Catalog
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Column, Expression, find_columns
from discreet.plan.functions import find_common_type
from discreet.plan.relations import (
    Capped,
    Distinct,
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
    split,
)
from discreet.plan.types import Type, Value, type_of

# So many caps inside each other are written in two parts each: what is written doubles with each of them.
DEEPEST_PARTS = 3


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A declared table as it is stored: what to write after FROM, and the SQL of each declared column.

    ``values`` are columns that can be compared as they are stored. ``unit`` is the SQL of the unit of each row, where a
    table that reaches it by a foreign key carries it: then its rows are those of the table joined to its units.
    """

    source: str
    columns: Mapping[str, str]
    values: Mapping[str, StoredValue] = field(default_factory=dict)
    unit: str = ""


def rows_of(
    bounded: BoundedPlan,
    catalog: Catalog,
    tables: Callable[[str], StoredTable],
    dialect: Dialect,
    salt: bytes,
    *,
    repeats: KnownRepeats = know_nothing,
    count_public: Callable[[str, tuple[str, ...]], int] | None = None,
) -> tuple[RowSource, list[Values]]:
    """The rows that a question reads, for ``statement.BoundedStatement``, and the public rows to fill in: values0 …

    ``count_public`` says how many rows of a public table have the same values of some columns, at most.
    """
    base, conditions = split(bounded.source)
    writer = Writer(catalog, tables, salt, Clauses(dialect), repeats, count_public)
    sunk, left = sink_conditions(base, conditions, writer.is_unique)
    top, clauses = writer.write(sunk, find_read_columns(bounded)), writer.clauses
    ordinal = ""
    if bounded.unit is not None:
        layers = clauses.make_layers(top)
        integer = dialect.code(layers.write_value(bounded.unit), bounded.unit.type)
        if integer is not None:
            ordinal = clauses.make_name("o")
            items = [*top.columns.values(), f"{integer} AS {ordinal}"]
            top = CommonTable(clauses.add(items, clauses.add_layers(layers, top)), top.columns)
    source = f"(WITH {', '.join(clauses.written)} SELECT * FROM {top.name}) AS base"
    tested = frozenset(conditions) - frozenset(left)
    return RowSource(source, top.columns, {}, ordinal=ordinal, texts=clauses.texts, tested=tested), writer.values


def name_of_values(position: int) -> str:
    """The name of the table that public rows of a question are filled into."""
    return f"values{position}"


def to_values_table(relation: Values) -> Any:
    """Public rows as an Arrow table of columns v0 …; what is not of a column's type is NULL."""
    import pyarrow as pa

    kinds = load_arrow_types()
    return pa.table(
        {
            f"v{i}": pa.array([_to_type(row[i], kind) for row in relation.rows], kinds[kind])
            for i, (_, kind) in enumerate(relation.columns)
        }
    )


def _to_type(value: Value, kind: Type) -> Value:
    given = type_of(value)
    if kind is Type.DATE and isinstance(value, dt.datetime):
        return value.date()
    return settle(value, kind) if given is not None and find_common_type((given, kind)) is kind else None


def find_read_columns(bounded: BoundedPlan) -> frozenset[Column]:
    """Every column that a question reads of the relation below its conditions."""
    measured = (measure.argument for measure in bounded.measures)
    spread = (spread.argument for spread in bounded.spreads)
    found = (bounded.unit, *bounded.keys, *measured, *spread, *split(bounded.source)[1])
    return _find_all_columns(expression for expression in found if expression is not None)


def columns_of(relation: Relation, catalog: Catalog) -> tuple[Column, ...]:
    """All columns of a relation, in one order for ever: by the name of what defines them, and their own."""
    return tuple(sorted(_list_columns(relation, catalog), key=lambda column: (column.table, column.name)))


def _list_columns(relation: Relation, catalog: Catalog) -> list[Column]:
    match relation:
        case Scan():
            declared = catalog.tables[relation.table].columns.items()
            return [Column(relation.name, name, kind) for name, (kind, _) in declared]
        case Values():
            return [Column(relation.name, name, kind) for name, kind in relation.columns]
        case Where() | Distinct() | Capped():
            return _list_columns(relation.source, catalog)
        case Projection():
            return [Column(relation.name, name, value.type) for name, value in relation.columns]
        case Join():
            left, right = _list_columns(relation.left, catalog), _list_columns(relation.right, catalog)
            return left if relation.kind in (JoinKind.SEMI, JoinKind.ANTI) else left + right
        case PerUnit():
            keys = [Column(relation.name, name, key.type) for name, key in relation.keys]
            return keys + [Column(relation.name, name, compute.type) for name, compute in relation.features]
        case Window():
            new = [Column(relation.name, name, compute.type) for name, compute in relation.features]
            return _list_columns(relation.source, catalog) + new
        case Union():
            return [Column(relation.name, name, value.type) for name, value in relation.sources[0].columns]
        case _:
            assert_never(relation)


def _find_all_columns(expressions: Iterable[Expression]) -> frozenset[Column]:
    return frozenset(column for expression in expressions for column in find_columns(expression))


@dataclass(slots=True)
class Writer:
    """Writes relations, each from what it is made of, and remembers the public rows that have to be filled in."""

    catalog: Catalog
    tables: Callable[[str], StoredTable]
    salt: bytes
    clauses: Clauses
    repeats: KnownRepeats = know_nothing
    count_public: Callable[[str, tuple[str, ...]], int] | None = None
    values: list[Values] = field(default_factory=list)
    parts: dict[str, tuple[ScanPart, Repeats]] = field(default_factory=dict)

    def write(self, relation: Relation, needed: Set[Column]) -> CommonTable:
        """A relation with the columns that are needed of it. Two columns of one name would be read for each other."""
        if len(set(own := columns_of(relation, self.catalog))) < len(own):
            raise InternalError("Two columns of one relation have the same name.")
        match relation:
            case Scan():
                return self._write_scan(relation, needed)[0]
            case Values():
                return self._write_values(relation, needed)
            case Where():
                return self._write_filter(relation, needed)
            case Projection():
                return self._write_derive(relation, needed)
            case Join():
                return self._write_join(relation, needed)
            case PerUnit():
                return self._write_per_unit(relation, needed)
            case Window():
                return self._write_window(relation, needed)
            case Distinct():
                return self._write_distinct(relation)
            case Capped():
                return self._write_capped(relation, needed)
            case Union():
                return self._write_union(relation, needed)
            case _:
                assert_never(relation)

    def _list_all(self, relation: Relation) -> tuple[Column, ...]:
        return columns_of(relation, self.catalog)

    def _write_scan(
        self, relation: Scan, needed: Set[Column], conditions: Sequence[Expression] = ()
    ) -> tuple[CommonTable, list[Expression]]:
        """A scan, under those conditions that can be tested of values as they are stored; and the other conditions."""
        table = self.tables(relation.table)
        part, known = self.parts.get(relation.name, (None, None))
        own = self._list_all(relation)
        compared = known.columns if known is not None and part is not ScanPart.REPEATED else ()
        wanted = [column for column in own if column in needed or column.name in compared]
        if known is not None and part is ScanPart.REPEATED:
            names = {c: self.clauses.dialect.quote_name(c.name) for c in wanted}
            return self.clauses.add_named(names, known.rows), list(conditions)
        layers = Layers({}, self.clauses.dialect, self.clauses.texts)
        values = {column: table.values[column.name] for column in own if column.name in table.values}
        forms = {condition: write_stored(condition, values, layers) for condition in conditions}
        tested = " AND ".join(form for form in forms.values() if form is not None)
        names = {column: table.columns[column.name] for column in wanted}
        found = self.clauses.add_named(names, table.source, f" WHERE {tested}" if tested else "")
        if known is not None:
            keys = {column.name: (name, column.type) for column, name in found.columns.items()}
            name = add_alone(self.clauses, found.name, keys, known)
            found = CommonTable(name, found.pick_columns(needed))
        return found, [condition for condition, form in forms.items() if form is None]

    def _write_values(self, relation: Values, needed: Set[Column]) -> CommonTable:
        self.values.append(relation)
        own = [Column(relation.name, name, kind) for name, kind in relation.columns]
        wanted = {column: f"v{i}" for i, column in enumerate(own) if column in needed}
        return self.clauses.add_named(wanted, name_of_values(len(self.values) - 1))

    def _write_filter(self, relation: Where, needed: Set[Column]) -> CommonTable:
        base, conditions = split(relation)
        if not isinstance(base, Scan):
            base, left = sink_conditions(base, conditions, self.is_unique)
            return self._add_conditions(self.write(base, needed | _find_all_columns(left)), left, needed)
        found, rest = self._write_scan(base, needed | _find_all_columns(conditions), conditions)
        return self._add_conditions(found, rest, needed)

    def _add_conditions(
        self, source: CommonTable, conditions: Sequence[Expression], needed: Set[Column]
    ) -> CommonTable:
        for condition in conditions:
            layers = self.clauses.make_layers(source)
            written = layers.write_value(condition)
            top = self.clauses.add_layers(layers, source)
            name = self.clauses.add(source.columns.values(), top, f" WHERE {written}")
            source = CommonTable(name, source.columns)
        return CommonTable(source.name, source.pick_columns(needed))

    def _write_derive(self, relation: Projection, needed: Set[Column]) -> CommonTable:
        own = {Column(relation.name, name, value.type): value for name, value in relation.columns}
        wanted = {column: value for column, value in own.items() if column in needed}
        source = self.write(relation.source, _find_all_columns(wanted.values()))
        layers = self.clauses.make_layers(source)
        items = {column: layers.write_value(value) for column, value in wanted.items()}
        return self.clauses.add_named(items, self.clauses.add_layers(layers, source))

    def _write_union(self, relation: Union, needed: Set[Column]) -> CommonTable:
        """The columns by position, under the names of the first source."""
        own = _list_columns(relation, self.catalog)
        places = [i for i, column in enumerate(own) if column in needed]
        names = {own[i]: self.clauses.make_name("c") for i in places}
        selects = []
        for branch in relation.sources:
            theirs = _list_columns(branch, self.catalog)
            if [column.type for column in theirs] != [column.type for column in own]:
                raise InternalError("The parts of a union have columns of different types.")
            source = self.write(branch, {theirs[i] for i in places})
            items = ", ".join(f"{source.columns[theirs[i]]} AS {names[own[i]]}" for i in places) or "1 AS nothing"
            selects.append(f"SELECT {items} FROM {source.name}")
        return CommonTable(self.clauses.add(["*"], f"({' UNION ALL '.join(selects)}) AS parts"), names)

    def _write_distinct(self, relation: Distinct) -> CommonTable:
        source = self.write(relation.source, frozenset(self._list_all(relation.source)))
        items = source.columns.values()
        return CommonTable(self.clauses.add(items, source.name, distinct=True), source.columns)

    def _write_keys(self, relation: Distinct, needed: Set[Column]) -> CommonTable:
        """The distinct keys of a link, which are met by inner joins alone: those with a NULL meet nothing."""
        known = self._find_repeats(relation.source, self._list_all(relation.source))
        if known is None:
            return self._write_distinct(relation)
        alone = self._write_part(*known, ScanPart.ALONE, lambda: self.write(relation.source, needed))
        return self._unite(alone, self._write_part(*known, ScanPart.REPEATED, lambda: self._write_distinct(relation)))

    def _write_capped(self, relation: Capped, needed: Set[Column]) -> CommonTable:
        known = self._find_repeats(relation.source, relation.by) if relation.rows == 1 else None

        def write(*, few: bool) -> CommonTable:
            source = self.write(relation.source, frozenset(self._list_all(relation.source)))
            return write_capped(self.clauses, relation, source, needed, self.salt, few=few)

        if known is None:
            return write(few=False)
        # Rows without a unit are dropped in the end, as everywhere.
        alone = self._write_part(*known, ScanPart.ALONE, lambda: self.write(relation.source, needed))
        return self._unite(alone, self._write_part(*known, ScanPart.REPEATED, lambda: write(few=True)))

    def _find_repeats(self, relation: Relation, columns: Sequence[Expression]) -> tuple[Scan, Repeats] | None:
        """What is known of the scan whose rows a relation has in these columns, each once at most."""
        found = trace_rows(relation, columns)
        if found is None or found[0].name in self.parts or len(self.parts) >= DEEPEST_PARTS:
            return None
        known = self.repeats(found[0].table, tuple(sorted(set(found[1]))))
        return None if known is None else (found[0], known)

    def _write_part(self, scan: Scan, known: Repeats, part: ScanPart, write: Callable[[], CommonTable]) -> CommonTable:
        """What is written where only a part of a scan is read."""
        self.parts[scan.name] = (part, known)
        try:
            return write()
        finally:
            del self.parts[scan.name]

    def _unite(self, one: CommonTable, two: CommonTable) -> CommonTable:
        """The rows of two relations with the same columns."""
        listed = [
            ", ".join(f"{part.columns[c]} AS {name}" for c, name in one.columns.items()) or "1 AS nothing"
            for part in (one, two)
        ]
        both = " UNION ALL ".join(f"SELECT {items} FROM {part.name}" for items, part in zip(listed, (one, two)))
        return CommonTable(self.clauses.add(["*"], f"({both}) AS both_parts"), one.columns)

    def _write_join(self, relation: Join, needed: Set[Column]) -> CommonTable:
        """A join with a name for each column, also where two have the same values."""
        joined = self._open_join(relation, needed)
        names, items = dict[Column, str](), list[str]()
        for column, own in joined.pick_columns(needed).items():
            names[column] = self.clauses.make_name("c") if own in names.values() else own
            items.append(own if names[column] == own else f"{own} AS {names[column]}")
        return CommonTable(self.clauses.add(items, joined.name), names)

    def _open_join(self, relation: Join, needed: Set[Column]) -> CommonTable:
        """A join as something to write after FROM; two columns may have one name. So joins stand side by side.

        DuckDB chooses an order for joins with nothing but tables between them, and keeps the written one elsewhere.
        """
        if self._is_carried(relation):
            return self._write_carried(relation, needed)
        carried = any(self._is_carried(split(side)[0]) for side in (relation.left, relation.right))
        dropped = None if carried else drop_link(relation, self.catalog)
        if dropped is not None:
            same = dropped.same
            found = self._open_join(dropped.join, frozenset(same.get(column, column) for column in needed))
            return CommonTable(found.name, {column: found.columns[same.get(column, column)] for column in needed})
        write = self._open_side if relation.kind is JoinKind.INNER and relation.caps is None else self.write
        left = write(relation.left, self._find_needed(relation, 0, needed))
        theirs = self._find_needed(relation, 1, needed)
        if isinstance(relation.right, Distinct) and follow_link(relation, self.catalog) is not None:
            right = self._write_keys(relation.right, theirs)
        else:
            right = write(relation.right, theirs)
        kept = left.pick_columns(needed)
        if relation.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            kept |= right.pick_columns(needed)
        unique = relation.single and self.is_unique(relation)
        return CommonTable(write_join(self.clauses, relation, (left, right), self.salt, unique=unique), kept)

    def _open_side(self, relation: Relation, needed: Set[Column]) -> CommonTable:
        """A side of an inner join. What is an inner join itself stays open."""
        base, conditions = split(relation)
        if not isinstance(base, Join) or base.kind is not JoinKind.INNER:
            return self.write(relation, needed)
        base, left = sink_conditions(base, conditions, self.is_unique)
        if left or not isinstance(base, Join):
            return self.write(relation, needed)
        joined = self._open_join(base, needed)
        return joined if joined.name.isidentifier() else CommonTable(f"({joined.name})", joined.columns)

    def _is_carried(self, relation: Relation) -> bool:
        """Whether a relation is a table that reaches its unit by a foreign key, and is stored with it."""
        scan = split(relation.left)[0] if isinstance(relation, Join) else relation
        if not isinstance(relation, Join) or not isinstance(scan, Scan) or not isinstance(relation.right, Distinct):
            return False
        linked = self.catalog.tables[scan.table].link is not None
        return linked and self.tables(scan.table).unit != ""

    def _write_carried(self, relation: Join, needed: Set[Column]) -> CommonTable:
        """Such a table: its columns, the unit, and the keys that the join would show."""
        scan, conditions = split(relation.left)
        if not isinstance(scan, Scan):
            raise InternalError("A table is joined to units that is none.")
        table, keys = self.tables(scan.table), {theirs: ours for ours, theirs in relation.on}
        items = {}
        for column in sorted(needed | _find_all_columns(conditions), key=lambda column: (column.table, column.name)):
            own = keys.get(column, column)
            if not isinstance(own, Column):
                raise InternalError("A foreign key that is no column.")
            sql = table.columns[own.name] if own.table == scan.name else table.unit
            items[column] = self.clauses.dialect.widen(sql, own.type, column.type)
        return self._add_conditions(self.clauses.add_named(items, table.source), conditions, needed)

    def is_unique(self, relation: Join) -> bool:
        """Whether no two rows of the public table that is looked up have the same key. All who ask may know that."""
        columns = [theirs for ours, theirs in relation.on if isinstance(theirs, Column) and ours.type is theirs.type]
        found = trace_values(relation.right, columns)
        if found is None or not columns or self.count_public is None:
            return False
        scan, names = found
        public, plain = self.catalog.tables[scan.table].public, isinstance(split(relation.right)[0], Scan)
        return public and plain and self.count_public(scan.table, tuple(sorted(set(names)))) <= 1

    def _find_needed(self, relation: Join, side: int, needed: Set[Column]) -> frozenset[Column]:
        """What a join reads of a side: everything where it is truncated, because the secret order is that of all."""
        own = frozenset(self._list_all((relation.left, relation.right)[side]))
        if relation.caps is not None:
            return own
        return frozenset(needed & own) | _find_all_columns(pair[side] for pair in relation.on)

    def _write_per_unit(self, relation: PerUnit, needed: Set[Column]) -> CommonTable:
        own = {Column(relation.name, name, compute.type): compute for name, compute in relation.features}
        wanted = {column: compute for column, compute in own.items() if column in needed}
        keys = (key for _, key in relation.keys)
        source = self.write(relation.source, _find_all_columns([*keys, *_arguments_of(wanted)]))
        return write_groups(self.clauses, relation, source, wanted, needed)

    def _write_window(self, relation: Window, needed: Set[Column]) -> CommonTable:
        own = {Column(relation.name, name, compute.type): compute for name, compute in relation.features}
        wanted = {column: compute for column, compute in own.items() if column in needed}
        there = frozenset(self._list_all(relation.source))
        untied = any(compute.feature in per_unit.UNTIED or compute.frame is not None for compute in wanted.values())
        ties = self._list_all(relation.source) if untied else ()
        read = _find_all_columns([*relation.parts, *(value for value, _ in relation.order), *_arguments_of(wanted)])
        source = self.write(relation.source, (needed & there) | read | frozenset(ties))
        top, computed = write_window(self.clauses, relation, source, wanted, ties)
        return self.clauses.add_features(source.pick_columns(needed), computed, top)


def _arguments_of(wanted: Mapping[Column, FeatureCall]) -> list[Expression]:
    return [compute.argument for compute in wanted.values() if compute.argument is not None]
