"""Caps in SQL: at most so many rows of each unit, chosen by the secret order.

Almost everybody has fewer rows than a cap. So units with more are found by counting, everyone else passes, and only the
rows of the former are sorted.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Sequence, Set

from discreet.engines.sql.clauses import Clauses, CommonTable, write_order
from discreet.plan.expressions import Column
from discreet.plan.relations import Capped, JoinKind, Scan, split
from discreet.plan.types import INTEGER_MAX


def write_capped(
    clauses: Clauses, relation: Capped, source: CommonTable, needed: Set[Column], salt: bytes, *, few: bool = False
) -> CommonTable:
    """A relation of which some rows remain. ``source`` carries all of its columns, because they decide which.

    ``few`` says that there are so few rows that counting them first is not worth the while.
    """
    dialect, layers = clauses.dialect, clauses.make_layers(source)
    values = [layers.write_value(expression) for expression in relation.by]
    by, heavy_by = ([clauses.make_name("b") for _ in values] for _ in range(2))
    items = [*source.columns.values(), *(f"{value} AS {name}" for value, name in zip(values, by))]
    # It is read three times: a table is read again, and anything else is kept so that it is computed once.
    keep = not few and not isinstance(split(relation.source)[0], Scan)
    top = clauses.add_layers(layers, source)
    rows = clauses.add(items, top, f" WHERE {values[0]} IS NOT NULL", keep=keep)
    kept = source.pick_columns(needed)
    most = min(relation.rows, INTEGER_MAX)  # nobody has more rows than that
    if few:
        return CommonTable(_add_first(clauses, most, CommonTable(rows, source.columns), by, salt), kept)
    grouped = [f"{name} AS {other}" for name, other in zip(by, heavy_by)]
    heavy = clauses.add(grouped, rows, f" GROUP BY {', '.join(by)} HAVING count(*) > {most}")
    same = " AND ".join(dialect.same(a, b, e.type) for a, b, e in zip(by, heavy_by, relation.by))
    many = clauses.add(["*"], dialect.join(rows, JoinKind.SEMI, heavy, same))
    first = _add_first(clauses, most, CommonTable(many, source.columns), by, salt)
    light = clauses.add(["*"], dialect.join(rows, JoinKind.ANTI, heavy, same))
    listed = ", ".join(kept.values()) or "1 AS nothing"
    both = " UNION ALL ".join(f"SELECT {listed} FROM {name}" for name in (light, first))
    return CommonTable(clauses.add(["*"], f"({both}) AS both_parts"), kept)


def _add_first(clauses: Clauses, most: int, rows: CommonTable, by: Sequence[str], salt: bytes) -> str:
    """The rows that remain of each unit, or of each unit and key, by the secret order."""
    columns = sorted(rows.columns.items(), key=lambda item: (item[0].table, item[0].name))
    place = clauses.make_name("h")
    hashed = clauses.dialect.place_of_row([(name, column.type) for column, name in columns], salt)
    placed = clauses.add(["*", f"{hashed} AS {place}"], rows.name)
    order = [place, *(write_order(name) for _, name in columns)]
    return clauses.add_first_rows(placed, by, order, most)
