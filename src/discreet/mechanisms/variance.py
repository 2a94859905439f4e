"""Bounded variances: one noisy sum of squares, or a noisy count, sum and sum of squares."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy.typing as npt

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import ceil_div, float_up
from discreet.late_dataclass import dataclass
from discreet.mechanisms.bounded_statistic import SizedStatistic, clamp, exact_sum, exact_sum_of_squares, ratio
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.noise_mechanism import AdditiveNoise
from discreet.parameters import Number
from discreet.privacy import Neighbours

# Sums of squares are rounded to units that keep sensitivities within this many bits.
_ROOM = 60


@dataclass(frozen=True, kw_only=True, repr=False)
class Variance(SizedStatistic):
    """The (population) variance of values clamped to ``bounds``, with discrete noise.

    Under replace the number of rows n is public; give it as ``size``. One noise is added to n·Σ(x − mean)², a whole
    number. Under add-remove the count, the sum and the sum of squares of distances from the midpoint each get noise,
    from a third of the budget each; ``size`` is only a guess from which ``error`` is computed.

    Privacy: under replace, the noise's guarantee for a whole number of sensitivity (n − 1)·(h − l)². Under
    add-remove, the composition of a sum of sensitivity m·r, a sum of squares of sensitivity m·r² and a count of
    sensitivity m; r is half the range (rounded up to whole steps) and m is ``max_rows``.
    Why: with the mean μ of the other n − 1 values, Σ(x − mean)² is what they have among themselves plus
    (1 − 1/n)·(x_i − μ)², and x_i and μ are both within the bounds. The rest is as for ``Mean``. Very large sums of
    squares are rounded to coarser units, halves up, and a distance of s units may then be ⌈s⌉.
    Reference: the update formula is Welford's (1962); for the noise see ``Laplace`` and ``Gaussian``.

    >>> Variance(bounds=(0, 10), epsilon=1, neighbours="replace", size=101).parts[0].sensitivity
    Fraction(10000, 1)
    """

    statistic: ClassVar[str] = "variance"
    least_size: ClassVar[int] = 2

    @property
    def centre(self) -> int:
        """The step from which distances are taken: the middle, rounded down."""
        first, last = self.ends
        return (first + last) // 2

    @property
    def _far(self) -> int:
        """The largest distance from the centre, in steps."""
        return self.ends[1] - self.centre

    @property
    def _reach(self) -> int:
        """How far one unit can move the sum of squares, in squared steps."""
        first, last = self.ends
        if self.neighbours == Neighbours.REPLACE:
            return (self._size - 1) * (last - first) ** 2
        return self.max_rows * self._far**2

    @property
    def _coarse(self) -> int:
        """The unit, in squared steps, to which the sum of squares is rounded: 1 unless its sensitivity is huge."""
        return 1 << max(0, self._reach.bit_length() - _ROOM)

    @cached_property
    def parts(self) -> tuple[AdditiveNoise, ...]:
        squares, m, third = ceil_div(self._reach, self._coarse), self.max_rows, Fraction(1, 3)
        if self.neighbours == Neighbours.REPLACE:
            return (self._make_noise(l1=squares, squared_l2=squares**2),)
        return (
            self._make_noise(l1=squares, squared_l2=squares**2, share=third),
            self._make_noise(l1=m * self._far, squared_l2=(m * self._far) ** 2, share=third),
            self._make_noise(l1=m, squared_l2=m * m, share=third),
        )

    def answers(self, values: npt.ArrayLike, /) -> tuple[int, ...]:
        apart = self.encode(values) - self.centre
        self._check_rows(apart)
        n, total, squares = int(apart.size), exact_sum(apart), exact_sum_of_squares(apart)
        if self.neighbours == Neighbours.REPLACE:
            return (self._round(n * squares - total * total),)
        return self._round(squares), total, n

    def _round(self, squares: int) -> int:
        return (2 * squares + self._coarse) // (2 * self._coarse)

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` such variances of ``size`` rows is off, at most, with probability 1 − ``beta``.

        Under add-remove, with half-range r, squares off by a₂, sum by a₁, count by b: the mean square is off by at
        most (a₂ + r²·b)/(n − b), the mean by e = (a₁ + r·b)/(n − b), its square by e·(2r + e).
        """
        parts, most = self.parts, self._most
        share = parameters.read_probability(beta, "beta") / len(parts)
        # Rounding to coarser units adds at most half a unit.
        squares, *rest = (Fraction(part.error(share, of)) for part in parts)
        squares = (squares + (Fraction(1, 2) if self._coarse > 1 else 0)) * self._coarse
        if not rest:
            off = squares / self._size**2
        else:
            rows, far = self._size - rest[1], self._far
            if rows < 1:
                return float_up(most * self.step**2)
            mean = (rest[0] + far * rest[1]) / rows
            off = (squares + far**2 * rest[1]) / rows + mean * (2 * far + mean)
        return float_up(min(off, most) * self.step**2)

    @property
    def _most(self) -> Fraction:
        """The largest possible variance within the bounds: a quarter of the squared range (Popoviciu)."""
        first, last = self.ends
        return Fraction((last - first) ** 2, 4)

    def release(
        self, values: npt.ArrayLike, /, *, confidence: Number = 0.95, source: EntropySource = SYSTEM
    ) -> Estimate:
        """The noisy variance, between 0 and a quarter of the squared range, with the interval of the noise."""
        level = parameters.read_probability(confidence, "confidence")
        drawn = [Fraction(number) for number in self.draw(values, source)]
        bounds = [Fraction(part.noise_bound((1 - level) / len(drawn))) for part in self.parts]
        # Squares in squared steps; their rounding widens the interval by half a unit.
        drawn[0], bounds[0] = drawn[0] * self._coarse, (bounds[0] + Fraction(self._coarse > 1, 2)) * self._coarse
        raw = self._estimate_from_one(drawn, bounds) if len(drawn) == 1 else self._estimate_from_three(drawn, bounds)
        low, value, high = (clamp(x, 0, self._most) for x in raw[:3])
        return self._estimate(value, (low, high), float(raw[3]), level, self.step**2)

    def _estimate_from_one(
        self, drawn: list[Fraction], bounds: list[Fraction]
    ) -> tuple[Fraction, Fraction, Fraction, float]:
        n_squared = self._size**2
        spread = self.parts[0].standard_error * self._coarse / n_squared
        return (drawn[0] - bounds[0]) / n_squared, drawn[0] / n_squared, (drawn[0] + bounds[0]) / n_squared, spread

    def _estimate_from_three(
        self, drawn: list[Fraction], bounds: list[Fraction]
    ) -> tuple[Fraction, Fraction, Fraction, float]:
        squares, total, count = drawn
        rows, fewest, most = (max(1, int(count + off)) for off in (0, -bounds[2], bounds[2]))
        square_low, square_high = ratio(squares - bounds[0], squares + bounds[0], fewest, most)
        mean_low, mean_high = ratio(total - bounds[1], total + bounds[1], fewest, most)
        mean, largest = total / rows, max(abs(mean_low), abs(mean_high)) ** 2
        smallest = Fraction(0) if mean_low <= 0 <= mean_high else min(abs(mean_low), abs(mean_high)) ** 2
        value = squares / rows - mean**2
        # First-order: d(S₂/N − (S₁/N)²) = (dS₂ − 2·mean·dS₁ − (S₂/N − 2·mean²)·dN)/N.
        slopes = (float(self._coarse), float(2 * mean), float(squares / rows - 2 * mean**2))
        spread = math.hypot(*(slope * part.standard_error for slope, part in zip(slopes, self.parts))) / rows
        return square_low - largest, value, square_high - smallest, spread
