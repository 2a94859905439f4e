"""Keys by weights: the threshold for every number of keys, exact divergences over neighbours, the choice of a rule."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.bounding import contributions
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.mechanisms.laws import RoundedGaussianLaw
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, certified_share, upper_tail
from discreet.mechanisms.weighted_selection import (
    WeightedSelection,
    _find_tail,
    _find_threshold,
    _units_needed,
    better_selection,
)
from discreet.privacy import Neighbours
from tests.mechanisms.selecting import Untouched

Keys = frozenset[int]


def slip(rule: WeightedSelection, bar: int, groups: int) -> float:
    """Oracle, in floats: how likely any of so many keys of one unit alone reaches a bar."""
    variance = float(rule.noise_variance)
    need = bar - math.isqrt(rule.whole**2 // groups)
    tail = math.erfc((need - 0.5) / math.sqrt(2 * variance)) / 2
    return -math.expm1(groups * math.log1p(-tail))


@given(
    rho=st.fractions(Fraction(1, 50), 4),
    delta=st.fractions(Fraction(1, 10**8), Fraction(1, 10)),
    groups=st.integers(1, 12),
    whole=st.integers(8, 40),
    neighbours=st.sampled_from(["add-remove", "replace"]),
)
@settings(deadline=None, max_examples=40)
def test_threshold_is_the_smallest_for_every_number_of_keys(
    rho: Fraction, delta: Fraction, groups: int, whole: int, neighbours: str
) -> None:
    """For each g a unit's g keys slip through with at most δ; with a bar one lower, for some g with more."""
    rule = WeightedSelection(rho=rho, delta=delta, max_groups=groups, whole=whole, neighbours=neighbours)
    found = [slip(rule, rule.bar, g) for g in range(1, groups + 1)]
    assert max(found) <= float(delta) * (1 + 1e-9)
    assert max(slip(rule, rule.bar - 1, g) for g in range(1, groups + 1)) > float(delta) * (1 - 1e-6)


