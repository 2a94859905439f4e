"""Bounded sums: the sum of clamped values with discrete noise."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy.typing as npt

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import float_up
from discreet.late_dataclass import dataclass
from discreet.mechanisms.bounded_statistic import BoundedStatistic, exact_sum
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.noise_mechanism import AdditiveNoise
from discreet.parameters import Number
from discreet.privacy import Neighbours


@dataclass(frozen=True, kw_only=True, repr=False)
class Sum(BoundedStatistic):
    """The sum of values clamped to ``bounds``, with discrete noise, on the grid of ``resolution``.

    Privacy: the noise's guarantee at the sensitivity below, in steps; l and h are the bounds, m is ``max_rows``.
    Under add-remove it is m·max(|l|, |h|): a unit's rows leave or join the sum. Under replace it is
    max(h, m·h) − min(l, m·l): a unit with 1 to m rows contributes a number in that range before and after; with one
    row for each unit this is h − l.
    Why: clamping bounds each row, ``max_rows`` bounds the rows (the caller must prepare the data so), sums of whole
    steps are exact and do not depend on the order.
    Reference: Dwork, McSherry, Nissim & Smith 2006, §3; for the noise see ``Laplace`` and ``Gaussian``.

    >>> Sum(bounds=(-2, 5), epsilon=1).sensitivity, Sum(bounds=(-2, 5), epsilon=1, neighbours="replace").sensitivity
    (Fraction(5, 1), Fraction(7, 1))
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.noise  # refuse now what the noise would refuse

    @property
    def _steps(self) -> int:
        first, last = self.ends
        if self.neighbours == Neighbours.REPLACE:
            return max(last, self.max_rows * last) - min(first, self.max_rows * first)
        return self.max_rows * max(abs(first), abs(last))

    @property
    def sensitivity(self) -> Fraction:
        """How far one unit can move the sum."""
        return self._steps * self.step

    @cached_property
    def noise(self) -> AdditiveNoise:
        """The noise that is added to the sum, in steps."""
        return self._make_noise(l1=self._steps, squared_l2=self._steps**2)

    @property
    def parts(self) -> tuple[AdditiveNoise, ...]:
        return (self.noise,)

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` such sums is off from the sum of clamped, rounded values, at most."""
        return float_up(parameters.read_number(self.noise.error(beta, of), "error") * self.step)

    def answers(self, values: npt.ArrayLike, /) -> tuple[int]:
        return (exact_sum(self.encode(values)),)

    def release(
        self, values: npt.ArrayLike, /, *, confidence: Number = 0.95, source: EntropySource = SYSTEM
    ) -> Estimate:
        """The noisy sum, with the interval of the noise."""
        level = parameters.read_probability(confidence, "confidence")
        (total,) = self.draw(values, source)
        bound = Fraction(self.noise.noise_bound(1 - level))
        return self._estimate(
            Fraction(total), (total - bound, total + bound), self.noise.standard_error, level, self.step
        )
