"""Normal noise, rounded to whole numbers: as private as continuous Gaussian noise, for any number of coordinates."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from discreet import parameters
from discreet.accounting import events, gdp
from discreet.entropy import EntropySource
from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, float_down, float_up, sqrt_upper
from discreet.late_dataclass import dataclass
from discreet.mechanisms.l2_noise import L2Noise, shorten
from discreet.mechanisms.laws import RoundedGaussianLaw
from discreet.mechanisms.mechanism import settle
from discreet.parameters import Number
from discreet.samplers import rounded_gaussian


@dataclass(frozen=True, kw_only=True, repr=False)
class RoundedGaussian(L2Noise):
    """Add round(σZ), Z standard normal and σ² = ``variance``, to whole numbers or to reals on a grid.

    ``sensitivity`` is the L2 distance between the answers on neighbouring datasets (``squared_sensitivity`` states
    its square, where the distance itself is irrational), over all coordinates together. The noise is given by ``mu``
    (Gaussian differential privacy), by ``rho`` (zCDP), by ``epsilon`` with ``delta``, by ``sigma`` or by ``variance``,
    in the units of the answer. ``dimension``, the number of coordinates that one unit can change, is needed only for
    vectors of reals, where rounding them to the grid may move each one.

    Privacy: μ-Gaussian private with μ = √steps²/σ in steps, where steps² is the squared L2 distance after rounding
    reals to the grid, under the neighbours for which the sensitivity was computed; hence also (μ²/2)-zCDP, and
    (ε, δ)-private with δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).
    Why: for a vector x of whole numbers, x + round(σZ) = round(x + σZ) in each coordinate: the Gaussian mechanism,
    and then a function of its output alone. Normal noise is the same in every direction, so only the length of the
    distance counts. A half, where the two sides could round differently, has probability zero. ``epsilon`` with
    ``delta`` finds the largest μ whose δ(ε), rounded up, is at most ``delta``. The claim is that of the continuous
    noise; the rounded answer never tells more.
    Reference: Dong, Roth & Su 2022, Thm 2.7 (μ); Balle & Wang 2018, Thm 8 (δ); the distance after rounding reals is
    proved in ``grid.squared_l2_steps``.

    >>> RoundedGaussian(sensitivity=1, mu=0.5)
    RoundedGaussian(squared_sensitivity=1, rho=1/8, variance=4, mu=1/2, neighbours='add-remove', unit='one row')
    """

    _forms: ClassVar[tuple[str, ...]] = ("mu", "rho", "epsilon", "sigma", "variance")
    _fix: ClassVar[str] = (
        "Say RoundedGaussian(sensitivity=1, mu=0.5), (..., rho=0.1), (..., epsilon=1, delta=1e-6), (..., sigma=4) or "
        "(..., variance=16)."
    )
    _fits_vectors: ClassVar[bool] = True

    mu: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, mu=shorten(sqrt_upper(self._squared / self._variance)))

    def _read_variance(self, form: str, step: Fraction) -> Fraction:
        if form == "mu":
            return self._squared / parameters.read_positive(self.mu, "mu") ** 2
        return super()._read_variance(form, step)

    def _calibrate(self, epsilon: Exact, delta: Fraction) -> Fraction:
        mu = gdp.mu_for(float_down(epsilon), float_down(delta))
        if not mu:
            raise ParameterError("delta", "is too small to be certified", "Give delta=1e-300 or more.")
        return shorten(self._squared / mu**2)

    @property
    def event(self) -> events.RoundedGaussian:
        """The event that describes one release."""
        return events.RoundedGaussian(
            squared_sensitivity=self._squared,
            variance=self._variance,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    @cached_property
    def law(self) -> RoundedGaussianLaw:
        """The law of the noise, in steps."""
        return RoundedGaussianLaw(self._variance)

    @property
    def standard_error(self) -> float:
        """At or above the standard deviation of the noise: √(variance + 1/12) in steps, less where it is narrow."""
        return float_up(sqrt_upper(self.law.second_moment) * self.grid.step)

    def _draw(self, shape: tuple[int, ...] | None, source: EntropySource) -> int | Integers:
        return rounded_gaussian(self._variance, shape, source=source)
