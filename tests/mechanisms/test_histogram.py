"""Histogram: sensitivities by brute force over neighbours, exact divergence, counting, bad input."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.mechanisms.histogram import Histogram
from tests.mechanisms.exactly import Untouchable, reached, violated


def contributions(k: int, groups: int, weight: int) -> list[tuple[int, ...]]:
    """Everything one unit can add: at most ``groups`` of k counts, each by at most ``weight``."""
    return [v for v in product(range(weight + 1), repeat=k) if sum(x > 0 for x in v) <= groups]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("weight", [1, 2])
def test_sensitivities_are_those_of_the_worst_neighbours(k: int, groups: int, weight: int) -> None:
    """Brute force over all units: L1 and L2² under both relations are exactly as stated."""
    units = contributions(k, groups, weight)
    nothing = (0,) * k
    for neighbours, pairs in (
        ("add-remove", [(unit, nothing) for unit in units]),
        ("replace", list(product(units, units))),
    ):
        histogram = Histogram(categories=k, max_groups=groups, per_group=weight, epsilon=1, neighbours=neighbours)
        moves = [[abs(a - b) for a, b in zip(one, other)] for one, other in pairs]
        assert histogram.l1 == max(sum(move) for move in moves)
        assert histogram.squared_l2 == max(sum(m * m for m in move) for move in moves)
        assert histogram.dimension == max(sum(m > 0 for m in move) for move in moves)


def test_one_row_each_is_one_and_two() -> None:
    """Erratum 12: L1 sensitivity 1 under add-remove, 2 under replace, and so twice the noise."""
    plain = Histogram(categories=5, epsilon=1)
    fixed = Histogram(categories=5, epsilon=1, neighbours="replace")
    assert (plain.l1, fixed.l1) == (1, 2)
    assert (plain.noise.event, fixed.noise.event) != (fixed.noise.event, plain.noise.event)
    assert fixed.error() > plain.error()


@pytest.mark.parametrize(("neighbours", "other"), [("add-remove", ["a"]), ("replace", ["a", "c"])])
def test_the_claim_is_exact_and_tight(neighbours: str, other: list[str]) -> None:
    """From the exact probabilities of all counts: within e^ε, reached, and caught when the claim is too small."""
    histogram = Histogram(categories=["a", "b", "c"], epsilon=1, neighbours=neighbours)
    outputs = list(product(range(-1, 4), repeat=3))
    data = ["a", "b"]
    assert not violated(histogram.probability, Fraction(1), data, other, outputs)
    assert reached(histogram.probability, Fraction(1), data, other, outputs)
    half = Histogram(categories=["a", "b", "c"], epsilon=2, neighbours=neighbours)
    assert violated(half.probability, Fraction(1), data, other, outputs)


def test_a_claim_for_add_remove_does_not_hold_under_replace() -> None:
    """Negative control for the relation itself: noise for L1 = 1 does not hide a replaced row."""
    histogram = Histogram(categories=["a", "b"], epsilon=1)
    outputs = list(product(range(-1, 3), repeat=2))
    assert violated(histogram.probability, Fraction(1), ["a"], ["b"], outputs)


def test_gaussian_histograms_state_their_dimension() -> None:
    """With ρ, or ε and δ, the noise is Gaussian with L2² and the number of counts one unit can change."""
    by_rho = Histogram(categories=10, max_groups=3, per_group=2, rho=0.5)
    assert by_rho.noise.event.squared_sensitivity == 12  # type: ignore[union-attr]  # Gaussian
    assert by_rho.noise.event.dimension == 3  # type: ignore[union-attr]  # Gaussian
    assert by_rho.privacy.notion("zcdp").words() == "ρ = 0.5"
    approximate = Histogram(categories=10, epsilon=1, delta=1e-6, neighbours="replace")
    assert approximate.privacy.delta(1) <= 1e-6


@pytest.mark.parametrize(
    "rows",
    [["a", "b", "a", "z"], np.array(["a", "b", "a", "z"]), ("a", "b", "a", None), ["a", "b", "a", ["not hashable"]]],
)
def test_counting_ignores_what_was_not_declared(rows: Any) -> None:
    """Rows outside the declared categories are not counted, and nothing about them is said."""
    assert Histogram(categories=["a", "b", "c"], epsilon=1).count(rows).tolist() == [2, 1, 0]


def test_release_names_every_declared_category() -> None:
    """Empty categories are published too: their absence would be telling."""
    histogram = Histogram(categories=["a", "b", "c"], epsilon=50)
    assert histogram.release(list("aab"), source=SeededForTestsOnly(1)) == {"a": 2, "b": 1, "c": 0}
    counts = histogram.release_counts([5, 6, 7], source=SeededForTestsOnly(1))
    assert counts.tolist() == [5, 6, 7]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("categories", {"categories": []}),
    ("categories", {"categories": 0}),
    ("categories", {"categories": "ab"}),
    ("categories", {"categories": ["a", "a"]}),
    ("categories", {"categories": [{}]}),
    ("max_groups", {"max_groups": 0}),
    ("per_group", {"per_group": 1.5}),
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": None}),
    ("epsilon and rho", {"rho": 1}),
    ("delta", {"delta": 1}),
    ("delta", {"delta": 1e-6, "epsilon": None}),
    ("neighbours", {"neighbours": "swap"}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_are_named(name: str, given: dict[str, Any]) -> None:
    """Each bad parameter is refused by name, with a fix."""
    with pytest.raises(ParameterError, match=name) as caught:
        Histogram(**{"categories": 3, "epsilon": 1, **given})
    assert caught.value.fix


def test_bad_counts_draw_nothing() -> None:
    """Counts of the wrong number or kind are refused before drawing."""
    histogram = Histogram(categories=3, epsilon=1)
    with pytest.raises(ParameterError, match="rows"):
        histogram.release(np.zeros((2, 2), dtype=int), source=Untouchable())
    for counts in ([1, 2], [1.5, 2, 3], 7, ["a", "b", "c"]):
        with pytest.raises(ParameterError, match="counts"):
            histogram.release_counts(counts, source=Untouchable())
