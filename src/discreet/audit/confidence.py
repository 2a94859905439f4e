"""Exact (Clopper–Pearson) confidence bounds of counts, and the smallest event that a number of runs can show."""

from __future__ import annotations

import math

from discreet.audit.claims import Claim


def lower_bound(hits: int, runs: int, alpha: float) -> float:
    """A lower bound on the true probability, which fails with probability alpha (Clopper and Pearson 1934).

    >>> round(lower_bound(500, 1000, 0.025), 4)
    0.4685
    """
    if hits <= 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(hits, runs - hits + 1, alpha))


def upper_bound(hits: int, runs: int, alpha: float) -> float:
    """An upper bound on the true probability, which fails with probability alpha."""
    if hits >= runs:
        return 1.0
    from scipy.special import betainccinv

    return float(betainccinv(hits + 1, runs - hits, alpha))


def smallest_visible(runs: int, claim: Claim, alpha: float) -> float:
    """The least share of outputs that refutes the claim when the other dataset never gives such an output.

    It is infinite where not even an event that always happens would refute the claim.
    """
    ceiling = upper_bound(0, runs, alpha)
    allowed = min(math.exp(epsilon) * ceiling + delta for epsilon, delta in claim.points)
    if lower_bound(runs, runs, alpha) <= allowed:
        return math.inf
    low, high = 0, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lower_bound(middle, runs, alpha) > allowed else (middle, high)
    return high / runs


def runs_needed(claim: Claim, alpha: float, visible: float) -> int:
    """How many runs on each dataset it takes to see an event of this probability break the claim."""
    high = 16
    while smallest_visible(high, claim, alpha) > visible and high < 1 << 60:
        high *= 2
    low = high // 2
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if smallest_visible(middle, claim, alpha) <= visible else (middle, high)
    return high
