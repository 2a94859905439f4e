"""Reports of two parts: the ratio and the threshold that five protocols share, against all probabilities."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from discreet.local.krr import response_chance, response_loss, response_threshold
from discreet.local.words import WORD, near_ratio, near_threshold, pick_weight


def brute_force_ratio(threshold: int, near: int, far: int) -> Fraction:
    """The largest ratio over all ways in which a symbol can be near or far for two answers."""
    chances = [Fraction(threshold * pick_weight(i, near), WORD * WORD) for i in range(near)]
    others = [Fraction((WORD - threshold) * pick_weight(i, far), WORD * WORD) for i in range(far)]
    return max(a / b for a, b in product([*chances, *others], repeat=2))


@pytest.mark.parametrize("near", [1, 2, 3, 7])
@pytest.mark.parametrize("far", [1, 3, 5, 16])
@pytest.mark.parametrize("threshold", [1 << 62, 3 << 62, WORD // 3, WORD - 12345])
def test_the_ratio_covers_every_pair_of_probabilities(near: int, far: int, threshold: int) -> None:
    """No two probabilities of one symbol differ by more, and some pair differs by exactly that."""
    assert near_ratio(threshold, near, far) == brute_force_ratio(threshold, near, far)


@pytest.mark.parametrize(("near", "far"), [(1, 1), (1, 6), (3, 5)])
def test_the_threshold_is_the_largest_that_fits(near: int, far: int) -> None:
    """The loss is within ε, and one more breaks it: the negative control."""
    epsilon = Fraction(1)
    threshold = near_threshold(epsilon, near, far)
    bound = Fraction(271828182845904523536028747135266249775724709369995, 10**50)  # e, rounded down
    assert near_ratio(threshold, near, far) <= bound < near_ratio(threshold + 1, near, far)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_one_formula_for_randomized_response_and_for_hashing(size: int) -> None:
    """The probabilities add up to one, and their largest ratio is the stated loss."""
    keep = response_threshold(Fraction(2), size)
    rows = [[response_chance(symbol, own, size, keep) for symbol in range(size)] for own in range(size)]
    assert all(sum(row) == 1 for row in rows)
    largest = max(a[symbol] / b[symbol] for a in rows for b in rows for symbol in range(size))
    assert largest <= response_loss(keep, size).of
