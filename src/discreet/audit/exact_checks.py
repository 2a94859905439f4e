"""Exact checks, without sampling and without a chance of error, of discrete outputs and of declared noise.

Sampling cannot show everything. For example, the classical Gaussian formula at a large ε is wrong only in events that
are very rare on the other dataset, and no affordable number of runs would show them. Formulas can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.account import compose
from discreet.accounting.events import Event
from discreet.audit.claims import Claim, ClaimLike
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.divergence import Probability, hockey_stick, max_divergence
from discreet.exact import Floats, Interval, decimal

# How much wider than the claim certified bounds may be and still count as equal to it.
_TOLERANCE = 1e-6


def check_law(
    probability: Probability,
    x: Any,
    y: Any,
    outputs: Iterable[Any],
    claim: ClaimLike,
    *,
    name: str = "law",
    whole: bool = False,
) -> Finding:
    """Whether exact probabilities keep a claim between two inputs.

    ``outputs`` may be a part of all outputs; an excess in this part already breaks the claim. With ``whole=True`` they
    are all outputs, and their probabilities must add up to one.
    """
    start = time.monotonic()
    stated, listed = Claim.read(claim), list(outputs)
    table = {(i, side): probability(o, given) for i, o in enumerate(listed) for side, given in enumerate((x, y))}

    def look_up(output: int, side: int) -> Interval:
        return table[output, side]

    places = range(len(listed))
    where = max_divergence(look_up, 0, 1, places)[1]
    headline, lower = _find_headline(table, len(listed), stated)
    problem, forth = _find_law_problem(table, len(listed), whole=whole), True
    for epsilon, delta in stated.points:
        for a, b in ((0, 1), (1, 0)):
            found = hockey_stick(look_up, epsilon, a, b, places).low
            if found > decimal(delta):
                headline, forth = (epsilon, delta), a == 0
                problem = f"δ at ε = {epsilon:.6g} is at least {float(found):.4g}, claimed {delta:.3g}"
    first, second = (x, y) if forth else (y, x)
    event = problem if where is None else f"{problem}; most telling output: {listed[where]!r}"
    return Finding(
        name=name,
        method="exact",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS,
        detail=problem or f"{len(listed)} outputs, certified",
        claim=stated.words(),
        claimed=headline[0],
        delta=headline[1],
        lower=min(lower, 1e6),
        witness=Witness(first=repr(first), second=repr(second), event=event) if problem else None,
        seconds=time.monotonic() - start,
    )


def _find_headline(
    table: dict[tuple[int, int], Interval], count: int, claim: Claim
) -> tuple[tuple[float, float], float]:
    """The point of the claim that the laws come closest to, and the ε that they need there, in floats for display."""
    p, q = (np.array([float(table[i, side]) for i in range(count)]) for side in (0, 1))
    needed = [max(_epsilon_at(delta, p, q), _epsilon_at(delta, q, p)) for _, delta in claim.points]
    closest = max(range(len(needed)), key=lambda i: needed[i] / max(claim.points[i][0], 1e-9))
    return claim.points[closest], needed[closest]


def _epsilon_at(delta: float, p: Floats, q: Floats) -> float:
    """The least ε at which Σ max(0, p − e^ε·q) is at most δ, to nine digits, rounded down."""
    low, high = 0.0, 700.0  # e^700 is still a float
    if float(np.maximum(p - q, 0).sum()) <= delta:
        return 0.0
    for _ in range(70):
        middle = (low + high) / 2
        excess = float(np.maximum(p - np.exp(middle) * q, 0).sum())
        low, high = (middle, high) if excess > delta + 1e-15 else (low, middle)
    return low * (1 - 1e-9)


def _find_law_problem(table: dict[tuple[int, int], Interval], count: int, *, whole: bool) -> str:
    for side in (0, 1):
        low = sum((table[i, side].low for i in range(count)), Fraction(0))
        high = sum((table[i, side].high for i in range(count)), Fraction(0))
        if low > 1 or (whole and high < 1):
            return f"the stated probabilities add up to {float(low):.6g}"
    return ""


def check_events(events: Iterable[Event], claim: ClaimLike, *, name: str = "events") -> Finding:
    """Whether declared noise keeps a claim, by the certified bounds of its privacy-loss distribution.

    >>> from discreet.accounting.events import Gaussian
    >>> import math
    >>> classical = (2 * math.log(1.25 / 0.01)) ** 0.5 / 10
    >>> check_events([Gaussian(sensitivity=1, sigma=classical)], (10, 0.01)).verdict
    <Verdict.BROKEN: 'broken'>
    """
    start = time.monotonic()
    stated, account = Claim.read(claim), compose(events)
    verdict, detail, chosen, lower = Verdict.HOLDS, "within certified bounds", stated.points[0], 0.0
    for epsilon, delta in stated.points:
        low, high = account.bounds(delta)
        if low > epsilon:
            verdict, detail = Verdict.BROKEN, f"the true ε at δ = {delta:.3g} is at least {low:.4g}"
        elif high > epsilon * (1 + _TOLERANCE):
            verdict, detail = Verdict.TOO_FEW, f"ε at δ = {delta:.3g} is between {low:.4g} and {high:.4g}: undecided"
        chosen, lower = (epsilon, delta), low
        if verdict is not Verdict.HOLDS:
            break
    return Finding(
        name=name,
        method="exact",
        verdict=verdict,
        detail=detail,
        claim=stated.words(),
        claimed=chosen[0],
        delta=chosen[1],
        lower=lower,
        seconds=time.monotonic() - start,
    )


def check_fit(
    draws: Iterable[Any], probability: Callable[[Any], Interval], *, name: str = "draws", alpha: float = 1e-6
) -> Finding:
    """Whether draws are from the stated law, by Pearson's χ² over outputs that are not too rare.

    It connects the exact checks, which use the stated law, with what is really drawn.
    """
    start = time.monotonic()
    counts: dict[Any, int] = {}
    for draw in draws:
        counts[draw] = counts.get(draw, 0) + 1
    total = sum(counts.values())
    chances = {output: float(probability(output)) for output in counts}
    common = [output for output, chance in chances.items() if chance * total >= 5]
    impossible = [output for output, chance in chances.items() if chance == 0]
    seen = np.array([counts[o] for o in common] + [total - sum(counts[o] for o in common)], dtype=np.float64)
    expected = np.array([chances[o] * total for o in common])
    expected = np.append(expected, max(total - expected.sum(), 0.0))
    if expected[-1] < 5:
        seen, expected = seen[:-1], expected[:-1]
    value = _tail(float(((seen - expected) ** 2 / expected).sum()), len(seen) - 1) if len(seen) > 1 else 1.0
    problem = "an impossible output was drawn" if impossible else f"p = {value:.2g}" if value < alpha else ""
    return Finding(
        name=name,
        method="draws",
        verdict=Verdict.BROKEN if problem else Verdict.HOLDS if total else Verdict.EMPTY,
        detail=problem or f"χ² over {len(seen)} outputs, p = {value:.2g}",
        claim="the stated law",
        alpha=alpha,
        samples=total,
        witness=Witness(first="draws", second="stated law", event=problem) if problem else None,
        seconds=time.monotonic() - start,
    )


def _tail(value: float, freedom: int) -> float:
    from scipy.special import gammaincc

    return float(gammaincc(freedom / 2, value / 2))
