"""Joins of whole tables of which one has all keys: its rows get the numbers of groups before they are joined.

A number is quicker to join and to read than a text. The table of numbers is made of all keys that the table has; those
that meet nothing are in no row.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Callable

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.relations import StoredTable
from discreet.late_dataclass import dataclass
from discreet.plan.expressions import Column, find_columns
from discreet.plan.relations import Join, JoinKind, Relation, Scan, split

# The table of private groups and their numbers, and what its columns are called where it is joined to another table.
NAMED = "named"
_NUMBER, _KEY = "group number", "group key {}"


@dataclass(frozen=True, slots=True)
class JoinedTables:
    """Tables that are joined, and the query of all keys that rows may have, which are of one table; empty for none.

    ``coded`` is the table whose keys can be read as their groups' numbers, before it is joined, and the names of these
    columns: nothing else reads them. It is empty where there is none.
    """

    sources: tuple[str, ...]
    keys: str = ""
    coded: tuple[str, tuple[str, ...]] = ("", ())

    def code_keys(self, table: str, stored: StoredTable) -> StoredTable:
        """A table with the number of the group in the place of the first key."""
        name, columns = self.coded
        if table != name:
            return stored
        keys = [f"k{i} AS {quote_name(_KEY.format(i))}" for i in range(len(columns))]
        numbers = f"(SELECT {', '.join(keys)}, code AS {quote_name(_NUMBER)} FROM {NAMED})"
        same = " AND ".join(
            f"{stored.columns[column]} IS NOT DISTINCT FROM {quote_name(_KEY.format(i))}"
            for i, column in enumerate(columns)
        )
        return StoredTable(
            f"{stored.source} JOIN {numbers} AS numbers ON {same}",
            {**stored.columns, columns[0]: quote_name(_NUMBER)},
        )


def find_joined(bounded: BoundedPlan, find_table: Callable[[str], StoredTable]) -> JoinedTables | None:
    """Tables whose rows are joined by equal values and all read; None for others, and where keys are of several.

    Under a condition few rows may be left, for which one statement does as well.
    """
    scans = None if split(bounded.source)[1] else _list_scans(bounded.source)
    if scans is None:
        return None
    sources = tuple(find_table(scan.table).source for scan in scans)
    if not bounded.keys or bounded.domain is not None:
        return JoinedTables(sources)
    owners = {key.table if isinstance(key, Column) else "" for key in bounded.keys}
    owner = next((scan for scan in scans if {scan.name} == owners), None)
    if owner is None:
        return None
    stored, names = find_table(owner.table), [key.name for key in bounded.keys if isinstance(key, Column)]
    keys = ", ".join(f"{stored.columns[name]} AS k{i}" for i, name in enumerate(names))
    on = (part for join in _list_joins(bounded.source) for pair in join.on for part in pair)
    arguments = (measure.argument for measure in bounded.measures if measure.argument is not None)
    read = {column for part in (bounded.unit, *on, *arguments) if part is not None for column in find_columns(part)}
    alone = [scan.table for scan in scans].count(owner.table) == 1 and not read.intersection(bounded.keys)
    coded = (owner.table, tuple(names)) if alone else ("", ())
    return JoinedTables(sources, f"SELECT {keys} FROM {stored.source}", coded)


def _list_joins(relation: Relation) -> list[Join]:
    if not isinstance(relation, Join):
        return []
    return [relation, *_list_joins(relation.left), *_list_joins(relation.right)]


def _list_scans(relation: Relation) -> list[Scan] | None:
    """The tables of inner joins; None where there is anything else."""
    if isinstance(relation, Scan):
        return [relation]
    if not isinstance(relation, Join) or relation.kind is not JoinKind.INNER or relation.caps or relation.single:
        return None
    left, right = map(_list_scans, (relation.left, relation.right))
    return None if left is None or right is None else left + right
