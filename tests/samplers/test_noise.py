"""Discrete Laplace, discrete Gaussian and geometric noise through their public doors."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from time import perf_counter_ns
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.samplers import discrete_gaussian, discrete_laplace, geometric, reference
from discreet.samplers.block_table import FEW
from tests.statistical.chi_square import REJECT, block_counts, counts, masses, p_value

NOISE: list[Callable[..., Any]] = [discrete_laplace, discrete_gaussian, geometric]


def exponent(sampler: Callable[..., Any], parameter: Fraction) -> Callable[[int], Fraction]:
    if sampler is discrete_gaussian or sampler is reference.discrete_gaussian:
        return lambda x: x * x / (2 * parameter)
    return lambda x: abs(x) / parameter


CASES = [
    (discrete_laplace, reference.discrete_laplace, Fraction(1)),
    (discrete_laplace, reference.discrete_laplace, Fraction(37, 10)),
    (discrete_laplace, reference.discrete_laplace, Fraction(2, 7)),
    (discrete_gaussian, reference.discrete_gaussian, Fraction(1)),
    (discrete_gaussian, reference.discrete_gaussian, Fraction(1, 3)),
    (discrete_gaussian, reference.discrete_gaussian, Fraction(200, 7)),
    (geometric, reference.geometric, Fraction(5, 2)),
]


@pytest.mark.parametrize(("fast", "slow", "parameter"), CASES)
def test_fast_and_reference_samplers_have_the_same_exact_law(fast: Any, slow: Any, parameter: Fraction) -> None:
    source = SeededForTestsOnly(21)
    high = 12 * (math.isqrt(math.ceil(parameter)) + 1) if fast is discrete_gaussian else 20 * math.ceil(parameter)
    low = 0 if fast is geometric else -high
    exact = masses(exponent(fast, parameter), low, high)
    assert p_value(counts(fast(parameter, 300_000, source=source), low, high), exact) > REJECT
    assert p_value(counts([fast(parameter, source=source) for _ in range(20_000)], low, high), exact) > REJECT
    assert p_value(counts([slow(parameter, source) for _ in range(8_000)], low, high), exact) > REJECT


@pytest.mark.parametrize("scale", [10**6, 2**40 + 1, 2**56 - 1])
@pytest.mark.parametrize(("wrong", "accepted"), [(1.0, True), (1.02, False)])
def test_large_scales_have_the_law_and_two_percent_are_noticed(scale: int, wrong: float, accepted: bool) -> None:
    """Against distribution functions: for Laplace in closed form, for the Gaussian the normal one (equal to 10^-12)."""
    source = SeededForTestsOnly(4)
    steps = np.arange(-40, 41) / 10
    edges = np.array([int(step * scale) for step in steps], dtype=np.int64)
    with mpmath.workdps(30):
        q = mpmath.exp(-1 / mpmath.mpf(scale * wrong))
        below_laplace = [float(q ** (1 - e) / (1 + q) if e <= 0 else 1 - q**e / (1 + q)) for e in edges.tolist()]
    below_normal = scipy.stats.norm.cdf((edges - 0.5) / (scale * wrong))
    for values, below in (
        (discrete_laplace(scale, 1_000_000, source=source), below_laplace),
        (discrete_gaussian(scale * scale, 1_000_000, source=source), below_normal),
    ):
        exact = np.diff(np.concatenate([[0.0], below, [1.0]]))
        assert (p_value(block_counts(values, edges), exact) > REJECT) is accepted


def test_tiny_scales_are_nearly_always_zero_and_never_fail() -> None:
    for scale in (Fraction(1, 1000), 1e-6, Fraction(1, 10**30), 5e-324):
        assert not discrete_laplace(scale, 1000).any()
        assert not geometric(scale, 1000).any()
        assert not discrete_gaussian(scale, 1000).any()
        assert discrete_laplace(scale) == 0


@pytest.mark.parametrize("bits", [56, 64, 100, 2000])
def test_from_two_to_the_56_on_values_are_python_integers(bits: int) -> None:
    scale = 1 << bits
    source = SeededForTestsOnly(8)
    laplace, gaussian = discrete_laplace(scale, 400, source=source), discrete_gaussian(scale**2, 400, source=source)
    plain = geometric(scale, 400, source=source)
    for values, mean, spread in ((laplace, 1.0, 1.0), (gaussian, math.sqrt(2 / math.pi), 0.6), (plain, 1.0, 1.0)):
        assert values.dtype == object
        assert all(type(value) is int for value in values)
        size = sum(float(Fraction(abs(value), scale)) for value in values) / 400
        assert abs(size - mean) < 6 * spread / 20
        assert len({value % 1024 for value in values}) > 250  # the low bits are random too
    assert discrete_laplace(scale - 1, 3).dtype == np.int64 or bits > 56


def test_means_and_variances_at_the_largest_int64_scale() -> None:
    scale = 2**56 - 1
    source = SeededForTestsOnly(9)
    for values, variance in (
        (discrete_laplace(scale, 200_000, source=source), 2.0),
        (discrete_gaussian(scale**2, 200_000, source=source), 1.0),
    ):
        scaled = values.astype(float) / scale
        assert abs(scaled.mean()) < 6 * math.sqrt(variance / 200_000)
        assert abs(scaled.var() / variance - 1) < 6 * math.sqrt(5 / 200_000)
        assert 0.49 < (values & 1).mean() < 0.51


@pytest.mark.parametrize("sampler", NOISE)
@pytest.mark.parametrize("scale", [3, 500_000])
def test_sizes_and_kinds(sampler: Any, scale: int) -> None:
    assert type(sampler(scale)) is int
    assert sampler(scale, 0).shape == (0,)
    assert sampler(scale, (2, 0, 3)).shape == (2, 0, 3)
    assert sampler(scale, ()).shape == ()
    for size in (1, FEW - 1, FEW, FEW + 1, 20_000, 40_000):
        values = sampler(scale, size)
        assert values.shape == (size,)
        assert values.dtype == np.int64
    assert sampler(scale, (3, 4)).shape == (3, 4)
    assert sampler(scale, np.int64(4)).shape == (4,)
    if sampler is geometric:
        assert (sampler(scale, 1000) >= 0).all()


@pytest.mark.parametrize("sampler", NOISE)
def test_equal_rationals_of_any_kind_give_the_same_draws(sampler: Any) -> None:
    kinds = [2.5, Fraction(5, 2), Decimal("2.5"), np.float64(2.5), np.float32(2.5)]
    draws = [sampler(kind, 50, source=SeededForTestsOnly(1)).tolist() for kind in kinds]
    assert all(draw == draws[0] for draw in draws)
    whole = [sampler(kind, 50, source=SeededForTestsOnly(1)).tolist() for kind in (3, 3.0, np.int32(3), np.uint64(3))]
    assert all(draw == whole[0] for draw in whole)


def test_a_float_is_the_dyadic_rational_it_is() -> None:
    """0.1 as a float is a little above one tenth, and the table is built for that number."""
    from discreet.samplers.discrete_laplace import _make_table

    assert _make_table(0.1).law.linear == 1 / Fraction(0.1)
    assert _make_table(Fraction(1, 10)).law.linear == 10


BAD = [0, -1, 0.0, -2.5, math.nan, math.inf, -math.inf, Decimal("nan"), True, False, "1", None, 1j, [1], np.bool_(True)]


@pytest.mark.parametrize("sampler", NOISE)
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_scales_are_refused_by_name(sampler: Any, bad: object) -> None:
    sampler(1)  # True must be refused although a table for 1 is ready
    name = "variance" if sampler is discrete_gaussian else "scale"
    with pytest.raises(ParameterError) as refused:
        sampler(bad)
    assert refused.value.name == name


@pytest.mark.parametrize("sampler", NOISE)
@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", (2, -1), [2, 3], (2, None), 1 << 40, (1 << 20, 1 << 20)], ids=repr)
def test_bad_sizes_are_refused_by_name(sampler: Any, bad: object) -> None:
    with pytest.raises(ParameterError) as refused:
        sampler(1, bad)
    assert refused.value.name == "size"
    assert pickle.loads(pickle.dumps(refused.value)).name == "size"  # noqa: S301  # our own bytes


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=1000),
    st.sampled_from(NOISE),
    st.integers(),
)
@settings(deadline=None, max_examples=30)
def test_same_words_same_noise(parameter: Fraction, sampler: Any, seed: int) -> None:
    """Draws depend on the source alone: no hidden state between calls."""
    first, second = (sampler(parameter, 30, source=SeededForTestsOnly(seed)) for _ in range(2))
    assert (first == second).all()


TIMED = [(discrete_laplace, 10), (discrete_laplace, 10**6), (discrete_gaussian, 100), (discrete_gaussian, 10**12)]


def timed(draw: Callable[[], Any], count: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Times in ns and mean magnitudes of so many draws."""
    times, sizes = np.empty(count), np.empty(count)
    for i in range(count):
        start = perf_counter_ns()
        value = draw()
        end = perf_counter_ns()
        times[i], sizes[i] = end - start, np.abs(value).mean()
        del value  # or the next draw would pay for freeing it
    return times, sizes


