"""Decides exactly whether a uniform real is below a computable real, with as few bits as the answer needs.

The uniform U is an endless row of fair bits of which a prefix is known. The other number p is known through
``bounds(bits)``, which encloses it as tightly as wanted. While the two enclosures overlap, both are refined; an answer
is given only when they do not. So P(True) is p itself and not a rounding of p, and the loop ends with probability 1,
because k more bits leave at most a few of 2^k cases open.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from discreet.entropy import EntropySource
from discreet.exact import Exact, ceil_div, exp_minus_bounds

# bits -> (low, high) with low ≤ 2^bits·p ≤ high
RealBounds: TypeAlias = Callable[[int], tuple[int, int]]

STEP = 64


def is_below(prefix: int, known: int, bounds: RealBounds, source: EntropySource, *, step: int = STEP) -> bool:
    """Whether U < p, where the first ``known`` bits of U are ``prefix`` and all later ones come from the source."""
    while True:
        low, high = bounds(known)
        if prefix < low:  # U < (prefix + 1)/2^known ≤ low/2^known ≤ p
            return True
        if prefix >= high:  # U ≥ prefix/2^known ≥ high/2^known ≥ p
            return False
        prefix = prefix << step | source.bits(step)
        known += step


def bounds_of_exp_minus(x: Exact) -> RealBounds:
    """The bounds of e^(−x), x ≥ 0."""
    return lambda bits: exp_minus_bounds(x, bits)


def bounds_of_ratio(p: Fraction) -> RealBounds:
    """The bounds of a rational."""
    top, bottom = p.numerator, p.denominator
    return lambda bits: ((top << bits) // bottom, ceil_div(top << bits, bottom))
