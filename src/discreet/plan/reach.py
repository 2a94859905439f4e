"""Makes the relation that the name of a declared table stands for, in which each row has its unit.

A table that names the unit in a column is read as it is. A table that reaches the unit by a foreign key is joined to
the distinct pairs of key and unit of the table that it refers to. That table may reach the unit by a foreign key in
turn. A row that reaches no unit is dropped. A row that reaches several units, because a key is not unique, belongs to
each.
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
    unit's rows there adds or removes only pairs that name that other unit.
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
    referred = catalog.tables[facts.link.parent].find_column(facts.link.key)
    key = Column(f"{scan.name} in {facts.link.parent}", referred.name, referred.type)
    pairs = Projection(parent.relation, name, (("key", key), ("unit", parent.unit)))
    foreign = facts.find_column(facts.link.column)
    on = ((Column(scan.name, foreign.name, foreign.type), Column(name, "key", referred.type)),)
    return TableRelation(Join(scan, Distinct(pairs), JoinKind.INNER, on), Column(name, "unit", parent.unit.type))
