"""Rules for keys that come from the data: a key is published only where enough units share it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.accounting.events import Approximate, DiscreteLaplace, Event, RoundedGaussian
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, decimal, exp_minus_bounds, float_up, lower
from discreet.late_dataclass import dataclass
from discreet.mechanisms.exponential import shorten_down
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.keys import KeyT, read_counts, read_units
from discreet.mechanisms.laplace import scale_for
from discreet.mechanisms.laws import (
    DiscreteLaplaceLaw,
    NoiseLaw,
    RoundedGaussianLaw,
    chance_for_each,
    find_smallest,
    noise_bound,
)
from discreet.mechanisms.mechanism import EventMechanism, find_form, settle
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours
from discreet.samplers import bernoulli, discrete_laplace, rounded_gaussian

_ZERO, _ONE = Interval.of(0), Interval.of(1)
_HALF = Fraction(1, 2)
_MOST = 1 << 40


@dataclass(frozen=True, kw_only=True, repr=False)
class KeyMechanism(EventMechanism):
    """The base of all rules for keys.

    ``max_groups`` is the largest number of keys that one unit can be in; the counts must be made so. A key with fewer
    than ``min_units`` units is never published, whatever the noise is.
    """

    max_groups: int = 1
    min_units: int = 1

    def __post_init__(self) -> None:
        EventMechanism.__post_init__(self)
        settle(
            self,
            max_groups=parameters.read_whole(self.max_groups, "max_groups", most=_MOST),
            min_units=parameters.read_whole(self.min_units, "min_units", most=_MOST),
        )

    @property
    def _moves(self) -> int:
        """How many counts differ between neighbours, each by one: those of a unit, or of two units under replace."""
        return self.max_groups * (1 if self.neighbours == Neighbours.ADD_REMOVE else 2)


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyThreshold(KeyMechanism):
    """The base of both noises: a noisy count for each key, published where it reaches a threshold.

    One noise both names the key and hides its count. ``most`` is the largest number that one unit adds to the count of
    a key: 1 where units are counted, and the most rows of a unit in a group where rows are.

    Privacy: what the noise costs on counts of which ``max_groups`` move by ``most`` (twice as many under replace), and
    besides an event of probability at most δ: both of them are the ``events``. δ = 1 − (1 − p)^C with C =
    ``max_groups`` and p = P(min_units − 1 + most + Z ≥ τ), for the noise Z that is drawn and "at least τ", rounded up.
    Why: a key counts as present where its count is at least ``min_units``. Let E be that no key is published which is
    present on one neighbour only. Without the changed unit the count of such a key is below ``min_units``; so with it
    the count is at most min_units − 1 + most; and at most C keys change by one unit. Noises are independent, so E fails
    with probability at most δ on either side, and given E the output is that of the keys that are present on both
    sides. That is a function of their noisy counts alone, which cost what the noise costs. So the release is
    (1 − δ)·A + δ·B, where A costs that and B is anything: a function of A and of a coin that says "reveal all" with
    probability δ. The two events describe just that pair, so they may be composed in any notion. δ does not double
    under replace, because each neighbour has at most C keys of its own.
    Reference: Korolova et al. 2009; Google 2020, "Delta for thresholding"; Desfontaines et al. 2022.
    """

    threshold: int | None = None
    delta: Number | None = None
    most: int = 1

    def __post_init__(self) -> None:
        KeyMechanism.__post_init__(self)
        settle(self, most=parameters.read_whole(self.most, "most", most=_MOST))
        fix = "Give delta=1e-9 and the threshold follows, or threshold=40 and delta follows."
        if find_form({"threshold": self.threshold, "delta": self.delta}, fix) == "threshold":
            settle(self, threshold=parameters.read_whole(self.threshold, "threshold", most=_MOST))
        else:
            settle(self, delta=parameters.read_probability(self.delta, "delta"))

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise."""

    @abstractmethod
    def _draw(self, count: int, source: EntropySource) -> npt.NDArray[np.generic]: ...

    @abstractmethod
    def _guess_tail(self, log: float) -> float:
        """About where the noise has a tail of e^−log. A search starts there."""

    @cached_property
    def bar(self) -> int:
        """The threshold τ: as given, or the smallest one whose δ is at most what was asked."""
        if self.threshold is not None:
            return self.threshold
        allowed = parameters.read_probability(self.delta, "delta")
        near = math.floor(self._guess_tail(math.log(self.max_groups) - math.log(float(allowed) or 1e-300)))
        return self.largest_alone + find_smallest(lambda z: self._slip(z).high <= allowed, near)

    @property
    def largest_alone(self) -> int:
        """The largest count of a key that is present on one neighbour only."""
        return self.min_units - 1 + self.most

    def _slip(self, above: int) -> Interval:
        """The probability that any of ``max_groups`` keys gets noise of ``above`` or more."""
        return _ONE - power(_ONE - upper_tail(self.law, above), self.max_groups)

    @cached_property
    def slip(self) -> Fraction:
        """δ: the probability that a key of a single unit is published; rounded up to the decimal of a float."""
        delta = decimal(float_up(self._slip(self.bar - self.largest_alone).high))
        if delta >= 1:
            fix = "Raise threshold above min_units and most, or give delta= and let the threshold follow."
            raise ParameterError("threshold", "is too low to protect anyone", fix)
        return delta

    @property
    @abstractmethod
    def noise_event(self) -> Event:
        """The event of the noise, without the names."""

    @property
    def events(self) -> tuple[Event, ...]:
        """The noise on the counts, and the failure that names a key which only one neighbour has."""
        return (
            self.noise_event,
            Approximate(epsilon=0, delta=self.slip, neighbours=self.neighbours, unit=self.unit),
        )

    def _check(self) -> None:
        """Refuse a threshold that protects nobody, once the noise is known."""
        if self.threshold is not None:
            _ = self.slip

    def release(self, counts: Mapping[KeyT, int], *, source: EntropySource = SYSTEM) -> dict[KeyT, int]:
        """The keys that reach the threshold with their noisy counts, sorted by key.

        ``counts`` has the count of each key; keys with none are never published.
        """
        keys, units = read_counts(counts)
        kept, noisy = self._add_noise(units, source)
        return {keys[i]: value for i, value in zip(np.flatnonzero(kept).tolist(), noisy[kept].tolist())}

    def release_array(
        self, units: Integers, *, source: EntropySource = SYSTEM
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """For many keys at once: which are kept, and the noisy numbers of units (zero where not kept).

        The order is the caller's, who must make it independent of the data, by sorting the keys for example.
        """
        kept, noisy = self._add_noise(read_units(units), source)
        return kept, np.where(kept, noisy, 0)

    def _add_noise(self, units: Integers, source: EntropySource) -> tuple[npt.NDArray[np.bool_], Integers]:
        bar = self.bar  # found before anything is drawn
        noisy = np.asarray(Grid().add(units, self._draw(len(units), source)))
        return (units >= self.min_units) & (noisy >= bar), noisy

    def probability(self, output: int | None, given: int) -> Interval:
        """The probability that a key with ``given`` units is published as ``output``, or (None) is not published."""
        units = parameters.read_whole(given, "given", least=0, most=_MOST)
        if output is None:
            return _ONE if units < self.min_units else _ONE - upper_tail(self.law, self.bar - units)
        value = parameters.read_whole(output, "output", least=-_MOST, most=_MOST)
        return self.law.probability(value - units) if units >= self.min_units and value >= self.bar else _ZERO

    def error(self, beta: Number, of: int = 1) -> float:
        """How far ``of`` noisy numbers may be off, all together, except with probability beta.

        Numbers that were published are known to reach the threshold, so near it they tend to be too large.
        """
        share, keys = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        near = self._guess_tail(math.log(keys) - math.log(float(share)))
        return float_up(Fraction(noise_bound(self.law, share, keys, near)))

    def kept_from(self, beta: Number, of: int = 1) -> int:
        """The count from which on all of ``of`` keys are published, except with probability beta."""
        share, keys = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        allowed = chance_for_each(share, keys)
        near = math.floor(self._guess_tail(math.log(keys) - math.log(float(2 * share))) if share < _HALF else 0)
        missing = find_smallest(lambda z: upper_tail(self.law, z + 1).high <= allowed, near)
        return max(self.min_units, self.bar + missing)


@dataclass(frozen=True, kw_only=True, repr=False)
class LaplaceThreshold(NoisyThreshold):
    """Publish noisy counts of units, with discrete Laplace noise, for the keys where they reach a threshold.

    The noise is given by ``epsilon`` or ``scale``, the threshold by ``delta`` (then it is the smallest valid one) or by
    ``threshold``.

    Privacy: (ε, δ)-private with scale = C·most/ε, C = ``max_groups``, between add-remove neighbours; under replace the
    old unit's keys change too, so the scale is 2C·most/ε. δ is that of ``NoisyThreshold``.
    Why: as there; counts of keys that both neighbours have differ by at most C·most (2C·most) in all, which costs ε.
    Reference: Korolova et al. 2009; Google 2020, "Delta for thresholding"; the discrete tail is proved in the tests.

    >>> rule = LaplaceThreshold(scale=1, threshold=5)
    >>> round(float(rule.slip), 10)  # e⁻⁴/(1 + e⁻¹)
    0.0133898049
    >>> LaplaceThreshold(epsilon=1, delta=1e-9).bar
    22
    """

    epsilon: Epsilon | None = None
    scale: Number | None = None

    def __post_init__(self) -> None:
        NoisyThreshold.__post_init__(self)
        if find_form({"epsilon": self.epsilon, "scale": self.scale}, "Give epsilon=1 or scale=1.") == "epsilon":
            settle(self, epsilon=parameters.read_epsilon(self.epsilon))
        else:
            settle(self, scale=parameters.read_positive(self.scale, "scale"))
        _ = self.loss
        self._check()

    @cached_property
    def noise_scale(self) -> Fraction:
        """The scale of the noise."""
        if self.scale is not None:
            return parameters.read_positive(self.scale, "scale")
        return scale_for(self._moves * self.most, parameters.read_epsilon(self.epsilon))

    @property
    def loss(self) -> Exact:
        """ε: as given, or how far counts move in all, over the scale."""
        return (
            parameters.read_epsilon(self._moves * self.most / self.noise_scale)
            if self.epsilon is None
            else parameters.read_epsilon(self.epsilon)
        )

    @cached_property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise."""
        return DiscreteLaplaceLaw(self.noise_scale)

    def _draw(self, count: int, source: EntropySource) -> npt.NDArray[np.generic]:
        return discrete_laplace(self.noise_scale, count, source=source)

    def _guess_tail(self, log: float) -> float:
        return float(self.noise_scale) * log

    @property
    def noise_event(self) -> DiscreteLaplace:
        """The event of the noise, without the names."""
        return DiscreteLaplace(
            sensitivity=self._moves * self.most,
            scale=self.noise_scale,
            neighbours=self.neighbours,
            unit=self.unit,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class GaussianThreshold(NoisyThreshold):
    """Publish noisy counts, with normal noise that is rounded to whole numbers, for the keys that reach a threshold.

    The noise is given by ``rho`` or ``variance``, the threshold by ``delta`` (the smallest valid one) or ``threshold``.
    For units in many groups the noise grows with √C only.

    Privacy: μ-Gaussian private besides an event of probability δ, with μ² = C·most²/variance, C = ``max_groups``,
    between add-remove neighbours; under replace 2C counts move by ``most``, so μ² = 2C·most²/variance. Hence also
    δ-approximately ρ-zCDP with ρ = μ²/2. δ is that of ``NoisyThreshold``.
    Why: as there; the counts of the keys that both neighbours have are √(C·most²) (√(2C·most²)) apart, which costs μ.
    Reference: Dong, Roth & Su 2022, Thm 2.7 (μ), and section 3 (composition with a failure of probability δ).

    >>> rule = GaussianThreshold(rho=0.125, delta=1e-9, max_groups=4)
    >>> rule.noise_variance, rule.bar
    (Fraction(16, 1), 27)
    """

    rho: Number | None = None
    variance: Number | None = None

    def __post_init__(self) -> None:
        NoisyThreshold.__post_init__(self)
        if find_form({"rho": self.rho, "variance": self.variance}, "Give rho=0.1 or variance=5.") == "rho":
            settle(self, rho=parameters.read_positive(self.rho, "rho"))
        else:
            settle(self, variance=parameters.read_positive(self.variance, "variance"))
        self._check()

    @cached_property
    def noise_variance(self) -> Fraction:
        """The variance parameter σ² of the noise."""
        if self.variance is not None:
            return parameters.read_positive(self.variance, "variance")
        return self._squared / (2 * parameters.read_positive(self.rho, "rho"))

    @property
    def _squared(self) -> int:
        """The squared L2 distance between the counts of neighbours."""
        return self._moves * self.most**2

    @cached_property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise."""
        return RoundedGaussianLaw(self.noise_variance)

    def _draw(self, count: int, source: EntropySource) -> npt.NDArray[np.generic]:
        return rounded_gaussian(self.noise_variance, count, source=source)

    def _guess_tail(self, log: float) -> float:
        return math.sqrt(2 * float(self.noise_variance) * log)

    @property
    def noise_event(self) -> RoundedGaussian:
        """The event of the noise, without the names."""
        return RoundedGaussian(
            squared_sensitivity=self._squared,
            variance=self.noise_variance,
            neighbours=self.neighbours,
            unit=self.unit,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class KeySelection(KeyMechanism):
    """Which keys to name, without counts: the rule that keeps the most keys of all (ε, δ)-private rules.

    A key with n units is kept with probability π(n), where π(0) = 0 and π grows as fast as privacy allows.

    Privacy: (ε, δ)-private between neighbours of the stated relation. Why: with ε' = ε/C and (1 − δ')^C = 1 − δ, C =
    ``max_groups`` (2C under replace: each of the two units may be in C keys), π(n) is the least of e^ε'·π(n−1) + δ',
    1 − e^−ε'·(1 − π(n−1) − δ') and 1. These are the inequalities of (ε', δ')-privacy between n − 1 and n units, for
    "kept" and for "dropped"; the two reverse ones hold because π rises. Keys are decided independently, so C of them
    compose. The numbers π(n) are rationals, rounded down so that the inequalities hold for them exactly, and they are
    the very probabilities that are drawn. ``min_units`` = m replaces n by n − m + 1, which one unit still moves by
    one at most.
    Reference: Desfontaines, Voss, Gipson and Mandayam 2022, Theorem 1; Kairouz, Oh and Viswanath 2017.

    >>> rule = KeySelection(epsilon=1, delta=1e-5)
    >>> [round(float(rule.probability(True, given=n)), 4) for n in (0, 1, 5, 10, 12, 15, 23)]
    [0.0, 0.0, 0.0009, 0.1282, 0.7603, 0.9881, 1.0]
    """

    epsilon: Epsilon
    delta: Number

    def __post_init__(self) -> None:
        KeyMechanism.__post_init__(self)
        settle(
            self, epsilon=parameters.read_epsilon(self.epsilon), delta=parameters.read_probability(self.delta, "delta")
        )
        if self._slack < Fraction(1, 1 << 150):
            fix = "Give at least 1e-40 for each group."
            raise parameters.refuse("delta", "larger", self.delta, fix)
        # The length of the table, known before it is made: π rises by a factor above 1 + ε' and by δ' at least.
        share, slack = float(lower(parameters.read_epsilon(self.epsilon))) / self._moves, float(self._slack)
        if min(2 * math.log1p(share / slack) / share, 1 / slack) > _TABLE:
            fix = "Use LaplaceThreshold or GaussianThreshold, which need no table, or spend more on fewer groups."
            raise ParameterError("epsilon", "is too small for so many groups", fix)

    @property
    def events(self) -> tuple[Event, ...]:
        """The event that describes one release."""
        return (Approximate(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours, unit=self.unit),)

    @cached_property
    def _slack(self) -> Fraction:
        """δ' of one key: 1 − (1 − δ)^(1/C), rounded down."""
        return certified_share(parameters.read_probability(self.delta, "delta"), self._moves)

    @cached_property
    def table(self) -> tuple[int, ...]:
        """2^192·π(n) for n = 0, 1, ... up to the first that is certain; whole numbers."""
        exponent = shorten_down(lower(parameters.read_epsilon(self.epsilon)) / self._moves)
        slack = math.floor(self._slack * _GRID)
        _, up = exp_minus_bounds(exponent, _BITS)  # at or above 2^bits·e^−ε'
        rising = [0]
        while rising[-1] < _GRID:
            kept = rising[-1]
            more = kept * _GRID // up + slack
            rest = _GRID - kept - slack
            less = _GRID + (rest * up // -_GRID) if rest > 0 else _GRID
            rising.append(min(more, less, _GRID))
        return tuple(rising)

    def _chance(self, units: int) -> Fraction:
        steps = max(0, units - self.min_units + 1)
        return Fraction(self.table[min(steps, len(self.table) - 1)], _GRID)

    def probability(self, output: bool, given: int) -> Interval:  # noqa: FBT001  # the output is a bool
        """The probability that a key with ``given`` units is kept (True) or dropped (False), exactly."""
        if not isinstance(output, bool):
            raise parameters.refuse("output", "True or False", output, "Ask for kept (True) or dropped (False).")
        chance = self._chance(parameters.read_whole(given, "given", least=0, most=_MOST))
        return Interval.of(chance if output else 1 - chance)

    def release(self, counts: Mapping[KeyT, int], *, source: EntropySource = SYSTEM) -> list[KeyT]:
        """The keys that are kept, sorted; ``counts`` has the number of distinct units of each key."""
        keys, units = read_counts(counts)
        kept = self.release_array(units, source=source)
        return [keys[i] for i in np.flatnonzero(kept).tolist()]

    def release_array(self, units: Integers, *, source: EntropySource = SYSTEM) -> npt.NDArray[np.bool_]:
        """For many keys at once: which are kept, in the caller's order, which must not depend on the data."""
        steps = np.clip(read_units(units) - (self.min_units - 1), 0, len(self.table) - 1)
        kept = np.zeros(len(steps), dtype=np.bool_)
        for step in np.unique(steps).tolist():
            same = steps == step
            kept[same] = bernoulli(Fraction(self.table[step], _GRID), int(same.sum()), source=source)
        return kept

    def kept_from(self, beta: Number, of: int = 1) -> int:
        """The number of units from which on keys are kept, ``of`` of them together, except with probability beta."""
        share = parameters.read_probability(beta, "beta") / parameters.read_whole(of, "of")
        return self.min_units - 1 + find_smallest(lambda n: 1 - self._chance(n + self.min_units - 1) <= share, 0)

    def error(self, beta: Number, of: int = 1) -> float:
        """The number of units below which one of ``of`` keys may be missing, except with probability beta."""
        return float(self.kept_from(beta, of))


_BITS = 192
_GRID = 1 << _BITS
_TABLE = 1 << 20


def upper_tail(law: NoiseLaw, z: int) -> Interval:
    """P(Z ≥ z) for a symmetric law on the whole numbers."""
    half = Interval.of(Fraction(1, 2))
    return law.tail(z) * half if z > 0 else _ONE - law.tail(1 - z) * half


def certified_share(delta: Fraction, count: int) -> Fraction:
    """A probability that each of ``count`` independent events may have, so that any of them happens with at most δ.

    It is 1 − (1 − δ)^(1/count), rounded down and checked by an interval, or δ/count, which is always valid.
    """
    if count == 1:
        return delta
    guess = Fraction(-math.expm1(math.log1p(-float(delta)) / count)) * Fraction((1 << 40) - 1, 1 << 40)
    is_valid = power(Interval.of(1 - guess), count).low >= 1 - delta
    return max(guess, delta / count) if is_valid else delta / count


def power(x: Interval, count: int) -> Interval:
    """x^count for x within [0, 1], by squaring, with short numbers on the way."""
    result = _ONE
    while count:
        if count & 1:
            result = (result * x).trim(1024)
        x, count = (x * x).trim(1024), count >> 1
    return result
