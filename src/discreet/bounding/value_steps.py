"""Bounds of values, and the steps in which values lie between them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from discreet.bounding.ranges import Range
from discreet.plan.catalog import ColumnFacts

# The most steps between two bounds for the sake of bounds that are no whole numbers.
MOST_STEPS = 1 << 30


def make_interval(low: Fraction | None, high: Fraction | None, *, step: Fraction | None, nullable: bool) -> ColumnFacts:
    """The facts of a result that lies between two bounds. Without both bounds, only nullability is known."""
    if low is None or high is None:
        return ColumnFacts(nullable=nullable)
    return ColumnFacts(nullable=nullable, low=low, high=high, resolution=step)


def can_be_null(arguments: tuple[ColumnFacts, ...]) -> bool:
    """Whether one of several values may be missing."""
    return any(fact.nullable for fact in arguments)


def ends_of(fact: ColumnFacts) -> tuple[Fraction, Fraction] | None:
    """Both bounds; None where one is not known."""
    return None if fact.low is None or fact.high is None else (fact.low, fact.high)


def find_common_step(arguments: tuple[ColumnFacts, ...]) -> Fraction | None:
    """The coarsest step that divides the steps of all arguments; None where an argument has no step."""
    return find_common_divisor([fact.resolution for fact in arguments])


def find_common_divisor(steps: Sequence[Fraction | None]) -> Fraction | None:
    """The coarsest step that divides all of these; None where one is not known."""
    known = [step for step in steps if step is not None]
    return reduce(_gcd, known) if len(known) == len(steps) else None


def include_ends(step: Fraction | None, ends: Range) -> Fraction | None:
    """A step of which the ends of a range are multiples, too: whole numbers that are clamped to 0.5 need halves.

    None where that would be too fine, so that a default step is taken.
    """
    if step is None or ends.low is None or ends.high is None:
        return None
    finer = _gcd(_gcd(step, abs(ends.low)), abs(ends.high))
    return finer if (ends.high - ends.low) / finer <= MOST_STEPS else None


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    while b:
        a, b = b, a - (a // b) * b
    return a
