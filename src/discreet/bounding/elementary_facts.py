"""What is known of roots, logarithms, angles and positions, from what is known of their arguments.

Increasing functions keep the order of values, so their bounds are their values at the bounds of the argument, moved
outwards by more than doubles can err. Angles and sines have bounds of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from discreet.plan.catalog import ColumnFacts
from discreet.plan.elementary import ELEMENTARY
from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Call, Literal
from discreet.plan.types import LARGEST_REAL, Type

FactsRule: TypeAlias = Callable[[Call, tuple[ColumnFacts, ...]], ColumnFacts]

# More than the error of a few operations on doubles, beside the value and beside 1.
ROOM = Fraction(1, 10**12)
NOT_NEGATIVE = frozenset({"sqrt", "exp"})


def _facts_of_increasing(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
    """The facts of a function that grows with its argument. Without values for both bounds nothing is known."""
    (only,) = arguments
    if only.low is None or only.high is None:
        return ColumnFacts()
    low, high = (_value_at(call, end) for end in (only.low, only.high))
    if low is None or high is None:
        return ColumnFacts()
    least = low - ROOM * (1 + abs(low))
    if call.function in NOT_NEGATIVE:
        least = max(least, Fraction(0))
    return ColumnFacts(nullable=only.nullable, low=least, high=high + ROOM * (1 + abs(high)))


def _value_at(call: Call, place: Fraction) -> Fraction | None:
    if abs(place) > Fraction(LARGEST_REAL):
        return None
    value = evaluate(Call(call.function, (Literal(float(place), Type.REAL),), call.type), {})
    return Fraction(value) if isinstance(value, float) and abs(value) < LARGEST_REAL else None


def _make_fixed_rule(low: float, high: float) -> FactsRule:
    """A rule for a function that lies between two constants, wherever it has a value."""

    def rule(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:
        defined = ELEMENTARY[call.function]
        inside = all(
            fact.low is not None and fact.high is not None and defined.low <= fact.low and fact.high <= defined.high
            for fact in arguments
        )
        nullable = any(fact.nullable for fact in arguments) or not (inside or defined.high == LARGEST_REAL)
        return ColumnFacts(nullable=nullable, low=Fraction(low), high=Fraction(high))

    return rule


def _facts_of_position(call: Call, arguments: tuple[ColumnFacts, ...]) -> ColumnFacts:  # rules have one shape
    """From 0 to just behind the last letter: the empty text is found at 1 even in the empty text."""
    text = arguments[0]
    high = None if text.max_length is None else Fraction(text.max_length + 1)
    return ColumnFacts(
        nullable=any(fact.nullable for fact in arguments), low=Fraction(0), high=high, resolution=Fraction(1)
    )


# A little beyond π and π/2, so that rounding does not reach them.
_PI, _HALF_PI = math.nextafter(math.pi, 4), math.nextafter(math.pi / 2, 2)

ELEMENTARY_RULES: Mapping[str, FactsRule] = {
    **dict.fromkeys(("sqrt", "ln", "log2", "log10", "exp"), _facts_of_increasing),
    **dict.fromkeys(("sin", "cos"), _make_fixed_rule(-1.0, 1.0)),
    "asin": _make_fixed_rule(-_HALF_PI, _HALF_PI),
    "atan": _make_fixed_rule(-_HALF_PI, _HALF_PI),
    "acos": _make_fixed_rule(0.0, _PI),
    "atan2": _make_fixed_rule(-_PI, _PI),
    "position": _facts_of_position,
}
