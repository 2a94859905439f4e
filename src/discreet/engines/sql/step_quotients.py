"""How many steps a real is: its quotient by the resolution, as the operation on doubles that takes the least time."""

from __future__ import annotations

import math

from discreet.engines.sql.dialect import Dialect
from discreet.plan.types import Type

# Powers of two of which the inverse is a double of full precision, too. Doubles end at 2^−1022 and 2^1024.
_MOST_EXPONENT = 1000


def write_step_quotient(dialect: Dialect, value: str, resolution: float) -> str:
    """A value over the resolution; a product with the inverse where that is the same double for every value.

    That is so for powers of two: quotient and product are the same real, rounded once. Their resolutions are the usual
    ones, and engines multiply many rows at once but look at each divisor, which might be zero.
    """
    inverse = find_exact_inverse(resolution)
    if inverse is None:
        return f"{value} / {dialect.literal(resolution, Type.REAL)}"
    return value if inverse == 1 else f"{value} * {dialect.literal(inverse, Type.REAL)}"


def find_exact_inverse(resolution: float) -> float | None:
    """1 / resolution where it has no error; None for all that are not powers of two, and those at the ends."""
    mantissa, exponent = math.frexp(resolution)
    return 1 / resolution if mantissa == 0.5 and abs(exponent) <= _MOST_EXPONENT else None
