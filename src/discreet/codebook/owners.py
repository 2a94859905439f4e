"""Finds to whom the rows of each table belong.

There are four cases. Rows belong to nobody (a public table); each row is its own unit; a column names the unit; or
foreign keys lead to a table that names it. Any other table is refused, because a row whose unit is not known cannot be
protected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from discreet.codebook.entries import FOREIGN_KEY_FIX, ROW, Document, TableEntry, did_you_mean
from discreet.errors import Problem
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Link
from discreet.plan.types import Type

# The longest chain of foreign keys from a row to its unit.
MAX_CHAIN = 8
# Names that a table may give to a key of its own. The same name in another table means something else.
_COMMON_NAMES = {"id", "key", "pk", "uuid", "guid", "oid", "rowid", "no", "nr", "number", "code", "name"}
_WAYS_FIX = (
    'Say how its rows reach it, foreign_keys = { visit_id = "visits.visit_id" }, or that they belong to nobody, '
)
_WAYS_FIX += "public = true."


@dataclass(frozen=True, slots=True)
class UnitName:
    """The unit as a codebook names it: a column of one table, or of every private table if ``table`` is None."""

    column: str
    table: str | None = None

    def is_named_in(self, name: str, columns: Collection[str]) -> bool:
        """Whether a table has the unit's column. The unit ``patients.id`` is not the ``id`` of another table."""
        shared = self.table is None or self.column.lower() not in _COMMON_NAMES
        return self.column in columns and (shared or name == self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the rows of a private table reach their unit: the column ``owner`` names it, or ``link`` leads to it.

    ``steps`` is the number of foreign keys on the way.
    """

    owner: str | None = None
    link: Link | None = None
    steps: int = 0


def unit_name_of(document: Document) -> UnitName | None:
    """The unit of a codebook; None where each row is its own unit."""
    if document.unit == ROW:
        return None
    place = _locate(document.unit, document.tables)
    return UnitName(document.unit) if place is None else UnitName(place[1], place[0])


def foreign_keys_of(name: str, document: Document) -> tuple[Link, ...]:
    """The foreign keys of a table that refer to a declared column, in their order.

    If the codebook names the unit as a column of one table, other tables with this column refer to that table, too.
    """
    found = []
    table, unit = document.tables[name], unit_name_of(document)
    for entry in table.foreign_keys:
        places = [_locate(target, document.tables) for target in entry.values()]
        there = [place for place in places if place is not None]
        parents = {parent for parent, _ in there}
        if len(parents) == 1 and len(there) == len(entry) and entry.keys() <= table.columns.keys():
            found.append(Link(tuple(entry), there[0][0], tuple(key for _, key in there)))
    if unit is not None and unit.table not in (None, name) and not table.public:
        named = unit.is_named_in(name, table.columns) and all(link.columns != (unit.column,) for link in found)
        found += [Link((unit.column,), unit.table, (unit.column,))] if named and unit.table is not None else []
    return tuple(found)


def find_ways(document: Document) -> dict[str, Way]:
    """The way to the unit for each private table that has one: by a column, else by the shortest chain of foreign keys.

    Of chains of the same length, the one whose foreign key is declared first is used. There are no ways where each row
    is its own unit.
    """
    unit = unit_name_of(document)
    if unit is None:
        return {}
    private = {name: table for name, table in document.tables.items() if not table.public}
    links = {name: foreign_keys_of(name, document) for name in private}
    found = {name: Way(owner=unit.column) for name, table in private.items() if unit.is_named_in(name, table.columns)}
    # Tables that name the unit come first, so that none of them gets a longer way.
    while more := _find_naming_tables(links, found):
        found |= more
    for steps in range(1, MAX_CHAIN + 1):
        found |= _find_leading_tables(links, found, steps)
    return found


def _find_naming_tables(links: Mapping[str, tuple[Link, ...]], found: Mapping[str, Way]) -> dict[str, Way]:
    """The tables with a foreign key to a column that names the unit, alone or with others. It names the unit, too."""
    more: dict[str, Way] = {}
    for name, keys in links.items():
        pairs = [(link.parent, pair) for link in keys for pair in link.pairs]
        own = [column for parent, (column, key) in pairs if parent in found and found[parent].owner == key]
        if own and name not in found:
            more[name] = Way(owner=own[0])
    return more


def _find_leading_tables(links: Mapping[str, tuple[Link, ...]], found: Mapping[str, Way], steps: int) -> dict[str, Way]:
    """The tables with a foreign key to a table that is one step nearer to the unit."""
    more: dict[str, Way] = {}
    for name, keys in links.items():
        near = [link for link in keys if link.parent in found and found[link.parent].steps == steps - 1]
        if near and name not in found:
            more[name] = Way(link=near[0], steps=steps)
    return more


def find_other_ways(name: str, document: Document, found: Mapping[str, Way]) -> tuple[Link, ...]:
    """Further foreign keys of a table that lead to a unit. Then a row concerns two units but belongs to one of them."""
    own = found[name]
    return tuple(
        link
        for link in foreign_keys_of(name, document)
        if link.parent in found and link != own.link and own.owner not in link.columns
    )


def _locate(text: str, tables: Mapping[str, TableEntry]) -> tuple[str, str] | None:
    """The table and the column that ``table.column`` means; None where they are not declared. Names may have dots."""
    for at, letter in enumerate(text):
        if letter == "." and text[:at] in tables and text[at + 1 :] in tables[text[:at]].columns:
            return text[:at], text[at + 1 :]
    return None


def find_problems(document: Document) -> Iterator[Problem]:
    """Problems of tables whose unit cannot be found, and of foreign keys that lead nowhere."""
    private = {name: table for name, table in document.tables.items() if not table.public}
    if document.tables and not private:
        fix = "Declare the table about people, and remove public = true where it is not."
        yield Problem("tables", "are all public, so that nobody is protected", fix)
    broken = set()
    for name, table in document.tables.items():
        wrong = list(_check_foreign_keys(name, table, document))
        broken |= {name} if wrong else set()
        yield from wrong
        yield from _check_public(name, table) if table.public else ()
    unit = unit_name_of(document)
    if unit is None:
        yield from _check_row_units(private)
        return
    wrong = list(_check_unit(unit, document))
    yield from wrong
    if not wrong:
        found = find_ways(document)
        yield from _check_owners(unit, found, document)
        for name in private:
            if name not in found and name not in broken:
                yield _explain_unreached(name, unit, found, document)


def _check_unit(unit: UnitName, document: Document) -> Iterator[Problem]:
    """The unit ``table.column`` must be declared, in a private table."""
    if unit.table is not None and document.tables[unit.table].public:
        yield Problem("unit", f"is a column of the public table {unit.table!r}", "Name a column of a private table.")
    elif (
        unit.table is None
        and "." in unit.column
        and not any(unit.column in t.columns for t in document.tables.values())
    ):
        table, _, column = unit.column.partition(".")
        known = document.tables.get(table)
        hint = did_you_mean(table, document.tables) if known is None else did_you_mean(column, known.columns)
        yield Problem("unit", "names a column that is not declared", hint)


def _check_owners(unit: UnitName, found: Mapping[str, Way], document: Document) -> Iterator[Problem]:
    """The columns that name the unit must have one type, so that a unit can be compared in all tables."""
    named = {name: way.owner for name, way in found.items() if way.owner is not None}
    first = unit.table if unit.table in named else next(iter(named), None)
    for name, owner in named.items():
        kind = document.tables[name].columns[owner].type
        path = f"tables.{name}.columns.{owner}"
        if kind == Type.REAL:
            fix = "Store it as integer or text; rounding could merge two people."
            yield Problem(path, "names the unit and cannot be a real", fix)
        elif first is not None and kind != (other := document.tables[first].columns[named[first]].type):
            fix = f"Declare both alike: what it names is {other} in {first!r}."
            yield Problem(path, f"names the unit as {kind}, so that it cannot be compared", fix)


def _explain_unreached(name: str, unit: UnitName, found: Mapping[str, Way], document: Document) -> Problem:
    table, path = document.tables[name], f"tables.{name}"
    links = foreign_keys_of(name, document)
    if not links:
        hint = did_you_mean(unit.column, table.columns) if table.columns else "Declare its columns."
        hint = hint if hint.startswith(("Did", "Declare")) else ""
        return Problem(f"{path}.columns", f"lacks the unit column {unit.column!r}", f"{hint} {_WAYS_FIX}".strip())
    if any(link.parent in found for link in links):
        fix = f"Refer to a table that is nearer to the unit; {MAX_CHAIN} foreign keys are the most."
        return Problem(f"{path}.foreign_keys", "are too far away from the unit", fix)
    circle = _find_circle(name, document)
    if circle:
        rule = f"lead in a circle ({' → '.join(circle)}) and never to the unit {unit.column!r}"
        return Problem(f"{path}.foreign_keys", rule, _WAYS_FIX)
    ends = ", ".join(dict.fromkeys(link.parent for link in links))
    return Problem(f"{path}.foreign_keys", f"lead to {ends}, and not to the unit {unit.column!r}", _WAYS_FIX)


def _find_circle(name: str, document: Document) -> list[str]:
    """The tables of a circle that the first foreign keys lead in; empty if there is none."""
    trail = [name]
    while links := foreign_keys_of(trail[-1], document):
        if links[0].parent in trail:
            return [*trail[trail.index(links[0].parent) :], links[0].parent]
        trail.append(links[0].parent)
    return []


def _check_foreign_keys(name: str, table: TableEntry, document: Document) -> Iterator[Problem]:
    for entry in table.foreign_keys:
        places = {column: _locate(target, document.tables) for column, target in entry.items()}
        for column, target in entry.items():
            path, place = f"tables.{name}.foreign_keys.{column}", places[column]
            if column not in table.columns:
                yield Problem(path, "is not a declared column of this table", did_you_mean(column, table.columns))
            elif place is None:
                yield Problem(path, "refers to a column that is not declared", _suggest_place(target, document.tables))
            elif place == (name, column) and len(entry) == 1:
                yield Problem(path, "refers to itself", "Remove it, or name the table whose key it holds.")
            else:
                yield from _check_reference(path, name, column, place, document)
        yield from _check_together(f"tables.{name}.foreign_keys", name, places)


def _check_together(path: str, name: str, places: Mapping[str, tuple[str, str] | None]) -> Iterator[Problem]:
    """The columns of one foreign key must refer to as many columns of one table."""
    there = [place for place in places.values() if place is not None]
    words = ", ".join(places)
    if not places:
        yield Problem(path, "has a foreign key without columns", FOREIGN_KEY_FIX)
    elif len({parent for parent, _ in there}) > 1:
        fix = "Write foreign keys to different tables one by one: [{ a = ... }, { b = ... }]."
        yield Problem(path, f"has a foreign key ({words}) that refers to several tables", fix)
    elif len(set(there)) < len(there):
        yield Problem(path, f"has a foreign key ({words}) that refers to one column twice", FOREIGN_KEY_FIX)
    elif len(places) > 1 and all(place == (name, column) for column, place in places.items()):
        yield Problem(path, f"has a foreign key ({words}) that refers to itself", "Remove it, or name another table.")


def _check_reference(
    path: str, name: str, column: str, place: tuple[str, str], document: Document
) -> Iterator[Problem]:
    """Both columns must be comparable, and a public table must not refer to a private one."""
    far, key = place
    table, parent, unit = document.tables[name], document.tables[far], unit_name_of(document)
    here, there = table.columns[column].type, parent.columns[key].type
    if here != there:
        yield Problem(path, f"holds {here} and refers to {there}", "Declare both of the same type, for example text.")
    elif here == Type.REAL:
        yield Problem(path, "is a real, and reals are no keys", "Store both as integer or text.")
    if table.public and not parent.public:
        fix = "Remove public = true if its rows are about people, or else this foreign key."
        yield Problem(path, "refers from a public table to a private one, so that it tells who is there", fix)
    elif unit is not None and not table.public and unit.is_named_in(name, table.columns) and column == unit.column:
        way = find_ways(document).get(far)
        if way is None or way.owner != key:
            fix = "Remove it, or name the unit in another column."
            yield Problem(path, "names the unit and refers to something else", fix)


def _suggest_place(target: str, tables: Mapping[str, TableEntry]) -> str:
    table, dot, column = target.partition(".")
    if not dot:
        return f'Write the table, too: "visits.{target}".'
    known = tables.get(table)
    return did_you_mean(table, tables) if known is None else did_you_mean(column, known.columns)


def _check_public(name: str, table: TableEntry) -> Iterator[Problem]:
    """A public table must have no entries that limit or protect units."""
    path = f"tables.{name}"
    for word in ("max_rows", "max_groups", "max_rows_per_group", "units"):
        if getattr(table, word) is not None:
            fix = "Remove it; or remove public = true if its rows are about people."
            yield Problem(f"{path}.{word}", "is for rows of units, and this table is public", fix)
    for column, entry in table.columns.items():
        for word in ("constant_per_unit", "max_frequency", "max_values"):
            if getattr(entry, word):
                fix = "Remove it: rows of a public table belong to nobody."
                yield Problem(f"{path}.columns.{column}.{word}", "is for rows of units, and this table is public", fix)


def _check_row_units(private: Mapping[str, TableEntry]) -> Iterator[Problem]:
    for name, table in private.items():
        for column, entry in table.columns.items():
            for word, what in (("max_frequency", "joins"), ("max_values", "several rows")):
                if getattr(entry, word) is not None:
                    fix = "Remove it, or name a unit column."
                    path = f"tables.{name}.columns.{column}.{word}"
                    yield Problem(path, f"is for {what} of units, and here each row is its own", fix)
