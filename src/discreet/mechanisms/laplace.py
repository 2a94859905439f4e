"""Laplace noise, in whole steps: the pure-ε way to publish numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from discreet import parameters
from discreet.accounting import events
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Interval, Ln, float_up
from discreet.mechanisms.grid import Grid, GridSteps, GridValues, distances, l1_steps, read_resolution
from discreet.mechanisms.laws import MOST, DiscreteLaplaceLaw, log_inverse, noise_bound, stays_within
from discreet.mechanisms.mechanism import EventMechanism, find_form, settle
from discreet.parameters import Epsilon, Number
from discreet.samplers import discrete_laplace

_FIX = "Say Laplace(sensitivity=1, epsilon=1) or Laplace(sensitivity=1, scale=10)."


@dataclass(frozen=True, kw_only=True, repr=False)
class Laplace(EventMechanism):
    """Add discrete Laplace noise, P(z) ∝ exp(−|z|/scale), to whole numbers or to reals on a grid.

    ``sensitivity`` is the L1 distance between the answers on neighbouring datasets. The noise is given by ``epsilon``
    or by ``scale``, both in the units of the answer. Without ``resolution`` answers are whole numbers. With it, reals
    are rounded to that grid, and the rounding is charged: ``dimension``, the number of coordinates that one unit can
    change, must then be said for vectors.

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
            raise ParameterError("scale", "is beyond all use", "Noise of this size hides everything; publish nothing.")
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
        """What one release amounts to."""
        return events.DiscreteLaplace(
            sensitivity=self._steps, scale=self._scale, neighbours=self.neighbours, unit=self.unit
        )

    @property
    def events(self) -> tuple[events.Event, ...]:
        return (self.event,)

    @cached_property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise, in steps."""
        return DiscreteLaplaceLaw(self._scale)

    @property
    def grid(self) -> Grid:
        """The steps in which answers are published."""
        return Grid(read_resolution(self.resolution))

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise: √(2q)/(1 − q) steps with q = exp(−1/scale)."""
        t = float(self._scale)
        spread = math.sqrt(2) * t if t > 1e8 else 1 / (math.sqrt(2) * math.sinh(min(0.5 / t, 700.0)))
        return spread * float(self.grid.step)

    def tail(self, t: Number) -> Interval:
        """P(|noise| > t), for the discrete law."""
        return self.law.tail(math.floor(parameters.read_nonnegative(t, "t") / self.grid.step) + 1)

    def noise_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        """The smallest grid value that none of ``of`` noises exceeds with probability 1 − ``beta``, exactly.

        >>> Laplace(sensitivity=1, epsilon=1).noise_bound(beta=0.05, of=10_000)
        12.0
        """
        allowed, of = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        near = float(self._scale) * log_inverse(allowed / of)
        return float_up(noise_bound(self.law, allowed, of, near) * self.grid.step)

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` answers is off, at most, with probability 1 − ``beta``.

        The textbook's scale·ln(of/beta) where it holds for the discrete law that is really used, and otherwise the
        smallest grid value that does. On a grid of reals the rounding, half a step, is included.
        """
        allowed, of = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        textbook = Fraction(float(self._scale) * log_inverse(allowed / of))
        rounding = self.grid.step / 2 if self.resolution is not None else Fraction(0)
        if stays_within(self.law, textbook, allowed, of):
            return float_up(textbook * self.grid.step + rounding)
        return float_up(Fraction(self.noise_bound(beta, of)) + rounding)

    def probability(self, output: object, given: object) -> Interval:
        """P(release(given) = output), exactly; a vector's coordinates are independent."""
        here, there = (self._read(values, name) for values, name in ((output, "output"), (given, "given")))
        apart = distances(here, there)
        peak, chance = self.law.peak, self.law.power(sum(apart))
        for _ in apart:
            chance = chance * peak
        return chance

    def release(self, values: object, /, *, source: EntropySource = SYSTEM) -> GridValues:
        """The answer or answers with fresh noise: ints (or int64 arrays), or floats on the grid."""
        steps = self._read(values, "values")
        shape = None if isinstance(steps, int) else steps.shape
        noise = discrete_laplace(self._scale, shape, source=source)
        return self.grid.write(self.grid.add(steps, noise))

    def _read(self, values: object, name: str) -> GridSteps:
        steps = self.grid.read(values, name)
        if self.resolution is not None and self.dimension is None and not isinstance(steps, int) and steps.size > 1:
            raise ParameterError(
                "dimension",
                "must be said for vectors of reals, because each coordinate is rounded",
                "Give dimension=, the number of coordinates that one unit can change (their number, if unsure).",
            )
        return steps


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
