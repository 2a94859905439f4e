"""Distinct values of units: the pairs of ``contributions.py`` in their secret order, in SQL, for ``engines.matching``.

    brought   each unit, group and value once
    units     the units by number, in their order
    items     the groups with their values by number, in their order
    hashed    pairs with their places in the secret order

The secret order is a keyed hash of unit, key and value, never of numbers, which depend on other units. Ties fall back
to the order of units, keys and values, which is that of their numbers. So the order of two pairs depends on nothing but
the two.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.bounding.contributions import Counts, Measure
from discreet.engines.engine import Groups, ProgressCallback
from discreet.engines.lookups import make_groups_table
from discreet.engines.matching import Matching
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import write_public_rows
from discreet.errors import InternalError

# Pairs that are matched at once.
BATCH_PAIRS = 1 << 17


def add_distinct_values(
    runner: Runner, statement: BoundedStatement, groups: Groups, watch: ProgressCallback | None = None
) -> Groups:
    """An answer with the distinct values of units, over the observed groups."""
    measures = statement.bounded.measures
    wanted = {i: m for i, m in enumerate(measures) if m.counts is Counts.DISTINCT}
    if statement.bounded.unit is None or not wanted:
        return groups
    if statement.keys:
        runner.fill("held", make_groups_table(statement.bounded, groups.keys, coded=True))
    found = {i: _count_values(runner, statement, measure, len(groups.keys), watch) for i, measure in wanted.items()}
    return replace(groups, values=tuple(found.get(i, values) for i, values in enumerate(groups.values)))


def _count_values(
    runner: Runner, statement: BoundedStatement, measure: Measure, groups: int, watch: ProgressCallback | None
) -> tuple[int, ...]:
    if measure.max_values is None:
        raise InternalError("Distinct values without a limit.")
    matching = Matching(measure.max_values, groups)
    for batch in runner.stream(_write_pairs(statement, measure), statement.parameters, BATCH_PAIRS, watch):
        units, items, places = (column.to_numpy().astype(np.int64) for column in batch.columns)
        matching.add(units, items, places)
    return tuple(matching.counts)


def _write_pairs(statement: BoundedStatement, measure: Measure) -> str:
    """Rows of a unit, an item and its group, all by number, in the secret order."""
    define, as_integer = statement.define, statement.dialect.as_integer
    position, argument = statement.distinct_of(measure), measure.argument
    if argument is None:
        raise InternalError("Distinct values of nothing.")
    held = f" JOIN held ON {statement.write_same_group('public', 'held')}" if statement.keys else ""
    code = "held.code" if statement.keys else statement.dialect.as_integer("0")
    identity = ", min(identity) AS identity" if statement.relation.identity else ""  # all are equal
    brought = (
        f"SELECT u, {code} AS place, x{position} AS x{identity} FROM public{held} WHERE x{position} IS NOT NULL "
        f"GROUP BY u, {code}, x{position}"
    )
    number = as_integer("row_number() OVER (ORDER BY {}) - 1")
    units = f"SELECT u, {number.format('u')} AS unit FROM (SELECT DISTINCT u FROM brought) AS own"
    each = "SELECT DISTINCT place, x FROM brought"
    items = f"SELECT place, x, {number.format('place, x')} AS item FROM ({each}) AS own"
    keyed = " JOIN held ON brought.place = held.code" if statement.keys else ""
    hashed = f"SELECT u, place, x, {statement.write_place('', ('x', argument.type))} AS h FROM brought{keyed}"
    joined = "hashed JOIN units ON hashed.u = units.u JOIN items ON hashed.place = items.place AND hashed.x = items.x"
    return statement.write_query(
        [
            write_public_rows(statement, once=True),
            define("brought", brought, keep=True),
            define("units", units),
            define("items", items),
            define("hashed", hashed),
        ],
        f"SELECT unit, item, hashed.place FROM {joined} ORDER BY h, unit, item",
    )
