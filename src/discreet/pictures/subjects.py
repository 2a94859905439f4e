"""What can be drawn: each subject makes a pair of laws from its parameters.

Noise is the discrete noise that the mechanisms draw, on a true answer of 0 and on the neighbour's, which is further by
the sensitivity. ``tests/pictures`` compares these laws with the exact probabilities of the mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from discreet import parameters
from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.parameters import Number
from discreet.pictures.law_pair import LawPair, Reals

_TAIL = 1e-7
"""The mass beyond the ends that a picture may leave out."""
_WIDEST = 2_000_000
"""Outputs of one picture; noise that needs more is too wide to be drawn."""


@dataclass(frozen=True, slots=True)
class PictureTerms:
    """The parameters that subjects read; each reads those that it knows."""

    epsilon: Number = 1
    rho: Number = 0.125
    sensitivity: int = 1
    times: int = 10
    group: int = 4
    scores: Sequence[Number] = (3, 3, 1, 0)


def draw_laplace(terms: PictureTerms) -> LawPair:
    """Laplace noise: the loss is never above ε, and it is reached."""
    epsilon = _read_epsilon(terms)
    return _shift(
        "laplace",
        f"Laplace noise of scale {terms.sensitivity / epsilon:.3g}: ε = {epsilon:g}",
        lambda outputs: _laplace_law(outputs, terms.sensitivity / epsilon),
        reach=terms.sensitivity / epsilon * math.log(1 / _TAIL),
        apart=_read_count(terms.sensitivity, "sensitivity"),
    )


def draw_gaussian(terms: PictureTerms) -> LawPair:
    """Normal noise: small losses are likely, and no loss is the largest."""
    rho = float(parameters.read_positive(terms.rho, "rho"))
    deviation = terms.sensitivity / math.sqrt(2 * rho)
    return _shift(
        "gaussian",
        f"Gaussian noise of deviation {deviation:.3g}: ρ = {rho:g}",
        lambda outputs: _gaussian_law(outputs, deviation),
        reach=deviation * math.sqrt(2 * math.log(1 / _TAIL)),
        apart=_read_count(terms.sensitivity, "sensitivity"),
    )


def draw_response(terms: PictureTerms) -> LawPair:
    """Randomized response: one answer, yes or no."""
    truth = _tell_truth(_read_epsilon(terms))
    p = np.array([truth, 1 - truth])
    about = f"randomized response: the truth with {truth:.1%}, ε = {_read_epsilon(terms):g}"
    return LawPair("rr", about, ("yes", "no"), p, p[::-1].copy(), ("yes", "no"))


def draw_exponential(terms: PictureTerms) -> LawPair:
    """The exponential mechanism on scores, and on scores that a neighbour moved: the best one down, the others up."""
    epsilon = _read_epsilon(terms)
    scores = np.array([float(parameters.read_number(score, "scores")) for score in terms.scores])
    if len(scores) < 2:
        raise ParameterError("scores", "must be at least two", "Give for example --scores 3,3,1,0.")
    moved = scores + terms.sensitivity * np.where(np.arange(len(scores)) == int(np.argmax(scores)), -1.0, 1.0)
    names = tuple(f"{index + 1}: {score:g}" for index, score in enumerate(scores))
    p, q = (_choose_law(values * (epsilon / (2 * terms.sensitivity))) for values in (scores, moved))
    return LawPair("exponential", f"exponential mechanism: ε = {epsilon:g}", names, p, q, ("scores", "moved scores"))


def draw_composition(terms: PictureTerms) -> LawPair:
    """K answers of loss ε each, at their worst: k coins, of which the number that say yes tells all that they tell.

    No k answers that are ε-private can be told apart better (Kairouz, Oh and Viswanath 2015, for pure losses).
    """
    epsilon, times = _read_epsilon(terms), _read_count(terms.times, "times")
    truth, outputs = _tell_truth(epsilon), np.arange(times + 1)
    p = _binomial_law(times, truth)
    about = f"{times} answers of ε = {epsilon:g} each, at their worst: together at most ε = {times * epsilon:g}"
    return LawPair("composition", about, tuple(outputs.tolist()), p, p[::-1].copy(), ("all say yes", "all say no"))


def draw_group(terms: PictureTerms) -> LawPair:
    """Laplace noise, and a group of people who leave together."""
    epsilon, group = _read_epsilon(terms), _read_count(terms.group, "group")
    scale = terms.sensitivity / epsilon
    return _shift(
        "group",
        f"Laplace noise made for one person, ε = {epsilon:g}, and a group of {group}: ε = {group * epsilon:g}",
        lambda outputs: _laplace_law(outputs, scale),
        reach=scale * math.log(1 / _TAIL),
        apart=_read_count(terms.sensitivity, "sensitivity") * group,
    )


SUBJECTS: Mapping[str, Callable[[PictureTerms], LawPair]] = MappingProxyType(
    {
        "rr": draw_response,
        "laplace": draw_laplace,
        "gaussian": draw_gaussian,
        "exponential": draw_exponential,
        "composition": draw_composition,
        "group": draw_group,
    }
)


def make_pair(subject: str, terms: PictureTerms | None = None) -> LawPair:
    """The two laws of a subject, by its name.

    >>> round(make_pair("laplace", PictureTerms(epsilon=0.5)).largest_loss, 9)
    0.5
    """
    return SUBJECTS[parameters.find_name(subject, SUBJECTS, "subject")](terms or PictureTerms())


def _read_epsilon(terms: PictureTerms) -> float:
    return float(parameters.read_positive(terms.epsilon, "epsilon"))


def _read_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
        raise ParameterError(name, "must be a whole number from 1 to 10000", f"Give for example {name}=4.")
    return value


def _tell_truth(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def _shift(name: str, about: str, law: Callable[[Reals], Reals], *, reach: float, apart: int) -> LawPair:
    """Noise around 0 and around the neighbour's answer, over all outputs that have mass."""
    if reach > _WIDEST / 2:
        fix = "Take less noise: the picture would look the same with another unit."
        raise ParameterError(name, "is too wide to be drawn", fix)
    outputs = np.arange(-math.ceil(reach), math.ceil(reach) + apart + 1, dtype=np.float64)
    labels = tuple(outputs.astype(np.int64).tolist())
    return LawPair(name, about, labels, law(outputs), law(outputs - apart), ("0", str(apart)))


def _laplace_law(outputs: Reals, scale: float) -> Reals:
    ratio = math.exp(-1 / scale)
    return np.asarray(np.exp(-np.abs(outputs) / scale) * ((1 - ratio) / (1 + ratio)))


def _gaussian_law(outputs: Reals, deviation: float) -> Reals:
    span = np.arange(-math.ceil(40 * deviation) - 1, math.ceil(40 * deviation) + 2, dtype=np.float64)
    total = np.exp(-((span / deviation) ** 2) / 2).sum()
    return np.asarray(np.exp(-((outputs / deviation) ** 2) / 2) / total)


def _choose_law(exponents: Reals) -> Reals:
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())


def _binomial_law(times: int, chance: float) -> Reals:
    logs = [
        math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1)
        + k * math.log(chance) + (times - k) * math.log1p(-chance)
        for k in range(times + 1)
    ]  # fmt: skip
    return np.asarray(np.exp(np.array(logs)))
