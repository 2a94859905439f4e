"""Rounded normal noise: the tables of real numbers, their rare paths, and the law that comes out of the public door."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
import scipy.stats

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, exp_minus_bounds
from discreet.mechanisms.laws import RoundedGaussianLaw
from discreet.samplers import block_table, lazy, reference, rounded_gaussian
from discreet.samplers.block_table import TableLayout
from discreet.samplers.law import Law
from discreet.samplers.real_table import RealTable
from discreet.samplers.rounded_gaussian import find_grain
from tests.samplers.sources import Listed, SmallWords, Written
from tests.samplers.test_blocks import FURTHEST, KnownGeometric, agree, known_below, rare_calls, tree, word_counts
from tests.statistical.chi_square import REJECT, block_counts, counts, p_value


def gaussian(variance: Fraction | int) -> Law:
    return Law(square=1 / (2 * Fraction(variance)))


def exact(variance: Fraction, high: int) -> list[float]:
    law = RoundedGaussianLaw(variance)
    return [float(law.probability(z)) for z in range(-high, high + 1)]


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(50, 3), Fraction(2000)])
def test_arrays_single_draws_and_the_reference_have_the_exact_law(variance: Fraction) -> None:
    source, high = SeededForTestsOnly(21), 6 * math.isqrt(math.ceil(variance)) + 3
    chances = exact(variance, high)
    assert p_value(counts(rounded_gaussian(variance, 300_000, source=source), -high, high), chances) > REJECT
    single = [rounded_gaussian(variance, source=source) for _ in range(20_000)]
    assert p_value(counts(single, -high, high), chances) > REJECT
    slow = [reference.rounded_gaussian(variance, source) for _ in range(3_000)]
    assert p_value(counts(slow, -high, high), chances) > REJECT


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(2), Fraction(300), Fraction(10**9), Fraction(2**54 + 1)])
def test_a_scale_two_percent_off_is_noticed(sigma: Fraction) -> None:
    """Against the normal distribution function at half steps, from narrow to wide noise."""
    values = rounded_gaussian(sigma**2, 1_000_000, source=SeededForTestsOnly(4))
    edges = np.unique([math.floor(sigma * step / 10) for step in range(-40, 41)]).astype(np.int64)
    for wrong, accepted in ((1.0, True), (1.02, False), (0.98, False)):
        below = scipy.stats.norm.cdf((edges - 0.5) / (float(sigma) * wrong))
        chances = np.diff(np.concatenate([[0.0], below, [1.0]]))
        assert (p_value(block_counts(values, edges), chances) > REJECT) is accepted, wrong


def unit_mass(law: Law, m: int) -> Interval:
    """∫ exp(−E(y)) dy over m ≤ y ≤ m + 1, by an independent library, to 30 digits."""
    with mpmath.workdps(45):
        linear, square = (mpmath.mpf(x.numerator) / x.denominator for x in (law.linear, law.square))
        value = mpmath.quad(lambda y: mpmath.exp(-y * (linear + square * y)), [m, m + 1])
        middle = Fraction(str(value))
    return Interval(middle - Fraction(1, 10**30), middle + Fraction(1, 10**30))


@lru_cache
def chance_at(bounds_of: tuple[Law, int, int, Fraction]) -> Interval:
    """∫₀¹ exp(−(E(size + f) − E(start) − envelope)) df."""
    law, start, size, envelope = bounds_of
    return unit_mass(law, size) / Interval.exp_minus(law.exponent(start)) / Interval.exp_minus(envelope)


TREES = [
    (gaussian(1), TableLayout(word_bits=5, tail_bits=2, fall=Fraction(1))),
    (gaussian(9), TableLayout(word_bits=5, tail_bits=1, fall=Fraction(1))),
]


@pytest.mark.parametrize(("law", "layout"), TREES, ids=str)
def test_the_whole_decision_tree_of_a_draw_has_exactly_the_law(
    law: Law, layout: TableLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All words are played through the real code: one attempt gives each m with s/(B·2^W)·∫ exp(−E), to 25 digits.

    The comparison with a fresh fraction has its own test; here it is an event with the integral as its probability.
    Coins of few bits are decided by it alone, so the first comparison is turned off.
    """
    table = RealTable(law, layout)
    monkeypatch.setattr(lazy, "is_below", known_below)
    monkeypatch.setattr(block_table, "make_block_table", KnownGeometric)
    monkeypatch.setattr(table, "_quick", 0)

    def keeps_one(base: int, value: int, _: int, source: Written) -> bool:
        chance = chance_at((law, table._start(base), table._start(value), Fraction(0)))
        return source.choose([Interval.of(1) - chance, chance]) == 1

    def keeps_beyond(value: int, envelope: Fraction, source: Written) -> bool:
        chance = chance_at((law, table.tail_start, table._start(value), envelope))
        return source.choose([Interval.of(1) - chance, chance]) == 1

    monkeypatch.setattr(table, "_keeps_one", keeps_one)
    monkeypatch.setattr(table, "_keeps_beyond", keeps_beyond)
    chances = tree(table.attempt, layout)
    unit = Interval.of(Fraction(table.multiplier, 1 << table.block_bits + layout.word_bits))
    for m in range(FURTHEST):
        expected = unit_mass(law, m) * unit
        assert agree(chances[m], expected), m
        assert agree(chances[~m], expected), m


