"""Makes the relation that the name of a declared table stands for, in which each row has its unit.

A table that names the unit in a column is read as it is. A table that reaches the unit by a foreign key is joined to
the distinct keys of the table that it refers to, each with its unit, on all columns of the key. That table may reach
the unit by a foreign key in turn. A row that reaches no unit, such as one with a NULL in its foreign key, is dropped. A
row that reaches several units, because a key is not unique, belongs to each.
"""

from __future__ import annotations

from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column
from discreet.plan.relations import Distinct, Join, JoinKind, Projection, Relation, Scan


@dataclass(frozen=True, slots=True)
class TableRelation:
    """A declared table as a relation, and the column that names the unit of each row.

    ``unit`` is None where the table is public or a row is the unit.
    """

    relation: Relation
    unit: Column | None


def reach(table: str, catalog: Catalog, alias: str = "") -> TableRelation:
    """The relation that a table's name stands for. A table that is read again has an alias.

    Privacy: the rows of a unit in the relation follow from its own rows in the tables that name it, and from rows that
    refer to these. Why: each step joins on a key and takes the unit from the other side. Adding or removing another
    unit's rows there adds or removes only pairs that name that other unit. This does not depend on how many columns the
    key has: a row meets the keys that are equal to its own in every column, and each of them names its unit. With fewer
    columns a row would also reach units that it does not refer to, so all of them are compared.
    """
    facts = catalog.tables[table]
    scan = Scan(table, alias)
    if facts.link is None:
        column = facts.unit_column
        return TableRelation(scan, None if column is None else Column(scan.name, column.name, column.type))
    parent = reach(facts.link.parent, catalog, f"{scan.name} in {facts.link.parent}")
    if parent.unit is None:
        raise InternalError("A table reaches its unit through one that has none.")
    name = f"{scan.name} to {facts.link.parent}"
    shown: list[tuple[str, Column]] = []
    on = []
    for i, (name_here, name_there) in enumerate(facts.link.pairs):
        foreign, referred = facts.find_column(name_here), catalog.tables[facts.link.parent].find_column(name_there)
        own = "key" if i == 0 else f"key {i + 1}"
        shown.append((own, Column(f"{scan.name} in {facts.link.parent}", referred.name, referred.type)))
        on.append((Column(scan.name, foreign.name, foreign.type), Column(name, own, referred.type)))
    keys = Distinct(Projection(parent.relation, name, (*shown, ("unit", parent.unit))))
    return TableRelation(Join(scan, keys, JoinKind.INNER, tuple(on)), Column(name, "unit", parent.unit.type))