@pytest.mark.parametrize("groups", [1, 2, 7, 300, 100_000])
@pytest.mark.parametrize("rho", [Fraction(1, 200), 1])
def test_threshold_in_fine_weights(groups: int, rho: Fraction) -> None:
    """With weights of 2^20: sound for all g that were looked at, and within a 4096th of a unit of the least."""
    rule = WeightedSelection(rho=rho, delta=1e-6, max_groups=groups)
    law, best = RoundedGaussianLaw(rule.noise_variance), Fraction(0)
    for g in {1, 2, 3, 5, 10, 100, groups // 2, groups - 1, groups} & set(range(1, groups + 1)):
        for bar, sound in ((rule.bar, True), (rule.bar - rule.whole // 4096 - 2, False)):
            each = upper_tail(law, bar - rule.weight(g))
            chance = -math.expm1(g * math.log1p(-float(each.high)))
            if sound:
                assert chance <= 1e-6 * (1 + 1e-9)
            else:
                best = max(best, Fraction(chance))
    assert best > Fraction(1, 10**6)


def test_threshold_is_at_the_worst_number_of_keys() -> None:
    """With little noise one key is the worst, with much noise all of them are: neither end alone would do."""
    loud, quiet = (WeightedSelection(rho=r, delta=1e-3, max_groups=8, whole=64) for r in (Fraction(1, 100), 8))
    assert slip(quiet, quiet.bar - 1, 1) > 1e-3 > slip(quiet, quiet.bar - 1, 8)
    assert slip(loud, loud.bar - 1, 8) > 1e-3 > slip(loud, loud.bar - 1, 1)


@pytest.mark.parametrize(("whole", "groups"), [(6, 5), (6, 10), (6, 11), (12, 10), (12, 3)])
def test_threshold_between_the_ends(whole: int, groups: int) -> None:
    """Where whole numbers make some g in between the worst, the search finds it: it is the maximum over all g."""
    found = []
    for variance, delta in itertools.product((Fraction(100), Fraction(400)), (Fraction(1, 10), Fraction(1, 1000))):
        each = [
            math.isqrt(whole**2 // g) + _find_tail(variance, certified_share(delta, g)) for g in range(1, groups + 1)
        ]
        assert _find_threshold(variance, delta, groups, whole) == max(each)
        found.append(max(each) > max(each[0], each[-1]))
    assert any(found) == (groups > 3)


def names(rule: WeightedSelection, weights: list[int], bar: int) -> dict[tuple[bool, ...], float]:
    """The exact law of which keys are named."""
    each = [float(upper_tail(rule.law, bar - w)) if w else 0.0 for w in weights]
    return {
        out: math.prod(p if named else 1 - p for named, p in zip(out, each))
        for out in itertools.product((False, True), repeat=len(weights))
    }


def totals(rule: WeightedSelection, units: list[Keys], keys: int) -> list[int]:
    """The weights of all keys."""
    return [sum(rule.weight(len(u)) for u in units if k in u) for k in range(keys)]


def excess(epsilon: float, p: dict[Any, float], q: dict[Any, float]) -> float:
    return math.fsum(max(0.0, p[o] - math.exp(epsilon) * q[o]) for o in p)


def worst_excess(rule: WeightedSelection, bar: int, neighbours: str) -> dict[float, float]:
    """δ(ε) at several ε, the largest over all pairs of small neighbours."""
    keys, most = 3, rule.max_groups
    units = [frozenset(s) for n in range(1, most + 1) for s in itertools.combinations(range(keys), n)]
    rest = [(), (units[0],) * 3, (units[0], units[-1]), (units[-1],) * 8, (units[-1],) * 5 + (units[0],) * 2]
    found = dict.fromkeys((0.0, 0.5, 1.0, 2.0, 3.0), 0.0)
    for others in rest:
        base = [names(rule, totals(rule, [*others, *u], keys), bar) for u in [[], *([u] for u in units)]]
        firsts = base[:1] if neighbours == "add-remove" else base[1:]
        for p, q in itertools.product(firsts, base[1:]):
            for epsilon in found:
                found[epsilon] = max(found[epsilon], excess(epsilon, p, q), excess(epsilon, q, p))
    return found


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_brute_force_neighbours(neighbours: str, groups: int) -> None:
    """Over all small datasets the exact δ(ε) of the names is at most what the event claims, at several ε."""
    rule = WeightedSelection(rho=1, delta=0.02, max_groups=groups, whole=12, neighbours=neighbours)
    for epsilon, found in worst_excess(rule, rule.bar, neighbours).items():
        assert found <= rule.privacy.delta(epsilon) + 1e-12


def numbers(rule: WeightedSelection, parts: list[tuple[int, int]]) -> dict[tuple[int, ...], float]:
    """The law of how many keys are named, for several lots of keys of one weight each: all there is to know of them."""
    laws = []
    for weight, keys in parts:
        p = float(rule.probability(True, weight))
        laws.append([math.comb(keys, k) * p**k * (1 - p) ** (keys - k) for k in range(keys + 1)])
    return {o: math.prod(law[k] for law, k in zip(laws, o)) for o in itertools.product(*map(range, map(len, laws)))}


def broken(rule: WeightedSelection, here: list[tuple[int, int]], there: list[tuple[int, int]]) -> bool:
    """Whether the claim is broken between two datasets, at some ε."""
    p, q = numbers(rule, here), numbers(rule, there)
    return any(excess(e, p, q) > rule.privacy.delta(e) + 1e-12 for e in (0.5, 1.0, 2.0, 3.0, 4.0))


def test_broken_rules_are_caught() -> None:
    """Negative controls: weights that are not spread, noise that is not doubled, bars that forget something."""
    rule = WeightedSelection(rho=0.1, delta=1e-6, max_groups=16)
    near, spread = rule.bar, rule.weight(16)
    assert not broken(rule, [(near, 16)], [(near - spread, 16)])
    assert broken(rule, [(near, 16)], [(near - rule.whole, 16)])  # groups ignored: the full weight for each key
    single = WeightedSelection(rho=Fraction(1, 100), delta=1e-3, whole=64)
    loud = WeightedSelection(rho=Fraction(1, 100), delta=1e-3, max_groups=8, whole=64)
    assert slip(loud, single.bar, 8) > 2e-3  # one key's bar where a unit has eight
    assert slip(loud, loud.bar - loud.weight(8), 8) > 1e-3  # as if a new key had no weight
    off_by_one = WeightedSelection(rho=2, delta=0.02, whole=2)
    assert slip(off_by_one, off_by_one.bar - 1, 1) > 0.03


@pytest.mark.parametrize("keys", [1, 4, 16])
def test_noise_for_one_unit_does_not_do_for_two(keys: int) -> None:
    """Under replace 2C keys move: the honest rule holds, the add-remove rule with the claim of replace does not."""
    honest = WeightedSelection(rho=2, delta=1e-6, max_groups=keys, neighbours="replace")
    careless = WeightedSelection(rho=4, delta=1e-6, max_groups=keys, neighbours="replace")  # has the variance of ρ = 2
    assert careless.noise_variance == WeightedSelection(rho=2, delta=1e-6).noise_variance
    found = []
    for rule in (honest, careless):
        step = rule.weight(keys)
        lots = [(rule.bar + step // 2, keys), (rule.bar - step // 2, keys)]
        p, q = numbers(rule, lots), numbers(rule, lots[::-1])
        found.append(max(excess(e, p, q) / honest.privacy.delta(e) for e in (1.0, 2.0, 3.0, 4.0, 6.0)))
    assert found[0] <= 1
    assert found[1] > found[0]


def test_squares_of_weights_are_within_the_claim() -> None:
    """The engines' weights, ⌊√(whole²/g)⌋, are these; their squares add up to at most whole², two units' to twice."""
    rule = WeightedSelection(rho=1, delta=1e-6, max_groups=1000)
    for g in range(1, 1001):
        assert g * rule.weight(g) ** 2 <= rule.whole**2 < g * (rule.weight(g) + 1) ** 2
    replaced = WeightedSelection(rho=1, delta=1e-6, max_groups=10, neighbours="replace")
    assert replaced.noise_variance == 2 * WeightedSelection(rho=1, delta=1e-6).noise_variance == rule.whole**2
    for neighbours, units in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        moves = contributions._weight_sensitivity(rule.whole, 1000, neighbours)
        assert moves.l2_squared == units * rule.whole**2
    noise = events.RoundedGaussian(squared_sensitivity=rule.whole**2, variance=Fraction(rule.whole**2, 2))
    assert rule.events == (noise, events.Approximate(epsilon=0, delta=Fraction(1, 10**6)))
    assert {notion.kind for notion in rule.privacy.notions} >= {"zcdp", "rdp", "gdp", "pld"}


def test_a_new_key_slips_through_as_often_as_stated() -> None:
    """A key with one unit is named as often as its probability says, at most δ; one without weight never is."""
    rule = WeightedSelection(rho=2, delta=0.02, max_groups=2)
    kept = rule.release_array(np.full(100_000, rule.weight(1)), source=SeededForTestsOnly(3)).mean()
    chance = float(rule.probability(True, rule.weight(1)))
    assert abs(kept - chance) < 5 * math.sqrt(chance / 100_000)
    assert 0.019 < chance <= 0.02
    loud = WeightedSelection(rho=0.05, delta=0.3)
    assert float(upper_tail(loud.law, loud.bar)) > 0.1  # noise alone would often be enough
    assert not loud.release_array(np.zeros(1_000, dtype=np.int64), source=SeededForTestsOnly(1)).any()
    assert rule.probability(True, 0).high == 0
    assert rule.probability(False, 0).low == 1


def test_names_come_in_an_order_of_their_own() -> None:
    """Sorted by key, whatever the order of the input, with the same noise for the same key."""
    rule = WeightedSelection(rho=1, delta=1e-6, max_groups=4)
    big = 40 * rule.whole
    weights: dict[Any, int] = {("b", 2): big, "z": big, None: big, ("a", 9): big, 5: rule.whole, "n": 0}
    orders = [weights, dict(reversed(weights.items()))]
    found = [rule.release(order, source=SeededForTestsOnly(2)) for order in orders]
    assert found[0] == found[1] == (None, "z", ("a", 9), ("b", 2))
    assert rule.release({}) == ()


@pytest.mark.parametrize("groups", [1, 3, 50])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_kept_from_is_the_smallest_number_of_units(groups: int, beta: float) -> None:
    """So many units, in as many keys as allowed, make a key be named; one fewer does not, up to the bounds' width."""
    rule = WeightedSelection(rho=0.1, delta=1e-6, max_groups=groups)
    units = rule.kept_from(beta)
    assert rule.error(beta) == units
    weight = rule.weight(groups)
    assert float(rule.probability(False, units * weight)) <= beta * (1 + 1e-9)
    assert float(rule.probability(False, (units - 1) * weight)) > beta * (1 - 1e-4)
    assert rule.kept_from(beta, of=100) >= units


# --- Which rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("rho", "delta", "groups"), [(0.1, 0.3, 2), (0.1, 1e-8, 1), (1, 1e-6, 3), (0.01, 1e-9, 20), (4, 0.1, 1)]
)
def test_the_better_rule_needs_fewer_units(rho: float, delta: float, groups: int, neighbours: str) -> None:
    """Whichever is chosen names keys from no more units on than the other, and costs the same ρ and δ."""
    chosen = better_selection(rho=rho, delta=delta, max_groups=groups, neighbours=neighbours)
    weighted = WeightedSelection(rho=rho, delta=delta, max_groups=groups, neighbours=neighbours)
    moves = groups * (1 if neighbours == "add-remove" else 2)
    epsilon = math.sqrt(2 * rho) * (1 - 1e-12)
    counted = KeySelection(epsilon=epsilon, delta=delta, max_groups=groups, neighbours=neighbours).kept_from(0.05)
    assert abs(_units_needed(epsilon / moves, delta / moves, 0.05) - counted) <= 1 + 0.01 * counted
    assert chosen.kept_from(0.05) <= min(weighted.kept_from(0.05), counted) + 1
    *noise, event = chosen.events
    if isinstance(chosen, WeightedSelection):
        assert [events.squared_mu(each) / 2 for each in noise] == [Fraction(str(rho))]  # type: ignore[arg-type]
        assert event == events.Approximate(epsilon=0, delta=delta, neighbours=neighbours)
    else:
        assert isinstance(event, events.Approximate)
        assert Fraction(event.epsilon) ** 2 / 2 <= Fraction(str(rho))  # type: ignore[arg-type]  # settled as a Fraction
    assert isinstance(chosen, WeightedSelection) or delta >= 0.1


def test_a_floor_of_units_needs_counts() -> None:
    """With ``min_units`` the rule is one that counts units, and it never names a key below the floor."""
    noisy = better_selection(rho=0.1, delta=1e-8, max_groups=5, min_units=10)
    assert isinstance(noisy, GaussianThreshold) and noisy.min_units == 10
    table = better_selection(rho=0.1, delta=0.3, max_groups=1, min_units=10)
    assert isinstance(table, KeySelection) and table.min_units == 10
    for rule in (noisy, table):
        assert not list(rule.release({"a": 9}))


def test_far_too_many_groups_for_a_table() -> None:
    """Where ``KeySelection`` would need a table beyond all bounds, it is not even tried."""
    assert isinstance(better_selection(rho=1e-4, delta=1e-9, max_groups=100_000), WeightedSelection)


# --- Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"rho": 0},
        {"rho": math.nan},
        {"delta": 0},
        {"delta": 1},
        {"delta": Fraction(1, 10**60)},
        {"max_groups": 0},
        {"max_groups": 1 << 21},
        {"max_groups": 1.5},
        {"whole": 0},
        {"whole": 2, "max_groups": 5},
        {"neighbours": "friends"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    """Parameters outside the argument are refused when the rule is made."""
    with pytest.raises(ParameterError):
        WeightedSelection(**({"rho": 1, "delta": 1e-6} | bad))


@pytest.mark.parametrize("bad", [None, [1], {"a": -1}, {"a": 1.5}, {"a": True}, {math.nan: 3}, {"a": 1 << 70}], ids=str)
def test_bad_weights_are_refused_before_anything_is_drawn(bad: Any) -> None:
    """Weights must be whole and not negative, keys have an order; the source is never touched otherwise."""
    with pytest.raises(ParameterError):
        WeightedSelection(rho=1, delta=1e-6).release(bad, source=Untouched())
    with pytest.raises(ParameterError):
        WeightedSelection(rho=1, delta=1e-6).probability(1, given=3)  # type: ignore[arg-type]  # bad on purpose
