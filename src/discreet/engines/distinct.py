"""Distinct values in DuckDB's SQL: of each unit's values in a kept group, as many as rows are allowed, then the union.

Which values are taken is decided by a keyed hash of the unit, the key and the value itself; ties fall back to the order
of the values. So it is a function of the unit's own rows and the salt, whatever other units hold.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.engines.statement import Statement


def clauses(statement: Statement, kept: str) -> tuple[list[str], str]:
    """Clauses that count d0 … values by group, and how to join them to a table ``totals`` of groups."""
    found, joins = [], ""
    keys = "".join(f", {key}" for key in statement.keys)
    for i in range(len(statement.distinct)):
        own = f"SELECT DISTINCT u, identity{keys}, x{i} FROM rows{statement.public('rows')} WHERE x{i} IS NOT NULL"
        found.append(f"own{i} AS ({own})")
        pair = f"own{i}.u = {kept}.u AND {statement.same(f'own{i}', kept)}"
        found.append(
            f"hashed{i} AS (SELECT own{i}.*, allowed, {statement.hash(f'own{i}.', f'own{i}.x{i}')} AS h "
            f"FROM own{i} JOIN {kept} ON {pair})"
        )
        place = f"row_number() OVER (PARTITION BY u{keys} ORDER BY h, x{i})"
        found.append(f"taken{i} AS (SELECT * FROM hashed{i} QUALIFY {place} <= allowed)")
        named = ", ".join([*statement.keys, f"count(DISTINCT x{i}) AS d{i}"])
        found.append(f"brought{i} AS (SELECT {named} FROM taken{i}{statement.group_by()})")
        joins += f" LEFT JOIN brought{i} ON {statement.same('totals', f'brought{i}')}"
    return found, joins
