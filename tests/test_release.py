"""Drawing: noise of the scale that is charged, groups that tell nothing by their order, keys that stay rare."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.bounding.bound import WHOLE_WEIGHT, bound
from discreet.engines.engine import Groups
from discreet.entropy import SeededForTestsOnly
from discreet.mechanisms.weighted_selection import WeightedSelection
from discreet.offer import Offer
from discreet.plan.catalog import ContributionLimits
from discreet.plan.statistics.definitions import Statistic
from discreet.price import PriceTerms, price
from discreet.release import draw
from tests.worlds.hospital import COUNT, UNITS, ask, catalog, of
from tests.worlds.prices import ADD, APPROX, PATIENT, PURE, priced


def test_public_groups_without_rows_are_noisy_zeros_in_declared_order() -> None:
    """The rows' order and absence do not show."""
    release = priced(ask(COUNT, keys=("ward",)), PURE, epsilon=1)
    parts = release.units(0)
    groups = Groups((("C",), ("A",)), ((1000 * parts, 5 * parts),))
    drawn = draw(release, groups, source=SeededForTestsOnly(1))
    assert drawn.keys == (("A",), ("B",), ("C",))
    noisy = release.to_steps(0, drawn.measures[0])
    assert abs(noisy[0] - 5) < 200 and abs(noisy[1]) < 200 and abs(noisy[2] - 1000) < 200


def test_noise_has_the_scale_that_is_charged() -> None:
    """Over many groups the spread of what is drawn is that of the claimed noise; half of it would be noticed."""
    release = priced(ask(COUNT, UNITS, keys=("ward",)), PURE, epsilon=1)
    source = SeededForTestsOnly(2)
    zeros = Groups((), ((), ()))
    for position, noise in release.noises.items():
        drawn = np.concatenate([draw(release, zeros, source=source).measures[position] for _ in range(2000)])
        ratio = np.abs(drawn).mean() / (noise.standard_error / 2**0.5)
        assert 0.9 < ratio < 1.1


def test_rare_keys_are_never_named_and_frequent_ones_are_sorted() -> None:
    """Keys with one unit stay unnamed (but for δ); those with many come out in their own order."""
    release = priced(ask(COUNT, keys=("town",)), APPROX, epsilon=3)
    towns = tuple((name,) for name in ("z", "rare", None, "a"))
    whole = WHOLE_WEIGHT
    groups = Groups(
        towns, ((9000, 1, 8000, 7000), (3000, 1, 3000, 3000), (3000 * whole, whole, 2500 * whole, 2500 * whole))
    )
    for seed in range(20):
        assert draw(release, groups, source=SeededForTestsOnly(seed)).keys == ((None,), ("a",), ("z",))


def test_huge_sums_are_held_before_noise() -> None:
    """A sum beyond 64 bits saturates; it neither wraps nor raises."""
    release = priced(ask(of(Statistic.SUM, "cost")), PURE, epsilon=1)
    drawn = draw(release, Groups(((),), ((10**30,),)), source=SeededForTestsOnly(3))
    assert drawn.measures[0][0] > 2**60


def test_units_in_one_group_weigh_their_number() -> None:
    """Where a unit is in one group, its weight there is one whole weight: no more, no less."""
    form = bound(ask(COUNT, keys=("town",)), catalog(limits=ContributionLimits(max_groups=1, max_rows_per_group=3)))
    assert form.weights is None
    gaussian = Offer(rho=Fraction(1, 20), delta=1e-8)
    (release,) = price((form,), gaussian, PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD)).releases
    rule = release.selection
    assert isinstance(rule, WeightedSelection)
    few, many = rule.bar // (3 * rule.weight(1)), rule.kept_from(Fraction(1, 10**12))
    assert float(rule.probability(True, given=few * rule.weight(1)).high) < 1e-3
    assert float(rule.probability(True, given=9 * few * rule.weight(1)).low) > 0.999
    groups = Groups((("few",), ("many",)), ((50, 9000), (few, many)))
    for seed in range(20):
        assert draw(release, groups, source=SeededForTestsOnly(seed)).keys == (("many",),)


def test_a_count_that_names_its_key_is_what_is_shown() -> None:
    """One draw: what is shown reaches the bar, rare keys stay hidden, other measures are drawn for named keys only."""
    limits = ContributionLimits(max_groups=2, max_rows_per_group=1)
    form = bound(ask(COUNT, of(Statistic.SUM, "cost"), keys=("town",)), catalog(limits=limits))
    (release,) = price((form,), Offer(epsilon=1), PriceTerms(budget=APPROX, unit=PATIENT, neighbours=ADD)).releases
    named, counted = release.named_count, release.counted
    assert named is not None and counted is not None
    bar = named.bar
    (other,) = set(release.recoveries) - {counted}
    units, costs = (1, bar, 20 * bar), (10, 20, 30)
    values = (units, costs) if counted == 0 else (costs, units)
    near = 0
    for seed in range(40):
        drawn = draw(release, Groups((("few",), ("near",), ("many",)), values), source=SeededForTestsOnly(seed))
        shown = dict(zip(drawn.keys, drawn.measures[counted].tolist()))
        assert ("few",) not in shown and abs(shown["many",] - 20 * bar) < bar
        assert all(value >= bar for value in shown.values())
        assert len(drawn.measures[other]) == len(drawn.keys)
        near += ("near",) in shown
    assert 8 < near < 35