def test_words_are_dealt_evenly_to_both_sides() -> None:
    for variance in (Fraction(1, 1000), Fraction(1), Fraction(10**12)):
        table = RealTable(gaussian(variance * 4 ** find_grain(variance)))
        tally = word_counts(table)
        assert sum(tally.values()) == 1 << 64
        assert all(tally[cell] == tally[cell + 1] for cell in range(0, table.cell_count, 2))
        assert table.cell_count < 6000
        assert table.tail_mass < 1 << 35
        last = table.tail_start - (1 << table.block_bits)
        worst = Interval.exp_minus(table.law.rise(last, table.tail_start))
        assert Fraction(table._quick, 1 << table._known) <= worst.high
        assert table._quick / 2.0**table._known > 0.96


SMALL = [
    (Fraction(29, 2), 1, TableLayout(word_bits=8, tail_bits=3, fall=Fraction(1, 2))),
    (Fraction(9, 2), 2, TableLayout(word_bits=8, tail_bits=3, fall=Fraction(1, 2))),
    (Fraction(900), 1, TableLayout(word_bits=6, tail_bits=3, fall=Fraction(1, 2))),
]


@pytest.mark.parametrize(("variance", "grain", "layout"), SMALL, ids=str)
@pytest.mark.parametrize("arrays", [False, True], ids=["one by one", "arrays"])
def test_small_words_force_the_rare_paths_and_the_law_stays(
    variance: Fraction, grain: int, layout: TableLayout, arrays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = RealTable(gaussian(variance * 4**grain), layout)
    calls = rare_calls(table, monkeypatch, "_draw_fraction", "_draw_tail", "_is_below", "_draw_rare")
    source = SmallWords(11, layout.word_bits)
    out = np.empty(6_000, dtype=np.int64)
    if arrays:
        table.fill(out, source)
    else:
        out[:] = [table.draw(source) for _ in range(out.size)]
    high = 5 * math.isqrt(math.ceil(variance)) + 3
    assert p_value(counts(out + (1 << grain - 1) >> grain, -high, high), exact(variance, high)) > REJECT
    assert calls["_draw_fraction"] > 100
    assert calls["_draw_tail"] > 100
    assert calls["_draw_rare"] > calls["_draw_fraction"] + calls["_draw_tail"]  # the filler
    assert calls["_is_below"] > 100


def test_lanes_inside_the_guard_band_are_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a band as wide as everything every comparison is made exactly, and the same words give the same values."""
    table = RealTable(gaussian(10**8))
    usual, certain = np.empty(2000, dtype=np.int64), np.empty(2000, dtype=np.int64)
    table.fill(usual, SeededForTestsOnly(1))
    calls = rare_calls(table, monkeypatch, "_is_below")
    monkeypatch.setattr(block_table, "GUARD", 2.0)
    table.fill(certain, SeededForTestsOnly(1))
    assert calls["_is_below"] > 20
    assert (usual == certain).all()


@pytest.mark.parametrize("variance", [10**6, 10**12, (1 << 112) - 1])
def test_lanes_just_beside_a_tie_go_the_right_way(variance: int) -> None:
    """Coins 2^-36, 2^-43 and 2^-55 beside the acceptance probability of a place, by floats and exactly."""
    table, rng = RealTable(gaussian(variance)), np.random.default_rng(5)
    bits = 2 * 64 - table.block_bits
    for _ in range(20):
        cell, place = int(rng.integers(table.cell_count)), int(rng.integers(1 << table.block_bits))
        base = table._base(cell)
        fraction = int(rng.integers(1 << 62))
        size = table._start(base ^ place) + Fraction(fraction, 1 << 64)
        border, _high = exp_minus_bounds(table.law.rise(table._start(base), size), bits)
        for apart in (36, 43, 55):
            for sign, kept in ((-1, True), (1, False)):
                prefix = border + sign * (1 << bits - apart)
                if not 0 <= prefix < 1 << bits:
                    continue
                top, more = prefix >> 64, prefix & ((1 << 64) - 1)
                word = np.array([top << table.block_bits | place], dtype=np.uint64)
                assert table._keeps_each(np.array([base]), word, Listed(more, fraction)).tolist() == [kept]
                assert table._keeps_one(base, base ^ place, top, Listed(more, fraction)) is kept


def test_a_place_is_compared_as_its_whole_fraction() -> None:
    """P(U < p(V)) is the integral of p, here of 1 − v² with words of three bits, over all bits that can come."""

    def bounds_at(v: Fraction, bits: int) -> tuple[int, int]:
        value = (1 - v * v) * (1 << bits)
        return math.floor(value), math.ceil(value)

    source = SeededForTestsOnly(8)
    kept = sum(lazy.is_below_at((0, 0), (0, 0), bounds_at, source, step=3) for _ in range(40_000))
    assert scipy.stats.binomtest(kept, 40_000, 2 / 3).pvalue > REJECT
    assert scipy.stats.binomtest(kept, 40_000, 0.65).pvalue < REJECT


def test_floats_are_far_inside_the_guard_band() -> None:
    rng = np.random.default_rng(3)
    for variance in (70_000, 10**12, (1 << 112) - 1):
        table = RealTable(gaussian(variance))
        starts = rng.integers(0, table.blocks, 200) << table.block_bits
        places, fractions = rng.integers(0, 1 << table.block_bits, 200), rng.random(200)
        floats = np.exp(-table._rises(starts.astype(np.float64), places.astype(np.float64) + fractions))
        for start, place, f, value in zip(starts.tolist(), places.tolist(), fractions.tolist(), floats.tolist()):
            certain = Interval.exp_minus(table.law.rise(start, start + place + Fraction(f)))
            assert max(certain.high - Fraction(value), Fraction(value) - certain.low) < Fraction(1, 1 << 48)


def test_sizes_kinds_and_extremes() -> None:
    """Ints, shapes, noise far below one step and far above int64; nothing else is accepted."""
    assert not rounded_gaussian(Fraction(1, 10**30), 1000).any()
    assert isinstance(rounded_gaussian(1e-300), int)
    assert rounded_gaussian(4, (2, 0, 3)).shape == (2, 0, 3)
    wide = rounded_gaussian(1 << 200, 50, source=SeededForTestsOnly(1))
    assert all(isinstance(value, int) for value in wide.tolist())
    assert float(np.std(wide.astype(np.float64))) == pytest.approx(2.0**100, rel=0.5)
    assert find_grain(Fraction(10**9)) == 1
    for bad in (0, -1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(ParameterError):
            rounded_gaussian(bad)  # type: ignore[arg-type]  # what is refused
