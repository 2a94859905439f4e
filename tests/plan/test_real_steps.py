"""Steps in which reals are added: their number, and what is read in them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from discreet.plan.expressions import Column
from discreet.plan.real_steps import FINEST, STEP_BITS, count_steps, find_summed
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

R, N = Type.REAL, Type.INTEGER
X = Column("t", "x", R)


@given(some.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_the_largest_value_has_so_many_steps(largest: float) -> None:
    """A power of two, between 2^61 and 2^62 steps, unless steps would be finer than 2^-1000."""
    scale = Fraction(count_steps(largest))
    assert math.frexp(float(scale))[0] == 0.5
    if scale < 2**FINEST:
        assert 2**STEP_BITS <= scale * Fraction(largest) < 2 ** (STEP_BITS + 1)
    else:
        assert scale == 2**FINEST and scale * Fraction(largest) < 2 ** (STEP_BITS + 1)


def test_nothing_but_zeros() -> None:
    assert count_steps(0.0) == 1.0


@pytest.mark.parametrize(
    ("call", "read"),
    [
        (FeatureCall(Feature.SUM, X, R, size=8.0), "clamp(x, -8.0, 8.0)"),
        (FeatureCall(Feature.MEAN, X, R, size=0.5), "clamp(x, -0.5, 0.5)"),
        (FeatureCall(Feature.SUM, X, R), "x"),
        (FeatureCall(Feature.MAX, X, R, size=8.0), "x"),
        (FeatureCall(Feature.SUM, Column("t", "n", N), N, size=8.0), "n"),
        (FeatureCall(Feature.COUNT, None, N, size=8.0), "None"),
    ],
    ids=str,
)
def test_what_is_read(call: FeatureCall, read: str) -> None:
    """Sums and means of reals alone count up to a size."""
    assert str(find_summed(call)) == read
