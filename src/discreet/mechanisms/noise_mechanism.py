"""The base of statistics with one budget: a pure ε gives Laplace noise; ρ, or ε with δ, gives Gaussian noise."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import TypeAlias

from discreet import parameters
from discreet.accounting import zcdp
from discreet.accounting.events import Event
from discreet.exact import Exact, Ln, float_down
from discreet.late_dataclass import dataclass
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mechanism import EventMechanism, find_form, settle
from discreet.parameters import Epsilon, Number

AdditiveNoise: TypeAlias = Laplace | Gaussian

_FIX = "Say epsilon=1 (Laplace noise), or rho=0.1 or epsilon=1 with delta=1e-6 (Gaussian noise)."


@dataclass(frozen=True, kw_only=True, repr=False)
class NoiseMechanism(EventMechanism):
    """A mechanism that takes its budget as ``epsilon``, as ``rho``, or as ``epsilon`` with ``delta``.

    It is not a mechanism by itself: subclasses list the ``parts``, the noises that one release draws.
    """

    epsilon: Epsilon | None = None
    delta: Number | None = None
    rho: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is not None and self.epsilon is None:
            raise parameters.refuse("delta", "given with epsilon", self.delta, _FIX)
        if find_form({"epsilon": self.epsilon, "rho": self.rho}, _FIX) == "rho":
            settle(self, rho=parameters.read_positive(self.rho, "rho"))
            return
        settle(self, epsilon=parameters.read_epsilon(self.epsilon))
        if self.delta is not None:
            settle(self, delta=parameters.read_probability(self.delta, "delta"))

    @property
    @abstractmethod
    def parts(self) -> tuple[AdditiveNoise, ...]:
        """The noises that one release draws, each with its share of the budget."""

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(part.event for part in self.parts)

    def _make_noise(
        self, *, l1: int, squared_l2: int, dimension: int = 1, share: Fraction = Fraction(1)
    ) -> AdditiveNoise:
        """Whole-number noise for answers of these sensitivities, within a share of the budget."""
        if self.epsilon is not None and self.delta is None:
            epsilon = _take_share(parameters.read_epsilon(self.epsilon), share)
            return Laplace(sensitivity=l1, epsilon=epsilon, neighbours=self.neighbours, unit=self.unit)
        if self.epsilon is not None and share == 1:
            return Gaussian(
                squared_sensitivity=squared_l2,
                dimension=dimension,
                epsilon=self.epsilon,
                delta=self.delta,
                neighbours=self.neighbours,
                unit=self.unit,
            )
        return Gaussian(
            squared_sensitivity=squared_l2,
            dimension=dimension,
            rho=self._whole_rho() * share,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def _whole_rho(self) -> Fraction:
        """The declared ρ, or a large ρ that certainly implies the declared (ε, δ)."""
        if self.rho is not None:
            return parameters.read_positive(self.rho, "rho")
        epsilon, delta = parameters.read_epsilon(self.epsilon), parameters.read_probability(self.delta, "delta")
        return rho_within(epsilon, delta)


def _take_share(epsilon: Exact, share: Fraction) -> Exact:
    if share == 1:
        return epsilon
    return (epsilon.lower if isinstance(epsilon, Ln) else epsilon) * share


def rho_within(epsilon: Exact, delta: Fraction) -> Fraction:
    """A ρ, nearly the largest, whose zCDP implies (ε, δ)-privacy (Canonne, Kamath & Steinke 2020, Prop. 12).

    >>> round(float(rho_within(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    target = float_down(epsilon)
    low, high = Fraction(0), Fraction(1)
    while Fraction(zcdp.ZeroConcentratedNotion(high).delta(target)) <= delta:
        low, high = high, 2 * high
    while high - low > high / (1 << 30):
        middle = (low + high) / 2
        fits = Fraction(zcdp.ZeroConcentratedNotion(middle).delta(target)) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low
