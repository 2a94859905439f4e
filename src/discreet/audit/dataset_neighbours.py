"""Makes neighbours of a dataset of several tables: one unit is added, removed or replaced in all tables at once.

The rows of a unit are those that name it, and the rows of linked tables that refer to these rows only. A new unit has
rows in every private table, with foreign keys that fit together; or with keys that others have as well, so that rows
that refer to them become its own too; or with keys that are NULL or refer to no row. Public tables stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
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
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, Link, TableFacts
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours

Dataset: TypeAlias = Mapping[str, Sequence[AuditRow]]
ReferredValues: TypeAlias = tuple[Value, ...]
ValueMaker: TypeAlias = Callable[[TableFacts, int], Mapping[str, Value]]
MANY = 25


@dataclass(frozen=True, slots=True)
class Change:
    """Two datasets that differ in one unit, and the change that leads from one to the other."""

    what: str
    relation: Neighbours
    before: Dataset
    after: Dataset


def make_changes(
    dataset: Dataset, catalog: Catalog, relation: Neighbours, *, most: int | None = None
) -> Iterator[Change]:
    """Neighbours of a dataset, those that find most errors first; at most ``most`` of them."""
    missing = catalog.tables.keys() - dataset.keys()
    if missing:
        raise UsageError(f"There are no rows for {', '.join(sorted(missing))}. Give every declared table a list.")
    private = [table for table in catalog.tables.values() if not table.public]
    single = len(private) == 1 and private[0].link is None
    found = _change_one_table(dataset, private, relation) if single or catalog.unit.column is None else None
    return islice(_change_all_tables(dataset, catalog, relation) if found is None else found, most)


def _change_one_table(dataset: Dataset, tables: Sequence[TableFacts], relation: Neighbours) -> Iterator[Change]:
    """Changes of a unit that is in one table only: one change of each table after the other."""
    for pairs in zip_longest(*(make_neighbours(dataset[table.name], table, relation) for table in tables)):
        for table, pair in zip(tables, pairs):
            if pair is not None:
                where = f" ({table.name})" if len(tables) > 1 else ""
                yield Change(f"{pair.what}{where}", relation, dataset, {**dataset, table.name: pair.after})


def _change_all_tables(dataset: Dataset, catalog: Catalog, relation: Neighbours) -> Iterator[Change]:
    owners = Ownership(dataset, catalog)
    units = owners.list_units()
    if relation is Neighbours.REPLACE:
        removed = units[0] if units else None
        rest = owners.remove_unit(removed)
        for what, rows in _make_newcomers(owners):
            after = _add_rows(rest, owners.rename_unit(rows, removed))
            yield Change(f"replace a unit: {what}", relation, dataset, after)
        return
    removals = _remove_units(owners, [*units[:3], *units[3:][-2:]])
    for number, (what, rows) in enumerate(_make_newcomers(owners)):
        yield Change(f"add a unit: {what}", relation, dataset, _add_rows(dataset, rows))
        if number >= 2:  # after the first few, one removal for each addition
            yield from (Change(removal, relation, dataset, after) for removal, after in islice(removals, 1))


def _remove_units(owners: Ownership, units: Iterable[Value]) -> Iterator[tuple[str, Dataset]]:
    for unit in units:
        yield "remove a unit", owners.remove_unit(unit)
        yield "remove a unit, but not the rows that refer to it", owners.remove_unit(unit, orphans=True)


def _add_rows(dataset: Dataset, added: Dataset) -> dict[str, Sequence[AuditRow]]:
    return {name: [*rows, *added.get(name, ())] for name, rows in dataset.items()}


@dataclass(frozen=True)
class Ownership:
    """The owner of each row, in all private tables of a dataset."""

    dataset: Dataset
    catalog: Catalog

    @property
    def tables(self) -> list[TableFacts]:
        """The private tables, each after the table that its link to the unit leads to."""
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
                units: dict[ReferredValues, frozenset[Value]] = {}
                for row, whose in zip(self.dataset[parent.name], found[parent.name]):
                    key = read_key(row, table.link.keys)
                    units[key] = units.get(key, frozenset()) | (frozenset() if None in key else whose)
                found[table.name] = [units.get(read_key(row, table.link.columns), frozenset()) for row in rows]
        return found

    def list_units(self) -> list[Value]:
        """All units, those with most rows first."""
        sizes: dict[Value, int] = {}
        for whose in self.find_owners().values():
            for unit in (unit for row in whose for unit in row):
                sizes[unit] = sizes.get(unit, 0) + 1
        return sorted(sizes, key=lambda unit: -sizes[unit])

    def remove_unit(self, unit: Value, *, orphans: bool = False) -> Dataset:
        """The dataset without a unit. Rows that also belong to others stay; ``orphans`` keeps rows that refer to it."""
        kept: dict[str, Sequence[AuditRow]] = dict(self.dataset)
        for name, whose in self.find_owners().items():
            if orphans and self.catalog.tables[name].link is not None:
                continue
            kept[name] = [row for row, units in zip(self.dataset[name], whose) if units != {unit}]
        return kept

    def rename_unit(self, made: Dataset, unit: Value) -> Dataset:
        """The rows of a new unit under the name of another unit."""
        own = {table.name: table.unit_column for table in self.tables}
        return {
            name: [row if (column := own[name]) is None else row | {column.name: unit} for row in rows]
            for name, rows in made.items()
        }

    def find_links(self, table: TableFacts) -> list[Link]:
        """The foreign keys of a table to private tables, without those that are the name of the unit."""
        declared = dict.fromkeys((*table.keys, *(() if table.link is None else (table.link,))))
        own = table.unit_column
        return [
            link
            for link in declared
            if not self.catalog.find_table(link.parent).public and (own is None or link.columns != (own.name,))
        ]

    def find_referred_keys(self, table: TableFacts) -> dict[tuple[str, ...], list[ReferredValues]]:
        """The keys of a table that other tables refer to, with the values that occur in either table."""
        found: dict[tuple[str, ...], list[ReferredValues]] = {}
        own = table.unit_column
        for other in self.tables:
            for link in self.find_links(other):
                if link.parent == table.name and (own is None or link.keys != (own.name,)):
                    seen = [read_key(row, link.keys) for row in self.dataset[table.name]]
                    seen += [read_key(row, link.columns) for row in self.dataset[other.name]]
                    found.setdefault(link.keys, []).extend(key for key in dict.fromkeys(seen) if None not in key)
        return found


def read_key(row: AuditRow, columns: Sequence[str]) -> ReferredValues:
    """The values of a key in a row."""
    return tuple(row[column] for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerRecipe:
    """How the rows of a new unit are made.

    With ``shared`` they have keys that others have; with ``loose`` their keys are NULL or refer to no row.
    """

    what: str
    values: ValueMaker
    rows: int = 1
    owner: Value = None
    only: str = ""
    shared: bool = False
    loose: bool = False


def make_newcomer(owners: Ownership, recipe: NewcomerRecipe) -> Dataset:
    """The rows of one new unit, in all tables."""
    return _NewcomerBuilder(owners, recipe).make_dataset()


def _make_newcomers(owners: Ownership) -> Iterator[tuple[str, Dataset]]:
    for recipe in _list_recipes(owners):
        yield recipe.what, make_newcomer(owners, recipe)


@dataclass(slots=True)
class _NewcomerBuilder:
    """Makes the rows of one new unit."""

    owners: Ownership
    recipe: NewcomerRecipe
    made: dict[str, list[AuditRow]] = field(default_factory=dict)
    serial: Iterator[int] = field(default_factory=lambda: count(7_000_001))

    def make_dataset(self) -> Dataset:
        for table in self.owners.tables:
            if self.recipe.only in ("", table.name):
                self.made[table.name] = self._make_rows(table)
        return self.made

    def _make_rows(self, table: TableFacts) -> list[AuditRow]:
        if table.link is not None and self.recipe.shared:
            return []  # rows that refer to shared keys would also belong to others
        referred, own = self.owners.find_referred_keys(table), table.unit_column
        found = []
        for number in range(self.recipe.rows):
            row = {
                name: find_usual(kind, facts, self.owners.dataset[table.name], name)
                for name, (kind, facts) in table.columns.items()
            } | dict(self.recipe.values(table, number))
            for link in self.owners.find_links(table):
                row |= zip(link.columns, self._make_foreign_key(table, link, number))
            for names, taken in referred.items():
                row |= zip(names, self._make_key([table.columns[name][0] for name in names], taken, number))
            if own is not None:
                row[own.name] = self.recipe.owner
            found.append(row)
        return found

    def _make_key(self, kinds: Sequence[Type], taken: Sequence[ReferredValues], number: int) -> ReferredValues:
        """A key that others may refer to: a new one, or with ``shared`` one that others have or refer to."""
        if self.recipe.shared and taken:
            return taken[number % len(taken)]
        made = (self._change_column(kinds, taken, number + i) for i in count())
        key = next(key for key in made if key not in taken)
        return _set_column(key, number, None) if self.recipe.loose and number % 2 else key

    def _change_column(self, kinds: Sequence[Type], taken: Sequence[ReferredValues], number: int) -> ReferredValues:
        """A new value in one column, beside values of a key that others have: what only all columns together tell."""
        others = taken[number % len(taken)] if taken else tuple(map(self._make_value, kinds))
        return _set_column(others, number, self._make_value(kinds[number % len(kinds)]))

    def _make_foreign_key(self, table: TableFacts, link: Link, number: int) -> ReferredValues:
        """A foreign key to a row of the new unit, or with ``shared`` to a row of others, if it is no link to a unit."""
        kinds = [table.columns[column][0] for column in link.columns]
        loose = tuple(map(self._make_value, kinds))
        if self.recipe.loose:
            return _set_column(loose, number, None) if number % 2 else loose
        if self.recipe.shared and table.link != link:
            others = [read_key(row, link.keys) for row in self.owners.dataset[link.parent]]
            return others[number % len(others)] if others else (None,) * len(kinds)
        parents = self.made.get(link.parent, [])
        return read_key(parents[number % len(parents)], link.keys) if parents else loose

    def _make_value(self, kind: Type) -> Value:
        number = next(self.serial)
        fresh: dict[Type, Value] = {Type.INTEGER: number, Type.TEXT: f"new {number}", Type.REAL: float(number)}
        return fresh.get(kind, NASTY[kind][0])


def _set_column(key: ReferredValues, number: int, value: Value) -> ReferredValues:
    """A key with another value in one of its columns, by turns."""
    at = number % len(key)
    return (*key[:at], value, *key[at + 1 :])


def _list_recipes(owners: Ownership) -> Iterator[NewcomerRecipe]:
    """Recipes of unusual units, those that find most errors first."""
    ids = _make_ids(owners)
    recipe, every = partial(NewcomerRecipe, owner=ids[0]), _make_group_values(owners)
    yield recipe(what="many rows at the upper bounds in every table", values=_make_end_values(high=True), rows=MANY)
    yield recipe(what="keys that others have", values=every, rows=3 * MANY, shared=True)
    yield recipe(what="rows in every group, rare ones too", values=every, rows=MANY)
    yield recipe(what="as usual", values=_make_no_values)
    yield recipe(what="keys that lead nowhere", values=every, rows=6, loose=True)
    yield recipe(what="many rows at the lower bounds in every table", values=_make_end_values(high=False), rows=MANY)
    for table in owners.tables:
        if table.link is None:
            yield recipe(what=f"rows in {table.name} only", values=every, rows=7, only=table.name)
    yield recipe(what="all NULL", values=lambda table, _: dict.fromkeys(table.columns, None), rows=3)
    for shift in range(max(len(values) for values in NASTY.values())):
        yield recipe(what=f"strange values {shift + 1}", values=_make_strange_values(shift), rows=2)
    for table in owners.tables:
        for name, (kind, _) in table.columns.items():
            for value in (make_rare(kind), *NASTY[kind]):
                what = f"{table.name}.{name} is {describe_value(value)}"
                yield recipe(what=what, values=_make_fixed_value(table.name, name, value), rows=5)
    for owner in (*ids, None):
        yield NewcomerRecipe(
            what=f"an id like others ({describe_value(owner)})", values=_make_no_values, rows=7, owner=owner
        )


def _make_ids(owners: Ownership) -> list[Value]:
    """Ids that no table has, but that look like those that occur."""
    columns = [(table, own) for table in owners.tables if (own := table.unit_column) is not None]
    taken = [row[own.name] for table, own in columns for row in owners.dataset[table.name]]
    return make_ids_like(taken, columns[0][1].type)


def _make_no_values(_: TableFacts, __: int) -> Mapping[str, Value]:
    return {}


def _make_group_values(owners: Ownership) -> ValueMaker:
    """Values that put every row into another group: all listed keys, or values of others and rare ones by turns."""
    seen: dict[str, dict[Value, None]] = {}
    for table in owners.tables:
        for name, (kind, _) in table.columns.items():
            if kind is Type.TEXT:  # from all tables, because columns of one name are often joined
                seen.setdefault(name, {}).update(dict.fromkeys(row[name] for row in owners.dataset[table.name]))

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
