"""Gaussian noise in whole steps: it needs less noise than Laplace when many numbers are published together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

from discreet import parameters
from discreet.accounting import events, gdp
from discreet.accounting.account import loss_of
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Interval, Ln, float_down, float_up, lower, sqrt_upper, upper
from discreet.mechanisms.grid import Grid, distances, read_resolution, squared_l2_steps
from discreet.mechanisms.grid_noise import GridNoise
from discreet.mechanisms.laws import MOST, DiscreteGaussianLaw, log_inverse
from discreet.mechanisms.mechanism import find_form, settle
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours, Unit
from discreet.samplers import discrete_gaussian

_FIX = "Say Gaussian(sensitivity=1, rho=0.1), (..., epsilon=1, delta=1e-6), (..., sigma=4) or (..., variance=16)."
_PATIENCE = 16  # how often a variance is doubled that should be large enough already
_FIX_SENSITIVITY = "Say sensitivity=3 (L2), or squared_sensitivity=2 where the distance is a square root."


@dataclass(frozen=True, kw_only=True, repr=False)
class Gaussian(GridNoise):
    """Add discrete Gaussian noise, P(z) ∝ exp(−z²/(2·variance)), to whole numbers or to reals on a grid.

    ``sensitivity`` is the L2 distance between the answers on neighbouring datasets (``squared_sensitivity`` states
    its square, where the distance itself is irrational). The noise is given by ``rho`` (zCDP), by ``epsilon`` with
    ``delta``, by ``sigma`` or by ``variance``, in the units of the answer. ``dimension`` is the number of coordinates
    that one unit can change; it must be given for vectors in which that may be more than one.

    Privacy: ρ-zCDP with ρ = steps²/(2·variance in steps²), where steps² is the squared L2 distance after rounding,
    under the neighbours for which the sensitivity was computed. If one unit changes one coordinate only, also
    (ε, δ(ε))-private with the exact δ(ε) of the discrete law, which is larger than the continuous formula's at small
    σ. With more coordinates the law is not rotation-invariant, and δ comes from ρ.
    Why: the Rényi divergence of order α between the law and the law moved by a whole vector is at most α·ρ.
    ``epsilon`` with ``delta`` finds, by bisection, a variance whose certified δ(ε) is at most ``delta``.
    Reference: Canonne, Kamath & Steinke 2020, Thm 4 (ρ), Thm 7 (δ), Prop. 12 (from ρ to δ); the distance after
    rounding is proved in ``grid.squared_l2_steps``.

    >>> Gaussian(sensitivity=1, rho=0.125)
    Gaussian(squared_sensitivity=1, rho=1/8, variance=4, neighbours='add-remove', unit='one row')
    """

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
        forms: dict[str, object] = {name: getattr(self, name) for name in ("rho", "epsilon", "sigma", "variance")}
        form = find_form(forms, _FIX)
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
        if find_form(forms, _FIX_SENSITIVITY) == "sensitivity":
            return parameters.read_positive(self.sensitivity, "sensitivity") ** 2
        return parameters.read_positive(self.squared_sensitivity, "squared_sensitivity")

    def _read_steps(self, squared: Fraction, grid: Grid) -> int:
        dimension = 1 if self.dimension is None else parameters.read_whole(self.dimension, "dimension", most=None)
        if grid.resolution is not None:
            return squared_l2_steps(squared / grid.step**2, dimension)
        if squared.denominator != 1:
            typed = self.sensitivity if self.squared_sensitivity is None else self.squared_sensitivity
            fix = f"Whole answers have whole squared distances. {_FIX_SENSITIVITY} For reals give resolution=0.01, say."
            raise parameters.refuse("sensitivity", "whole when squared", typed, fix)
        # One coordinate moves by a whole number of steps: its square is a square.
        return int(squared) if dimension > 1 else math.isqrt(int(squared)) ** 2

    def _check_delta(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise ParameterError("epsilon and delta", "go together: Gaussian noise is never purely ε-private", _FIX)

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

    def _calibrate(self, epsilon: Exact, delta: Fraction) -> Fraction:
        """A variance whose certified δ(ε) is at most ``delta``, within a relative 2^-20 of where that stops.

        The start is always valid: ρ = (√(ε + L) − √L)² with L = ln(1/δ) gives ε = ρ + 2√(ρL) (Bun & Steinke 2016).
        The last variance that passed the check is returned, whatever the shape of δ between.
        """
        eps, log = float(upper(epsilon)), log_inverse(delta)
        rho = (eps / (math.sqrt(eps + log) + math.sqrt(log))) ** 2
        passed = _shorten(Fraction(self._squared / (2 * rho)) * Fraction(1025, 1024))
        for _ in range(_PATIENCE):
            if self._holds(passed, epsilon, delta):
                break
            passed *= 2
        else:
            raise ParameterError("delta", "is too small to be certified", "Give delta=1e-300 or more.")
        failed = passed / 2
        while self._holds(failed, epsilon, delta):
            passed, failed = failed, failed / 2
        while passed - failed > passed / (1 << 20):
            middle = _shorten((passed + failed) / 2)
            passed, failed = (middle, failed) if self._holds(middle, epsilon, delta) else (passed, middle)
        return passed

    def _holds(self, variance: Fraction, epsilon: Exact, delta: Fraction) -> bool:
        return Fraction(loss_of(self._make_event(variance)).delta(epsilon)) <= delta

    def _make_event(self, variance: Fraction) -> events.DiscreteGaussian:
        return events.DiscreteGaussian(
            squared_sensitivity=self._squared,
            variance=variance,
            dimension=min(self.dimension or 1, self._squared),  # a coordinate that changes adds at least one
            neighbours=self.neighbours,
            unit=self.unit,
        )

    @property
    def event(self) -> events.DiscreteGaussian:
        """The event that describes one release."""
        return self._make_event(self._variance)

    @cached_property
    def law(self) -> DiscreteGaussianLaw:
        """The law of the noise, in steps."""
        return DiscreteGaussianLaw(self._variance)

    @property
    def standard_error(self) -> float:
        """At or above the standard deviation of the noise: √variance (the discrete law's is a little below)."""
        return float_up(sqrt_upper(self._variance) * self.grid.step)

    def _textbook_bound(self, beta: Fraction, of: int) -> Fraction:
        """The continuous law's bound in steps: σ·Φ⁻¹(1 − β/2k)."""
        quantile = -NormalDist().inv_cdf(max(float(beta) / (2 * of), 1e-300))
        return Fraction(quantile * math.sqrt(float(self._variance)))

    def _draw(self, shape: tuple[int, ...] | None, source: EntropySource) -> int | Integers:
        return discrete_gaussian(self._variance, shape, source=source)

    def _vector_problem(self) -> str | None:
        if self.resolution is None and self.squared_sensitivity == 1:
            return None  # a distance of one step is in one coordinate
        return "must be given for vectors, because one unit may change several coordinates"

    def probability(self, output: object, given: object) -> Interval:
        """P(release(given) = output), exactly; a vector's coordinates are independent."""
        here, there = self._read(output, "output"), self._read(given, "given")
        chance = Interval.of(1)
        for apart in distances(here, there):
            chance = chance * self.law.probability(apart)
        return chance

    @classmethod
    def classical(
        cls,
        *,
        sensitivity: Number = 1,
        epsilon: Epsilon,
        delta: Number,
        resolution: Number | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        unit: Unit | str | None = None,
    ) -> Gaussian:
        """The noise of the textbook formula σ = √(2·ln(1.25/δ))·Δ/ε, for comparison; proved for ε ≤ 1 only.

        The mechanism's ``privacy`` is the true loss of the discrete noise, not the formula's claim.

        >>> round(Gaussian.classical(epsilon=1, delta=1e-5).standard_error, 4)
        4.8448
        """
        eps, allowed = parameters.read_epsilon(epsilon), parameters.read_probability(delta, "delta")
        if eps > 1:
            fix = "Above 1 it promises more than it keeps; use Gaussian(epsilon=..., delta=...), which is exact."
            raise parameters.refuse("epsilon", "at most 1 for the classical formula", epsilon, fix)
        exact = parameters.read_positive(sensitivity, "sensitivity")
        variance = 2 * Ln(Fraction(5, 4) / allowed).upper * exact**2 / lower(eps) ** 2
        return cls(
            sensitivity=exact, variance=_shorten(variance), resolution=resolution, neighbours=neighbours, unit=unit
        )

    @staticmethod
    def analytic_sigma(*, sensitivity: Number = 1, epsilon: Epsilon, delta: Number) -> float:
        """The smallest σ of *continuous* noise that is (ε, δ)-private, rounded up, for comparison.

        Discrete noise of this σ may cost a little more; ``Gaussian(epsilon=..., delta=...)`` accounts for that.
        Reference: Balle & Wang 2018, Thm 8.

        >>> round(Gaussian.analytic_sigma(epsilon=1, delta=1e-5), 7)
        3.7306316
        """
        eps = float_down(parameters.read_epsilon(epsilon))
        allowed = float(parameters.read_probability(delta, "delta"))
        low = high = 1.0
        while gdp.delta_of(low, eps) > allowed:
            low /= 2
        while gdp.delta_of(high, eps) <= allowed:
            high *= 2
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if gdp.delta_of(middle, eps) <= allowed else (low, middle)
        return float_up(parameters.read_positive(sensitivity, "sensitivity") / Fraction(low))


def _shorten(x: Fraction) -> Fraction:
    """At or above x, with 64 significant bits: shorter numbers draw and price faster."""
    unit = Fraction(2) ** (64 - math.ceil(x).bit_length())
    return math.ceil(x * unit) / unit
