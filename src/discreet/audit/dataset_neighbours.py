"""Neighbours of a dataset of several tables: one unit comes or goes in all of them at once.

A unit's rows are those that name it, and rows of linked tables that refer to these and to nobody else's. A newcomer has
rows in every private table, with foreign keys that fit together; or with keys that others have as well, so that rows
that refer to them become its own, too; or with keys that are NULL or lead nowhere. Public tables stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice, zip_longest
from typing import TypeAlias

from discreet.audit.neighbours import (
    NASTY,
    AuditRow,
    describe_value,
    find_ends,
    find_usual,
    make_ids_like,
    make_neighbours,
    make_rare,
)
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog, Link, TableFacts
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours

Dataset: TypeAlias = Mapping[str, Sequence[AuditRow]]
ValueMaker: TypeAlias = Callable[[TableFacts, int], Mapping[str, Value]]
MANY = 25


@dataclass(frozen=True, slots=True)
class Change:
    """Two datasets that differ in one unit, and what was done to get from one to the other."""

    what: str
    relation: Neighbours
    before: Dataset
    after: Dataset


def make_changes(
    dataset: Dataset, catalog: Catalog, relation: Neighbours, *, most: int | None = None
) -> Iterator[Change]:
    """Neighbours of a dataset, the most telling ones first; at most ``most`` of them."""
    missing = catalog.tables.keys() - dataset.keys()
    if missing:
        raise UsageError(f"There are no rows for {', '.join(sorted(missing))}. Give every declared table a list.")
    private = [table for table in catalog.tables.values() if not table.public]
    single = len(private) == 1 and private[0].link is None
    found = _change_one_table(dataset, private, relation) if single or catalog.unit.column is None else None
    return islice(_change_all_tables(dataset, catalog, relation) if found is None else found, most)


def _change_one_table(dataset: Dataset, tables: Sequence[TableFacts], relation: Neighbours) -> Iterator[Change]:
    """A unit that is in one table only: each table in turn."""
    turns = zip_longest(*(make_neighbours(dataset[table.name], table, relation) for table in tables))
    for turn in turns:
        for table, pair in zip(tables, turn):
            if pair is not None:
                where = f" ({table.name})" if len(tables) > 1 else ""
                yield Change(f"{pair.what}{where}", relation, dataset, {**dataset, table.name: pair.after})


def _change_all_tables(dataset: Dataset, catalog: Catalog, relation: Neighbours) -> Iterator[Change]:
    kin = Ownership(dataset, catalog)
    busiest = kin.list_units()
    if relation is Neighbours.REPLACE:
        gone = busiest[0] if busiest else None
        rest = kin.remove_unit(gone)
        for what, made in _make_newcomers(kin):
            yield Change(f"replace a unit: {what}", relation, dataset, _add_rows(rest, kin.rename_unit(made, gone)))
        return
    leaving = _remove_units(kin, [*busiest[:3], *busiest[3:][-2:]])
    for number, (what, made) in enumerate(_make_newcomers(kin)):
        yield Change(f"add a unit: {what}", relation, dataset, _add_rows(dataset, made))
        if number >= 2:  # after the first few, one goes for each that comes
            yield from (Change(said, relation, dataset, after) for said, after in islice(leaving, 1))


def _remove_units(kin: Ownership, units: Iterable[Value]) -> Iterator[tuple[str, Dataset]]:
    for unit in units:
        yield "remove a unit", kin.remove_unit(unit)
        yield "remove a unit, but not the rows that refer to it", kin.remove_unit(unit, orphans=True)


def _add_rows(dataset: Dataset, made: Dataset) -> dict[str, Sequence[AuditRow]]:
    return {name: [*rows, *made.get(name, ())] for name, rows in dataset.items()}


@dataclass(frozen=True)
class Ownership:
    """Whose rows are whose, in all private tables of a dataset."""

    dataset: Dataset
    catalog: Catalog

    @property
    def tables(self) -> list[TableFacts]:
        """The private tables, each after the one that it reaches its unit by."""
        private = [table for table in self.catalog.tables.values() if not table.public]
        return sorted(private, key=self._depth)

    def _depth(self, table: TableFacts) -> int:
        return 0 if table.link is None else 1 + self._depth(self.catalog.find_table(table.link.parent))

    def find_owners(self) -> dict[str, list[frozenset[Value]]]:
        """For each private table, the units of each of its rows: none, one, or several where a key is not unique."""
        found: dict[str, list[frozenset[Value]]] = {}
        for table in self.tables:
            rows, own = self.dataset[table.name], table.unit_column
            if own is not None:
                found[table.name] = [frozenset({row[own.name]} - {None}) for row in rows]
            elif table.link is not None:
                parent = self.catalog.find_table(table.link.parent)
                units: dict[Value, frozenset[Value]] = {}
                for row, whose in zip(self.dataset[parent.name], found[parent.name]):
                    key = row[table.link.key]
                    units[key] = units.get(key, frozenset()) | whose
                units.pop(None, None)
                found[table.name] = [units.get(row[table.link.column], frozenset()) for row in rows]
        return found

    def list_units(self) -> list[Value]:
        """All units, those with most rows first."""
        sizes: dict[Value, int] = {}
        for whose in self.find_owners().values():
            for unit in (unit for row in whose for unit in row):
                sizes[unit] = sizes.get(unit, 0) + 1
        return sorted(sizes, key=lambda unit: -sizes[unit])

    def remove_unit(self, unit: Value, *, orphans: bool = False) -> Dataset:
        """The dataset without a unit. Rows that reach others, too, stay; ``orphans`` keeps rows that refer to it."""
        kept: dict[str, Sequence[AuditRow]] = dict(self.dataset)
        for name, whose in self.find_owners().items():
            if orphans and self.catalog.tables[name].link is not None:
                continue
            kept[name] = [row for row, units in zip(self.dataset[name], whose) if units != {unit}]
        return kept

    def rename_unit(self, made: Dataset, unit: Value) -> Dataset:
        """Rows of a newcomer under another unit's name."""
        own = {table.name: table.unit_column for table in self.tables}
        return {
            name: [row if (column := own[name]) is None else row | {column.name: unit} for row in rows]
            for name, rows in made.items()
        }

    def find_links(self, table: TableFacts) -> list[Link]:
        """The foreign keys of a table that lead to private ones, but for those that are the unit's name."""
        declared = dict.fromkeys((*table.keys, *(() if table.link is None else (table.link,))))
        own = table.unit_column
        return [
            link
            for link in declared
            if not self.catalog.find_table(link.parent).public and (own is None or own.name != link.column)
        ]

    def find_referred_columns(self, table: TableFacts) -> dict[str, list[Value]]:
        """The columns of a table that others refer to, with the values that occur on either side."""
        found: dict[str, list[Value]] = {}
        own = table.unit_column
        for other in self.tables:
            for link in self.find_links(other):
                if link.parent == table.name and (own is None or own.name != link.key):
                    seen = [row[link.key] for row in self.dataset[table.name]]
                    seen += [row[link.column] for row in self.dataset[other.name]]
                    found.setdefault(link.key, []).extend(value for value in dict.fromkeys(seen) if value is not None)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerRecipe:
    """How a newcomer's rows are made. ``shared``: with keys that others have; ``loose``: NULL, or leading nowhere."""

    what: str
    values: ValueMaker
    rows: int = 1
    owner: Value = None
    only: str = ""
    shared: bool = False
    loose: bool = False


