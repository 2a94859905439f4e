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
# (v, bits) -> (low, high) with low ≤ 2^bits·p(v) ≤ high
RealBoundsAt: TypeAlias = Callable[[Fraction, int], tuple[int, int]]
# The first bits of a uniform as a whole number, and how many they are.
Prefix: TypeAlias = tuple[int, int]

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


def is_below_at(
    coin: Prefix, place: Prefix, bounds_at: RealBoundsAt, source: EntropySource, *, step: int = STEP
) -> bool:
    """Whether U < p(V) for a falling p and two uniforms, the coin U and the place V, each known by its first bits.

    V lies between its prefix and one unit more, so p(V) lies between the values of p at these two ends. Both uniforms
    get more bits until U is certainly on one side.
    """
    (prefix, known), (start, place_known) = coin, place
    while True:
        low, _ = bounds_at(Fraction(start + 1, 1 << place_known), known)
        _, high = bounds_at(Fraction(start, 1 << place_known), known)
        if prefix < low:
            return True
        if prefix >= high:
            return False
        prefix, known = prefix << step | source.bits(step), known + step
        start, place_known = start << step | source.bits(step), place_known + step


def bounds_of_exp_minus(x: Exact) -> RealBounds:
    """The bounds of e^(−x), x ≥ 0."""
    return lambda bits: exp_minus_bounds(x, bits)


def bounds_of_ratio(p: Fraction) -> RealBounds:
    """The bounds of a rational."""
    top, bottom = p.numerator, p.denominator
    return lambda bits: ((top << bits) // bottom, ceil_div(top << bits, bottom))
