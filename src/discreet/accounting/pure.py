"""Pure differential privacy: one number ε that bounds every likelihood ratio by e^ε."""

from __future__ import annotations

import math
from typing import ClassVar

from discreet import exact
from discreet.accounting.rounding import find_smallest, probability_up, shorten, to_float
from discreet.exact import Exact, Ln, decimal, float_up, upper
from discreet.late_dataclass import dataclass

# A logarithm of a longer rational is rounded up to a rational, so that sums of many stay cheap.
_LONG_LOG = 1 << 17


@dataclass(frozen=True, slots=True)
class PureNotion:
    """The release is ε-private, with ε the exact ``amount``.

    Privacy: for all neighbours x, x' and every set S of outputs, Pr[M(x) ∈ S] ≤ e^ε·Pr[M(x') ∈ S]. It sums under
    adaptive composition, also when each ε is chosen after seeing earlier answers; a group of k has kε (Dwork &
    Roth 2014, Thm. 2.2 and 3.14). At δ > 0 a little less than ε suffices: every ε-private release is post-processing
    of randomized response, whose profile is (1 − e^(ε'−ε))/(1 + e^(−ε)) (Kairouz, Oh & Viswanath 2015, Thm. 2.3).

    Results are rounded up; where they are not exact, by at most 10^-14 relative.

    >>> PureNotion(exact.ln(3)).compose(PureNotion(exact.ln(3)))
    PureNotion(amount=ln(9))
    >>> PureNotion(decimal(0.1)).repeat(10).epsilon(0)
    1.0
    """

    kind: ClassVar[str] = "pure"

    amount: Exact

    def epsilon(self, delta: float) -> float:
        most = float_up(self.amount)
        if delta <= 0 or math.isinf(most):
            return most
        return min(most, find_smallest(self.delta, delta, most))

    def delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return 0.0
        gap = upper(self.amount) - decimal(epsilon)
        if gap <= 0 or not self.amount > decimal(epsilon):
            return 0.0
        return probability_up(-math.expm1(-to_float(gap)) / (1 + math.exp(-to_float(self.amount))))

    def compose(self, other: PureNotion) -> PureNotion:
        return PureNotion(_shorten(exact.add(self.amount, other.amount)))

    def repeat(self, count: int) -> PureNotion:
        return PureNotion(_shorten(exact.multiply(self.amount, count)))

    def for_group(self, size: int) -> PureNotion:
        return self.repeat(size)

    def words(self) -> str:
        return f"ε = {float_up(self.amount):.6g}"


def _shorten(x: Exact) -> Exact:
    if isinstance(x, Ln):
        return x if x.of.numerator.bit_length() <= _LONG_LOG else x.upper
    return shorten(x)
