"""(ε, δ) composition: basic, advanced and optimal, against brute force over all outcomes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.approximate import ApproximateNotion, ApproximatePart, _log_factorials
from discreet.exact import ln


def brute_delta(parts: list[tuple[float, float]], epsilon: float) -> float:
    """δ(ε) of randomized responses that fail with their δ, over every combination of outcomes."""
    mp.mp.dps = 40
    survive = mp.mpf(1)
    for _, delta in parts:
        survive *= 1 - mp.mpf(delta)
    inner = mp.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(parts)):
        loss = mp.fsum(s * mp.mpf(size) for s, (size, _) in zip(signs, parts))
        chance = mp.mpf(1)
        for s, (size, _) in zip(signs, parts):
            chance /= 1 + mp.exp(-s * mp.mpf(size))
        inner += chance * max(mp.mpf(0), 1 - mp.exp(epsilon - loss))
    return float(1 - survive * (1 - inner))


def test_thirty_pairs_published() -> None:
    """(1, 0.001) thirty times: 22 at δ = 0.06 and 20 at δ = 0.1, by the optimal theorem."""
    thirty = ApproximateNotion.of(Fraction(1), Fraction(1, 1000), 30)
    # The theorem's own points are the even numbers; between them the profile is a little tighter.
    assert thirty.delta(22.0) <= 0.06 < thirty.delta(20.0)
    assert thirty.delta(20.0) <= 0.1 < thirty.delta(18.0)
    assert 20 < thirty.epsilon(0.06) <= 22
    assert 18 < thirty.epsilon(0.1) <= 20


def test_two_unequal_pairs_published() -> None:
    """(1, 0.1) and (2, 0.2): at ε = 3 only the failures remain, 1 − 0.9·0.8."""
    both = ApproximateNotion.of(Fraction(1), Fraction(1, 10)).compose(ApproximateNotion.of(Fraction(2), Fraction(1, 5)))
    assert both.delta(3.0) == pytest.approx(0.28, rel=1e-12)
    assert both.delta(3.0) >= 0.28
    assert both.epsilon(0.3) == 3.0 or both.epsilon(0.3) < 3.0


def test_basic_sums_are_exact() -> None:
    ten = ApproximateNotion.of(Fraction(1, 10), Fraction(1, 10**7)).repeat(10)
    assert ten.basic_total() == (Fraction(1), Fraction(1, 10**6))
    assert ten.epsilon(1e-6) <= 1.0
    assert math.isinf(ApproximateNotion.of(Fraction(1), Fraction(1, 10)).epsilon(0.05))
    assert ApproximateNotion.of(ln(3), Fraction(0), 2).epsilon(0.0) == pytest.approx(math.log(9))


def test_advanced_composition_of_a_thousand_hundredths() -> None:
    """ε = 0.01 a thousand times at δ = 1e-6: the optimum is far below basic (10) and classical advanced (1.763)."""
    many = ApproximateNotion.of(Fraction(1, 100), Fraction(0), 1000)
    assert many._advanced_epsilon(1e-6) <= 1.763
    assert many.epsilon(1e-6) == pytest.approx(1.365447, abs=1e-6)
    assert many.epsilon(1e-6) <= many._advanced_epsilon(1e-6) <= many.epsilon(0.0)


@given(st.integers(1, 8), st.floats(0.01, 4), st.sampled_from([0.0, 1e-6, 0.01]), st.floats(0, 1.1))
@settings(deadline=None, max_examples=60)
def test_equal_parts_are_composed_optimally(count: int, size: float, delta: float, share: float) -> None:
    """Never below brute force, and above it by rounding only."""
    epsilon = share * count * size
    ours = ApproximateNotion.of(Fraction(size), Fraction(delta), count).delta(epsilon)
    exact = brute_delta([(size, delta)] * count, epsilon)
    assert exact * (1 - 1e-14) <= ours <= exact * (1 + 1e-9) + 1e-14


@given(
    st.lists(st.tuples(st.floats(0.01, 3), st.sampled_from([0.0, 1e-5, 0.02])), min_size=2, max_size=6), st.floats(0, 1)
)
@settings(deadline=None, max_examples=60)
def test_unequal_parts_are_composed_optimally(parts: list[tuple[float, float]], share: float) -> None:
    total = ApproximateNotion.of(Fraction(parts[0][0]), Fraction(parts[0][1]))
    for size, delta in parts[1:]:
        total = total.compose(ApproximateNotion.of(Fraction(size), Fraction(delta)))
    epsilon = share * sum(size for size, _ in parts)
    exact = brute_delta(parts, epsilon)
    ours = total.delta(epsilon)
    assert exact * (1 - 1e-14) <= ours <= exact * (1 + 1e-9) + 1e-14


@given(
    st.lists(st.tuples(st.floats(0.01, 3), st.integers(1, 3)), min_size=1, max_size=3),
    st.sampled_from([1e-6, 1e-3, 0.1]),
)
@settings(deadline=None, max_examples=40)
def test_epsilon_is_never_below_brute_force(parts: list[tuple[float, int]], delta: float) -> None:
    total = ApproximateNotion(tuple(ApproximatePart(Fraction(size), Fraction(0), count) for size, count in parts))
    epsilon = total.epsilon(delta)
    each = [(size, 0.0) for size, count in parts for _ in range(count)]
    assert brute_delta(each, epsilon) <= delta * (1 + 1e-12)


def test_too_many_parts_fall_back_to_closed_forms() -> None:
    """Beyond the limits of the sums the closed forms still answer, and more parts never cost less."""
    equal = ApproximateNotion.of(Fraction(1, 1000), Fraction(0), 1 << 20)
    assert equal._table() is None
    assert equal.epsilon(1e-6) < 15
    assert equal.delta(0.5) == 1.0
    unequal = ApproximateNotion.of(Fraction(1, 100), Fraction(0), 400).compose(
        ApproximateNotion.of(Fraction(1, 90), Fraction(0), 400)
    )
    assert unequal._table() is None
    assert unequal.epsilon(1e-6) < 2
    assert math.isfinite(unequal.epsilon(0.0))


def test_parts_without_epsilon_only_fail() -> None:
    only = ApproximateNotion.of(Fraction(0), Fraction(1, 100), 2)
    assert only.epsilon(0.02) == 0.0
    assert only.delta(0.0) == pytest.approx(1 - 0.99**2, rel=1e-9)


def test_group_rule() -> None:
    """(kε, δ(e^(kε) − 1)/(e^ε − 1)); with ε = ln 2 and k = 3 the factor is 7."""
    [part] = ApproximateNotion.of(ln(2), Fraction(1, 1000)).for_group(3).parts
    assert part.epsilon == ln(8)
    assert Fraction(7, 1000) <= part.delta <= Fraction(7, 1000) * (1 + Fraction(1, 10**9))
    [flat] = ApproximateNotion.of(Fraction(0), Fraction(1, 1000)).for_group(3).parts
    assert flat.delta == Fraction(3, 1000)
    [far] = ApproximateNotion.of(Fraction(400), Fraction(1, 1000)).for_group(3).parts
    assert far.delta == 1
    assert ApproximateNotion((far,)).delta(2000.0) == 1.0
    assert math.isinf(ApproximateNotion((far,)).epsilon(0.5))
    assert ApproximateNotion.of(ln(2), Fraction(0)).for_group(2).basic_total() == (ln(4), Fraction(0))


def test_factorials() -> None:
    for n in (0, 1, 7, 15, 16, 17, 40, 1000):
        assert _log_factorials(n)[-1] == pytest.approx(math.lgamma(n + 1), rel=1e-14, abs=1e-13)
