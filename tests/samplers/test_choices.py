"""Coins, uniform numbers and categorical choices: exact laws, rare paths, bad input."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, exp_minus_bounds, ln
from discreet.samplers import (
    bernoulli,
    bernoulli_exp,
    bernoulli_exp_each,
    bernoulli_real,
    categorical,
    categorical_exp,
    lazy,
    reference,
    uniform_below,
)
from discreet.samplers.exponents import Exponents
from discreet.samplers.uniform import draw_words_below
from tests.samplers.sources import Fixed
from tests.statistical.chi_square import REJECT, p_value

# ---- coins


@pytest.mark.parametrize("p", [Fraction(1, 3), 0.1, Decimal("0.9"), Fraction(999, 1000)])
def test_a_coin_has_its_bias(p: Any) -> None:
    source = SeededForTestsOnly(1)
    n, exact = 2_000_000, float(p)
    assert p_value([(hits := int(bernoulli(p, n, source=source).sum())), n - hits], [exact, 1 - exact]) > REJECT
    assert p_value([hits, n - hits], [exact * 0.98, 1 - exact * 0.98]) < REJECT  # two percent off is noticed
    hits = sum(bernoulli(p, source=source) for _ in range(20_000))
    assert p_value([hits, 20_000 - hits], [exact, 1 - exact]) > REJECT


def test_sure_coins_are_sure() -> None:
    assert bernoulli(1, 1000).all()
    assert not bernoulli(0, 1000).any()
    assert bernoulli(1.0) is True
    assert bernoulli(0) is False
    assert bernoulli_exp(0, 1000).all()
    assert not bernoulli_exp(10**9, 1000).any()
    assert bernoulli(1, 5, source=Fixed(2**64 - 1)).all()
    assert not bernoulli(0, 5, source=Fixed(0)).any()


@pytest.mark.parametrize("size", [None, 3])
def test_a_word_on_the_border_is_settled_by_later_bits(size: Any) -> None:
    """With p = 1/3 and the word ⌊2^64/3⌋ the next bits decide: below 0101... is True, above is False."""
    border = 2**64 // 3
    for later, expected in ((0, True), (2**64 - 1, False)):
        assert np.all(bernoulli(Fraction(1, 3), size, source=Fixed(border, later)) == expected)
    assert np.all(bernoulli(Fraction(1, 3), size, source=Fixed(border - 1, 2**64 - 1)))
    assert not np.any(bernoulli(Fraction(1, 3), size, source=Fixed(border + 1, 0)))


@pytest.mark.parametrize("x", [Fraction(1, 7), 0.5, 2, Fraction(7, 2)])
def test_an_exponential_coin_agrees_with_the_reference(x: Any) -> None:
    source = SeededForTestsOnly(2)
    p = math.exp(-float(x))
    hits = int(bernoulli_exp(x, 300_000, source=source).sum())
    assert p_value([hits, 300_000 - hits], [p, 1 - p]) > REJECT
    hits = sum(reference.bernoulli_exp(Fraction(x), source) for _ in range(10_000))
    assert p_value([hits, 10_000 - hits], [p, 1 - p]) > REJECT
    hits = sum(bernoulli_exp(x, source=source) for _ in range(10_000))
    assert p_value([hits, 10_000 - hits], [p, 1 - p]) > REJECT


def test_the_border_of_an_exponential_coin_is_exact() -> None:
    low, high = exp_minus_bounds(Fraction(1), 64)
    assert high == low + 1
    after, _ = exp_minus_bounds(Fraction(1), 128)
    rest = after - (low << 64)
    assert bernoulli_exp(1, source=Fixed(low, rest - 1)) is True
    assert bernoulli_exp(1, source=Fixed(low, rest + 2)) is False
    assert bernoulli_exp_each([1], source=Fixed(low, rest - 1)).tolist() == [True]
    assert bernoulli_exp_each([1], source=Fixed(low, rest + 2)).tolist() == [False]


def test_an_exact_logarithm_is_a_rational_coin() -> None:
    source = SeededForTestsOnly(3)
    hits = int(bernoulli_exp(ln(4), 200_000, source=source).sum())
    assert p_value([hits, 200_000 - hits], [0.25, 0.75]) > REJECT


def test_a_computable_real_is_a_coin() -> None:
    """1/√2 by integer square roots."""

    def bounds(bits: int) -> tuple[int, int]:
        root = math.isqrt(1 << (2 * bits - 1)) if bits else 0
        return root, root + 1

    source = SeededForTestsOnly(4)
    hits = int(bernoulli_real(bounds, (400, 500), source=source).sum())
    assert p_value([hits, 200_000 - hits], [math.sqrt(0.5), 1 - math.sqrt(0.5)]) > REJECT
    assert type(bernoulli_real(bounds, source=source)) is bool


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True, [0.5]], ids=repr)
def test_bad_probabilities_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        bernoulli(bad)
    assert refused.value.name == "p"


@pytest.mark.parametrize("bad", [-1, -0.5, math.nan, math.inf, "1", None, True], ids=repr)
def test_bad_exponents_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        bernoulli_exp(bad)
    assert refused.value.name == "x"


def test_bounds_must_be_a_function() -> None:
    with pytest.raises(ParameterError, match="bounds"):
        bernoulli_real(0.5)  # type: ignore[call-overload]  # the point of the test


# ---- many exponential coins


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, np.float32, object])
def test_each_entry_has_its_own_coin(kind: Any) -> None:
    source = SeededForTestsOnly(5)
    scores = np.array([0, 1, 2, 3, 40], dtype=kind)
    flips = np.array([bernoulli_exp_each(scores, Fraction(1, 2), source=source) for _ in range(4000)])
    for score, column in zip(range(4), flips.T):
        p = math.exp(-score / 2)
        assert abs(column.mean() - p) < 6 * math.sqrt(p * (1 - p) / 4000) + 1e-12
    assert not flips[:, 4].any()
    assert flips.dtype == np.bool_


def test_many_coins_at_once_have_their_biases() -> None:
    source = SeededForTestsOnly(6)
    flips = bernoulli_exp_each(np.full((1000, 600), 0.75), 2, source=source)
    assert flips.shape == (1000, 600)
    p = math.exp(-1.5)
    assert p_value([flips.sum(), 600_000 - flips.sum()], [p, 1 - p]) > REJECT
    assert p_value([flips.sum(), 600_000 - flips.sum()], [p * 1.02, 1 - p * 1.02]) < REJECT


def test_coins_below_an_origin_need_no_rounded_subtraction() -> None:
    """score − origin is 10^-20 in exact numbers and nothing in floats; a factor of 10^20 makes the difference plain."""
    tiny = Fraction(1, 10**20)
    flips = bernoulli_exp_each(np.ones(20_000), -(10**20), origin=1 + tiny, source=SeededForTestsOnly(7))
    assert abs(flips.mean() - math.exp(-1)) < 0.03


def test_no_entries_no_coins() -> None:
    assert bernoulli_exp_each([]).shape == (0,)
    assert bernoulli_exp_each(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "scores", [[-1], [0.0, -1e-300], [math.nan], [math.inf], ["a"], [True], [None], [1j], [1, "2"]], ids=repr
)
def test_bad_scores_of_coins_are_refused(scores: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        bernoulli_exp_each(scores)
    assert refused.value.name == "scores"


def test_bad_factors_are_refused() -> None:
    for bad in (math.nan, math.inf, "1", None, True):
        with pytest.raises(ParameterError, match="factor"):
            categorical_exp([1, 2], bad)  # type: ignore[arg-type]  # the point of the test
        with pytest.raises(ParameterError, match="factor"):
            bernoulli_exp_each([1, 2], bad)  # type: ignore[arg-type]  # the point of the test


SCORES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=5),
)


@example([0, 2**63 + 1], Fraction(1))
@given(SCORES, st.one_of(st.fractions(), st.floats(allow_nan=False, allow_infinity=False)))
@settings(deadline=None, max_examples=300)
def test_float_exponents_are_as_close_as_they_promise(scores: list[Any], factor: Any) -> None:
    """Whatever the scores: e^(−float) and e^(−exact) differ by less than 2^-48."""
    exponents = Exponents.below_best(scores, factor)
    for lane, value in enumerate(exponents.approximate.tolist()):
        exact = exponents.exact_exponent(lane)
        assert exact >= 0
        assert exact == abs(Fraction(factor)) * abs(exponents.origin - Fraction(scores[lane]))
        if exact > 800:
            assert value > 700
        else:
            bounds = Interval.exp_minus(exact)
            found = Fraction(math.exp(-value))
            assert bounds.low - Fraction(1, 1 << 48) < found < bounds.high + Fraction(1, 1 << 48)


# ---- uniform numbers


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1000])
def test_uniform_numbers_are_uniform(n: int) -> None:
    source = SeededForTestsOnly(8)
    values = uniform_below(n, 200_000, source=source)
    assert values.dtype == np.int64
    assert 0 <= values.min() <= values.max() < n
    if n > 1:
        assert p_value(np.bincount(values, minlength=n), [1 / n] * n) > REJECT
        singles = [uniform_below(n, source=source) for _ in range(10_000)]
        assert p_value(np.bincount(singles, minlength=n), [1 / n] * n) > REJECT


@pytest.mark.parametrize("n", [2**62 + 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64, 2**64 + 1, 3 * 2**100])
def test_large_uniform_numbers_cover_their_range(n: int) -> None:
    source = SeededForTestsOnly(9)
    values = uniform_below(n, 3000, source=source)
    assert values.dtype == (np.int64 if n <= 2**63 else object)
    thirds = np.bincount([int(value) * 3 // n for value in values.tolist()], minlength=3)
    assert p_value(thirds, [1 / 3] * 3) > REJECT
    assert all(0 <= int(value) < n for value in values)


@pytest.mark.parametrize("n", [3, 5, 2**63 - 1, 2**63 + 1, 2**64 - 1])
def test_every_uniform_number_owns_equally_many_words(n: int) -> None:
    """The first and the last word of a number give it; words beyond the last number are drawn again."""
    share = 2**64 // n
    for x in {0, 1, n // 2, n - 1}:
        for word in (x * share, (x + 1) * share - 1):
            assert draw_words_below(n, 2, Fixed(word)).tolist() == [x, x]

    class First:
        """A leftover word first, then zeros."""

        def __init__(self) -> None:
            self.calls = 0

        def words(self, count: int) -> Any:
            self.calls += 1
            return np.full(count, 2**64 - 1 if self.calls == 1 else 0, dtype=np.uint64)

        def word(self) -> int:
            return 0

        def bits(self, _: int) -> int:
            return 0

    source = First()
    assert draw_words_below(n, 2, source).tolist() == [0, 0]
    assert source.calls == 2


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "3", None, math.nan], ids=repr)
def test_bad_ranges_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        uniform_below(bad)
    assert refused.value.name == "n"


# ---- categorical choices


@pytest.mark.parametrize(
    "weights",
    [
        [1, 2, 3, 0, 4],
        [0.1, 0.7, 0.2],
        [Fraction(1, 3), Fraction(1, 7), 1],
        np.array([5, 1, 1], dtype=np.uint8),
        [2**80, 2**81, 2**80],
        [1e-300, 2e-300, 1e-300],
        [1e300, 3e300],
    ],
    ids=repr,
)
def test_weights_are_met(weights: Any) -> None:
    source = SeededForTestsOnly(10)
    exact = [float(Fraction(w) / sum(Fraction(v) for v in weights)) for w in np.asarray(weights).tolist()]
    found = categorical(weights, 40_000, source=source)
    assert found.dtype == np.int64
    tally = np.bincount(found, minlength=len(exact))
    assert p_value(tally, exact) > REJECT
    assert not any(count for count, p in zip(tally, exact) if p == 0)
    singles = np.bincount([categorical(weights, source=source) for _ in range(3000)], minlength=len(exact))
    assert p_value(singles, exact) > REJECT


@pytest.mark.parametrize(
    "bad",
    [[], [0, 0], [0.0], [-1, 2], [math.nan, 1], [math.inf], ["a"], [True, False], 3, [[1, 2]], [None]],
    ids=repr,
)
def test_bad_weights_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        categorical(bad)
    assert refused.value.name == "weights"


def softmax(scores: Any, factor: float) -> Any:
    x = np.asarray(scores, dtype=float) * factor
    weights = np.exp(x - x.max())
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("scores", "factor"),
    [
        ([0, 1, 2, 3], 1),
        ([0.5, -0.25, 0.0], Fraction(3, 2)),
        ([0, 1, 2, 3], -1),
        ([5, 5, 5], 0),
        ([2**62, 2**62 - 1, 2**62 + 1], 1),
        ([-(2**63), 2**63 - 1], Fraction(1, 2**64)),
        ([10**30, 10**30 + 1], Fraction(1, 2)),
        ([1e308, -1e308], Fraction(1, 10**308)),
        ([5e-324, 0.0], Fraction(2**1074)),
        ([7], 1),
    ],
    ids=repr,
)
def test_exponential_weights_are_met(scores: list[Any], factor: Any) -> None:
    source = SeededForTestsOnly(11)
    exact = softmax([float((Fraction(s) - Fraction(scores[0])) * Fraction(factor)) for s in scores], 1)
    tally = np.bincount(categorical_exp(scores, factor, size=40_000, source=source), minlength=len(scores))
    if len(scores) == 1:
        assert tally.tolist() == [40_000]
        return
    assert p_value(tally, exact) > REJECT
    singles = [categorical_exp(np.array(scores), factor, source=source) for _ in range(1000)]
    assert p_value(np.bincount(singles, minlength=len(scores)), exact) > REJECT


def test_a_factor_two_percent_off_is_noticed() -> None:
    scores = np.arange(40)
    tally = np.bincount(categorical_exp(scores, 0.25, size=400_000, source=SeededForTestsOnly(12)), minlength=40)
    assert p_value(tally, softmax(scores, 0.25)) > REJECT
    assert p_value(tally, softmax(scores, 0.255)) < REJECT


@pytest.mark.parametrize("k", [1000, (1 << 17) + 1, 1 << 20])
def test_many_candidates(k: int) -> None:
    """Grouped by score the picks have the right probabilities, also beyond 2^17 candidates."""
    scores = np.arange(k) % 8
    found = categorical_exp(scores, 0.5, size=30_000, source=SeededForTestsOnly(13))
    assert p_value(np.bincount(found % 8, minlength=8), softmax(np.arange(8), 0.5)) > REJECT
    assert p_value(np.bincount(found * 10 // k, minlength=10), [0.1] * 10) > REJECT


def test_spare_words_are_settled_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a guard band of a third most picks take the exact way, and the law stays."""
    module = sys.modules["discreet.samplers.categorical"]
    monkeypatch.setattr(module, "GUARD", 1 / 3)
    spared = 0
    original = module._ExpTable._takes_spare

    def counted(self: Any, index: int, source: Any) -> bool:
        nonlocal spared
        spared += 1
        return bool(original(self, index, source))

    monkeypatch.setattr(module._ExpTable, "_takes_spare", counted)
    scores = [0, 1, 2, 2.5, -3]
    tally = np.bincount(categorical_exp(scores, size=8_000, source=SeededForTestsOnly(14)), minlength=5)
    assert spared > 4_000
    assert p_value(tally, softmax(scores, 1)) > REJECT
    assert p_value(tally, softmax(scores, 1.2)) < REJECT