def _make_newcomers(kin: Ownership) -> Iterator[tuple[str, Dataset]]:
    for recipe in _list_recipes(kin):
        yield recipe.what, _NewcomerBuilder(kin, recipe).make_dataset()


@dataclass(slots=True)
class _NewcomerBuilder:
    """One newcomer in the making."""

    kin: Ownership
    recipe: NewcomerRecipe
    made: dict[str, list[AuditRow]] = field(default_factory=dict)
    serial: Iterator[int] = field(default_factory=lambda: count(7_000_001))

    def make_dataset(self) -> Dataset:
        for table in self.kin.tables:
            if self.recipe.only in ("", table.name):
                self.made[table.name] = self._make_rows(table)
        return self.made

    def _make_rows(self, table: TableFacts) -> list[AuditRow]:
        if table.link is not None and self.recipe.shared:
            return []  # rows that refer to shared keys would be somebody else's as well
        referred, own = self.kin.find_referred_columns(table), table.unit_column
        found = []
        for number in range(self.recipe.rows):
            row = {
                name: find_usual(kind, facts, self.kin.dataset[table.name], name)
                for name, (kind, facts) in table.columns.items()
            } | dict(self.recipe.values(table, number))
            for link in self.kin.find_links(table):
                row[link.column] = self._make_foreign_key(table, link, number)
            for name, taken in referred.items():
                row[name] = self._make_key(table.columns[name][0], taken, number)
            if own is not None:
                row[own.name] = self.recipe.owner
            found.append(row)
        return found

    def _make_key(self, kind: Type, taken: Sequence[Value], number: int) -> Value:
        """What others may refer to: new, or (``shared``) what others have or refer to already."""
        if self.recipe.loose and number % 2:
            return None
        if self.recipe.shared and taken:
            return taken[number % len(taken)]
        made = (self._make_value(kind) for _ in count())
        return next(value for value in made if value not in taken)

    def _make_foreign_key(self, table: TableFacts, link: Link, number: int) -> Value:
        """What refers to a row of the newcomer's own; or (``shared``) to anybody's, where that is nobody's unit."""
        kind = table.columns[link.column][0]
        if self.recipe.loose:
            return None if number % 2 else self._make_value(kind)
        if self.recipe.shared and table.link != link:
            others = [row[link.key] for row in self.kin.dataset[link.parent]]
            return others[number % len(others)] if others else None
        parents = self.made.get(link.parent, [])
        return parents[number % len(parents)][link.key] if parents else self._make_value(kind)

    def _make_value(self, kind: Type) -> Value:
        number = next(self.serial)
        fresh: dict[Type, Value] = {Type.INTEGER: number, Type.TEXT: f"new {number}", Type.REAL: float(number)}
        return fresh.get(kind, NASTY[kind][0])


