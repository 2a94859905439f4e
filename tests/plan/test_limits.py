"""Where unknown numbers lie: by brute force over everything that the unknown could be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.plan.evaluate import evaluate
from discreet.plan.expressions import Column, Expression, ReleasedValue
from discreet.plan.functions import make_call, make_literal
from discreet.plan.statistics.limits import EVERYTHING, find_limits
from discreet.plan.types import Type, Value

A, B, N = (ReleasedValue(i, name, Type.REAL) for i, name in enumerate("abn"))
LIMITS: dict[Expression, tuple[float, float]] = {A: (-2.0, 3.0), B: (1.0, 4.0)}


@pytest.mark.parametrize(
    "expression",
    [
        A,
        make_call("negate", A),
        make_call("add", A, B),
        make_call("subtract", A, B),
        make_call("multiply", A, B),
        make_call("divide", A, B),
        make_call("divide", N, B),
        make_call("multiply", make_call("subtract", A, make_literal(1.0)), make_call("add", B, N)),
        make_call("multiply", A, A),  # wider than needed, not too narrow
    ],
    ids=str,
)
def test_limits_hold_everything_that_could_be(expression: Expression) -> None:
    """A grid over both unknowns stays inside, and the ends are reached where no part occurs twice."""
    low, high = find_limits(expression, {A: None, B: None, N: 5.0}, LIMITS)
    grid = itertools.product(*(np.linspace(*LIMITS[name], 21).tolist() for name in (A, B)))
    found = [float(evaluate(expression, {A: a, B: b, N: 5.0})) for a, b in grid]  # type: ignore[arg-type]  # numbers
    assert low <= min(found) and max(found) <= high
    if str(expression) != "multiply(a, a)":
        assert (low, high) == pytest.approx((min(found), max(found)))


@pytest.mark.parametrize("factor", ["divide", "sqrt"])
def test_sample_forms_lie_where_they_could_for_two_values_or_more(factor: str) -> None:
    """For a truth of one value or none: whatever the variance could be, with two values, three, and so on."""
    ratio = make_call("divide", N, make_call("subtract", N, make_literal(1)))
    more = ratio if factor == "divide" else make_call("sqrt", ratio)
    enough = make_call("greater", N, make_literal(1))
    sample = make_call("case", enough, make_call("multiply", B, more), make_literal(None, null_of=Type.REAL))
    rows: list[dict[Column | ReleasedValue, Value]] = [{B: None, N: 0.0}, {B: 9.0, N: 1.0}, {B: None, N: -3.0}]
    for row in rows:
        low, high = find_limits(sample, row, LIMITS)
        found = [float(evaluate(sample, {B: b, N: n})) for b in (1.0, 2.5, 4.0) for n in (2.0, 3.0, 9.0)]  # type: ignore[arg-type]  # numbers
        assert low == LIMITS[B][0] <= min(found) and max(found) == pytest.approx(high)
    assert find_limits(sample, {B: 3.0, N: 5.0}, LIMITS) == (evaluate(sample, {B: 3.0, N: 5.0}),) * 2


def test_what_is_known_is_itself_and_the_rest_is_open() -> None:
    """Numbers are their own limits; division by what may be zero and other functions are open."""
    assert find_limits(make_call("add", A, N), {A: 2.0, N: 5.0}, LIMITS) == (7.0, 7.0)
    unknown: dict[Column | ReleasedValue, Value] = {A: None, B: None, N: None}
    assert find_limits(make_call("divide", B, A), unknown, LIMITS) == EVERYTHING
    assert find_limits(make_call("exp", A), unknown, LIMITS) == EVERYTHING
    assert find_limits(make_call("add", A, N), unknown, LIMITS) == EVERYTHING
    low, high = find_limits(make_call("multiply", make_literal(0.0), N), unknown, LIMITS)
    assert math.isinf(low) and math.isinf(high)
