"""The rows of a public relation, computed by the oracle's own rules from tables that any engine reads."""

from __future__ import annotations

from collections.abc import Callable

from discreet.engines.engine import key_order
from discreet.engines.memory.relations import RelationReader
from discreet.errors import InternalError
from discreet.plan.catalog import Catalog
from discreet.plan.relations import Relation, Values, find_tables


def read_public_relation(relation: Relation, catalog: Catalog, read_table: Callable[[str], Values]) -> Values:
    """All rows of a relation over declared public tables, sorted, under the name by which its columns are known.

    ``read_table`` refuses a private table.
    """
    tables = {}
    for table in find_tables(relation):
        values = read_table(table)
        names = [name for name, _ in values.columns]
        tables[table] = [dict(zip(names, row)) for row in values.rows]
    found = RelationReader(tables, catalog, b"").read(relation)
    owners = {column.table for column in found.columns}
    if len(owners) != 1:
        raise InternalError("The columns of public rows have several tables.")
    rows = sorted((tuple(row[column] for column in found.columns) for row in found.rows), key=key_order)
    return Values(owners.pop(), tuple((column.name, column.type) for column in found.columns), tuple(rows))