def test_a_candidate_of_negligible_weight_keeps_its_tiny_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """At e^-50 the floats see nothing, but spare words exist for it and are kept with probability s·e^-50/h."""
    table = sys.modules["discreet.samplers.categorical"]._ExpTable([0, -50], 1)
    assert table._sure[1] == 0
    asked: list[tuple[int, int]] = []

    def below(prefix: int, known: int, bounds: lazy.RealBounds, _: Any) -> bool:
        asked.append(bounds(300))
        return prefix == known == 0

    monkeypatch.setattr(lazy, "is_below", below)
    assert table._takes_spare(1, SeededForTestsOnly(1))
    low, high = asked[0]
    exact = Interval.exp_minus(Fraction(50)) * Interval.of(Fraction(1 << table._bits, table._spare))
    assert Fraction(low, 1 << 300) <= exact.high
    assert exact.low <= Fraction(high, 1 << 300)
    assert high - low <= 2


@pytest.mark.parametrize("bad", [[], [math.nan, 1], [math.inf, 0], [True], ["a"], [[1, 2]], 3, [None], [1j]], ids=repr)
def test_bad_scores_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        categorical_exp(bad)
    assert refused.value.name == "scores"


@pytest.mark.parametrize("size", [0, 3, (2, 3), (0, 2), ()])
def test_sizes_are_met_by_all(size: Any) -> None:
    shape = size if isinstance(size, tuple) else (size,)
    for draw in (
        bernoulli(0.5, size),
        bernoulli_exp(1, size),
        bernoulli_real(lazy.bounds_of_ratio(Fraction(1, 2)), size),
        uniform_below(5, size),
        uniform_below(2**70, size),
        categorical([1, 2], size),
        categorical([2**70, 1], size),
        categorical_exp([1, 2], size=size),
    ):
        assert draw.shape == shape


@pytest.mark.parametrize("bad", [-1, 1.5, True, "3", (2, -1), [2]], ids=repr)
def test_bad_sizes_are_refused_by_all(bad: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: bernoulli(0.5, bad),
        lambda: bernoulli_exp(1, bad),
        lambda: uniform_below(5, bad),
        lambda: categorical([1, 2], bad),
        lambda: categorical_exp([1, 2], 1, bad),
    ]
    for call in calls:
        with pytest.raises(ParameterError) as refused:
            call()
        assert refused.value.name == "size"
