"""Sums and means of reals in SQL, in whole steps, so that no order of addition shows and no rows are held in memory.

Rule. Of the values that are added, let L be the largest size. The step is 1/s for the power of two s with
2^77 <= s·L < 2^78, but s is never more than 2^1000, and s = 1 where L = 0. Each value is taken in whole steps, towards
zero; they are added as integers; the integers' sum is the result, as a double, divided by s. For a mean the sum is
divided by the number of values first, towards zero again. For windows, L is that of the whole part.

What it means. A value with L/2^24 or more in size loses nothing, because a double has 53 bits; smaller ones lose less
than a step, which is 2^-77 of L. So a sum is off by less than the last bit that a double of the size of L has, for up
to 2^24 values. Means lie between the smallest and the largest value. Whole steps stay below 2^78, so 2^47 rows stay
below 2^125 and nothing overflows; only the last division may leave the doubles, which gives the largest real.

The powers of two are found by logarithms, which engines round differently, and then put right by comparing, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.engines.sql.clauses import Clauses
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import write_real
from discreet.engines.sql.per_unit import FeatureSql
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

# The largest value has between 2^77 and 2^78 steps. With 2^47 rows, sums stay below 2^125.
STEP_BITS = 77
# Powers of two beyond this are not needed to be finer: the smallest doubles would only get steps of nothing.
FINEST = 1000
# Where a wide integer is cut in two to become a double, so that each half is an exact integer of 64 bits.
HALF = 2**63


def is_stepped(compute: FeatureCall) -> bool:
    """Whether a feature is a sum or a mean of reals, which is taken in steps."""
    real = compute.argument is not None and compute.argument.type is Type.REAL
    return real and compute.feature in (Feature.SUM, Feature.MEAN)


def write_largest(value: str) -> str:
    """Aggregate: the largest size of a value."""
    return f"max(abs({value}))"


def add_scales(clauses: Clauses, source: str, largest: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A relation with the number of steps that make up 1 for each value, from the column of its largest size."""
    dialect = clauses.dialect
    exponents, guesses, scales = ({value: clauses.make_name("s") for value in largest} for _ in range(3))
    powers = [f"{_write_exponent(dialect, size)} AS {exponents[value]}" for value, size in largest.items()]
    source = clauses.add_apart(["*", *powers], source)
    guessed = [f"{_write_guess(dialect, exponents[value])} AS {guesses[value]}" for value in largest]
    source = clauses.add_apart(["*", *guessed], source)
    scaled = [f"{_write_scale(dialect, size, guesses[v])} AS {scales[v]}" for v, size in largest.items()]
    return clauses.add_apart(["*", *scaled], source), scales


def _write_exponent(dialect: Dialect, largest: str) -> str:
    """The exponent of a power of two that is right, or twice or half of what is right; 0 for zeros."""
    bits, finest, zero = (dialect.literal(float(n), Type.REAL) for n in (STEP_BITS, FINEST, 0))
    log = dialect.floor(dialect.log2(f"nullif({largest}, {zero})"))
    return f"coalesce(least({bits} - {log}, CASE WHEN {largest} > {zero} THEN {finest} END), {zero})"


def _write_guess(dialect: Dialect, exponent: str) -> str:
    return dialect.power(dialect.literal(2.0, Type.REAL), exponent)


def _write_scale(dialect: Dialect, largest: str, guess: str) -> str:
    """The right power of two. The product with it is exact, so the comparisons are."""
    zero, two, least, most, finest = (
        dialect.literal(n, Type.REAL) for n in (0.0, 2.0, 2.0**STEP_BITS, 2.0 ** (STEP_BITS + 1), 2.0**FINEST)
    )
    return (
        f"CASE WHEN {guess} * {largest} >= {most} THEN {guess} / {two} "
        f"WHEN {largest} > {zero} AND {guess} * {largest} < {least} AND {guess} < {finest} THEN {guess} * {two} "
        f"ELSE {guess} END"
    )


def add_steps(clauses: Clauses, source: str, scales: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A relation with values in whole steps, towards zero, by the column of the number of steps that make up 1."""
    dialect = clauses.dialect
    products, steps = ({value: clauses.make_name("s") for value in scales} for _ in range(2))
    scaled = [f"{dialect.multiply(value, scale, Type.REAL)} AS {products[value]}" for value, scale in scales.items()]
    source = clauses.add_apart(["*", *scaled], source)
    whole = [f"{dialect.wide_of_real(products[value])} AS {name}" for value, name in steps.items()]
    return clauses.add_apart(["*", *whole], source), steps


def write_stepped_sum(dialect: Dialect, compute: FeatureCall, stepped: str, scale: str, over: str = "") -> FeatureSql:
    """A sum or a mean of values in steps, of which ``scale`` make up 1; over a group, or over a frame ``over``."""
    pieces = (f"{dialect.wide_sum(stepped)}{over}", scale, f"count({stepped}){over}")
    members = dialect.to_wide(f"nullif({{2}}, {dialect.literal(0, Type.INTEGER)})")
    mean = compute.feature is Feature.MEAN
    steps = dialect.trunc_divide("{0}", members, wide=True) if mean else "{0}"
    stages = (steps, _write_double(dialect, "{3}"), dialect.divide("{4}", "{1}"))
    return FeatureSql(pieces, write_real(dialect, "{5}"), stages)


def _write_double(dialect: Dialect, steps: str) -> str:
    half = dialect.wide_literal(HALF)
    high, low = (
        dialect.widen(dialect.as_integer(part), Type.INTEGER, Type.REAL)
        for part in (dialect.trunc_divide(steps, half, wide=True), dialect.trunc_remainder(steps, half, wide=True))
    )
    return f"({high} * {dialect.literal(float(HALF), Type.REAL)} + {low})"
