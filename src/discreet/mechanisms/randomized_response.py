"""Randomized response: all respondents add their own noise, so they need not trust anybody."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting import events
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, Ln, ceil_div, exp_minus_bounds
from discreet.late_dataclass import dataclass
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.laws import log_inverse
from discreet.mechanisms.mechanism import OneEventMechanism, find_form, settle
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours, Unit
from discreet.samplers import bernoulli, bernoulli_real, uniform_below

_FIX = "Say RandomizedResponse(epsilon=ln(3)) or RandomizedResponse(gamma=0.25)."
_FIX_LABELS = "Say categories=4 for the answers 0 to 3, or categories=['red', 'green', 'blue']."
_FIX_ANSWERS = "Give answers that are among the declared categories, one or a flat list of them."


@dataclass(frozen=True, kw_only=True, repr=False)
class RandomizedResponse(OneEventMechanism):
    """Keep an answer with probability e^ε/(e^ε + k − 1), otherwise give another of the k categories, uniformly.

    With two categories and ε = ln 3 this is the two-coin form: on tails the answer is the truth, on heads a second coin
    decides. So the truth is kept with 3/4. ``gamma`` states the same for two categories as keeping with 1/2 + γ.
    ``categories`` is 2 (answers are bools or 0 and 1), a number k (answers 0 to k − 1), or the labels themselves.

    Privacy: ε-differentially private for each respondent, under replace: any answer could have been any other. The
    number of respondents is visible, so ``add-remove`` is refused.
    Why: a response has probability e^ε/(e^ε + k − 1) if it is the answer and 1/(e^ε + k − 1) if it is not, so the
    ratio is at most e^ε, and it is reached. With ε = ln(a/b) all probabilities are rational and drawn as such;
    otherwise they are computable reals, compared bit by bit until the comparison is certain.
    Reference: Warner 1965; Kairouz, Oh & Viswanath 2014, §3 for k categories.

    >>> RandomizedResponse.coin().probability(True, given=True)
    Interval(low=Fraction(3, 4), high=Fraction(3, 4))
    """

    epsilon: Epsilon | None = None
    gamma: Number | None = None
    categories: int | Sequence[Hashable] = 2
    neighbours: Neighbours | str = Neighbours.REPLACE
    unit: Unit | str | None = "respondent"
    _epsilon: Exact = field(init=False, repr=False, compare=False)
    _labels: tuple[Hashable, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours != Neighbours.REPLACE:
            fix = "Use 'replace': the number of respondents is visible, so nobody's presence is hidden."
            raise ParameterError("neighbours", "of randomized response must be 'replace'", fix)
        self._read_categories()
        if find_form({"epsilon": self.epsilon, "gamma": self.gamma}, _FIX) == "epsilon":
            exact = parameters.read_epsilon(self.epsilon)
        else:
            exact = self._read_gamma()
        settle(self, _epsilon=exact, epsilon=exact, gamma=None)

    def _read_categories(self) -> None:
        if isinstance(self.categories, str | bytes) or not isinstance(self.categories, Sequence):
            settle(self, categories=parameters.read_whole(self.categories, "categories", least=2), _labels=None)
            return
        labels = tuple(self.categories)
        if not all(isinstance(label, Hashable) for label in labels):
            raise ParameterError("categories", "must be hashable labels", _FIX_LABELS)
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise ParameterError("categories", "must be at least two, and all different", _FIX_LABELS)
        settle(self, categories=labels, _labels=labels)

    def _read_gamma(self) -> Ln:
        fix = "Give gamma between 0 (no use) and 1/2 (no privacy), for example gamma=0.25."
        gamma = parameters.read_positive(self.gamma, "gamma", fix=fix)
        if gamma >= Fraction(1, 2):
            raise parameters.refuse("gamma", "below 1/2", self.gamma, fix)
        if self.size != 2:
            raise ParameterError("gamma", "is for two categories", "Give epsilon= for more.")
        return Ln((Fraction(1, 2) + gamma) / (Fraction(1, 2) - gamma))

    @classmethod
    def coin(cls) -> RandomizedResponse:
        """The two coins: truth with 3/4, so ε = ln 3 exactly."""
        return cls(epsilon=Ln(Fraction(3)))

    @property
    def size(self) -> int:
        """The number of categories."""
        if self._labels is not None:
            return len(self._labels)
        return parameters.read_whole(self.categories, "categories")

    @property
    def event(self) -> events.RandomizedResponse:
        """The event that describes one response, for the respondent."""
        return events.RandomizedResponse(
            epsilon=self._epsilon, categories=self.size, neighbours=self.neighbours, unit=self.unit
        )

    @property
    def keep(self) -> Interval:
        """The probability that an answer stays as it is: e^ε/(e^ε + k − 1)."""
        if isinstance(self._epsilon, Ln):
            return Interval.of(self._epsilon.of / (self._epsilon.of + self.size - 1))
        others = Interval.of(self.size - 1) * Interval.exp_minus(self._epsilon)
        return Interval.of(1) / (Interval.of(1) + others)

    def _keep_bounds(self, bits: int) -> tuple[int, int]:
        """Integers around 2^bits·keep, at any precision: 1/(1 + (k − 1)·e^−ε)."""
        work = bits + self.size.bit_length() + 8
        low, high = exp_minus_bounds(parameters.read_number(self._epsilon, "epsilon"), work)
        top, one = 1 << (work + bits), 1 << work
        return top // (one + (self.size - 1) * high), ceil_div(top, one + (self.size - 1) * low)

    def probability(self, output: object, given: object) -> Interval:
        """P(response = output) for the answer ``given``; for lists, of all responses together."""
        (here, _), (there, _) = self._read(output, "output"), self._read(given, "given")
        if here.shape != there.shape:
            raise ParameterError("output", "must have the shape of given", "Give one response for each answer.")
        stay, change = self.keep, (Interval.of(1) - self.keep) / Interval.of(self.size - 1)
        chance = Interval.of(1)
        for same in (here == there).ravel().tolist():
            chance = chance * (stay if same else change)
        return chance

    def release(self, answers: object, /, *, source: EntropySource = SYSTEM) -> Any:
        """The responses, each with its own coins. One answer gives one response of the same type."""
        indices, kind = self._read(answers, "answers")
        shape = indices.shape
        kept = self._flip_coins(shape, source)
        shift = 1 + uniform_below(self.size - 1, shape, source=source)  # 1 to k − 1: any other category
        return self._write(np.where(kept, indices, (indices + shift) % self.size), kind)

    def _flip_coins(self, shape: tuple[int, ...], source: EntropySource) -> npt.NDArray[np.bool_]:
        if isinstance(self._epsilon, Ln):
            return bernoulli(self.keep.low, shape, source=source)
        return bernoulli_real(self._keep_bounds, shape, source=source)

    def _read(self, answers: object, name: str) -> tuple[Integers, _AnswerKind]:
        """Answers as category numbers, and how to give them back."""
        if self._labels is not None:
            return _read_labels(answers, self._labels, name)
        array: npt.NDArray[np.generic] = np.asarray(answers)
        if array.dtype.kind == "b" and self.size == 2:
            return array.astype(np.int64), "bool" if array.ndim else "one bool"
        indices = parameters.read_integers(array, name) if array.dtype.kind in "iu" or array.size == 0 else None
        if indices is None or (indices.size and (indices.min() < 0 or indices.max() >= self.size)):
            raise ParameterError(name, "are not all among the declared categories", _FIX_ANSWERS)
        return indices, "int" if array.ndim else "one int"

    def _write(self, indices: Integers, kind: _AnswerKind) -> Any:
        match kind:
            case "bool":
                return indices.astype(np.bool_)
            case "int":
                return indices
            case "labels":
                return [(self._labels or ())[i] for i in indices.tolist()]
            case "one bool":
                return bool(indices)
            case "one int":
                return int(indices)
            case "one label":
                return (self._labels or ())[int(indices)]
            case _:
                assert_never(kind)

    def estimate(self, responses: object, confidence: Number = 0.95) -> Any:
        """The shares of the true answers, from the responses: unbiased, with standard errors and intervals.

        Two unlabelled categories give one ``Estimate`` of the share of yes; otherwise there is one for each category,
        in a dict, and their intervals hold together. The standard error includes that the respondents are a sample. The
        interval is Clopper and Pearson's for the share of responses, mapped to the share of answers.
        """
        level = parameters.read_probability(confidence, "confidence")
        indices, _ = self._read(responses, "responses")
        if indices.size < 1:
            raise ParameterError("responses", "are empty", "Nobody answered; there is nothing to estimate.")
        counts = np.bincount(indices.ravel(), minlength=self.size).tolist()
        if self._labels is None and self.size == 2:
            return self._estimate_share(counts[1], indices.size, level, together=1)
        labels = self._labels or tuple(range(self.size))
        return {
            label: self._estimate_share(count, indices.size, level, together=self.size)
            for label, count in zip(labels, counts)
        }

    def _estimate_share(self, count: int, people: int, level: Fraction, together: int) -> Estimate:
        keep, gain = float(self.keep), self._gain
        base = (1 - keep) / (self.size - 1)
        mean = count / people
        low, high = _clopper_pearson(count, people, float(1 - level) / together)
        spread = math.sqrt(mean * (1 - mean) / max(1, people - 1)) / gain if people > 1 else math.inf
        clip = [min(1.0, max(0.0, (end - base) / gain)) for end in (low, high)]
        return Estimate(
            value=(mean - base) / gain,
            standard_error=spread,
            low=clip[0],
            high=clip[1],
            confidence=float(level),
        )

    @property
    def _gain(self) -> float:
        """How much more likely a response is when it is the answer: (e^ε − 1)/(e^ε + k − 1), 2γ for two."""
        small = math.exp(-float(self._epsilon))
        return -math.expm1(-float(self._epsilon)) / (1 + (self.size - 1) * small)

    def expected_share(self, share: Number) -> Interval:
        """The expected share of responses in a category that ``share`` of the people truly have.

        It is share·keep + (1 − share)·(1 − keep)/(k − 1): with the coin 1/4 + p/2, with γ it is 1/2 − γ + 2γp. So the
        plain share of responses is biased towards 1/k, and ``estimate`` undoes exactly this.

        >>> RandomizedResponse.coin().expected_share(0.1)  # 1/4 + 0.1/2
        Interval(low=Fraction(3, 10), high=Fraction(3, 10))
        """
        true = parameters.read_nonnegative(share, "share")
        if true > 1:
            raise parameters.refuse("share", "at most 1", share, "Give a share such as share=0.1.")
        move = (Interval.of(1) - self.keep) / Interval.of(self.size - 1)
        return Interval.of(true) * self.keep + Interval.of(1 - true) * move

    def error(self, beta: Number = 0.05, of: int = 1, *, people: int) -> float:
        """How far estimated shares are off, at most, with probability 1 − ``beta``: Õ(1/(γ√n)).

        It holds for all categories and ``of`` such surveys together, whatever the answers are (Hoeffding's inequality:
        a mean of n independent responses is off by t with probability at most 2·exp(−2nt²)).
        """
        allowed, of = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        people = parameters.read_whole(people, "people", most=1 << 62)
        return math.sqrt(self._log_odds(allowed, of) / (2 * people)) / self._gain * (1 + 2**-40)

    def accuracy(self, people: int, beta: Number = 0.05) -> float:
        """The error that this many people allow: the reverse of ``people_needed``."""
        return self.error(beta, people=people)

    def people_needed(self, alpha: Number, beta: Number = 0.05) -> int:
        """How many people make all shares right within ``alpha``, with probability 1 − ``beta``: Õ(1/(γ²α²)).

        >>> RandomizedResponse.coin().people_needed(alpha=0.02)
        18445
        """
        target = float(parameters.read_positive(alpha, "alpha"))
        allowed = parameters.read_probability(beta, "beta")
        if target * self._gain < 2.0**-30:
            raise parameters.refuse(
                "alpha", "within reach", alpha, "There are not enough people for this; give more ε."
            )
        people = max(1, math.ceil(self._log_odds(allowed, 1) / (2 * (target * self._gain) ** 2)))
        while self.error(beta, people=people) > target:
            people += max(1, people >> 40)
        return people

    def _log_odds(self, beta: Fraction, of: int) -> float:
        several = 1 if self.size == 2 else self.size
        return log_inverse(beta / (2 * several * of))


_AnswerKind = Literal["bool", "int", "labels", "one bool", "one int", "one label"]


def _read_labels(answers: object, labels: tuple[Hashable, ...], name: str) -> tuple[Integers, _AnswerKind]:
    places = {label: i for i, label in enumerate(labels)}
    if isinstance(answers, Hashable) and answers in places:
        return np.asarray(places[answers]), "one label"
    listed: Any = answers.tolist() if isinstance(answers, np.ndarray) else answers
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise ParameterError(name, "are not all among the declared categories", _FIX_ANSWERS)
    try:
        return np.array([places[answer] for answer in listed], dtype=np.int64), "labels"
    except (KeyError, TypeError):  # TypeError: not even hashable
        raise ParameterError(name, "are not all among the declared categories", _FIX_ANSWERS) from None


def _clopper_pearson(count: int, people: int, beta: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson: each end makes ``count`` or a more extreme count have probability beta/2.

    It is exact for a sample from a large population. Where the answers are fixed, the count varies less than a binomial
    count (Hoeffding 1956), so the interval is too long rather than too short.
    """
    from scipy.special import betaincinv

    low = 0.0 if count == 0 else float(betaincinv(count, people - count + 1, beta / 2))
    high = 1.0 if count == people else float(betaincinv(count + 1, people - count, 1 - beta / 2))
    return low, high
