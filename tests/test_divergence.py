"""Two laws compared: the loss at one output with its sign, the max-divergence, and the hockey-stick divergence."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations

import pytest

from discreet import ln
from discreet.divergence import hockey_stick, max_divergence, privacy_loss
from discreet.errors import ParameterError
from discreet.exact import Interval
from discreet.mechanisms import Laplace, RandomizedResponse

LAWS = {"x": (Fraction(1, 2), Fraction(1, 2), Fraction(0)), "y": (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2))}


def probability(output: int, given: str) -> Interval:
    """Two laws over three outputs; the last one occurs on one side only."""
    return Interval.of(LAWS[given][output])


def excess(growth: Fraction, first: str, second: str) -> Fraction:
    """The largest P(S) − growth·Q(S) over all sets of outputs: the definition."""
    sets = chain.from_iterable(combinations(range(3), size) for size in range(4))
    return max(sum((LAWS[first][o] - growth * LAWS[second][o] for o in s), Fraction(0)) for s in sets)


def test_the_sign_says_for_whom_an_output_speaks() -> None:
    """Positive for x, negative for y, and the other way round when they are swapped."""
    assert privacy_loss(probability, 0, "x", "y") == pytest.approx(math.log(5 / 2))
    assert privacy_loss(probability, 0, "y", "x") == pytest.approx(-math.log(5 / 2))
    assert privacy_loss(probability, 2, "x", "y") == -math.inf
    assert privacy_loss(probability, 2, "y", "x") == math.inf


def test_an_output_that_never_occurs_has_no_loss() -> None:
    """It is refused: 0/0 is nothing."""
    with pytest.raises(ParameterError, match="never occurs"):
        privacy_loss(lambda _output, _given: Interval.of(0), 0, "x", "y")


def test_far_tails_do_not_underflow() -> None:
    """Probabilities below all floats still have the right loss."""
    noise = Laplace(sensitivity=1, epsilon=1)
    assert privacy_loss(noise.probability, 3000, 0, 1) == pytest.approx(-1)
    assert privacy_loss(noise.probability, -3000, 0, 1) == pytest.approx(1)


def test_max_divergence_is_that_of_the_mechanism() -> None:
    """It reaches ε and no more; an output of one side only makes it infinite."""
    noise = Laplace(sensitivity=1, epsilon=1)
    assert max_divergence(noise.probability, 0, 1, range(-5, 6))[0] == pytest.approx(1)
    assert max_divergence(noise.probability, 0, 2, range(-5, 6))[0] == pytest.approx(2)  # not neighbours: a control
    assert max_divergence(probability, "x", "y", range(3)) == (math.inf, 2)


@pytest.mark.parametrize(("first", "second"), [("x", "y"), ("y", "x")])
@pytest.mark.parametrize("growth", [Fraction(11, 10), Fraction(2), Fraction(5, 2), Fraction(3)])
def test_hockey_stick_is_the_worst_event(growth: Fraction, first: str, second: str) -> None:
    """It equals the largest P(S) − e^ε·Q(S) over all sets S of outputs, from the definition."""
    wanted = excess(growth, first, second)
    assert hockey_stick(probability, ln(growth), first, second, range(3)) == Interval.of(wanted)


def test_hockey_stick_of_the_coin() -> None:
    """At ln 3 nothing exceeds; just below it something does; at 0 it is the total variation distance."""
    coin = RandomizedResponse.coin()
    both = (True, False)
    assert hockey_stick(coin.probability, ln(3), True, False, both).high == 0
    assert hockey_stick(coin.probability, 1.09, True, False, both).low > 0
    assert hockey_stick(coin.probability, 0, True, False, both) == Interval.of(Fraction(1, 2))


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, "1"])
def test_wrong_losses_are_refused(epsilon: object) -> None:
    """An ε is a finite number at or above zero."""
    with pytest.raises(ParameterError, match="epsilon"):
        hockey_stick(probability, epsilon, "x", "y", range(3))  # type: ignore[arg-type]  # on purpose
