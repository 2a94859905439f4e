"""Laplace: exact divergence against the claim, the error for the discrete law, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import ParameterError
from discreet.exact import Interval, ln
from discreet.mechanisms.laplace import Laplace
from tests.mechanisms.exactly import Untouchable, reached, violated

SCALES = [Fraction(1, 3), Fraction(1), Fraction(37, 10), Fraction(20)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_claim_is_exact_and_tight(scale: Fraction, sensitivity: int) -> None:
    """Over all neighbours, no output is likelier by more than e^ε, and the worst one is by exactly e^ε."""
    laplace = Laplace(sensitivity=sensitivity, scale=scale)
    claim = sensitivity / scale
    assert laplace.epsilon == claim
    for shift in range(1, sensitivity + 1):
        assert not violated(laplace.probability, claim, 0, shift, range(-12, 13))
    assert reached(laplace.probability, claim, 0, sensitivity, range(-12, 13))


@pytest.mark.parametrize("scale", SCALES)
def test_half_the_noise_at_the_same_claim_is_caught(scale: Fraction) -> None:
    """Negative control: with half the scale the claim is violated, certainly."""
    wrong = Laplace(sensitivity=1, scale=scale / 2)
    assert violated(wrong.probability, 1 / scale, 0, 1, range(-3, 4))


def test_vectors_share_one_sensitivity() -> None:
    """Whatever way an L1 distance of 2 is spread over coordinates, the loss is at most ε; one coordinate reaches it."""
    laplace = Laplace(sensitivity=2, epsilon=1)
    outputs = list(product(range(-2, 3), repeat=2))
    for moved in ([2, 0], [1, 1], [1, -1], [0, -2]):
        assert not violated(laplace.probability, Fraction(1), [0, 0], moved, outputs)
    assert reached(laplace.probability, Fraction(1), [0, 0], [1, 1], outputs)
    assert violated(laplace.probability, Fraction(1), [0, 0], [2, 1], outputs)


def test_rounding_of_reals_is_charged() -> None:
    """Reals 0.1 apart in L1 land up to 3 steps of 0.1 apart in three coordinates; ε still holds, and is reached."""
    laplace = Laplace(sensitivity=0.1, epsilon=1, resolution=0.1, dimension=3)
    assert laplace.event.sensitivity == 3
    x, y = [Fraction(1, 20) - Fraction(1, 1000)] * 3, [Fraction(1, 20)] * 3  # across a half in each
    steps = [list(map(laplace.grid.read, values)) for values in (x, y)]
    assert steps == [[0, 0, 0], [1, 1, 1]]
    outputs = [np.array(o) / 10 for o in product((-1, 0, 1), repeat=3)]
    zero, one = [0.0, 0.0, 0.0], [0.1, 0.1, 0.1]
    assert not violated(laplace.probability, Fraction(1), zero, one, outputs)
    assert reached(laplace.probability, Fraction(1), zero, one, outputs)


def test_vectors_of_reals_need_their_dimension() -> None:
    """Rounding moves every coordinate, so a vector of reals without a dimension is refused before drawing."""
    laplace = Laplace(sensitivity=0.1, epsilon=1, resolution=0.1)
    with pytest.raises(ParameterError, match="dimension"):
        laplace.release([0.1, 0.2], source=Untouchable())


@given(st.fractions(Fraction(1, 10), 30), st.integers(0, 40))
@settings(deadline=None, max_examples=40)
def test_tail_is_the_sum_of_probabilities(scale: Fraction, t: int) -> None:
    """The closed-form tail is one minus the sum of the probabilities within."""
    laplace = Laplace(sensitivity=1, scale=scale)
    within = Interval.of(0)
    for z in range(-t, t + 1):
        within = within + laplace.probability(z, 0)
    rest, tail = Interval.of(1) - within, laplace.tail(t)
    assert rest.low <= tail.high
    assert tail.low <= rest.high
    assert tail.high - tail.low < Fraction(1, 1 << 100)


@given(st.fractions(Fraction(1, 10), 30), st.fractions(Fraction(1, 1000), Fraction(9, 10)), st.integers(1, 10_000))
@settings(deadline=None, max_examples=60)
def test_error_holds_for_the_discrete_law(scale: Fraction, beta: Fraction, of: int) -> None:
    """P(some noise beyond the error) ≤ β, and one step below the noise bound it is not."""
    laplace = Laplace(sensitivity=1, scale=scale)
    for bound in (laplace.error(beta, of), laplace.noise_bound(beta, of)):
        inside = 1 - laplace.tail(Fraction(bound)).high
        assert of * math.log(float(inside)) >= math.log1p(-float(beta)) - 1e-9
    exact = int(laplace.noise_bound(beta, of))
    assert exact <= laplace.error(beta, of)
    if exact:
        assert of * math.log(float(1 - laplace.tail(exact - 1).low)) < math.log1p(-float(beta)) + 1e-9


def test_error_falls_back_where_the_textbook_is_wrong_for_whole_numbers() -> None:
    """At scale 1 and β = 0.4 the textbook's 0.916 is exceeded with 0.54; the answer is a whole number that is not."""
    laplace = Laplace(sensitivity=1, epsilon=1)
    textbook = math.log(1 / 0.4)
    assert float(laplace.tail(textbook)) > 0.4
    assert laplace.error(beta=0.4) == laplace.noise_bound(beta=0.4) == 1.0
    assert float(laplace.tail(1)) <= 0.4


