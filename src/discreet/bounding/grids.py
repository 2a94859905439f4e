"""The grid that the values of a measure or a spread are rounded to: where its steps start, and how long they are."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from discreet.bounding.contributions import Counts, Measure
from discreet.errors import Unbounded, UsageError
from discreet.exact import FIXED_LIMIT
from discreet.plan.catalog import ColumnFacts
from discreet.plan.expressions import Expression
from discreet.plan.types import Type

# Steps between the bounds where the codebook names no resolution: about a millionth of the range.
DEFAULT_STEPS = 1 << 20
# Squares are taken of fewer steps, so that they stay far from the edge of 64 bits.
SQUARE_STEPS = 1 << 15
# Cells of a spread: fine enough to choose a quantile from, few enough to count.
SPREAD_STEPS = 1 << 16
# The most steps that one unit may add: with weights of at least 16 bits they stay within 60 bits. Steps are made longer
# for that, but a row always has so many of them.
UNIT_STEPS = 1 << 43
LEAST_STEPS = 1 << 16
# The largest bound of a sum. Squares of it, and of the noise for it, are doubles; nobody measures anything larger.
LARGEST_BOUND = 1 << 400
# The smallest step between values; smaller ones would not be doubles either.
SMALLEST_STEP = Fraction(1, 1 << 400)


def check_order(low: int, high: int) -> tuple[int, int]:
    """The two bounds, if they are in order."""
    if low > high:
        raise UsageError("The lower bound is above the upper one. Nothing was charged.")
    return low, high


def check_size(argument: Expression, *ends: Fraction | None) -> None:
    """Refuse bounds whose sums or squares would leave doubles, which would only show when they are computed."""
    if any(abs(end) > LARGEST_BOUND for end in ends if end is not None):
        raise Unbounded(
            f"The bounds of {argument} are beyond all use. Declare narrower ones, or ask for "
            f"clamp({argument}, low, high). Nothing was charged."
        )


def limit_steps(most: int) -> int:
    """How many steps a row or a value may add, where so many of them are one unit's at most."""
    return max(LEAST_STEPS, UNIT_STEPS // most)


def make_steps(
    argument: Expression,
    facts: ColumnFacts,
    *,
    centred: bool,
    squared: bool,
    most: int | None = None,
    far: int | None = None,
) -> Measure:
    """The grid that a sum is taken on: at most ``most`` steps between the bounds, ``far`` on a side of the origin."""
    low, high = facts.low or Fraction(0), facts.high or Fraction(0)
    whole = argument.type is Type.INTEGER
    resolution = facts.resolution or (Fraction(1) if whole else power_of_two((high - low) / DEFAULT_STEPS))
    if whole:
        resolution = Fraction(max(1, floor(resolution)))
        if ceil(low) <= floor(high):
            low, high = Fraction(ceil(low)), Fraction(floor(high))  # no whole number lies between them and the bounds
    most = SQUARE_STEPS if squared else most
    if most is not None and (high - low) / resolution > most:
        coarse = power_of_two((high - low) / most)
        resolution = Fraction(max(1, ceil(coarse))) if whole else coarse
    origin = floor((low + high) / 2 / resolution) * resolution if centred else Fraction(0)
    first, last = floor((low - origin) / resolution), ceil((high - origin) / resolution)
    if max(-first, last) > FIXED_LIMIT:
        raise Unbounded(
            f"The bounds of {argument} are too wide for its resolution. Use coarser steps. Nothing was charged."
        )
    if far is not None and max(-first, last) > far:
        # Whole multiples of the old steps, and one more for the ends that are rounded outwards.
        resolution = coarsen(resolution, max(-first, last) + 1, far)
        origin = floor(origin / resolution) * resolution
        first, last = floor((low - origin) / resolution), ceil((high - origin) / resolution)
    return Measure(counts=Counts.STEPS, argument=argument, origin=origin, resolution=resolution, first=first, last=last)


def coarsen(step: Fraction, count: int, most: int) -> Fraction:
    """A step that is longer by a power of two, so that ``count`` of the old ones are fewer than ``most`` new ones.

    >>> coarsen(Fraction(1), 1000, 300)
    Fraction(8, 1)
    """
    return step * (1 << (count // max(1, most)).bit_length() + 1) if count > most else step


def power_of_two(size: Fraction) -> Fraction:
    """The largest power of two at or below a size, if that is a step at all; 1 for an empty range."""
    if size <= 0:
        return Fraction(1)
    if size < SMALLEST_STEP:
        return SMALLEST_STEP
    power = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
    return power if power <= size else power / 2
