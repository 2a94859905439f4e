"""The base of the Gaussian mechanisms: noise that is scaled to a squared L2 distance, in one of several forms."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import field
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Exact, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.grid import Grid, distances, read_resolution, squared_l2_steps
from discreet.mechanisms.grid_noise import GridNoise
from discreet.mechanisms.laws import MOST
from discreet.mechanisms.mechanism import find_form, settle
from discreet.parameters import Epsilon, Number

FIX_SENSITIVITY = "Say sensitivity=3 (L2), or squared_sensitivity=2 where the distance is a square root."


@dataclass(frozen=True, kw_only=True, repr=False)
class L2Noise(GridNoise):
    """Noise for answers whose L2 distance on neighbours is bounded. It is not a mechanism by itself.

    All forms are settled when it is made: ``squared_sensitivity``, ``variance`` and ``rho`` are then exact numbers in
    the units of the answer. Subclasses say what noise costs ε and δ, which law it has, and how it is drawn.
    """

    # The forms in which the noise may be given, and how to say them.
    _forms: ClassVar[tuple[str, ...]] = ("rho", "epsilon", "sigma", "variance")
    _fix: ClassVar[str]
    # Whether the loss is known for whole vectors, however many coordinates one unit can change.
    _fits_vectors: ClassVar[bool] = False

    sensitivity: Number | None = None
    squared_sensitivity: Number | None = None
    rho: Number | None = None
    epsilon: Epsilon | None = None
    delta: Number | None = None
    sigma: Number | None = None
    variance: Number | None = None
    resolution: Number | None = None
    dimension: int | None = None
    _squared: int = field(init=False, repr=False, compare=False)
    _variance: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = Grid(read_resolution(self.resolution))
        squared = self._read_squared()
        settle(self, resolution=grid.resolution, _squared=self._read_steps(squared, grid))
        self._check_delta()
        forms: dict[str, object] = {name: getattr(self, name) for name in self._forms}
        form = find_form(forms, self._fix)
        settle(self, _variance=self._read_variance(form, grid.step))
        rho = self._squared / (2 * self._variance)
        if rho > parameters.MAX_EPSILON:
            fix = "A larger loss protects nobody: release without privacy."
            raise ParameterError(form, f"must keep ρ at most {parameters.MAX_EPSILON:,}", fix)
        if self._variance > MOST:
            raise ParameterError(form, "is too large", "Noise of this size hides everything; publish nothing.")
        settle(self, sensitivity=None, squared_sensitivity=squared, sigma=None)
        settle(self, variance=self._variance * grid.step**2, rho=rho)

    def _read_squared(self) -> Fraction:
        forms: dict[str, object] = {
            "sensitivity": self.sensitivity,
            "squared_sensitivity": self.squared_sensitivity,
        }
        if find_form(forms, FIX_SENSITIVITY) == "sensitivity":
            return parameters.read_positive(self.sensitivity, "sensitivity") ** 2
        return parameters.read_positive(self.squared_sensitivity, "squared_sensitivity")

    def _read_steps(self, squared: Fraction, grid: Grid) -> int:
        dimension = 1 if self.dimension is None else parameters.read_whole(self.dimension, "dimension", most=None)
        if grid.resolution is not None:
            return squared_l2_steps(squared / grid.step**2, dimension)
        if squared.denominator != 1:
            typed = self.sensitivity if self.squared_sensitivity is None else self.squared_sensitivity
            fix = f"Whole answers have whole squared distances. {FIX_SENSITIVITY} For reals give resolution=0.01, say."
            raise parameters.refuse("sensitivity", "whole when squared", typed, fix)
        if dimension > 1 or (self.dimension is None and self._fits_vectors):
            return int(squared)
        return math.isqrt(int(squared)) ** 2  # one coordinate moves by a whole number of steps

    def _check_delta(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise ParameterError(
                "epsilon and delta", "go together: Gaussian noise is never purely ε-private", self._fix
            )

    def _read_variance(self, form: str, step: Fraction) -> Fraction:
        """The variance in squared steps."""
        if form == "rho":
            return self._squared / (2 * parameters.read_positive(self.rho, "rho"))
        if form == "variance":
            return parameters.read_positive(self.variance, "variance") / step**2
        if form == "sigma":
            return (parameters.read_positive(self.sigma, "sigma") / step) ** 2
        epsilon, delta = parameters.read_epsilon(self.epsilon), parameters.read_probability(self.delta, "delta")
        settle(self, epsilon=epsilon, delta=delta)
        return self._calibrate(epsilon, delta)

    @abstractmethod
    def _calibrate(self, epsilon: Exact, delta: Fraction) -> Fraction:
        """A variance in squared steps whose certified δ(ε) is at most ``delta``."""

    def _vector_problem(self) -> str | None:
        if self.resolution is None and (self._fits_vectors or self.squared_sensitivity == 1):
            return None  # a distance of one step is in one coordinate
        return "must be given for vectors, because one unit may change several coordinates"

    def _textbook_bound(self, beta: Fraction, of: int) -> Fraction:
        """The continuous law's bound in steps: σ·Φ⁻¹(1 − β/2k)."""
        quantile = -NormalDist().inv_cdf(max(float(beta) / (2 * of), 1e-300))
        return Fraction(quantile * math.sqrt(float(self._variance)))

    def probability(self, output: object, given: object) -> Interval:
        """P(release(given) = output), exactly; a vector's coordinates are independent."""
        here, there = self._read(output, "output"), self._read(given, "given")
        chance = Interval.of(1)
        for apart in distances(here, there):
            chance = chance * self.law.probability(apart)
        return chance


def shorten(x: Fraction) -> Fraction:
    """At or above x, with 64 significant bits: shorter numbers draw and price faster."""
    unit = Fraction(2) ** (64 - math.ceil(x).bit_length())
    return math.ceil(x * unit) / unit
