"""The rows of a bounded question for the block kernel: units, groups and integers as codes, in DuckDB's SQL."""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.duckdb.blocks.kernel import NULL, RowLayout
from discreet.engines.sql.clauses import write_order
from discreet.engines.sql.statement import BoundedStatement


def write_distinct_keys(statement: BoundedStatement) -> str:
    """The groups that occur, with codes that follow the order of the keys."""
    if not statement.keys:
        return "SELECT CAST(0 AS BIGINT) AS code"
    source = "domain" if statement.bounded.domain is not None else "rows"
    listed, order = ", ".join(statement.keys), ", ".join(map(write_order, statement.keys))
    distinct = f"(SELECT DISTINCT {listed} FROM {source})"
    coded = f"SELECT {listed}, row_number() OVER (ORDER BY {order}) - 1 AS code FROM {distinct}"
    return coded if source == "domain" else statement.write_query([], coded)


def write_distinct_units(statement: BoundedStatement) -> str:
    """The units that occur, with any codes: for units that are not integers themselves."""
    return statement.write_query([], "SELECT u, row_number() OVER () AS code FROM (SELECT DISTINCT u FROM rows)")


def make_layout(statement: BoundedStatement, group_bits: int) -> RowLayout:
    """How the kernel finds a row's integers. Without a cap there is no order, and no hash is needed."""
    ranges = tuple((steps.first, steps.last) for steps in statement.steps)
    hash_bits = statement.order.bits if statement.ordered else 0
    return RowLayout(hash_bits, group_bits, ranges, separate=bool(statement.distinct))


def needs_units(statement: BoundedStatement) -> bool:
    """Whether units are not integers, so that they need codes from a table ``units``."""
    return not statement.relation.ordinal


def write_coded_rows(
    statement: BoundedStatement, layout: RowLayout, span: str = "", more: Sequence[str] = (), joins: str = ""
) -> str:
    """The rows for the kernel: an integer for the unit, the place, and values beside it where they do not fit.

    ``span`` restricts the scanned rows, over the columns of the relation. ``more`` is selected beside them.
    """
    place = "groups.code"
    if layout.hash_bits:
        place = f"({statement.write_place('rows.')} << {layout.group_bits}) | groups.code"
    place = f"CAST({place} AS BIGINT)"
    values = [f"coalesce(v{i}, CAST({NULL} AS BIGINT)) AS v{i}" for i in range(len(statement.steps))]
    if layout.packed:
        values = []
        for i, ((first, last), width) in enumerate(zip(layout.ranges, layout.widths)):
            place = f"(({place}) << {width}) | coalesce(v{i} - ({first}), {last - first + 1})"
    ordinal, units = ("units.code", " JOIN units ON rows.u = units.u") if needs_units(statement) else ("ordinal", "")
    items = ", ".join([f"{ordinal} AS u", f"CAST({place} AS BIGINT) AS p", *values, *more])
    same = statement.write_same_group("rows", "groups")
    return statement.write_query([], f"SELECT {items} FROM rows JOIN groups ON {same}{units}{joins}", span)
