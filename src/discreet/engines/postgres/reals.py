"""Arithmetic on doubles in PostgreSQL, which raises where other engines yield an infinity or a zero.

PostgreSQL raises where a result overflows, and also where a result that is not zero is rounded to zero. There is no
TRY. So each form tests its operands first, and an operation is run only where it cannot raise. All tests are of exactly
the operands of the operation that they guard: PostgreSQL computes constant parts while it plans, and then a test is
constant wherever its operation is, and is decided first.

Operands are names, constants or short expressions, and may be infinite. The results are those of IEEE arithmetic, with
one exception: a product beside half of the smallest double may be zero where it should be the smallest double.
"""

from __future__ import annotations

INFINITY, MINUS_INFINITY = "CAST('Infinity' AS float8)", "CAST('-Infinity' AS float8)"
# Sums, products and quotients of two numbers of such a size are in no danger.
_SMALL, _LARGE, _HALF_LARGEST = 2.0**-500, 2.0**500, 2.0**1022


def constant(number: float) -> str:
    """A double as a constant."""
    return f"CAST('{number!r}' AS float8)"


def write_sum(left: str, right: str) -> str:
    """A sum; infinite beyond doubles."""
    a, b, most = f"abs({left})", f"abs({right})", constant(_HALF_LARGEST)
    half = f"({left} * {constant(0.5)} + {right} * {constant(0.5)})"
    beyond = (
        f"CASE WHEN abs({half}) < {constant(2.0**1023)} THEN {left} + {right} "
        f"WHEN {left} > {constant(0.0)} THEN {INFINITY} ELSE {MINUS_INFINITY} END"
    )
    return (
        f"CASE WHEN {a} <= {most} AND {b} <= {most} THEN {left} + {right} "
        f"WHEN {left} IS NULL OR {right} IS NULL THEN NULL "
        f"WHEN least({a}, {b}) < {constant(1.0)} OR greatest({a}, {b}) = {INFINITY} THEN {left} + {right} "
        f"ELSE {beyond} END"
    )


def write_product(left: str, right: str) -> str:
    """A product; infinite beyond doubles."""
    a, b = f"abs({left})", f"abs({right})"
    small, large = f"least({a}, {b})", f"greatest({a}, {b})"
    # Powers of two change no digit. They bring both factors to where their product can be compared.
    high = f"({large} * {constant(2.0**-600)}) * ({small} * {constant(2.0**-500)}) >= {constant(2.0**-76)}"
    low = f"({large} * {constant(2.0**600)}) * ({small} * {constant(2.0**500)}) <= {constant(2.0**25)}"
    product, one = f"{left} * {right}", constant(1.0)
    return (
        f"CASE WHEN {_write_moderate(left, right)} THEN {product} "
        f"WHEN {left} IS NULL OR {right} IS NULL THEN NULL "
        f"WHEN {left} = {constant(0.0)} OR {right} = {constant(0.0)} THEN {product} "
        f"WHEN {small} > {one} AND {large} > {constant(_LARGE)} "
        f"THEN CASE WHEN {high} THEN {_write_signed_infinity(left, right)} ELSE {product} END "
        f"WHEN {large} < {one} AND {small} < {constant(_SMALL)} "
        f"THEN CASE WHEN {low} THEN {constant(0.0)} ELSE {product} END ELSE {product} END"
    )


def write_quotient(left: str, right: str) -> str:
    """A quotient; NULL by zero, infinite beyond doubles. Both comparisons are of exact numbers."""
    a, b, quotient = f"abs({left})", f"abs({right})", f"{left} / {right}"
    zero, one = constant(0.0), constant(1.0)
    high = f"{a} * {constant(0.5)} >= {b} * {constant(2.0**1023)}"
    low = f"{a} * {constant(2.0**1000)} <= {b} * {constant(2.0**-75)}"
    return (
        f"CASE WHEN {_write_moderate(left, right)} THEN {quotient} "
        f"WHEN {left} IS NULL OR {right} IS NULL OR {right} = {zero} THEN NULL "
        f"WHEN {left} = {zero} THEN {zero} "
        f"WHEN {b} < {one} AND {a} > {constant(2.0**-900)} "
        f"THEN CASE WHEN {high} THEN {_write_signed_infinity(left, right)} ELSE {quotient} END "
        f"WHEN {b} >= {one} AND {a} < {one} "
        f"THEN CASE WHEN {low} THEN {zero} ELSE {quotient} END ELSE {quotient} END"
    )