def _list_recipes(kin: Ownership) -> Iterator[NewcomerRecipe]:
    """Units that nobody expects, the most telling first."""
    owners = _make_ids(kin)
    recipe, every = partial(NewcomerRecipe, owner=owners[0]), _make_group_values(kin)
    yield recipe(what="many rows at the upper bounds in every table", values=_make_end_values(high=True), rows=MANY)
    yield recipe(what="keys that others have", values=every, rows=3 * MANY, shared=True)
    yield recipe(what="rows in every group, rare ones too", values=every, rows=MANY)
    yield recipe(what="as usual", values=_make_no_values)
    yield recipe(what="keys that lead nowhere", values=every, rows=6, loose=True)
    yield recipe(what="many rows at the lower bounds in every table", values=_make_end_values(high=False), rows=MANY)
    for table in kin.tables:
        if table.link is None:
            yield recipe(what=f"rows in {table.name} only", values=every, rows=7, only=table.name)
    yield recipe(what="all NULL", values=lambda table, _: dict.fromkeys(table.columns, None), rows=3)
    for shift in range(max(len(values) for values in NASTY.values())):
        yield recipe(what=f"strange values {shift + 1}", values=_make_strange_values(shift), rows=2)
    for table in kin.tables:
        for name, (kind, _) in table.columns.items():
            for value in (make_rare(kind), *NASTY[kind]):
                what = f"{table.name}.{name} is {describe_value(value)}"
                yield recipe(what=what, values=_make_fixed_value(table.name, name, value), rows=5)
    for owner in (*owners, None):
        yield NewcomerRecipe(
            what=f"an id like others ({describe_value(owner)})", values=_make_no_values, rows=7, owner=owner
        )


def _make_ids(kin: Ownership) -> list[Value]:
    """Ids that no table has, but that look like those it has."""
    columns = [(table, own) for table in kin.tables if (own := table.unit_column) is not None]
    taken = [row[own.name] for table, own in columns for row in kin.dataset[table.name]]
    return make_ids_like(taken, columns[0][1].type)


def _make_no_values(_: TableFacts, __: int) -> Mapping[str, Value]:
    return {}


def _make_group_values(kin: Ownership) -> ValueMaker:
    """Another group in every row: one after the other of the listed keys, or values of others and rare ones in turn."""
    seen: dict[str, dict[Value, None]] = {}
    for table in kin.tables:
        for name, (kind, _) in table.columns.items():
            if kind is Type.TEXT:  # of all tables: columns of one name are likely to be joined
                seen.setdefault(name, {}).update(dict.fromkeys(row[name] for row in kin.dataset[table.name]))

    def values(table: TableFacts, number: int) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        for name, (kind, facts) in table.columns.items():
            if facts.keys:
                found[name] = facts.keys[number % len(facts.keys)]
            elif kind is Type.TEXT:
                others = list(seen[name])
                found[name] = others[number // 2 % len(others)] if others and number % 2 else f"rare {number}"
            elif not facts.bounded:
                found[name] = NASTY[kind][number % len(NASTY[kind])]
            elif number % 2:
                found[name] = find_ends({name: facts}, high=True)[name]
        return found

    return values


def _make_end_values(*, high: bool) -> ValueMaker:
    return lambda table, _: find_ends({name: facts for name, (_, facts) in table.columns.items()}, high=high)


def _make_strange_values(shift: int) -> ValueMaker:
    return lambda table, _: {name: NASTY[kind][shift % len(NASTY[kind])] for name, (kind, _) in table.columns.items()}


def _make_fixed_value(table: str, column: str, value: Value) -> ValueMaker:
    return lambda facts, _: {column: value} if facts.name == table else {}
