"""Discretisation ("connect the dots"): moves the losses of a pair of laws to a grid, never to the safer side.

Privacy: the profile of any pair is convex in e^ε. The straight lines between its values at the grid points lie above it
and belong to a pair whose losses are grid points only, so that pair dominates (Doroshenko, Ghazi, Kamath, Kumar &
Manurangsi 2022, "Connect the dots", Thm 4.1). Seen loss by loss, a loss between two grid points is split between them
so that its masses under P and under Q both stay. Losses above the grid count as infinite, losses below it as its first
point. Errors of floats are added to every mass, so the masses returned are at or above the true ones.

The lower bound depends on how far this can move a sum of losses. A split moves one loss by a random step within
(−h, h) whose expected exponential e^−step is one; ``spread`` and ``drift`` bound its variance and its mean.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.pairs import ROUNDING, TINY, Atoms, Curve, Direction, DominatingPair
from discreet.exact import Floats
from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Masses:
    """Masses under P at losses (first + i)·step, at or above the true ones by at most ``errors``.

    ``infinite`` bounds the mass of infinite loss, ``certain`` is the part of it that is surely there. ``reliable`` is
    the first index whose mass moved by less than a step. ``slack``: how far a loss may lie from where it was put,
    besides the random split.
    """

    step: float
    first: int
    upper: Floats
    errors: Floats
    infinite: float
    certain: float
    reliable: int
    spread: float
    drift: float
    slack: float

    @property
    def losses(self) -> Floats:
        return np.arange(self.first, self.first + len(self.upper), dtype=np.float64) * self.step

    @property
    def last(self) -> int:
        return self.first + len(self.upper) - 1

    @property
    def lower(self) -> Floats:
        """Masses at or below the true ones, without those that moved far."""
        masses = np.maximum(self.upper - self.errors, 0.0) * (1 - 2 * ROUNDING)
        masses[: self.reliable] = 0.0
        return masses


def span(law: DominatingPair, direction: Direction, ignored: float) -> tuple[float, float]:
    """A range (low, high) outside of which P has a mass of about ``ignored`` at most."""
    if isinstance(law, Atoms):
        losses = law.turn_to(direction).losses
        return float(losses.min()), float(losses.max())
    return -_reach(law, direction, ignored, mirrored=True), _reach(law, direction, ignored, mirrored=False)


def _reach(law: Curve, direction: Direction, ignored: float, *, mirrored: bool) -> float:
    """How far out the profile (or its mirror image on the left) stays above ``ignored``."""

    def fades(x: float) -> bool:
        value, _ = law.mirror(np.array([-x]), direction) if mirrored else law.profile_in(direction)(np.array([x]))
        return bool(value[0] <= ignored)

    opposite: Direction = "add" if direction == "remove" else "remove"
    top = law.top(opposite if mirrored else direction)
    if math.isfinite(top):
        return top
    high = 1e-3
    while not fades(high):
        high *= 2
    low = high / 2
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (low, middle) if fades(middle) else (middle, high)
    return high


def connect(law: DominatingPair, direction: Direction, *, step: float, low: float, high: float) -> Masses:
    """The masses of a pair on the grid of multiples of ``step`` that covers low..high."""
    if isinstance(law, Atoms):
        return _connect_atoms(law.turn_to(direction), step)
    first, last = min(math.floor(low / step) - 1, -1), max(math.ceil(high / step) + 1, 1)
    return _connect_curve(law, direction, step, first, last)


def _connect_curve(law: Curve, direction: Direction, step: float, first: int, last: int) -> Masses:
    reach: Floats = np.arange(max(-first, last) + 1, dtype=np.float64) * step
    right, right_error = law.profile_in(direction)(reach[: last + 1])
    if law.symmetric and -first <= last:
        left, left_error = _mirror(reach[: 1 - first], right[: 1 - first], right_error[: 1 - first])
    else:
        left, left_error = law.mirror(-reach[-first::-1], direction)
    # P's mass at a point is the change of slope of the profile in e^ε, times e^ε: the next rise over e^step − 1 less
    # the last rise over 1 − e^−step. Left of zero the mirror image is used, which differs by a straight line only.
    down = -1 / math.expm1(-step)
    up = math.exp(-step) * down
    right_rise, left_rise = right[1:] - right[:-1], left[1:] - left[:-1]
    masses, errors = np.empty(last - first + 1), np.empty(last - first + 1)
    zero = -first
    masses[0] = max(left_rise[0] * up - left[0], 0.0)
    masses[1:zero] = left_rise[1:] * up - left_rise[:-1] * down
    masses[zero] = right_rise[0] * up - left_rise[-1] * down + 1
    masses[zero + 1 : -1] = right_rise[1:] * up - right_rise[:-1] * down
    masses[-1] = -right_rise[-1] * down
    # Errors add up with all signs positive, and so do the roundings of the rises themselves.
    right_doubt = right_error[1:] + right_error[:-1] - 4 * ROUNDING * right_rise
    left_doubt = left_error[1:] + left_error[:-1] + 4 * ROUNDING * left_rise
    errors[0] = left_doubt[0] * up + left_error[0] + 4 * ROUNDING * left[0]
    errors[1:zero] = left_doubt[1:] * up + left_doubt[:-1] * down
    errors[zero] = right_doubt[0] * up + left_doubt[-1] * down + 16 * ROUNDING
    errors[zero + 1 : -1] = right_doubt[1:] * up + right_doubt[:-1] * down
    errors[-1] = right_doubt[-1] * down
    errors = np.abs(errors) * (1 + 16 * ROUNDING) + 8 * ROUNDING * np.abs(masses) + TINY
    square = step * step / 4
    infinite = float(right[-1] + right_error[-1]) * (1 + 4 * ROUNDING)
    return Masses(
        step=step,
        first=first,
        upper=np.maximum(masses, 0.0) + errors,
        errors=2 * errors,
        infinite=infinite,
        certain=0.0,
        reliable=1,
        spread=square,
        drift=_drift(square, step),
        slack=2 * ROUNDING * step * max(-first, last),
    )


def _mirror(reach: Floats, values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The mirror image of a symmetric profile: e^−x·δ(x), from left to right."""
    scale = np.exp(-reach)
    image, doubt = scale * values, scale * (errors + 4 * ROUNDING * values)
    return image[::-1], doubt[::-1]


