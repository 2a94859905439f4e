"""Mills' ratio R(x) = (1 − Φ(x))/φ(x), the tail of the normal law over its density, with a proven relative error.

R(x) = ∫ e^(−xt − t²/2) dt over t ≥ 0, so every derivative of R has one sign: with A_n = |R^(n)(c)|/n!,

    R(c − d) = Σ A_n·dⁿ,  all terms positive,  A_1 = 1 − c·A_0,  (n+1)·A_(n+1) = A_(n−1) − c·A_n  (from R' = xR − 1).

- Up to x = 8: this series at the next multiple c of 1/8, by Horner's scheme. Sums of positive terms lose nothing: the
  rounding of partial sums adds up to 2·(1 + m) units of 2^-53, where m is the mean of n under the terms, which is d
  times the mean of t, at most 1/8·5.4 for x ≥ −5; the coefficients are rounded once. What follows A_18·d¹⁸ is below
  2^-60 of the sum.
- From there on: the continued fraction R(x) = 1/(x + 1/(x + 2/(x + 3/(…)))). Its convergents lie on both sides of R in
  turn, and at x ≥ 8 those of 18 and 19 levels differ by less than 2^-60 of it. An error at one level weighs at most
  19/64 at the next.

Both together stay within ``RELATIVE_ERROR``. The coefficients are computed in integers, with 200 bits, from the
continued fraction at 8 and then from right to left, the direction in which an error shrinks against R.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from discreet.exact import Floats

RELATIVE_ERROR = 8 * 2.0**-53
"""At or above |computed/R(x) − 1| for floats x ≥ ``LEAST``."""
LEAST = -5.0

_STEPS = 8  # cells for each unit of x
_LAST = 8  # where the continued fraction takes over
_TERMS = 19
_LEVELS = 19

_BITS = 200
_EXACT_TERMS = 60
_EXACT_LEVELS = 200


def mills_ratio(x: Floats) -> Floats:
    """R at each x ≥ −5; zero at infinity.

    >>> [round(float(ratio), 9) for ratio in mills_ratio(np.array([0.0, 10.0]))]  # the root of π/2 is the first
    [1.253314137, 0.099028596]
    """
    if (x < LEAST).any():
        raise ValueError("Mills' ratio is computed from -5 on")
    near = x <= _LAST
    ratio = np.empty_like(x)
    ratio[near] = _sum_series(x[near])
    ratio[~near] = _continue_fraction(x[~near])
    return ratio


def _sum_series(x: Floats) -> Floats:
    cell = np.ceil(x * _STEPS)
    distance = cell / _STEPS - x
    place = (cell - LEAST * _STEPS).astype(np.intp)
    highest, *others = _list_coefficients()
    ratio: Floats = highest[place]
    for coefficients in others:
        ratio = ratio * distance + coefficients[place]
    return ratio


def _continue_fraction(x: Floats) -> Floats:
    below = x
    for level in range(_LEVELS, 0, -1):
        below = x + level / below
    return 1 / below


@cache
def _list_coefficients() -> Floats:
    """A_n at each c from −5 to 8: a row for each n, the highest first."""
    columns = []
    ratio = _compute_at_last()
    for cell in range(_LAST * _STEPS, int(LEAST * _STEPS) - 1, -1):
        terms = _expand(ratio, cell)
        columns.append([term / (1 << _BITS) for term in terms[:_TERMS]])
        ratio = sum(term // _STEPS**n for n, term in enumerate(terms))  # at the next c to the left
    return np.array(columns[::-1]).T[::-1].copy()


def _expand(ratio: int, cell: int) -> list[int]:
    """A_0, A_1, … at c = cell/8, from A_0."""
    terms = [ratio, (1 << _BITS) - ratio * cell // _STEPS]
    for n in range(1, _EXACT_TERMS - 1):
        terms.append((terms[-2] - terms[-1] * cell // _STEPS) // (n + 1))
    return terms


def _compute_at_last() -> int:
    below = last = _LAST << _BITS
    for level in range(_EXACT_LEVELS, 0, -1):
        below = last + (level << 2 * _BITS) // below
    return (1 << 2 * _BITS) // below
