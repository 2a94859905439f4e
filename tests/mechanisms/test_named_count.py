"""Intervals of counts that named their key: coverage given the name, exactly and by simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.mechanisms.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.mechanisms.named_count import NamedCount
from discreet.mechanisms.threshold import GaussianThreshold, LaplaceThreshold

RULES: list[Any] = [
    LaplaceThreshold(epsilon=1, delta=1e-6),
    LaplaceThreshold(epsilon=0.3, delta=1e-6, max_groups=2, min_units=4),
    GaussianThreshold(rho=0.0233, delta=1e-6),
    GaussianThreshold(rho=0.0233, delta=1e-6, max_groups=5, neighbours="replace"),
    GaussianThreshold(rho=8, delta=1e-3),
]
LEVEL = Fraction(95, 100)


def known_of(rule: Any) -> NamedCount:
    return NamedCount(rule.law, rule.bar, rule.min_units)


def coverage(rule: Any, count: int, level: Fraction) -> float:
    """Oracle: the exact probability that the interval holds the count, given that the key was named."""
    named, held, known = 0.0, 0.0, known_of(rule)
    reach = math.ceil(rule.error(1e-9))
    for noisy in range(max(rule.bar, count - reach), max(rule.bar, count) + reach):
        p = float(rule.law.probability(noisy - count))
        low, high = known.find_ends(noisy, level)
        named += p
        held += p if low <= count <= high else 0.0
    return held / named


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("level", [LEVEL, Fraction(1, 2), Fraction(999, 1000)])
def test_coverage_given_the_name_is_at_least_the_level(rule: Any, level: Fraction) -> None:
    """At every count from one up to far above the bar."""
    far = rule.bar + math.ceil(rule.error(0.01))
    for count in {*range(rule.min_units, 12), *range(rule.min_units, far, max(1, rule.bar // 16)), rule.bar, far}:
        if count >= rule.min_units:
            assert coverage(rule, count, level) >= float(level) * (1 - 1e-6)


def test_plain_intervals_are_false_near_the_bar() -> None:
    """Negative control: the noise around the noisy count never holds a small count that was named by luck."""
    rule = LaplaceThreshold(epsilon=1, delta=1e-6)
    width, small = rule.error(0.05), 7
    assert rule.bar - width > small
    assert coverage(rule, small, LEVEL) >= 0.95


@pytest.mark.parametrize("rule", RULES[:3])
def test_coverage_by_simulation(rule: Any) -> None:
    """What the rule itself draws, at counts around the bar: the intervals hold the count in .93 of the named cases."""
    known = known_of(rule)
    for count in (rule.bar - 2, rule.bar, rule.bar + 3, rule.bar + 30):
        kept, noisy = rule.release_array(np.full(4000, count), source=SeededForTestsOnly(count))
        ends = [known.find_ends(value, LEVEL) for value in noisy[kept].tolist()]
        held = sum(low <= count <= high for low, high in ends)
        assert held >= 0.93 * len(ends) > 0


@pytest.mark.parametrize("rule", RULES)
def test_far_above_the_bar_intervals_are_those_of_the_noise(rule: Any) -> None:
    """Being named tells nothing about a count that would have been named anyway."""
    noisy = rule.bar + 10 + 40 * math.ceil(rule.error(0.05))
    low, high = known_of(rule).find_ends(noisy, LEVEL)
    assert (noisy - low, high - noisy) == (rule.error(0.05), rule.error(0.05))


@pytest.mark.parametrize("rule", RULES)
def test_drawn_counts_have_the_quantiles_of_the_intervals(rule: Any) -> None:
    """What statistics are simulated from agrees with the intervals, within the spread of 20,000 draws."""
    known = known_of(rule)
    for noisy in (rule.bar + 2, rule.bar + 4 * math.ceil(rule.error(0.05))):
        drawn = np.sort(known.draw_counts(noisy, 20_000, source=SeededForTestsOnly(5)))
        low, high = known.find_ends(noisy, LEVEL)
        step = max(2, (high - low) // 12)
        assert abs(int(drawn[500]) - low) <= step
        assert abs(int(drawn[-501]) - high) <= step


def test_an_interval_is_never_empty() -> None:
    """A noisy count exactly at a high bar is rare whatever the count was; the least count stands for all then."""
    wide = NamedCount(RoundedGaussianLaw(Fraction(10**8)), bar=50_000)
    assert wide.find_ends(50_000, LEVEL) == (1, 1)
    low, high = wide.find_ends(80_000, LEVEL)
    assert 1 <= low < 80_000 < high
    tiny = NamedCount(DiscreteLaplaceLaw(Fraction(1, 1000)), bar=2)
    assert tiny.find_ends(9, LEVEL) == (9, 9)


def test_far_tails_do_not_divide_by_zero() -> None:
    """A bar that no count near the least could reach: probabilities below all floats still have ratios."""
    known = NamedCount(RoundedGaussianLaw(Fraction(1)), bar=1000)
    assert known.find_ends(1000, LEVEL)[0] == 1
    assert known.chance_above(1, 1000) == 1.0
    low, high = known.find_ends(1010, 1 - Fraction(1, 10**12))
    assert 1000 < low < 1010 < high
    chances = [known.chance_above(count, 1001) for count in range(1, 1100, 7)]
    assert chances == sorted(chances) and chances[0] < 1e-300 < 1 - 1e-12 < chances[-1]
    below = [known.chance_below(count, 1001) for count in range(1, 1100, 7)]
    assert below == sorted(below, reverse=True)
