"""Distinct values of units: the pairs of ``contributions.py`` in their secret order, in SQL, for ``engines.matching``.

    brought   each unit, group and value once, with the integers of the value that are summed
    units     the units by number, in their order
    items     the groups with their values by number, in their order
    hashed    pairs with their places in the secret order

The secret order is a keyed hash of unit, key and value, never of numbers, which depend on other units. Ties fall back
to the order of units, keys and values, which is that of their numbers. So the order of two pairs depends on nothing but
the two. Whether a pair is taken does not depend on what is summed, so the number of values, their sum and that of their
squares are about the same items, and one pass over the pairs gives all of them.

Where each row is its own unit nothing is matched, and every value of a group is summed once.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from discreet.bounding.contributions import Counts, Measure
from discreet.engines.engine import Groups, ProgressCallback
from discreet.engines.lookups import make_groups_table
from discreet.engines.matching import Matching
from discreet.engines.sql.runner import Runner
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.unit_sums import write_public_rows
from discreet.errors import InternalError
from discreet.exact import Integers

# Pairs that are matched at once.
BATCH_PAIRS = 1 << 17

Measures: TypeAlias = Mapping[int, Measure]
"""Measures of the same distinct values, by their positions."""


def add_distinct_values(
    runner: Runner, statement: BoundedStatement, groups: Groups, watch: ProgressCallback | None = None
) -> Groups:
    """An answer with the distinct values of units, over the observed groups."""
    # Where each row is its own unit, values are counted where rows are.
    counted = () if statement.bounded.unit is not None else (Counts.DISTINCT,)
    wanted = {i: m for i, m in enumerate(statement.bounded.measures) if m.matched and m.counts not in counted}
    if not wanted:
        return groups
    if statement.keys:
        runner.fill("held", make_groups_table(statement.bounded, groups.keys, coded=True))
    found: dict[int, tuple[int, ...]] = {}
    for argument, most in dict.fromkeys((m.argument, m.max_values) for m in wanted.values()):
        same = {i: m for i, m in wanted.items() if (m.argument, m.max_values) == (argument, most)}
        found |= _add_up(runner, statement, same, len(groups.keys), watch)
    return replace(groups, values=tuple(found.get(i, values) for i, values in enumerate(groups.values)))


def _add_up(
    runner: Runner, statement: BoundedStatement, measures: Measures, groups: int, watch: ProgressCallback | None
) -> dict[int, tuple[int, ...]]:
    """The totals of measures of the same values, for each group."""
    totals = {position: [0] * groups for position in measures}
    for places, integers in _take_items(runner, statement, measures, watch):
        for position, measure in measures.items():
            if measure.counts is Counts.DISTINCT:
                more = np.bincount(places, minlength=groups).tolist()
                totals[position] = [old + new for old, new in zip(totals[position], more)]
                continue
            squared = measure.counts is Counts.DISTINCT_SQUARES
            # Whole numbers of Python: squares and sums may be beyond 64 bits.
            for place, integer in zip(places.tolist(), integers[_source_of(statement, measure)].tolist()):
                totals[position][place] += integer * integer if squared else integer
    return {position: tuple(found) for position, found in totals.items()}


def _take_items(
    runner: Runner, statement: BoundedStatement, measures: Measures, watch: ProgressCallback | None
) -> Iterator[tuple[Integers, dict[int, Integers]]]:
    """The items that are taken: their groups, and the integers that are summed, each item once."""
    sources = _list_sources(statement, measures)
    measure = next(iter(measures.values()))
    if statement.bounded.unit is None:
        query, matching = _write_items(statement, measure, sources), None
    elif measure.max_values is None:
        raise InternalError("Distinct values without a limit.")
    else:
        query, matching = _write_pairs(statement, measure, sources), Matching(measure.max_values)
    for batch in runner.stream(query, statement.parameters, BATCH_PAIRS, watch):
        columns = [column.to_numpy().astype(np.int64) for column in batch.columns]
        if matching is not None:
            units, items, *columns = columns
            taken = matching.take(units, items)
            columns = [column[taken] for column in columns]
        yield columns[0], dict(zip(sources, columns[1:]))


def _source_of(statement: BoundedStatement, measure: Measure) -> int:
    source = statement.source_of(measure)
    if source is None:
        raise InternalError("Sums of values need their integers.")
    return source


def _list_sources(statement: BoundedStatement, measures: Measures) -> list[int]:
    """The integers v0 … that are summed."""
    summed = (m for m in measures.values() if m.counts is not Counts.DISTINCT)
    return sorted({_source_of(statement, measure) for measure in summed})


def _write_brought(statement: BoundedStatement, measure: Measure, sources: list[int], owner: str) -> str:
    """Each group and value once, for each ``owner``; the integers are functions of the value."""
    position = statement.distinct_of(measure)
    held = f" JOIN held ON {statement.write_same_group('public', 'held')}" if statement.keys else ""
    code = "held.code" if statement.keys else statement.dialect.as_integer("0")
    identity = ", min(identity) AS identity" if owner and statement.relation.identity else ""  # all are equal
    integers = "".join(f", min(v{i}) AS v{i}" for i in sources)
    return (
        f"SELECT {owner}{code} AS place, x{position} AS x{integers}{identity} FROM public{held} "
        f"WHERE x{position} IS NOT NULL GROUP BY {owner}{code}, x{position}"
    )


def _write_items(statement: BoundedStatement, measure: Measure, sources: list[int]) -> str:
    """Rows of a group by number and the integers of one of its values."""
    brought = statement.define("brought", _write_brought(statement, measure, sources, ""))
    shown = ", ".join(["place", *(f"v{i}" for i in sources)])
    return statement.write_query([write_public_rows(statement, once=True), brought], f"SELECT {shown} FROM brought")


def _write_pairs(statement: BoundedStatement, measure: Measure, sources: list[int]) -> str:
    """Rows of a unit, an item and its group, all by number, and the item's integers, in the secret order."""
    define, as_integer, argument = statement.define, statement.dialect.as_integer, measure.argument
    if argument is None:
        raise InternalError("Distinct values of nothing.")
    brought = _write_brought(statement, measure, sources, "u, ")
    number = as_integer("row_number() OVER (ORDER BY {}) - 1")
    units = f"SELECT u, {number.format('u')} AS unit FROM (SELECT DISTINCT u FROM brought) AS own"
    each = "SELECT DISTINCT place, x FROM brought"
    items = f"SELECT place, x, {number.format('place, x')} AS item FROM ({each}) AS own"
    keyed = " JOIN held ON brought.place = held.code" if statement.keys else ""
    integers = "".join(f", v{i}" for i in sources)
    place = statement.write_place("", ("x", argument.type))
    hashed = f"SELECT u, place, x{integers}, {place} AS h FROM brought{keyed}"
    joined = "hashed JOIN units ON hashed.u = units.u JOIN items ON hashed.place = items.place AND hashed.x = items.x"
    return statement.write_query(
        [
            write_public_rows(statement, once=True),
            define("brought", brought, keep=True),
            define("units", units),
            define("items", items),
            define("hashed", hashed),
        ],
        f"SELECT unit, item, hashed.place{integers} FROM {joined} ORDER BY h, unit, item",
    )
