"""Bounded means: a noisy sum over a public number of rows, or a noisy sum over a noisy count."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy.typing as npt

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import float_up
from discreet.late_dataclass import dataclass
from discreet.mechanisms.bounded_statistic import SizedStatistic, clamp, exact_sum, ratio
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.noise_mechanism import AdditiveNoise
from discreet.parameters import Number
from discreet.privacy import Neighbours


@dataclass(frozen=True, kw_only=True, repr=False)
class Mean(SizedStatistic):
    """The mean of values clamped to ``bounds``, with discrete noise.

    Under replace the number of rows is public; give it as ``size``. The noisy sum is divided by it: one noise of
    scale (h − l)/(ε·n) on the mean. Under add-remove the number of rows is private. Then the sum of distances from
    the midpoint and the count each get noise, from half of the budget each, and are divided afterwards; ``size`` is
    only a guess from which ``error`` is computed.

    Privacy: under replace, the noise's guarantee for a sum of sensitivity h − l. Under add-remove, the composition of
    a sum of values within half the range, sensitivity m·(h − l)/2 (rounded up to whole steps), and a count,
    sensitivity m, where m is ``max_rows``.
    Why: replacing one clamped value moves the sum by at most h − l and not the public count. Adding one moves the
    centred sum by at most half the range, and the count by 1. Division and clamping afterwards are post-processing.
    Reference: Dwork & Roth 2014, §3.3 and Thm 3.16; for the noise see ``Laplace`` and ``Gaussian``.

    >>> Mean(bounds=(0, 100_000), epsilon=1, neighbours="replace", size=1000).scale  # M/(ε·n)
    Fraction(100, 1)
    """

    statistic: ClassVar[str] = "mean"

    @property
    def centre(self) -> int:
        """The step from which distances are summed: the middle under add-remove, 0 under replace."""
        first, last = self.ends
        return 0 if self.neighbours == Neighbours.REPLACE else (first + last) // 2

    @cached_property
    def parts(self) -> tuple[AdditiveNoise, ...]:
        first, last = self.ends
        if self.neighbours == Neighbours.REPLACE:
            return (self._make_noise(l1=last - first, squared_l2=(last - first) ** 2),)
        far, m, half = last - self.centre, self.max_rows, Fraction(1, 2)  # the centre is rounded down
        return (
            self._make_noise(l1=m * far, squared_l2=(m * far) ** 2, share=half),
            self._make_noise(l1=m, squared_l2=m * m, share=half),
        )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the mean. It exists only under replace with a pure ε."""
        noise = self.parts[0]
        if self.neighbours != Neighbours.REPLACE or self.rho is not None or self.delta is not None:
            raise ParameterError("scale", "exists for pure ε under 'replace' only", "Look at parts and error instead.")
        return parameters.read_positive(getattr(noise, "scale", None), "scale") * self.step / self._size

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` such means of ``size`` rows is off, at most, with probability 1 − ``beta``.

        Under replace: the noise over n. Under add-remove, with the sum off by a and the count by b:
        |S̃/Ñ − S/N| ≤ (a + |S/N|·b)/Ñ, |S/N| is at most half the range and Ñ ≥ n − b. Never more than the range.
        """
        first, last = self.ends
        if self.neighbours == Neighbours.REPLACE:
            off = Fraction(self.parts[0].error(beta, of)) / self._size
        else:
            half = parameters.read_probability(beta, "beta") / 2
            total, count = (Fraction(part.error(half, of)) for part in self.parts)
            rows = self._size - count
            off = (total + (last - self.centre) * count) / rows if rows >= 1 else Fraction(last - first)
        return float_up(min(off, Fraction(last - first)) * self.step)

    def answers(self, values: npt.ArrayLike, /) -> tuple[int, ...]:
        steps = self.encode(values)
        self._check_rows(steps)
        if self.neighbours == Neighbours.REPLACE:
            return (exact_sum(steps),)
        return exact_sum(steps - self.centre), int(steps.size)

    def release(
        self, values: npt.ArrayLike, /, *, confidence: Number = 0.95, source: EntropySource = SYSTEM
    ) -> Estimate:
        """The noisy mean, clamped to the bounds, with an interval that follows from the noise alone."""
        level = parameters.read_probability(confidence, "confidence")
        beta, parts, (first, last) = (1 - level), self.parts, self.ends
        bounds = [Fraction(part.noise_bound(beta / len(parts))) for part in parts]
        total, *counted = (Fraction(number) for number in self.draw(values, source))
        spread = parts[0].standard_error
        if counted:
            rows, fewest, most = (max(1, int(counted[0] + off)) for off in (0, -bounds[1], bounds[1]))
            spread = math.hypot(spread, float(total / rows) * parts[1].standard_error)
        else:
            rows = fewest = most = self._size
        ends = ratio(total - bounds[0], total + bounds[0], fewest, most)
        low, value, high = (clamp(self.centre + x, first, last) for x in (ends[0], total / rows, ends[1]))
        return self._estimate(value, (low, high), spread / rows, level, self.step)
