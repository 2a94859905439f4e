"""The claim under audit: pairs (ε, δ), each of which must hold for every event.

A claim may be written as a number or ``ln(3)`` (pure ε), as a pair (ε, δ), as a ``Budget``, or as a ``Loss``, of which
a few points of the profile are used. Both numbers are rounded up, so that rounding never causes a false alarm.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from discreet import parameters
from discreet.accounting import events
from discreet.accounting.account import compose
from discreet.errors import ParameterError
from discreet.exact import Ln, float_up
from discreet.late_dataclass import dataclass
from discreet.parameters import Epsilon, Number
from discreet.privacy import Budget, Loss

ClaimLike: TypeAlias = "Epsilon | tuple[Epsilon, Number] | Budget | Loss | Claim"

# The δ at which the profile of a loss is checked; rare and frequent events can refute different parts of it.
_DELTAS = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True)
class Claim:
    """Points (ε, δ): for every event E, P(E on D) ≤ e^ε·P(E on D') + δ, in both directions, at every point.

    >>> Claim.read(1)
    Claim(points=((1.0, 0.0),))
    >>> Claim.read((0.5, 1e-6)).words()
    'ε = 0.5, δ = 1e-06'
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def read(cls, stated: ClaimLike) -> Claim:
        """A claim from any of its forms."""
        match stated:
            case Claim():
                return stated
            case Loss():
                return cls._of_loss(stated)
            case Budget():
                return cls._of_budget(stated)
            case (epsilon, delta):
                return cls(((_read_epsilon(epsilon), float_up(parameters.read_delta(delta))),))
            case bool() | str() | None:
                fix = "Give ε, (ε, δ), a Budget, or a mechanism's .privacy."
                raise ParameterError("claim", "is not a privacy claim", fix)
            case _:
                return cls(((_read_epsilon(stated), 0.0),))

    @classmethod
    def _of_loss(cls, loss: Loss) -> Claim:
        found = [(loss.epsilon(delta), delta) for delta in _DELTAS]
        points: list[tuple[float, float]] = []
        for epsilon, delta in found:
            # A point that an earlier one implies adds nothing.
            if math.isfinite(epsilon) and (not points or epsilon < points[-1][0]):
                points.append((epsilon, delta))
        if not points:
            raise ParameterError("claim", "promises nothing that could be checked", "State an ε with its δ.")
        return cls(tuple(points))

    @classmethod
    def _of_budget(cls, budget: Budget) -> Claim:
        if budget.epsilon is not None:
            return cls(((float_up(budget.amount()), float_up(budget.slack())),))
        amount = budget.amount()
        exact = amount.upper if isinstance(amount, Ln) else amount
        if budget.rho is not None:
            return cls._of_loss(compose([events.ZeroConcentrated(rho=exact)]).loss)
        return cls._of_loss(compose([events.Gaussian(sensitivity=exact, sigma=1)]).loss)

    @property
    def epsilon(self) -> float:
        """The ε of the first point of the claim."""
        return self.points[0][0]

    @property
    def delta(self) -> float:
        """The δ of the first point of the claim."""
        return self.points[0][1]

    def words(self) -> str:
        """The claim as text for people."""
        at = f", δ = {self.delta:.3g}" if self.delta else ""
        more = f" and {len(self.points) - 1} more points" if len(self.points) > 1 else ""
        return f"ε = {self.epsilon:.6g}{at}{more}"


def _read_epsilon(value: object) -> float:
    """An ε that may be zero, because a claim of perfect privacy can be audited too."""
    exact = value if isinstance(value, Ln) else parameters.read_nonnegative(value, "claim")
    return float_up(parameters.read_epsilon(exact)) if exact > 0 else 0.0
