"""Residual tables: what a marginal says beyond all smaller ones, in exact integers.

The residual of a marginal over the columns A is r_A = Π_{i∈A} (I − 11ᵀ/n_i) marg_A: the table minus its mean, along
every column. Multiplied by N_A = Πn_i it is a table of whole numbers, q_A = Π(n_i·I − 11ᵀ) marg_A. Residuals of
different sets are orthogonal. A marginal is the sum of its residuals, each spread evenly over the other columns:

    marg_A = Σ_{B⊆A} r_B ⊗ Π_{j∈A∖B} 1/n_j.

One row in the cell x adds the column of x to q_A. Its squared length is Π n_i(n_i − 1) = N_A²·p_A, with
p_A = Π(1 − 1/n_i), whichever cell it is. Two rows have the product N_A²·Π(1 − 1/n_i where they agree, −1/n_i
elsewhere).
docs/proofs/residuals.md has the steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.exact import Floats, Integers
from discreet.publish.workload import Attributes, list_subsets

# Beyond this a product could leave 64 bits, and integers of any size are used.
_WIDEST = 1 << 62


def find_scale(shape: Sequence[int]) -> int:
    """N_A: what a residual is multiplied by, so that it is whole."""
    return math.prod(shape)


def find_length(shape: Sequence[int]) -> Fraction:
    """p_A: the squared length of what one row adds to a residual.

    >>> find_length((2, 4))
    Fraction(3, 8)
    """
    return math.prod((Fraction(size - 1, size) for size in shape), start=Fraction(1))


def find_product(shape: Sequence[int], agree: Sequence[bool]) -> Fraction:
    """The inner product of what two rows add to a residual, by the columns in which they agree."""
    factors = (find_factor(size, agree=same) for size, same in zip(shape, agree, strict=True))
    return math.prod(factors, start=Fraction(1))


def find_factor(size: int, *, agree: bool) -> Fraction:
    """What one column of so many cells does to that product. In a column of one cell all rows agree."""
    return Fraction(size - 1, size) if agree or size == 1 else Fraction(-1, size)


def take_residual(counts: Integers) -> Integers:
    """q_A of a marginal of whole numbers: exact, with integers of any size where 64 bits might not do."""
    total = 1 + math.ceil(1.001 * np.asarray(np.abs(counts), dtype=np.float64).sum())  # doubles are near enough
    found: Any = counts if total * find_scale(counts.shape) < _WIDEST else counts.astype(object)
    for axis, size in enumerate(counts.shape):
        found = found * size - found.sum(axis=axis, keepdims=True)
    return np.asarray(found)


def center(table: Floats) -> Floats:
    """The table minus its mean, along every column: the orthogonal projection to residuals."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def spread(residual: Floats, attributes: Attributes, within: Attributes, shape: Sequence[int]) -> Floats:
    """A residual over ``attributes``, spread evenly over the other columns of a marginal of this shape."""
    places = tuple(size if column in attributes else 1 for column, size in zip(within, shape, strict=True))
    others = math.prod(size for column, size in zip(within, shape, strict=True) if column not in attributes)
    return residual.reshape(places) / others


def assemble(residuals: Mapping[Attributes, Floats], attributes: Attributes, shape: Sequence[int]) -> Floats:
    """A marginal from its residuals."""
    total = np.zeros(tuple(shape))
    for part in list_subsets(attributes):
        total = total + spread(residuals[part], part, attributes, shape)
    return total


def gather(values: Floats, attributes: Attributes, within: Attributes) -> Floats:
    """How a linear question about a marginal's cells reads a residual: means over other columns, then centred.

    The question is Σ values·marg. It equals Σ_B ⟨gather(values, B), r_B⟩ over the subsets B.
    """
    others = tuple(axis for axis, column in enumerate(within) if column not in attributes)
    return center(values.mean(axis=others) if others else values)
