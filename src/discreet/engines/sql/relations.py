"""Relations in SQL: one common table expression for each node of ``plan.relations``, innermost first.

Every column of every node gets a name of its own (c1, c2 …), and only columns that are read above are carried along.
Texts are bound, names from codebooks are quoted, and nothing else that anybody wrote becomes part of a statement.
What a relation holds is a function of the values in its tables: where rows are chosen or numbered, a keyed hash of all
their values decides and then these values themselves, so only equal rows are ever tied.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field
from typing import Any, assert_never

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.sql import per_unit
from discreet.engines.sql.caps import write_capped
from discreet.engines.sql.clauses import Clauses, CommonTable
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.joins import write_join
from discreet.engines.sql.links import drop_link
from discreet.engines.sql.statement import RowSource
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


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A declared table as it is stored: what to write after FROM, and the SQL of each declared column."""

    source: str
    columns: Mapping[str, str]


def rows_of(
    bounded: BoundedPlan, catalog: Catalog, tables: Callable[[str], StoredTable], dialect: Dialect, salt: bytes
) -> tuple[RowSource, list[Values]]:
    """The rows that a question reads, for ``statement.BoundedStatement``, and the public rows to fill in: values0 …"""
    base, _ = split(bounded.source)
    writer = Writer(catalog, tables, salt, Clauses(dialect))
    top, clauses = writer.write(base, find_read_columns(bounded)), writer.clauses
    ordinal = ""
    if bounded.unit is not None:
        layers = clauses.make_layers(top)
        integer = dialect.code(layers.write_value(bounded.unit), bounded.unit.type)
        if integer is not None:
            ordinal = clauses.make_name("o")
            items = [*top.columns.values(), f"{integer} AS {ordinal}"]
            top = CommonTable(clauses.add(items, clauses.add_layers(layers, top)), top.columns)
    source = f"(WITH {', '.join(clauses.written)} SELECT * FROM {top.name}) AS base"
    return RowSource(source, top.columns, {}, ordinal=ordinal, texts=clauses.texts), writer.values


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
    values: list[Values] = field(default_factory=list)

    def write(self, relation: Relation, needed: Set[Column]) -> CommonTable:
        """A relation with the columns that are needed of it. Two columns of one name would be read for each other."""
        if len(set(own := columns_of(relation, self.catalog))) < len(own):
            raise InternalError("Two columns of one relation have the same name.")
        match relation:
            case Scan():
                return self._write_scan(relation, needed)
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
                source = self.write(relation.source, frozenset(self._list_all(relation.source)))
                items = source.columns.values()
                return CommonTable(self.clauses.add(items, source.name, distinct=True), source.columns)
            case Capped():
                return self._write_capped(relation, needed)
            case Union():
                return self._write_union(relation, needed)
            case _:
                assert_never(relation)

    def _list_all(self, relation: Relation) -> tuple[Column, ...]:
        return columns_of(relation, self.catalog)

    def _write_scan(self, relation: Scan, needed: Set[Column]) -> CommonTable:
        table = self.tables(relation.table)
        wanted = [column for column in self._list_all(relation) if column in needed]
        return self.clauses.add_named({column: table.columns[column.name] for column in wanted}, table.source)

    def _write_values(self, relation: Values, needed: Set[Column]) -> CommonTable:
        self.values.append(relation)
        own = [Column(relation.name, name, kind) for name, kind in relation.columns]
        wanted = {column: f"v{i}" for i, column in enumerate(own) if column in needed}
        return self.clauses.add_named(wanted, name_of_values(len(self.values) - 1))

    def _write_filter(self, relation: Where, needed: Set[Column]) -> CommonTable:
        source = self.write(relation.source, needed | find_columns(relation.condition))
        layers = self.clauses.make_layers(source)
        condition = layers.write_value(relation.condition)
        top, kept = self.clauses.add_layers(layers, source), source.pick_columns(needed)
        return CommonTable(self.clauses.add(kept.values(), top, f" WHERE {condition}"), kept)

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

    def _write_capped(self, relation: Capped, needed: Set[Column]) -> CommonTable:
        source = self.write(relation.source, frozenset(self._list_all(relation.source)))
        return write_capped(self.clauses, relation, source, needed, self.salt)

    def _write_join(self, relation: Join, needed: Set[Column]) -> CommonTable:
        dropped = drop_link(relation, self.catalog)
        if dropped is not None:
            same = dropped.same
            found = self.write(dropped.join, frozenset(same.get(column, column) for column in needed))
            again = {column: found.columns[same[column]] for column in needed if column in same}
            # Each column has a name of its own, also where two have the same values.
            return self.clauses.add_named({**found.pick_columns(needed), **again}, found.name)
        left, right = (
            self.write(source, self._find_needed(relation, side, needed))
            for side, source in enumerate((relation.left, relation.right))
        )
        kept = left.pick_columns(needed)
        if relation.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            kept |= right.pick_columns(needed)
        joined = write_join(self.clauses, relation, (left, right), self.salt)
        return CommonTable(self.clauses.add(kept.values(), joined), kept)

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
