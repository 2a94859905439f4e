"""Sums and means of reals in SQL, in whole steps, so that no order of addition shows and no rows are held in memory.

The rule is in ``plan.real_steps``. Where the size up to which values count is public, so is the number of steps that
make up 1, and it is written into the statement. Otherwise it follows from the largest value, which is found first: the
powers of two are found by logarithms, which engines round differently, and then put right by comparing, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.engines.sql.clauses import Clauses
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.layers import write_real
from discreet.engines.sql.per_unit import FeatureSql
from discreet.plan.expressions import Column
from discreet.plan.real_steps import FINEST, PARTS, STEP_BITS, count_steps, is_stepped
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

# Where a wide integer is cut in two to become a double, so that each half is an exact integer of 64 bits.
HALF = 2**63


def find_scales(
    dialect: Dialect, wanted: Mapping[Column, FeatureCall], values: Mapping[Column, str]
) -> tuple[dict[str, str], list[str]]:
    """The values that are summed in steps: with the SQL of how many make up 1 where that is public, and the others."""
    sizes = {values[c]: w.size for c, w in wanted.items() if is_stepped(w)}
    public = {v: dialect.literal(count_steps(size), Type.REAL) for v, size in sizes.items() if size is not None}
    return public, sorted(sizes.keys() - public.keys())


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


def add_steps(clauses: Clauses, source: str, scales: Mapping[str, str]) -> tuple[str, dict[str, tuple[str, str]]]:
    """A relation with values as whole steps and parts of a step, by the SQL of the number of steps that make up 1."""
    if not scales:
        return source, {}
    dialect = clauses.dialect
    products, steps, parts = ({value: clauses.make_name("s") for value in scales} for _ in range(3))
    scaled = [f"{dialect.multiply(value, scale, Type.REAL)} AS {products[value]}" for value, scale in scales.items()]
    source = clauses.add_apart(["*", *scaled], source)
    whole = [f"{dialect.cut_real(products[value])} AS {name}" for value, name in steps.items()]
    source = clauses.add_apart(["*", *whole], source)
    # The rest is exact, and neither it nor what becomes of it can leave the doubles.
    of_step = dialect.literal(float(PARTS), Type.REAL)
    rests = {v: f"({products[v]} - {dialect.widen(steps[v], Type.INTEGER, Type.REAL)}) * {of_step}" for v in scales}
    cut = [f"{dialect.cut_real(rests[value])} AS {name}" for value, name in parts.items()]
    return clauses.add_apart(["*", *cut], source), {value: (steps[value], parts[value]) for value in scales}


def write_stepped_sum(
    dialect: Dialect, compute: FeatureCall, stepped: tuple[str, str], scale: str, over: str = ""
) -> FeatureSql:
    """A sum or a mean of values in steps, of which ``scale`` make up 1; over a group, or over a frame ``over``."""
    steps, parts = (f"{dialect.wide_sum(name)}{over}" for name in stepped)
    if compute.feature is Feature.SUM:
        return FeatureSql((steps, parts, scale), write_real(dialect, "{8}"), _write_total(dialect))
    members = f"count({stepped[0]}){over}"
    return FeatureSql((steps, parts, scale, members), write_real(dialect, "{11}"), _write_mean(dialect))


def _write_total(dialect: Dialect) -> tuple[str, ...]:
    """From steps {0}, parts {1} and the scale {2}: whole steps of the parts go to the steps, {5}; the rest is {4}."""
    carry, rest = dialect.split_wide("{1}", PARTS)
    steps = dialect.to_wide(f"{{0}} + {dialect.to_wide('{3}')}")
    share = f"{dialect.widen('{4}', Type.INTEGER, Type.REAL)} * {dialect.literal(1 / PARTS, Type.REAL)}"
    return (carry, rest, steps, _write_double(dialect, "{5}"), f"({{6}} + {share})", dialect.divide("{7}", "{2}"))


def _write_mean(dialect: Dialect) -> tuple[str, ...]:
    """From steps {0}, parts {1}, the scale {2} and the number of values {3}: the mean in parts of a step is {9}."""
    members = dialect.to_wide(f"nullif({{3}}, {dialect.literal(0, Type.INTEGER)})")
    steps, left = (cut("{0}", "{4}", wide=True) for cut in (dialect.trunc_divide, dialect.trunc_remainder))
    of_step = dialect.wide_literal(PARTS)
    rest, parts = (dialect.to_wide(f"{high} * {of_step} + {low}") for high, low in (("{6}", "{1}"), ("{5}", "{8}")))
    mean = f"({_write_double(dialect, '{9}')} * {dialect.literal(1 / PARTS, Type.REAL)})"
    quotient = dialect.trunc_divide("{7}", "{4}", wide=True)
    return (members, steps, left, rest, quotient, parts, mean, dialect.divide("{10}", "{2}"))


def _write_double(dialect: Dialect, steps: str) -> str:
    """A wide integer as a double: its halves as doubles, put together. Each engine rounds that alike."""
    high, low = (dialect.widen(half, Type.INTEGER, Type.REAL) for half in dialect.split_wide(steps, HALF))
    return f"({high} * {dialect.literal(float(HALF), Type.REAL)} + {low})"
