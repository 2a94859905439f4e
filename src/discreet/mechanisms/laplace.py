"""Laplace noise in whole steps: publishes numbers with pure ε-differential privacy."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from functools import cached_property

from discreet import parameters
from discreet.accounting import events
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, Ln
from discreet.late_dataclass import dataclass
from discreet.mechanisms.grid import Grid, distances, l1_steps, read_resolution
from discreet.mechanisms.grid_noise import GridNoise
from discreet.mechanisms.laws import MOST, DiscreteLaplaceLaw, log_inverse
from discreet.mechanisms.mechanism import find_form, settle
from discreet.parameters import Epsilon, Number
from discreet.samplers import discrete_laplace

_FIX = "Say Laplace(sensitivity=1, epsilon=1) or Laplace(sensitivity=1, scale=10)."


@dataclass(frozen=True, kw_only=True, repr=False)
class Laplace(GridNoise):
    """Add discrete Laplace noise, P(z) ∝ exp(−|z|/scale), to whole numbers or to reals on a grid.

    ``sensitivity`` is the L1 distance between the answers on neighbouring datasets. The noise is given by ``epsilon``
    or by ``scale``, both in the units of the answer. Without ``resolution`` answers are whole numbers. With it, reals
    are rounded to that grid, and the rounding is charged: ``dimension``, the number of coordinates that one unit can
    change, must then be given for vectors.

    Privacy: ε-differentially private with ε = steps/scale, under the neighbours for which ``sensitivity`` was
    computed; ``steps`` is the L1 distance after rounding, ⌈sensitivity/resolution⌉ + dimension − 1.
    Why: the ratio of two output probabilities is exp((‖o − f(x')‖₁ − ‖o − f(x)‖₁)/scale) ≤ exp(‖f(x) − f(x')‖₁/scale)
    by the triangle inequality, and rounding (halves up) moves a coordinate that changed by t at most ⌈t⌉ steps. The
    bound is reached: ε is tight. Stopping at the ends of int64 is post-processing. Where ε is a logarithm, the scale
    is rounded up and the claim is the real loss, steps/scale.
    Reference: Dwork, McSherry, Nissim & Smith 2006, Prop. 3.3; Ghosh, Roughgarden & Sundararajan 2009 for the
    discrete law; the distance after rounding is proved in ``grid.l1_steps``.

    >>> Laplace(sensitivity=1, epsilon=1)
    Laplace(sensitivity=1, epsilon=1, scale=1, neighbours='add-remove', unit='one row')
    >>> round(Laplace(sensitivity=1, epsilon=1).error(beta=0.05, of=10_000), 1)
    12.2
    >>> Laplace(sensitivity=1, epsilon=1).noise_bound(beta=0.05, of=10_000)
    12.0
    """

    sensitivity: Number
    epsilon: Epsilon | None = None
    scale: Number | None = None
    resolution: Number | None = None
    dimension: int | None = None
    _steps: int = field(init=False, repr=False, compare=False)
    _scale: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        sensitivity = parameters.read_positive(self.sensitivity, "sensitivity")
        grid = Grid(read_resolution(self.resolution))
        settle(self, sensitivity=sensitivity, resolution=grid.resolution, _steps=self._read_steps(sensitivity, grid))
        if find_form({"epsilon": self.epsilon, "scale": self.scale}, _FIX) == "epsilon":
            settle(self, _scale=scale_for(self._steps, parameters.read_epsilon(self.epsilon)))
        else:
            settle(self, _scale=parameters.read_positive(self.scale, "scale") / grid.step)
        loss = parameters.read_epsilon(self._steps / self._scale)
        if self._scale > MOST:
            raise ParameterError("scale", "is too large", "Noise of this size hides everything; publish nothing.")
        settle(self, epsilon=loss, scale=self._scale * grid.step)

    def _read_steps(self, sensitivity: Fraction, grid: Grid) -> int:
        dimension = 1 if self.dimension is None else parameters.read_whole(self.dimension, "dimension")
        if grid.resolution is not None:
            return l1_steps(sensitivity / grid.step, dimension)
        if sensitivity.denominator != 1:
            fix = "Answers are whole numbers, and so are their distances; for reals give resolution=0.01, say."
            raise parameters.refuse("sensitivity", "a whole number", self.sensitivity, fix)
        return int(sensitivity)

    @property
    def event(self) -> events.DiscreteLaplace:
        """The event that describes one release."""
        return events.DiscreteLaplace(
            sensitivity=self._steps, scale=self._scale, neighbours=self.neighbours, unit=self.unit
        )

    @cached_property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise, in steps."""
        return DiscreteLaplaceLaw(self._scale)

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise: √(2q)/(1 − q) steps with q = exp(−1/scale)."""
        t = float(self._scale)
        spread = math.sqrt(2) * t if t > 1e8 else 1 / (math.sqrt(2) * math.sinh(min(0.5 / t, 700.0)))
        return spread * float(self.grid.step)

    def _textbook_bound(self, beta: Fraction, of: int) -> Fraction:
        """The continuous law's bound in steps: scale·ln(of/β)."""
        return Fraction(float(self._scale) * log_inverse(beta / of))

    def _draw(self, shape: tuple[int, ...] | None, source: EntropySource) -> int | Integers:
        return discrete_laplace(self._scale, shape, source=source)

    def _vector_problem(self) -> str | None:
        if self.resolution is None:
            return None
        return "must be given for vectors of reals, because each coordinate is rounded"

    def probability(self, output: object, given: object) -> Interval:
        """P(release(given) = output), exactly; a vector's coordinates are independent."""
        here, there = (self._read(values, name) for values, name in ((output, "output"), (given, "given")))
        apart = distances(here, there)
        peak, chance = self.law.peak, self.law.power(sum(apart))
        for _ in apart:
            chance = chance * peak
        return chance


def scale_for(steps: int, epsilon: Exact) -> Fraction:
    """The scale in steps that costs at most ε: steps/ε, rounded up to 64 significant bits for a logarithm.

    >>> scale_for(3, Fraction(1, 2))
    Fraction(6, 1)
    """
    if isinstance(epsilon, Ln):
        scale = steps / epsilon.lower
        grid = 64 - math.ceil(scale).bit_length()
        unit = Fraction(2) ** grid
        return math.ceil(scale * unit) / unit
    return steps / epsilon
