"""Functions that take a bounded number to few whole steps, bins or powers of two: these are public keys.

``age // 10``, ``floor(age / 10)``, ``round(cost, -2)`` and the like move a number that lies between declared bounds to
a multiple of a step. There are only so many multiples, and they follow from the bounds alone, so they can be listed
without reading the data. What lies outside of the bounds has none of these keys and is left out, as with ``bin``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, trunc

from discreet.bounding.value_steps import ends_of
from discreet.exact import decimal
from discreet.plan.catalog import MAX_KEYS, ColumnFacts
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Column, Literal
from discreet.plan.magnitude import BUCKETS, LARGEST, magnitude
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type, Value

# The most steps that are listed; ``bin`` lists more.
MAX_STEPS = 10_000
# From here on doubles leave whole numbers out.
EXACT = Fraction(1 << 53)
# A bound on the relative rounding error of a few operations on doubles, with much room.
_ROUNDING = Fraction(1, 10**9)


def facts_of_rounding(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The facts of floor, ceil, trunc and round: a whole number of steps, at most one step away from the value."""
    only = arguments[0]
    step = _find_step(call)
    if step is None or only.low is None or only.high is None:
        return ColumnFacts()
    low, high = floor(only.low / step) * step, ceil(only.high / step) * step
    nullable = any(fact.nullable for fact in arguments)
    return list_steps(ColumnFacts(nullable=nullable, low=low, high=high, resolution=step), call.type)


def facts_of_quotient(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The facts of a // b: by a constant it is monotone, by anything else it is no larger than a."""
    value = arguments[0]
    divisor = call.arguments[1].value if isinstance(call.arguments[1], Literal) else None
    if value.low is None or value.high is None:
        return ColumnFacts()
    if isinstance(divisor, int) and divisor != 0:
        ends = sorted(Fraction(trunc(end / divisor)) for end in (value.low, value.high))
        overflow = max(map(abs, ends)) > INTEGER_MAX
        known = ColumnFacts(nullable=value.nullable or overflow, low=ends[0], high=ends[1], resolution=Fraction(1))
        return list_steps(known, Type.INTEGER)
    size = Fraction(ceil(max(abs(value.low), abs(value.high))))
    return ColumnFacts(nullable=True, low=-size, high=size, resolution=Fraction(1))


def list_steps(known: ColumnFacts, kind: Type) -> ColumnFacts:
    """The facts with all multiples of the step between the bounds as keys, where they are few."""
    low, high, step = known.low, known.high, known.resolution
    if low is None or high is None or step is None or (high - low) / step > MAX_STEPS:
        return known
    if max(abs(low), abs(high)) / min(step, Fraction(1)) >= EXACT:
        return known
    keys = _list_multiples(ceil(low / step), floor(high / step), step, kind)
    return replace(known, keys=(*keys, None) if known.nullable else keys)


@lru_cache(maxsize=64)
def _list_multiples(first: int, last: int, step: Fraction, kind: Type) -> tuple[Value, ...]:
    """Multiples of a step that is whole, or one over a whole number. Facts are asked for often, so they are kept."""
    above, below = step.numerator, step.denominator
    if kind is Type.INTEGER:
        return tuple(n * above for n in range(first, last + 1))
    return tuple(n * above / below for n in range(first, last + 1))


def _find_step(call: Call) -> Fraction | None:
    """The step of a rounding: 1, or a power of ten."""
    if call.function != "round":
        return Fraction(1)
    digits = call.arguments[1]
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or abs(digits.value) > 15:
        return None
    return Fraction(10) ** -digits.value


def facts_of_bin(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The bins between the declared bounds are public keys."""
    value, width = arguments
    ends = ends_of(value)
    if ends is None or width.low is None or width.low <= 0 or (ends[1] - ends[0]) / width.low > MAX_KEYS:
        return ColumnFacts()
    edges = [ends[0] + i * width.low for i in range(floor((ends[1] - ends[0]) / width.low) + 1)] + [ends[1]]
    whole = call.type is Type.INTEGER
    column = Column("", "", call.type)
    bin_of = Call("bin", (column, call.arguments[1]), call.type)
    places = [floor(edge) if whole else float(edge) for edge in edges]
    keys = sorted({v for place in places if (v := evaluate(bin_of, {column: place})) is not None})
    if not keys:
        return ColumnFacts()  # the bins lie outside of 64 bits
    low, high = (Fraction(key) if whole else decimal(key) for key in (keys[0], keys[-1]))  # type: ignore[arg-type]  # numbers
    lost = whole and low > ends[0]  # the lowest bin begins below 64 bits, so that its values have none
    nullable = value.nullable or lost
    all_keys: tuple[Value, ...] = (*keys, None) if nullable else tuple(keys)
    return ColumnFacts(nullable=nullable, low=low, high=high, keys=all_keys, resolution=width.low if whole else None)


def facts_of_magnitude(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """All buckets between the bounds are public keys. Bounds of reals are widened a little, because doubles round."""
    (only,) = arguments
    whole = call.type is Type.INTEGER
    lowest, highest = (INTEGER_MIN, INTEGER_MAX) if whole else (-LARGEST, LARGEST)
    low, high = ends_of(only) or (Fraction(lowest), Fraction(highest))
    room = Fraction(0) if whole else _ROUNDING
    wider = (low - room * abs(low), high + room * abs(high))
    first, last = (max(Fraction(lowest), min(Fraction(highest), end)) for end in wider)
    least, most = (ceil(first), floor(last)) if whole else (float(first), float(last))
    kept = tuple(bucket for bucket in BUCKETS[call.type] if magnitude(least) <= bucket <= magnitude(most))
    if not kept:
        return ColumnFacts()  # no whole number lies between the bounds
    return ColumnFacts(
        nullable=only.nullable,
        low=Fraction(kept[0]),
        high=Fraction(kept[-1]),
        keys=(*kept, None) if only.nullable else kept,
        resolution=Fraction(1) if whole else None,
    )
