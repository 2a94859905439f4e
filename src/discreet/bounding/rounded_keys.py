"""Functions that take a bounded number to few whole steps: their values are public keys, as bins are.

``age // 10``, ``floor(age / 10)``, ``round(cost, -2)`` and the like move a number that lies between declared bounds to
a multiple of a step. There are only so many multiples, and they follow from the bounds alone, so they can be listed
without reading the data. What lies outside of the bounds has none of these keys and is left out, as with ``bin``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, trunc

from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Call, Literal
from discreet.plan.types import INTEGER_MAX, Type, Value

# The most steps that are listed; ``bin`` lists more.
MAX_STEPS = 10_000
# From here on doubles leave whole numbers out.
EXACT = Fraction(1 << 53)


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
