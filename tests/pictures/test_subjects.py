"""The laws in pictures are those of the mechanisms."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.errors import DiscreetError, ParameterError
from discreet.mechanisms import Exponential, Gaussian, Laplace, RandomizedResponse
from discreet.pictures import SUBJECTS, PictureTerms, make_pair


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), 2])
def test_laplace(epsilon: Fraction, sensitivity: int) -> None:
    """Probabilities on both sides are the exact ones, and the largest loss is ε."""
    pair = make_pair("laplace", PictureTerms(epsilon=epsilon, sensitivity=sensitivity))
    noise = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    for index in range(0, len(pair.outputs), 7):
        output = pair.outputs[index]
        assert pair.p[index] == pytest.approx(float(noise.probability(output, given=0)), rel=1e-9)
        assert pair.q[index] == pytest.approx(float(noise.probability(output, given=sensitivity)), rel=1e-9)
    assert pair.largest_loss == pytest.approx(float(epsilon))
    assert pair.p.sum() == pytest.approx(1, abs=1e-6) and pair.q.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(1, 8), 2])
def test_gaussian(rho: Fraction) -> None:
    """Probabilities are the exact ones of the discrete law."""
    pair = make_pair("gaussian", PictureTerms(rho=rho))
    noise = Gaussian(sensitivity=1, rho=rho)
    for index in range(0, len(pair.outputs), 5):
        output = pair.outputs[index]
        assert pair.p[index] == pytest.approx(float(noise.probability(output, given=0)), rel=1e-7, abs=1e-15)
    assert pair.p.sum() == pytest.approx(1, abs=1e-6)


def test_response_and_choice() -> None:
    """A coin and a choice have the probabilities of their mechanisms; a moved score is within the sensitivity."""
    coin, told = make_pair("rr", PictureTerms(epsilon=1)), RandomizedResponse(epsilon=1)
    assert coin.p[0] == pytest.approx(float(told.probability(1, given=1)))
    assert coin.losses.tolist() == pytest.approx([1, -1])
    choice = make_pair("exponential", PictureTerms(epsilon=1, scores=(5, 4, 0)))
    chosen = Exponential(sensitivity=1, epsilon=1)
    for index in range(3):
        assert choice.p[index] == pytest.approx(float(chosen.probability(index, given=[5, 4, 0])))
        assert choice.q[index] == pytest.approx(float(chosen.probability(index, given=[4, 5, 1])))
    assert choice.largest_loss <= 1


def test_composition_is_that_of_coins_one_by_one() -> None:
    """The number of yes answers tells as much as all answers: the same curve as over all 2^k outputs."""
    times, pair = 5, make_pair("composition", PictureTerms(epsilon=0.7, times=5))
    truth = 1 / (1 + math.exp(-0.7))
    answers = list(product((0, 1), repeat=times))
    p = np.array([math.prod(truth if said else 1 - truth for said in one) for one in answers])
    q = np.array([math.prod(1 - truth if said else truth for said in one) for one in answers])
    assert pair.advantage == pytest.approx(float(np.maximum(p - q, 0).sum()))
    assert pair.largest_loss == pytest.approx(times * 0.7)


def test_a_group_loses_as_many_times_more() -> None:
    """The largest loss of a group of four is four times that of one."""
    assert make_pair("group", PictureTerms(epsilon=0.5, group=4)).largest_loss == pytest.approx(2)


@pytest.mark.parametrize(
    "terms",
    [
        PictureTerms(epsilon=0, rho=0, sensitivity=0),
        PictureTerms(epsilon=float("nan"), rho=float("inf")),
        PictureTerms(epsilon=1e-30, rho=1e-30, times=0, scores=(1,)),
    ],
)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_bad_parameters_are_refused_or_drawn(subject: str, terms: PictureTerms) -> None:
    """Nothing but our own errors, whatever is typed."""
    with suppress(DiscreetError):
        assert make_pair(subject, terms).p.sum() == pytest.approx(1, abs=1e-5)


def test_unknown_subjects_are_named() -> None:
    """A part of a name is enough; a wrong one gets the list."""
    assert make_pair("lap").name == "laplace"
    with pytest.raises(DiscreetError, match="laplace"):
        make_pair("cauchy")


def test_noise_that_is_too_wide_is_refused() -> None:
    """A picture of millions of outputs would help nobody."""
    with pytest.raises(ParameterError, match="too wide"):
        make_pair("laplace", PictureTerms(epsilon=1e-7))