def test_errors_reach_below_all_floats() -> None:
    """A β that no float can hold still has an error."""
    assert Laplace(sensitivity=1, epsilon=1).error(beta=Fraction(1, 10**400)) == pytest.approx(
        400 * math.log(10), abs=1
    )


def test_standard_error_matches_the_law() -> None:
    """√Var from the exact probabilities."""
    for scale in SCALES:
        laplace = Laplace(sensitivity=1, scale=scale)
        variance = sum(2 * z * z * float(laplace.probability(z, 0)) for z in range(1, 40 * math.ceil(scale)))
        assert laplace.standard_error == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_releases_keep_kind_and_shape() -> None:
    """An int gives an int, an array an int64 array of its shape, reals floats on the grid."""
    source = SeededForTestsOnly(1)
    whole = Laplace(sensitivity=1, epsilon=1)
    assert isinstance(whole.release(np.int64(5), source=source), int)
    assert isinstance(whole.release(2**80, source=source), int)
    table = whole.release(np.zeros((3, 4), dtype=np.int32), source=source)
    assert isinstance(table, np.ndarray)
    assert (table.shape, table.dtype) == ((3, 4), np.dtype(np.int64))
    assert np.asarray(whole.release([], source=Untouchable())).shape == (0,)
    real = Laplace(sensitivity=1, epsilon=1, resolution=0.25, dimension=2)
    released = np.asarray(real.release([0.3, 0.6], source=source))
    assert released.dtype == np.float64
    assert np.all(released * 4 == np.rint(released * 4))
    assert isinstance(real.release(0.3, source=source), float)


def test_huge_scales_do_not_wrap() -> None:
    """At a scale beyond int64 an array stops at its ends."""
    released = np.asarray(Laplace(sensitivity=1, scale=2**80).release([0] * 20, source=SeededForTestsOnly(4)))
    assert released.dtype == np.int64
    assert set(np.abs(released.astype(object)).tolist()) & {2**63 - 1, 2**63}


def test_sampled_noise_follows_the_probabilities() -> None:
    """A fixed-seed chi-square against the exact law passes, and against a law 5 % wider does not."""
    from scipy.stats import chisquare

    laplace, wider = Laplace(sensitivity=1, scale=2), Laplace(sensitivity=1, scale=Fraction(21, 10))
    noise = np.asarray(laplace.release(np.zeros(200_000, dtype=np.int64), source=SeededForTestsOnly(9)))
    counts = [int(np.count_nonzero(noise == z)) for z in range(-15, 16)]
    counts.append(noise.size - sum(counts))

    def p_value(law: Laplace) -> float:
        chances = [float(law.probability(z, 0)) for z in range(-15, 16)]
        return float(chisquare(counts, np.array([*chances, 1 - sum(chances)]) * noise.size).pvalue)

    assert p_value(laplace) > 1e-6
    assert p_value(wider) < 1e-9


def test_a_logarithmic_epsilon_is_never_exceeded() -> None:
    """ε = ln 3: the scale is rounded up, and the claim is the real loss just below ln 3."""
    laplace = Laplace(sensitivity=1, epsilon=ln(3))
    assert laplace.epsilon is not None
    assert ln(3) >= laplace.epsilon
    assert not violated(laplace.probability, ln(3), 0, 1, range(-3, 4))
    assert laplace.event == events.DiscreteLaplace(sensitivity=1, scale=laplace.scale or 0)


BAD: list[tuple[str, dict[str, Any]]] = [
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": -1}),
    ("epsilon", {"epsilon": float("nan")}),
    ("epsilon", {"epsilon": float("inf")}),
    ("epsilon", {"epsilon": True}),
    ("epsilon", {"epsilon": "1"}),
    ("epsilon", {"epsilon": 10**6}),
    ("epsilon", {}),
    ("epsilon and scale", {"epsilon": 1, "scale": 1}),
    ("scale", {"scale": 0}),
    ("scale", {"scale": 10**400}),
    ("scale", {"scale": float("inf")}),
    ("sensitivity", {"epsilon": 1, "sensitivity": 0}),
    ("sensitivity", {"epsilon": 1, "sensitivity": -2}),
    ("sensitivity", {"epsilon": 1, "sensitivity": float("nan")}),
    ("sensitivity", {"epsilon": 1, "sensitivity": 0.5}),
    ("sensitivity", {"epsilon": 1, "sensitivity": None}),
    ("resolution", {"epsilon": 1, "resolution": 0}),
    ("resolution", {"epsilon": 1, "resolution": float("inf")}),
    ("dimension", {"epsilon": 1, "resolution": 1, "dimension": 0}),
    ("dimension", {"epsilon": 1, "dimension": 1.5}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_are_named(name: str, given: dict[str, Any]) -> None:
    """Each bad parameter is refused by name, with a fix."""
    with pytest.raises(ParameterError, match=name) as caught:
        Laplace(**{"sensitivity": 1, **given})
    assert caught.value.fix


def test_bad_values_draw_nothing() -> None:
    """Values of the wrong kind are refused before anything is drawn, and are not quoted."""
    laplace = Laplace(sensitivity=1, epsilon=1)
    for values in (0.5, [0.5], float("nan"), "4242", ["4242"], None, True, [None]):
        with pytest.raises(ParameterError) as caught:
            laplace.release(values, source=Untouchable())
        assert "4242" not in str(caught.value)
    for beta in (0, 1, float("nan"), "x"):
        with pytest.raises(ParameterError, match="beta"):
            laplace.error(beta=beta)  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(ParameterError, match="of"):
        laplace.error(beta=0.1, of=0)
    with pytest.raises(ParameterError, match="shape"):
        laplace.probability([1, 2], [1])
