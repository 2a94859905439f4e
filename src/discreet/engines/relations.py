"""Relations in DuckDB's SQL: one common table expression for each node of ``plan.relations``, innermost first.

Every column of every node gets a name of its own (c1, c2 …), and only columns that are read above are carried along.
Texts are bound, names from codebooks are quoted, and nothing else that anybody wrote becomes part of a statement.
What a relation holds is a function of the values in its tables: where rows are chosen or numbered, a keyed hash of all
their values decides and then these values themselves, so only equal rows are ever tied.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from discreet.bounding.contributions import Bounded
from discreet.engines import features
from discreet.engines.clauses import Clauses, Written
from discreet.engines.joins import paired
from discreet.engines.prepared import ordinal_of
from discreet.engines.statement import Relation as Rows
from discreet.engines.windows import windowed
from discreet.errors import InternalError
from discreet.plan.arrow import arrow_types
from discreet.plan.catalog import Catalog
from discreet.plan.evaluate import settle
from discreet.plan.expressions import Column, Expression, columns
from discreet.plan.functions import common
from discreet.plan.relations import (
    Compute,
    Derive,
    Distinct,
    Filter,
    Join,
    JoinKind,
    PerUnit,
    Relation,
    Scan,
    Union,
    Values,
    Window,
    split,
)
from discreet.plan.types import Type, Value, type_of


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table as it is stored: what to write after FROM, and the SQL of each declared column."""

    source: str
    columns: Mapping[str, str]


def rows_of(
    bounded: Bounded, catalog: Catalog, tables: Callable[[str], Table], salt: bytes
) -> tuple[Rows, list[Values]]:
    """The rows that a question reads, for ``statement.Statement``, and the public rows to fill in: values0 …"""
    base, _ = split(bounded.source)
    writer = Writer(catalog, tables, salt)
    top, clauses = writer.write(base, read(bounded)), writer.clauses
    ordinal = ""
    if bounded.unit is not None:
        layers = clauses.over(top)
        integer = ordinal_of(bounded.unit.type, layers.value(bounded.unit))
        if integer is not None:
            ordinal = clauses.fresh("o")
            items = [*top.columns.values(), f"{integer} AS {ordinal}"]
            top = Written(clauses.add(items, clauses.layered(layers, top)), top.columns)
    source = f"(WITH {', '.join(clauses.written)} SELECT * FROM {top.name})"
    return Rows(source, top.columns, {}, ordinal=ordinal, texts=clauses.texts), writer.values


def values_name(position: int) -> str:
    """The name of the table that public rows of a question are filled into."""
    return f"values{position}"


def values_table(relation: Values) -> Any:
    """Public rows as an Arrow table of columns v0 …; what is not of a column's type is NULL."""
    import pyarrow as pa

    kinds = arrow_types()
    return pa.table(
        {
            f"v{i}": pa.array([_of_type(row[i], kind) for row in relation.rows], kinds[kind])
            for i, (_, kind) in enumerate(relation.columns)
        }
    )


def _of_type(value: Value, kind: Type) -> Value:
    given = type_of(value)
    if kind is Type.DATE and isinstance(value, dt.datetime):
        return value.date()
    return settle(value, kind) if given is not None and common((given, kind)) is kind else None


def read(bounded: Bounded) -> frozenset[Column]:
    """Every column that a question reads of the relation below its conditions."""
    measured = (measure.argument for measure in bounded.measures)
    spread = (spread.argument for spread in bounded.spreads)
    found = (bounded.unit, *bounded.keys, *measured, *spread, *split(bounded.source)[1])
    return _columns(expression for expression in found if expression is not None)


def columns_of(relation: Relation, catalog: Catalog) -> tuple[Column, ...]:
    """All columns of a relation, in one order for ever: by the name of what defines them, and their own."""
    return tuple(sorted(_listed(relation, catalog), key=lambda column: (column.table, column.name)))


def _listed(relation: Relation, catalog: Catalog) -> list[Column]:
    match relation:
        case Scan():
            declared = catalog.tables[relation.table].columns.items()
            return [Column(relation.name, name, kind) for name, (kind, _) in declared]
        case Values():
            return [Column(relation.name, name, kind) for name, kind in relation.columns]
        case Filter() | Distinct():
            return _listed(relation.source, catalog)
        case Derive():
            return [Column(relation.name, name, value.type) for name, value in relation.columns]
        case Join():
            left, right = _listed(relation.left, catalog), _listed(relation.right, catalog)
            return left if relation.kind in (JoinKind.SEMI, JoinKind.ANTI) else left + right
        case PerUnit():
            keys = [Column(relation.name, name, key.type) for name, key in relation.keys]
            return keys + [Column(relation.name, name, compute.type) for name, compute in relation.features]
        case Window():
            new = [Column(relation.name, name, compute.type) for name, compute in relation.features]
            return _listed(relation.source, catalog) + new
        case Union():
            return [Column(relation.name, name, value.type) for name, value in relation.sources[0].columns]


def _columns(expressions: Iterable[Expression]) -> frozenset[Column]:
    return frozenset(column for expression in expressions for column in columns(expression))


