"""The base of Laplace and Gaussian mechanisms: discrete noise on whole steps, its tails, its error, its release."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Integers, Interval, float_up
from discreet.mechanisms.grid import Grid, GridSteps, GridValues, read_resolution
from discreet.mechanisms.laws import NoiseLaw, noise_bound, stays_within
from discreet.mechanisms.mechanism import OneEventMechanism
from discreet.parameters import Number

_FIX_DIMENSION = "Give dimension=, the number of coordinates that one unit can change (their number, if unsure)."


class GridNoise(OneEventMechanism):
    """Noise that is added to answers in whole steps of a grid. It is not a mechanism by itself.

    The two fields below belong to the subclasses, which list them among their own.
    """

    resolution: Number | None
    dimension: int | None

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise, in steps."""

    @abstractmethod
    def _textbook_bound(self, beta: Fraction, of: int) -> Fraction:
        """The bound in steps that none of ``of`` noises of the continuous law exceeds, with probability 1 − beta."""

    @abstractmethod
    def _draw(self, shape: tuple[int, ...] | None, source: EntropySource) -> int | Integers:
        """Fresh noise in steps."""

    @abstractmethod
    def _vector_problem(self) -> str | None:
        """Why a vector needs ``dimension``; None where it does not."""

    @property
    def grid(self) -> Grid:
        """The steps in which answers are published."""
        return Grid(read_resolution(self.resolution))

    def tail(self, t: Number) -> Interval:
        """P(|noise| > t), for the discrete law."""
        return self.law.tail(math.floor(parameters.read_nonnegative(t, "t") / self.grid.step) + 1)

    def noise_bound(self, beta: Number = 0.05, of: int = 1) -> float:
        """The smallest grid value that none of ``of`` noises exceeds with probability 1 − ``beta``."""
        allowed, of = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        near = float(self._textbook_bound(allowed, of))
        return float_up(noise_bound(self.law, allowed, of, near) * self.grid.step)

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` answers is off, at most, with probability 1 − ``beta``.

        It is the bound of the continuous law (for Laplace noise scale·ln(of/beta)) where that holds for the discrete
        law that is really used, and otherwise the smallest grid value that does. On a grid of reals it includes the
        rounding, half a step.
        """
        allowed, of = parameters.read_probability(beta, "beta"), parameters.read_whole(of, "of")
        textbook = self._textbook_bound(allowed, of)
        rounding = self.grid.step / 2 if self.resolution is not None else Fraction(0)
        if stays_within(self.law, textbook, allowed, of):
            return float_up(textbook * self.grid.step + rounding)
        return float_up(Fraction(self.noise_bound(beta, of)) + rounding)

    def release(self, values: object, /, *, source: EntropySource = SYSTEM) -> GridValues:
        """The answer or answers with fresh noise: ints (or int64 arrays), or floats on the grid."""
        steps = self._read(values, "values")
        shape = None if isinstance(steps, int) else steps.shape
        return self.grid.write(self.grid.add(steps, self._draw(shape, source)))

    def _read(self, values: object, name: str) -> GridSteps:
        steps = self.grid.read(values, name)
        if self.dimension is None and not isinstance(steps, int) and steps.size > 1:
            problem = self._vector_problem()
            if problem is not None:
                raise ParameterError("dimension", problem, _FIX_DIMENSION)
        return steps
