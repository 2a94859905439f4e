"""Gaussian noise in whole steps: it needs less noise than Laplace when many numbers are published together."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet import parameters
from discreet.accounting import events, gdp
from discreet.accounting.account import loss_of
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Ln, float_down, float_up, lower, sqrt_upper, upper
from discreet.late_dataclass import dataclass
from discreet.mechanisms.l2_noise import L2Noise, shorten
from discreet.mechanisms.laws import DiscreteGaussianLaw, log_inverse
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours, Unit
from discreet.samplers import discrete_gaussian

_FIX = "Say Gaussian(sensitivity=1, rho=0.1), (..., epsilon=1, delta=1e-6), (..., sigma=4) or (..., variance=16)."
_PATIENCE = 16  # how often a variance is doubled that should be large enough already


@dataclass(frozen=True, kw_only=True, repr=False)
class Gaussian(L2Noise):
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

    _fix: ClassVar[str] = _FIX

    def _calibrate(self, epsilon: Exact, delta: Fraction) -> Fraction:
        """A variance whose certified δ(ε) is at most ``delta``, within a relative 2^-20 of where that stops.

        The start is always valid: ρ = (√(ε + L) − √L)² with L = ln(1/δ) gives ε = ρ + 2√(ρL) (Bun & Steinke 2016).
        The last variance that passed the check is returned, whatever the shape of δ between.
        """
        eps, log = float(upper(epsilon)), log_inverse(delta)
        rho = (eps / (math.sqrt(eps + log) + math.sqrt(log))) ** 2
        passed = shorten(Fraction(self._squared / (2 * rho)) * Fraction(1025, 1024))
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
            middle = shorten((passed + failed) / 2)
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

    def _draw(self, shape: tuple[int, ...] | None, source: EntropySource) -> int | Integers:
        return discrete_gaussian(self._variance, shape, source=source)

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
            sensitivity=exact, variance=shorten(variance), resolution=resolution, neighbours=neighbours, unit=unit
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
        return float_up(parameters.read_positive(sensitivity, "sensitivity") / gdp.mu_for(eps, allowed))
