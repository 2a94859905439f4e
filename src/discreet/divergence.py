"""How far apart two laws are: the privacy loss at one output, the max-divergence and the hockey-stick divergence.

P is the law of the output on a dataset x, Q its law on a neighbour y. All three compare P and Q output by output:

- ``privacy_loss``: ln(P(o)/Q(o)), with its sign. Above zero the output speaks for x, below zero for y.
- ``max_divergence``: the largest loss over all outputs, in either direction. A mechanism is ε-private when this is at
  most ε for all neighbours.
- ``hockey_stick``: δ(ε), the mass by which P exceeds e^ε·Q. A mechanism is (ε, δ)-private when this is at most δ for
  all neighbours, in both directions.

Why the last two are the definitions of privacy: for a set S of outputs, P(S) − e^ε·Q(S) is a sum over the outputs in
S, and it is largest when S holds exactly the outputs whose loss is above ε.
Reference: Dwork & Roth 2014, Def. 3.6 and Remark 3.1; Balle, Barthe & Gaboardi 2018, §2 for the hockey stick.

A ``probability`` is what mechanisms have under that name: a function of the output and of the data behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeAlias

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Interval, Ln
from discreet.parameters import Epsilon

Probability: TypeAlias = Callable[[Any, Any], Interval]


def privacy_loss(probability: Probability, output: Any, x: Any, y: Any) -> float:
    """ln(P(output|x)/P(output|y)), with its sign, to about twelve digits; infinite where one side excludes the output.

    An output that neither side gives has no loss, and is refused.

    >>> def coin(said: bool, true: bool) -> Interval:
    ...     return Interval.of(Fraction(3, 4) if said == true else Fraction(1, 4))
    >>> [round(privacy_loss(coin, said, True, False), 4) for said in (True, False)]
    [1.0986, -1.0986]
    """
    p, q = probability(output, x), probability(output, y)
    if p.high <= 0 and q.high <= 0:
        raise ParameterError("output", "never occurs, on neither side", "Give an output that the mechanism can have.")
    if q.high <= 0:
        return math.inf
    if p.high <= 0:
        return -math.inf
    return _log(p.low + p.high) - _log(q.low + q.high)


def max_divergence(probability: Probability, x: Any, y: Any, outputs: Iterable[Any]) -> tuple[float, Any]:
    """A certified lower bound on the largest log-ratio of two laws over these outputs, and where it is reached.

    It covers both directions. It is infinite where an output is possible on one side only. It is rounded down by about
    1e-12, because it accuses: a claim below it is certainly false.

    >>> from discreet.exact import Interval
    >>> best, where = max_divergence(lambda o, x: Interval.of(Fraction(1 + (o == x), 3)), 0, 1, [0, 1])
    >>> round(best, 6), where  # ln 2
    (0.693147, 0)
    """
    best, where = 0.0, None
    for output in outputs:
        p, q = probability(output, x), probability(output, y)
        found = max(_log_ratio(p, q), _log_ratio(q, p))
        if found > best:
            best, where = found, output
    return best, where


def hockey_stick(probability: Probability, epsilon: Epsilon, x: Any, y: Any, outputs: Iterable[Any]) -> Interval:
    """δ(ε) from x to y: Σ max(0, P(o|x) − e^ε·P(o|y)) over these outputs, certified.

    At ε = 0 it is the total variation distance. The two directions may differ.

    >>> hockey_stick(lambda o, x: Interval.of(Fraction(1 + (o == x), 3)), 0, 0, 1, [0, 1])
    Interval(low=Fraction(1, 3), high=Fraction(1, 3))
    """
    growth = _grow(epsilon)
    low = high = Fraction(0)
    for output in outputs:
        gap = probability(output, x) - growth * probability(output, y)
        low, high = low + max(Fraction(0), gap.low), high + max(Fraction(0), gap.high)
    return Interval(low, high)


def _grow(epsilon: Epsilon) -> Interval:
    """e^ε; rational where ε is a logarithm."""
    if isinstance(epsilon, Ln):
        return Interval.of(epsilon.of)
    return Interval.of(1) / Interval.exp_minus(parameters.read_nonnegative(epsilon, "epsilon"))


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)


def _log_ratio(p: Interval, q: Interval) -> float:
    """ln(p/q), rounded down by the ends of the intervals and a little more."""
    if p.low <= 0:
        return -math.inf
    if q.high <= 0:
        return math.inf
    found = _log(p.low / q.high)
    return found - abs(found) * 1e-12 - 1e-12
