"""Distances of private tables from public ones, as whole numbers with a known sensitivity.

*Statement.* For each of P tables A, s_A = Σ_cells |count_A − public_A| is a whole number, where counts are in steps and
public_A is known before anything is counted here. One unit adds at most K·steps to the counts of a table in all, so by
the triangle inequality it moves each s_A by at most K·steps under add-remove, and 2·K·steps under replace. The vector
of all s_A moves by at most √P times that: Δ² = P·(K·steps)², or four times as much.

A second score is about who could tell rows apart: t_A = Σ_cells ⌊16·(r − s)²/(r + s)⌋, with r = count_A and
s = public_A, neither negative. Over 64·(rows of both) it is the propensity score's mean squared error (pMSE) of a model
that knows the cell. The slope of (r − s)²/(r + s) in r is 1 − 4s²/(r + s)², between −3 and 1, and r moves in whole
steps, so rounding down keeps |t_A − t_A′| ≤ 48·Σ|r − r′|: the same Δ², times 48².
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.errors import InternalError
from discreet.exact import Integers
from discreet.privacy import Neighbours

# How finely t_A is rounded, and how far it moves for each step of a count.
PROPENSITY_SCALE = 16
PROPENSITY_SLOPE = 3 * PROPENSITY_SCALE
# Sums of cells below this stay within 64 bits.
_WIDEST = 1 << 62


def find_squared_distance(tables: int, max_rows: int, steps: int, neighbours: Neighbours) -> int:
    """Δ² of the scores of so many tables."""
    one = max_rows * steps * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    return tables * one * one


def score_propensity(counted: Sequence[Integers], public: Sequence[Integers]) -> Integers:
    """t_A of each table, exactly. Both are in steps, and not negative."""
    return np.array([_score_propensity(one, two) for one, two in zip(counted, public, strict=True)], dtype=object)


def _score_propensity(counted: Integers, public: Integers) -> int:
    if counted.shape != public.shape:
        raise InternalError("A table is compared with one of another shape.")
    seen = (counted != 0) | (public != 0)
    one, two = counted[seen].astype(object), public[seen].astype(object)
    return int(sum(PROPENSITY_SCALE * (one - two) ** 2 // (one + two)))


def score_tables(counted: Sequence[Integers], public: Sequence[Integers]) -> Integers:
    """s_A of each table, exactly. Both are in steps."""
    return np.array([_score(one, two) for one, two in zip(counted, public, strict=True)], dtype=object)


def _score(counted: Integers, public: Integers) -> int:
    if counted.shape != public.shape:
        raise InternalError("A table is compared with one of another shape.")
    sums = [float(np.abs(np.asarray(table, dtype=np.float64)).sum()) for table in (counted, public)]
    kind = np.int64 if max(sums) < _WIDEST / 2 else object
    return int(np.abs(counted.astype(kind) - public.astype(kind)).sum())
