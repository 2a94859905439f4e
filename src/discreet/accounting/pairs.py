"""Dominating pairs: two laws that are at least as far apart as the releases on any two neighbouring datasets.

P is the law of the output with the person, Q the law without. The profile δ(ε) measures how far apart they are: it is
the mass by which P exceeds e^ε·Q. Pairs that dominate compose: the product of the pairs dominates the sequence of the
releases, also when each release is chosen after seeing the earlier answers (Zhu, Dong & Wang 2022, "Optimal accounting
of differential privacy via characteristic function", Thm 10). A pair has one of two forms:

- ``Atoms``: losses ln(P/Q) that are separate points, with their masses under P and under Q;
- ``Curve``: the two functions δ(ε), person removed and person added, for ε ≥ 0.

Numbers are floats that carry a bound on their error: the true value lies in value ± error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from discreet.exact import Exact, Floats, lower, upper
from discreet.late_dataclass import dataclass

Direction: TypeAlias = Literal["remove", "add"]
FloatsWithErrors: TypeAlias = tuple[Floats, Floats]
ProfileFunction: TypeAlias = Callable[[Floats], FloatsWithErrors]

# The unit of rounding of a float, and a bound on what underflow can hide.
ROUNDING = 2.0**-53
TINY = 1e-300


def ceiling(x: Exact) -> float:
    """The smallest float at or above x."""
    exact = upper(x)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def floor(x: Exact) -> float:
    """The largest float at or below x."""
    exact = lower(x)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def opposite_of(direction: Direction) -> Direction:
    """The opposite direction."""
    return "add" if direction == "remove" else "remove"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Atoms:
    """A pair of laws whose losses ln(P/Q) are separate points.

    ``losses`` hold to 8 roundings relative, ``p`` and ``q`` to ``relative``. ``only_p`` is the mass that P has where Q
    has none (an infinite loss, the δ that no ε lowers), rounded up; ``only_q`` the other way round. ``lattice`` is the
    step that all losses are multiples of, where there is one.
    """

    losses: Floats
    p: Floats
    q: Floats
    relative: Floats
    only_p: float = 0.0
    only_q: float = 0.0
    symmetric: bool = True
    lattice: Fraction | None = None

    def top(self, direction: Direction) -> float:
        """The largest finite loss in one direction, rounded up."""
        return _move_up(float(self.turn_to(direction).losses.max()))

    def turn_to(self, direction: Direction) -> Atoms:
        """The pair seen in one direction: ``add`` swaps the roles of P and Q."""
        if direction == "remove" or self.symmetric:
            return self
        return Atoms(
            losses=-self.losses,
            p=self.q,
            q=self.p,
            relative=self.relative,
            only_p=self.only_q,
            only_q=self.only_p,
            symmetric=False,
            lattice=self.lattice,
        )

    def delta(self, epsilon: Floats, direction: Direction) -> FloatsWithErrors:
        """δ(ε) for ε of any sign: the mass of P minus e^ε times that of Q, over all losses above ε."""
        law = self.turn_to(direction)
        pairs = [_excess(law, at) for at in epsilon.tolist()]
        values, errors = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return values, errors


def _excess(law: Atoms, epsilon: float) -> tuple[float, float]:
    # A loss just below ε may in truth be just above it; its term is as small as that error.
    doubt = 16 * ROUNDING * (np.abs(law.losses) + abs(epsilon))
    above = law.losses > epsilon - doubt
    losses, p, doubt = law.losses[above], law.p[above], doubt[above]
    terms = np.maximum(p * -np.expm1(epsilon - losses), 0.0)
    value = float(terms.sum()) + law.only_p
    error = float((law.relative[above] * terms + 2 * p * doubt).sum())
    return value, error + (8 + math.log2(len(law.losses) + 1)) * ROUNDING * value + TINY


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curve:
    """A pair of laws given by its two profiles for ε ≥ 0; ``tops`` bound all losses (removal, addition).

    ``lattice`` is a step that puts all separate losses on a grid, where there are any.
    """

    remove: ProfileFunction
    add: ProfileFunction
    tops: tuple[float, float]
    symmetric: bool = True
    lattice: Fraction | None = None

    def profile_in(self, direction: Direction) -> ProfileFunction:
        """δ(ε) in one direction, for ε ≥ 0."""
        return self.remove if direction == "remove" else self.add

    def top(self, direction: Direction) -> float:
        """The largest loss in one direction, rounded up; infinite when there is none."""
        return self.tops[0 if direction == "remove" else 1]

    def mirror(self, epsilon: Floats, direction: Direction) -> FloatsWithErrors:
        """δ(ε) − (1 − e^ε) for ε ≤ 0: by duality e^ε·δ'(−ε), with δ' the other direction. It falls to 0 on the left."""
        values, errors = self.profile_in(opposite_of(direction))(-epsilon)
        scale = np.exp(epsilon)
        return scale * values, scale * (errors + 4 * ROUNDING * values)

    def delta(self, epsilon: Floats, direction: Direction) -> FloatsWithErrors:
        """δ(ε) for ε of any sign."""
        values, errors = np.empty(len(epsilon)), np.empty(len(epsilon))
        right = epsilon >= 0
        values[right], errors[right] = self.profile_in(direction)(epsilon[right])
        left = epsilon[~right]
        faded, error = self.mirror(left, direction)
        values[~right] = faded - np.expm1(left)
        errors[~right] = error + 4 * ROUNDING * values[~right]
        return values, errors


DominatingPair: TypeAlias = Atoms | Curve


def _move_up(x: float) -> float:
    return x + 16 * ROUNDING * abs(x)
