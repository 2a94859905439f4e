"""Slow oracles for privacy profiles: two laws as tables of exact or long numbers, compared outcome by outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath

mpmath.mp.dps = 45

Table: TypeAlias = Mapping[Any, Any]
# A pair as {outcome: (P's mass, Q's mass)}.
Pair: TypeAlias = Mapping[Any, tuple[Any, Any]]


def exp(x: object) -> Any:
    if isinstance(x, Fraction):
        return mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
    return mpmath.exp(x)


def hockey_stick(pair: Pair, epsilon: object) -> Any:
    """The mass by which P exceeds e^ε·Q, summed over outcomes."""
    factor = exp(epsilon)
    return mpmath.fsum(max(p - factor * q, 0) for p, q in pair.values())


def swap(pair: Pair) -> Pair:
    return {x: (q, p) for x, (p, q) in pair.items()}


def sample(pair: Pair, rate: Fraction) -> Pair:
    r = mpmath.mpf(rate.numerator) / rate.denominator
    return {x: ((1 - r) * q + r * p, q) for x, (p, q) in pair.items()}


def product(first: Pair, second: Pair) -> Pair:
    """Both releases together, outcome by outcome."""
    return {(x, y): (p * pp, q * qq) for x, (p, q) in first.items() for y, (pp, qq) in second.items()}


def merged(pair: Pair) -> Pair:
    """The same pair with outcomes of equal ratio put together, so that long products stay small."""
    groups: dict[Any, tuple[Any, Any]] = {}
    for p, q in pair.values():
        key = mpmath.nstr(mpmath.log(p / q), 30) if p and q else ("only P" if p else "only Q")
        seen = groups.get(key, (mpmath.mpf(0), mpmath.mpf(0)))
        groups[key] = (seen[0] + p, seen[1] + q)
    return groups


def power(pair: Pair, count: int) -> Pair:
    result: Pair = {0: (mpmath.mpf(1), mpmath.mpf(1))}
    for _ in range(count):
        result = merged(product(result, pair))
    return result


def randomized_response(epsilon: Fraction, categories: int) -> Pair:
    keep, lie = exp(epsilon), mpmath.mpf(1)
    total = keep + categories - 1
    pair = {0: (keep / total, lie / total), 1: (lie / total, keep / total)}
    return pair | dict.fromkeys(range(2, categories), (lie / total, lie / total))


def approximate(epsilon: Fraction, delta: Fraction) -> Pair:
    d = mpmath.mpf(delta.numerator) / delta.denominator
    base = {x: ((1 - d) * p, (1 - d) * q) for x, (p, q) in randomized_response(epsilon, 2).items()}
    return base | {"P": (d, mpmath.mpf(0)), "Q": (mpmath.mpf(0), d)}


def noise(weight: Any, shift: int, reach: int) -> Pair:
    """Integer noise with these weights, against the same noise shifted."""
    total = mpmath.fsum(weight(x) for x in range(-reach, reach + 1))
    return {x: (weight(x) / total, weight(x - shift) / total) for x in range(-reach - shift, reach + shift + 1)}


def discrete_laplace(shift: int, scale: Fraction) -> Pair:
    return noise(lambda x: exp(Fraction(-abs(x)) / scale), shift, math.ceil(70 * scale))


def discrete_gaussian(shift: int, variance: Fraction) -> Pair:
    return noise(lambda x: exp(Fraction(-x * x) / (2 * variance)), shift, math.isqrt(math.ceil(160 * variance)) + 1)
