"""Where a number lies that could not be computed: a statistic within its own limits, arithmetic by intervals.

An average lies within the bounds of its values, however few they are; a variance, between zero and that of half the
values at each bound. What is added, subtracted, multiplied or divided lies within the interval of its parts. That is
wider than needed where a part occurs twice, and never too narrow. Other functions of an unknown number are unknown.

Only bounds and released numbers are used, so all of it is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from discreet.plan.evaluate import RowValues, evaluate
from discreet.plan.expressions import Call, Expression

NumberLimits: TypeAlias = tuple[float, float]
EVERYTHING: NumberLimits = (-math.inf, math.inf)


def find_limits(expression: Expression, row: RowValues, limits: Mapping[Expression, NumberLimits]) -> NumberLimits:
    """The least and the greatest number that an expression can be; everything where that is not known.

    ``row`` holds what is known, and ``limits`` says where each statistic lies that is None in it.
    """
    value = evaluate(expression, row)
    if isinstance(value, int | float):
        return value, value  # whole numbers stay whole
    if not isinstance(expression, Call):
        return limits.get(expression, EVERYTHING)
    parts = [find_limits(part, row, limits) for part in expression.arguments]
    rule = _RULES.get(expression.function)
    return EVERYTHING if rule is None else rule(*parts)


def _negate(a: NumberLimits) -> NumberLimits:
    return -a[1], -a[0]


def _add(a: NumberLimits, b: NumberLimits) -> NumberLimits:
    return _enclose(a[0] + b[0], a[1] + b[1])


def _multiply(a: NumberLimits, b: NumberLimits) -> NumberLimits:
    return _enclose(*(x * y for x in a for y in b))


def _divide(a: NumberLimits, b: NumberLimits) -> NumberLimits:
    """Everything where the divisor may be zero."""
    return EVERYTHING if b[0] <= 0 <= b[1] else _enclose(*(x / y for x in a for y in b))


def _enclose(*corners: float) -> NumberLimits:
    """The ends of all corners; everything where one of them is no number, such as 0·∞."""
    return EVERYTHING if any(math.isnan(corner) for corner in corners) else (min(corners), max(corners))


_RULES: Mapping[str, Callable[..., NumberLimits]] = {
    "negate": _negate,
    "add": _add,
    "subtract": lambda a, b: _add(a, _negate(b)),
    "multiply": _multiply,
    "divide": _divide,
}