def write_steps(value: str, origin: float, resolution: float) -> str:
    """⌊(x − origin)/resolution + 1/2⌋; infinite for what is far beyond, NaN included.

    Within the ends nothing overflows, and whatever lies outside has more than 2^100 steps.
    """
    moved = f"({value} - {constant(origin)})" if origin else value
    if abs(origin) > 2.0**900 * min(1.0, resolution) or resolution > 2.0**800:  # grids that nobody needs
        far = write_quotient(f"({write_sum(value, constant(-origin))})", constant(resolution))
        return f"floor(({far}) + {constant(0.5)})"
    steps, most = f"floor({moved} / {constant(resolution)} + {constant(0.5)})", min(2.0**1000, 2.0**900 * resolution)
    if resolution > 1:
        # A quotient below 2^-60 in size is nothing beside a half, and is not computed: it might be rounded to zero.
        tiny = constant(resolution * 2.0**-60)
        steps = f"CASE WHEN abs({moved}) < {tiny} THEN {constant(0.0)} ELSE {steps} END"
    return (
        f"CASE WHEN {value} >= {constant(-most)} AND {value} <= {constant(most)} THEN {steps} "
        f"WHEN {value} < {constant(0.0)} THEN {MINUS_INFINITY} WHEN {value} IS NOT NULL THEN {INFINITY} END"
    )


def write_rounded_away(value: str) -> str:
    """The nearest whole double, halves away from zero."""
    whole = f"trunc({value})"
    return (
        f"CASE WHEN abs({value} - {whole}) >= {constant(0.5)} THEN "
        f"{whole} + CASE WHEN {value} < {constant(0.0)} THEN {constant(-1.0)} ELSE {constant(1.0)} END ELSE {whole} END"
    )


def write_exponential(value: str) -> str:
    """E to the power. Near the ends it is a square, because how near is not the same for every library."""
    root = f"exp({value} * {constant(0.5)})"
    return (
        f"CASE WHEN {value} >= {constant(-700.0)} AND {value} <= {constant(709.0)} THEN exp({value}) "
        f"WHEN {value} > {constant(720.0)} THEN {INFINITY} WHEN {value} < {constant(-760.0)} THEN {constant(0.0)} "
        f"WHEN {value} IS NOT NULL THEN {write_product(root, root)} END"
    )


def write_power(base: str, exponent: str) -> str:
    """A power; NULL where there is none. Far from the ends of doubles it is the library's own, near them a square."""
    size, far = f"abs({base})", f"abs({exponent})"
    zero, one, half = constant(0.0), constant(1.0), f"({exponent} * {constant(0.5)})"
    log = f"({exponent} * ln({size}))"
    odd = f"{base} < {zero} AND floor({half}) <> {half}"
    root = f"power({size}, {half})"
    near = write_product(root, root)
    signed = f"CASE WHEN {odd} THEN - ({near}) ELSE {near} END"
    infinite = f"CASE WHEN {odd} THEN {MINUS_INFINITY} ELSE {INFINITY} END"
    return (
        f"CASE WHEN {base} IS NULL OR {exponent} IS NULL THEN NULL "
        f"WHEN {exponent} = {zero} OR {base} = {one} THEN {one} "
        f"WHEN {base} = {zero} THEN CASE WHEN {exponent} > {zero} THEN {zero} END "
        f"WHEN {base} < {zero} AND floor({exponent}) <> {exponent} THEN NULL "
        # Such a power is even, and of everything but 1 it is beyond doubles, or nothing.
        f"WHEN {far} > {constant(1e30)} THEN CASE WHEN {size} = {one} THEN {one} "
        f"WHEN ({size} > {one}) = ({exponent} > {zero}) THEN {INFINITY} ELSE {zero} END "
        f"WHEN {far} < {constant(1e-20)} THEN {one} "
        f"WHEN {log} >= {constant(-700.0)} AND {log} <= {constant(700.0)} THEN power({base}, {exponent}) "
        f"WHEN {log} > {constant(1200.0)} THEN {infinite} WHEN {log} < {constant(-1200.0)} THEN {zero} "
        f"ELSE {signed} END"
    )


def write_from_numeric(number: str) -> str:
    """The double nearest to a numeric, which may be NaN or infinite. Digits are read correctly, whatever their number.

    Trap: PostgreSQL raises where a numeric is beyond doubles, or so small that it is rounded to zero.
    """
    most, least = (f"CAST('{text}' AS numeric)" for text in (str(2**1024 - 2**970), _HALF_OF_SMALLEST))
    return (
        f"CASE WHEN {number} = CAST('NaN' AS numeric) THEN CAST('NaN' AS float8) "
        f"WHEN {number} >= {most} THEN {INFINITY} WHEN {number} <= - {most} THEN {MINUS_INFINITY} "
        f"WHEN abs({number}) <= {least} THEN {constant(0.0)} ELSE CAST({number} AS float8) END"
    )


# 2^-1075 in digits.
_HALF_OF_SMALLEST = "0." + str(5**1075).rjust(1075, "0")


def _write_moderate(left: str, right: str) -> str:
    """Whether two numbers are of a moderate size, so that nothing over- or underflows."""
    small, large = constant(_SMALL), constant(_LARGE)
    return " AND ".join(f"abs({each}) >= {small} AND abs({each}) <= {large}" for each in (left, right))


def _write_signed_infinity(left: str, right: str) -> str:
    zero = constant(0.0)
    return f"CASE WHEN ({left} < {zero}) = ({right} < {zero}) THEN {INFINITY} ELSE {MINUS_INFINITY} END"