def _drift(spread: float, step: float) -> float:
    """A bound on the mean of a split with this variance, from e^−x ≤ 1 − x + x²·e^step/2."""
    grown = math.exp(min(step, 700.0))
    return min(step, spread * grown / (2 - step * grown)) if step * grown < 1 else step


def _connect_atoms(law: Atoms, step: float) -> Masses:
    doubt = 16 * ROUNDING * np.abs(law.losses)
    nearest = np.rint(law.losses / step)
    aligned = np.abs(law.losses - nearest * step) <= doubt
    # Losses that lie on the grid, as far as floats can tell, are put there; the others are moved up by their doubt.
    raised = law.losses + doubt
    below = np.where(aligned, nearest, np.floor(raised / step))
    part = np.clip(np.where(aligned, 0.0, raised - below * step), 0.0, step)
    to_next = law.p * (np.expm1(-part) / math.expm1(-step))
    to_below = law.p * np.exp(-part) * (np.expm1(part - step) / math.expm1(-step))
    first = int(below.min())
    index = (below - first).astype(np.int64)
    size = int(index.max()) + 2
    error = law.p * (law.relative + 16 * ROUNDING) + TINY

    def gather(weights_below: Floats, weights_next: Floats) -> Floats:
        total: Floats = np.zeros(size)
        total += np.bincount(index, weights_below, size)
        total += np.bincount(index + 1, weights_next, size)
        return total

    masses = gather(to_below, to_next)
    errors = gather(error, np.where(aligned, 0.0, error)) + 16 * ROUNDING * math.log2(len(law.p) + 1) * masses
    # The position of a split is known to 4 roundings of the loss. As a share of the step, this is a share of the mass.
    shaky = np.where(aligned, 0.0, law.p * 4 * ROUNDING * (np.abs(law.losses) + step) / step)
    errors += gather(shaky, shaky)
    spread = float(np.max(part * (step - part)))
    return Masses(
        step=step,
        first=first,
        upper=masses + errors,
        errors=2 * errors,
        infinite=law.only_p,
        certain=law.only_p * (1 - 64 * ROUNDING) if law.only_p > 2 * TINY else 0.0,
        reliable=0,
        spread=spread,
        drift=_drift(spread, step),
        slack=float(np.max(2 * doubt)),
    )
