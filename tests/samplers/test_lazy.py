"""Lazy comparison: the probability is p itself, as its whole decision tree shows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.exact import Interval
from discreet.samplers import lazy
from tests.samplers.sources import Written, outcomes


def chance_of_true(bounds: lazy.RealBounds, *, prefix: int = 0, known: int = 0) -> Interval:
    """The probability of True by walking the tree; cut branches may go either way."""
    true = maybe = Fraction(0)

    def run(source: Written) -> bool:
        return lazy.is_below(prefix, known, bounds, source, step=2)

    for result, chance in outcomes(run, word_bits=2, least=2.0**-40):
        true += chance.low if result else 0
        maybe += chance.high if result is None else 0
    return Interval(true, true + maybe)


@given(st.fractions(min_value=0, max_value=1, max_denominator=1000))
@settings(deadline=None, max_examples=30)
def test_a_rational_is_met_exactly(p: Fraction) -> None:
    found = chance_of_true(lazy.bounds_of_ratio(p))
    assert p in found
    assert found.high - found.low < Fraction(1, 1 << 30)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 1000), Fraction(1), Fraction(22, 7), Fraction(30)])
def test_an_exponential_is_met_exactly(x: Fraction) -> None:
    found, exact = chance_of_true(lazy.bounds_of_exp_minus(x)), Interval.exp_minus(x)
    assert found.low <= exact.high
    assert exact.low <= found.high
    assert found.high - found.low < Fraction(1, 1 << 30)


def test_a_known_prefix_counts() -> None:
    """Given that U begins with the bits 01, U < 3/8 has probability one half."""
    assert Fraction(1, 2) in chance_of_true(lazy.bounds_of_ratio(Fraction(3, 8)), prefix=1, known=2)


def test_loose_bounds_are_refined_until_they_decide() -> None:
    asked: list[int] = []

    def bounds(bits: int) -> tuple[int, int]:
        asked.append(bits)
        return max(0, (1 << bits) // 3 - 50), (1 << bits) // 3 + 50

    source = SeededForTestsOnly(3)
    hits = sum(lazy.is_below(0, 0, bounds, source, step=4) for _ in range(3000))
    assert abs(hits - 1000) < 160
    assert max(asked) > 8
