"""Losses, their law and the trade-off curve follow from the two laws; compared with slow definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.pictures import LawPair

weights = st.lists(st.integers(0, 9), min_size=2, max_size=6)


def make_pair(p: list[int], q: list[int]) -> LawPair:
    """Two laws from whole weights; an output without weight on both sides is allowed."""
    left, right = (np.array(side, dtype=float) / sum(side) for side in (p, q))
    return LawPair("any", "any two laws", tuple(range(len(p))), left, right, ("x", "y"))


@st.composite
def pairs(draw: st.DrawFn) -> LawPair:
    """Two laws over the same few outputs."""
    p = draw(weights.filter(any))
    q = draw(st.lists(st.integers(0, 9), min_size=len(p), max_size=len(p)).filter(any))
    return make_pair(p, q)


@given(pairs())
def test_no_test_is_better_than_the_curve(pair: LawPair) -> None:
    """Every set of outputs that accuses Q has at least as many misses as the curve at its rate of wrong alarms."""
    for accused in itertools.product((False, True), repeat=len(pair.outputs)):
        chosen = np.array(accused)
        wrong, missed = float(pair.p[chosen].sum()), 1 - float(pair.q[chosen].sum())
        assert missed >= pair.find_missed(min(1.0, wrong)) - 1e-9


@given(pairs())
def test_the_curve_is_reached_and_convex(pair: LawPair) -> None:
    """It goes from (0, no more than 1) to (1, 0), falls ever more slowly, and its corners are tests."""
    curve = pair.trade_off
    assert curve[-1] == (1.0, 0.0) and curve[0][0] == pytest.approx(0) and curve[0][1] <= 1
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(curve) if b[0] - a[0] > 1e-9]
    assert all(left <= right + 1e-6 for left, right in itertools.pairwise(slopes))


@given(pairs())
def test_the_law_of_the_loss_has_all_mass(pair: LawPair) -> None:
    """Chances add up to one, and the mean of e^(-loss) is the mass of Q where P has some."""
    assert math.fsum(chance for _, chance in pair.loss_law) == pytest.approx(1)
    mean = math.fsum(chance * math.exp(-loss) for loss, chance in pair.loss_law if chance)
    assert mean == pytest.approx(float(pair.q[pair.p > 0].sum()))


@given(pairs())
def test_the_advantage_is_the_largest_difference(pair: LawPair) -> None:
    """The total variation distance is the best right minus wrong alarms over all sets."""
    best = max(
        float(pair.p[np.array(chosen)].sum() - pair.q[np.array(chosen)].sum())
        for chosen in itertools.product((False, True), repeat=len(pair.outputs))
    )
    assert pair.advantage == pytest.approx(best)


def test_an_output_of_one_side_alone_has_an_infinite_loss() -> None:
    """The sign says on which side it is possible; an output that neither side has does not count."""
    pair = make_pair([1, 1, 0, 0], [0, 1, 1, 0])
    assert pair.losses.tolist() == [math.inf, 0.0, -math.inf, 0.0]
    assert pair.largest_loss == math.inf


def test_wrong_lists_and_rates_are_refused() -> None:
    """Lists of different lengths, and a rate that is no probability."""
    with pytest.raises(ParameterError):
        LawPair("bad", "bad", (1, 2), np.array([1.0]), np.array([1.0]), ("x", "y"))
    with pytest.raises(ParameterError):
        make_pair([1, 1], [1, 2]).find_missed(1.5)
