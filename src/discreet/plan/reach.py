"""How the rows of a declared table come to their unit: the relation that a table's name stands for.

A table that names the unit itself is read as it is. A table that reaches the unit by foreign keys is joined to the
distinct pairs of key and unit of the table it refers to, which may reach the unit by a foreign key in turn. A row that
reaches no unit is dropped; a row that reaches several (because a key is not unique after all) belongs to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import InternalError
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Column
from discreet.plan.relations import Distinct, Join, JoinKind, Projection, Relation, Scan


@dataclass(frozen=True, slots=True)
class TableRelation:
    """A declared table as a relation, and the column that names the unit of each row (None: public, or row units)."""

    relation: Relation
    unit: Column | None


def reach(table: str, catalog: Catalog, alias: str = "") -> TableRelation:
    """The relation that a table's name stands for, under an alias where it is read more than once.

    Privacy: what a unit has in the relation follows from its own rows in the tables that name it and from rows that
    refer to these. Why: each step joins on a key and takes the unit from the other side; adding or removing another
    unit's rows there adds or removes pairs with that unit's name only.
    """
    facts = catalog.tables[table]
    scan = Scan(table, alias)
    if facts.link is None:
        own = facts.unit_column
        return TableRelation(scan, None if own is None else Column(scan.name, own.name, own.type))
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
