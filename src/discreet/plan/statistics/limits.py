"""Where a number lies that could not be computed: a statistic within its own limits, arithmetic by intervals.

An average lies within the bounds of its values, however few they are; a variance, between zero and that of half the
values at each bound. What is added, subtracted, multiplied or divided lies within the interval of its parts. That is
wider than needed where a part occurs twice, and never too narrow. Other functions of an unknown number are unknown.
The form of a variance for samples is NULL for fewer than two values. The truth has one only if there are two or more,
and n/(n − 1) falls from 2 to 1: so it lies where it could lie for two values, for very many, or between.

Only bounds and released numbers are used, so all of it is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from discreet.plan.evaluate import RowValues, evaluate
from discreet.plan.expressions import Call, Expression, Literal, ReleasedValue
from discreet.plan.types import Value

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
    count = _find_sample_count(expression)
    if count is not None:
        unknown: dict[Any, Value] = {**row, **dict.fromkeys(limits)}
        ends = [find_limits(expression.arguments[1], {**unknown, count: n}, limits) for n in (2, _MANY)]
        return _enclose(*(end for pair in ends for end in pair))
    parts = [find_limits(part, row, limits) for part in expression.arguments]
    rule = _RULES.get(expression.function)
    return EVERYTHING if rule is None else rule(*parts)


# So many values that n/(n − 1) is 1 as a double.
_MANY = 1 << 60


def _find_sample_count(call: Call) -> ReleasedValue | None:
    """The count of a form for samples, which is CASE WHEN count > 1 THEN ... END; None for other calls."""
    condition = call.arguments[0] if call.function == "case" and len(call.arguments) == 3 else None
    if not isinstance(condition, Call) or condition.function != "greater":
        return None
    count, one = condition.arguments
    otherwise = call.arguments[2]
    if not isinstance(count, ReleasedValue) or not isinstance(one, Literal) or not isinstance(otherwise, Literal):
        return None
    return count if one.value == 1 and otherwise.value is None else None


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
