"""Synthetic rows: a table like the private one, made from a release's measurements and a public seed alone.

Under limits by weight a row of a unit with many rows counts for less, so the synthetic rows stand for weighed rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.exact import Floats, Integers
from discreet.publish.chance import PublicChance
from discreet.publish.columns import PublishedColumn
from discreet.publish.constraints import CellRule, Constraint, combine_rules, find_allowed_row
from discreet.publish.estimates import estimate_one_way, estimate_table, estimate_total, to_simplex
from discreet.publish.measurements import Measurements
from discreet.publish.row_cells import fold
from discreet.publish.row_fitting import RowFitter, begin_rows, choose_rounds
from discreet.publish.workload import Attributes

_TRIES = 200


def make_cells(
    measured: Measurements,
    columns: Sequence[PublishedColumn],
    constraints: Sequence[Constraint],
    chance: PublicChance,
    watch: Callable[[float], None] | None = None,
) -> tuple[Integers, float]:
    """The cells of all rows, one line for each column, and how far their tables are from the estimated ones.

    That distance is the mean total variation distance over the measured tables of several columns.
    """
    workload = measured.allocation.workload
    count = max(1, round(estimate_total(measured)))
    ones = [estimate_one_way(measured, column) for column in range(len(columns))]
    tables = _estimate_tables(measured, count)
    rule = combine_rules(constraints, columns)
    rows = begin_rows(ones, count, chance)
    if rule is not None:
        rows = _repair(rows, ones, rule, find_allowed_row(columns, constraints), chance)
    rounds = choose_rounds(measured.allocation, count)
    fitted = RowFitter(rows, workload.sizes, tables, chance, rule).run(rounds, watch)
    return fitted, _find_distance(fitted, tables)


def find_one_way(
    rows: Integers, measured: Measurements, columns: Sequence[PublishedColumn] | None = None
) -> list[float]:
    """For each column how far its counts in the rows are from the estimated ones: the part of rows to change.

    With ``columns``, cells that rows do not tell apart are taken together (``row_cells``).
    """
    ones: dict[Attributes, Floats] = {(column,): estimate_one_way(measured, column) for column in range(len(rows))}
    return [_find_distance(rows, {part: table}, columns) for part, table in _to_size(ones, rows.shape[1]).items()]


def find_distance(rows: Integers, measured: Measurements, columns: Sequence[PublishedColumn]) -> float:
    """How far the tables of rows are from the estimated ones; cells that rows do not tell apart are one."""
    return _find_distance(rows, _estimate_tables(measured, rows.shape[1]), columns)


def _estimate_tables(measured: Measurements, count: int) -> dict[Attributes, Floats]:
    """The estimated tables of several columns that rows are fitted to, at so many rows."""
    wanted = dict.fromkeys((*measured.allocation.workload.weights, *measured.priors))
    return _to_size({part: estimate_table(measured, part) for part in wanted if len(part) > 1}, count)


def _to_size(tables: Mapping[Attributes, Floats], count: int) -> dict[Attributes, Floats]:
    return {part: table * (count / table.sum()) for part, table in tables.items()}


def _find_distance(
    rows: Integers, tables: Mapping[Attributes, Floats], columns: Sequence[PublishedColumn] | None = None
) -> float:
    """The mean total variation distance over the tables."""
    found: list[float] = []
    for attributes, table in tables.items():
        cells = np.ravel_multi_index([rows[column] for column in attributes], table.shape)
        counts = np.bincount(cells, minlength=table.size).reshape(table.shape)
        wanted = table if columns is None else fold(table, attributes, columns)
        found.append(float(np.abs(counts - wanted).sum()) / 2 / rows.shape[1])
    return float(sum(found)) / max(1, len(found))


def _repair(
    rows: Integers, ones: Sequence[Floats], rule: CellRule, allowed: Integers, chance: PublicChance
) -> Integers:
    """Rows that keep all constraints: others are drawn anew, and in the end copied from good ones."""
    for _ in range(_TRIES):
        bad = np.nonzero(~rule(rows))[0]
        if not bad.size:
            return rows
        rows[:, bad] = begin_rows(ones, bad.size, chance)
    good = np.nonzero(rule(rows))[0]
    if not good.size:
        rows[:, 0] = allowed
        good = np.zeros(1, dtype=np.int64)
    bad = np.nonzero(~rule(rows))[0]
    rows[:, bad] = rows[:, good[chance.deal(np.ones(good.size), bad.size)]]
    return rows


def decode_rows(
    cells: Integers, measured: Measurements, columns: Sequence[PublishedColumn], chance: PublicChance
) -> Any:
    """The rows in their original types, as an Arrow table."""
    import pyarrow as pa

    found = {}
    for number, column in enumerate(columns):
        fine = None if number not in measured.noisy_fine else estimate_fine(measured, number, column)
        found[column.name] = column.decode(cells[number], fine, chance)
    return pa.table(found)


def estimate_fine(measured: Measurements, number: int, column: PublishedColumn) -> Floats:
    """A column's fine histogram without negative cells: in each bin what its own noisy cells say."""
    noisy = measured.fine_table(number)
    found = np.zeros(column.fine)
    ends = [*column.starts[1:], column.fine]
    for start, end in zip(column.starts, ends):
        part = noisy[start:end]
        mass = float(part.sum())
        found[start:end] = to_simplex(part, mass) if mass > 0 else 1.0
    return found
