"""Spreads on arrays: what the rows of some units weigh in each cell, as ``contributions.py`` says it of a ``Spread``.

All rows of a unit are together here. An entry's number is that of its group and its cell in one. So the sums are of
products with a weight, each less than 2^62 in size, as those of pairs are.
"""

from __future__ import annotations

import numpy as np

from discreet.engines.duckdb.weighed_pairs import (
    DENSE,
    MOST_PAIRS,
    GroupSums,
    UnitRows,
    WeightRule,
    number_units,
    sort_cells,
    sum_by_group,
)
from discreet.exact import Integers


def weigh_cells(rows: UnitRows, size: int, groups: int, rule: WeightRule) -> list[GroupSums]:
    """Sums by number, which is ``size`` times that of a group, plus a cell. Every row of their units is among them."""
    weights = _weigh_entries(rows, size, groups, rule)
    products = weights if rows.rows is None else weights * rows.rows
    most = (rule.rows or rule.rows_in_group or 1) << rule.bits
    pieces = [slice(start, start + MOST_PAIRS) for start in range(0, len(rows), MOST_PAIRS)]
    return [sum_by_group(rows.groups[piece], [products[piece]], [most], size * groups) for piece in pieces]


def _weigh_entries(rows: UnitRows, size: int, groups: int, rule: WeightRule) -> Integers:
    """What one row of each entry weighs."""
    units, owners = number_units(rows.units)
    if rule.rows is not None:
        everywhere = np.bincount(owners, weights=rows.rows, minlength=len(units))
        return rule.share(rule.rows, everywhere.astype(np.int64))[owners]
    pairs, owned = _number_pairs(owners, (rows.groups // size).astype(np.int64), len(units), groups)
    counts = np.bincount(pairs, weights=rows.rows, minlength=len(owned)).astype(np.int64)
    weights = rule.share(rule.rows_in_group, counts)
    if rule.groups is not None:
        had = np.bincount(owned[counts > 0], minlength=len(units))
        each = (1 << rule.bits) // np.maximum(1, -(-had // rule.groups))
        weights = (weights * each[owned]) >> rule.bits
    return weights[pairs]


def _number_pairs(owners: Integers, numbers: Integers, units: int, groups: int) -> tuple[Integers, Integers]:
    """For each entry the number of its pair of a unit and a group, and for each pair its unit. Some may be empty."""
    cells = owners * groups + numbers
    if units * groups <= DENSE * len(cells):
        return cells, np.repeat(np.arange(units), groups)
    order = sort_cells(cells, units * groups)
    in_order = cells[order]
    first = np.concatenate((np.ones(min(1, len(cells)), bool), in_order[1:] != in_order[:-1]))
    pairs = np.empty(len(cells), np.int64)
    pairs[order] = np.cumsum(first) - 1
    return pairs, in_order[first] // groups