@pytest.mark.long
@pytest.mark.parametrize(("sampler", "parameter"), TIMED)
def test_the_time_of_an_array_does_not_tell_its_size(sampler: Any, parameter: int) -> None:
    times, sizes = timed(lambda: sampler(parameter, FEW), 60_000)
    assert abs(scipy.stats.spearmanr(times, sizes).statistic) < 0.05


@pytest.mark.long
@pytest.mark.parametrize(("sampler", "parameter"), [case for case in TIMED if case[1] >= 10**6])
def test_the_time_of_a_single_draw_does_not_tell_its_size_at_large_scales(sampler: Any, parameter: int) -> None:
    times, sizes = timed(lambda: sampler(parameter), 200_000)
    assert abs(scipy.stats.spearmanr(times, sizes).statistic) < 0.05


@pytest.mark.long
@pytest.mark.parametrize(("sampler", "parameter"), TIMED)
def test_the_largest_single_draws_take_as_long_as_the_smallest_to_five_percent(sampler: Any, parameter: int) -> None:
    """Python's ready-made small integers leave a trace of 2 % at small scales (see ``blocks``); nothing does more."""
    times, sizes = timed(lambda: sampler(parameter), 200_000)
    low, high = np.quantile(sizes, [0.125, 0.875])
    assert abs(np.median(times[sizes >= high]) / np.median(times[sizes <= low]) - 1) < 0.05


@pytest.mark.long
def test_the_time_of_the_reference_does_tell_its_size() -> None:
    """The negative control: the same measurement finds what it should find."""
    source = SeededForTestsOnly(1)
    times, sizes = timed(lambda: reference.discrete_laplace(Fraction(10), source), 20_000)
    assert scipy.stats.spearmanr(times, sizes).statistic > 0.1
    low, high = np.quantile(sizes, [0.125, 0.875])
    assert np.median(times[sizes >= high]) / np.median(times[sizes <= low]) > 1.2