@dataclass(slots=True)
class Writer:
    """Writes relations, each from what it is made of, and remembers the public rows that have to be filled in."""

    catalog: Catalog
    tables: Callable[[str], Table]
    salt: bytes
    clauses: Clauses = field(default_factory=Clauses)
    values: list[Values] = field(default_factory=list)

    def write(self, relation: Relation, needed: Set[Column]) -> Written:
        """A relation with the columns that are needed of it. Two columns of one name would be read for each other."""
        if len(set(own := columns_of(relation, self.catalog))) < len(own):
            raise InternalError("Two columns of one relation have the same name.")
        match relation:
            case Scan():
                return self._scan(relation, needed)
            case Values():
                return self._values(relation, needed)
            case Filter():
                return self._filter(relation, needed)
            case Derive():
                return self._derive(relation, needed)
            case Join():
                return self._join(relation, needed)
            case PerUnit():
                return self._per_unit(relation, needed)
            case Window():
                return self._window(relation, needed)
            case Distinct():
                source = self.write(relation.source, frozenset(self._all(relation.source)))
                items = source.columns.values()
                return Written(self.clauses.add(items, source.name, distinct=True), source.columns)
            case Union():
                return self._union(relation, needed)

    def _all(self, relation: Relation) -> tuple[Column, ...]:
        return columns_of(relation, self.catalog)

    def _scan(self, relation: Scan, needed: Set[Column]) -> Written:
        table = self.tables(relation.table)
        wanted = [column for column in self._all(relation) if column in needed]
        return self.clauses.named({column: table.columns[column.name] for column in wanted}, table.source)

    def _values(self, relation: Values, needed: Set[Column]) -> Written:
        self.values.append(relation)
        own = [Column(relation.name, name, kind) for name, kind in relation.columns]
        wanted = {column: f"v{i}" for i, column in enumerate(own) if column in needed}
        return self.clauses.named(wanted, values_name(len(self.values) - 1))

    def _filter(self, relation: Filter, needed: Set[Column]) -> Written:
        source = self.write(relation.source, needed | columns(relation.condition))
        layers = self.clauses.over(source)
        condition = layers.value(relation.condition)
        top, kept = self.clauses.layered(layers, source), source.only(needed)
        return Written(self.clauses.add(kept.values(), top, f" WHERE {condition}"), kept)

    def _derive(self, relation: Derive, needed: Set[Column]) -> Written:
        own = {Column(relation.name, name, value.type): value for name, value in relation.columns}
        wanted = {column: value for column, value in own.items() if column in needed}
        source = self.write(relation.source, _columns(wanted.values()))
        layers = self.clauses.over(source)
        items = {column: layers.value(value) for column, value in wanted.items()}
        return self.clauses.named(items, self.clauses.layered(layers, source))

    def _union(self, relation: Union, needed: Set[Column]) -> Written:
        """The columns by position, under the names of the first source."""
        own = _listed(relation, self.catalog)
        places = [i for i, column in enumerate(own) if column in needed]
        names = {own[i]: self.clauses.fresh("c") for i in places}
        selects = []
        for branch in relation.sources:
            theirs = _listed(branch, self.catalog)
            if [column.type for column in theirs] != [column.type for column in own]:
                raise InternalError("The parts of a union have columns of different types.")
            source = self.write(branch, {theirs[i] for i in places})
            items = ", ".join(f"{source.columns[theirs[i]]} AS {names[own[i]]}" for i in places) or "1 AS nothing"
            selects.append(f"SELECT {items} FROM {source.name}")
        return Written(self.clauses.add(["*"], f"({' UNION ALL '.join(selects)})"), names)

    def _join(self, relation: Join, needed: Set[Column]) -> Written:
        left, right = (
            self.write(source, self._read_of(relation, side, needed))
            for side, source in enumerate((relation.left, relation.right))
        )
        kept = left.only(needed)
        if relation.kind not in (JoinKind.SEMI, JoinKind.ANTI):
            kept |= right.only(needed)
        return Written(self.clauses.add(kept.values(), paired(self.clauses, relation, (left, right), self.salt)), kept)

    def _read_of(self, relation: Join, side: int, needed: Set[Column]) -> frozenset[Column]:
        """What a join reads of a side: everything where it is truncated, because the secret order is that of all."""
        own = frozenset(self._all((relation.left, relation.right)[side]))
        if relation.caps is not None:
            return own
        return frozenset(needed & own) | _columns(pair[side] for pair in relation.on)

    def _per_unit(self, relation: PerUnit, needed: Set[Column]) -> Written:
        own = {Column(relation.name, name, compute.type): compute for name, compute in relation.features}
        wanted = {column: compute for column, compute in own.items() if column in needed}
        keys = {Column(relation.name, name, key.type): key for name, key in relation.keys}
        source = self.write(relation.source, _columns([*keys.values(), *_arguments(wanted)]))
        layers = self.clauses.over(source)
        computed = {
            column: features.aggregate(compute, "" if compute.argument is None else layers.value(compute.argument))
            for column, compute in wanted.items()
        }
        # Keys get their names before they are grouped by: a constant there would be read as a position.
        names = {column: self.clauses.fresh("c") for column in keys}
        items = ["*", *(f"{layers.value(key)} AS {names[column]}" for column, key in keys.items())]
        group = f" GROUP BY {', '.join(names.values())}" if names else " HAVING count(*) > 0"
        below = self.clauses.add(items, self.clauses.layered(layers, source))
        kept = {column: name for column, name in names.items() if column in needed}
        return self.clauses.finished(kept, computed, below, group)

    def _window(self, relation: Window, needed: Set[Column]) -> Written:
        own = {Column(relation.name, name, compute.type): compute for name, compute in relation.features}
        wanted = {column: compute for column, compute in own.items() if column in needed}
        there = frozenset(self._all(relation.source))
        untied = any(compute.feature in features.UNTIED for compute in wanted.values())
        ties = self._all(relation.source) if untied else ()
        read = _columns([*relation.parts, *(value for value, _ in relation.order), *_arguments(wanted)])
        source = self.write(relation.source, (needed & there) | read | frozenset(ties))
        top, computed = windowed(self.clauses, relation, source, wanted, ties)
        return self.clauses.finished(source.only(needed), computed, top)


def _arguments(wanted: Mapping[Column, Compute]) -> list[Expression]:
    return [compute.argument for compute in wanted.values() if compute.argument is not None]
