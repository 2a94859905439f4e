"""Rényi differential privacy: a bound on the Rényi divergence at each of a fixed set of orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from operator import add
from typing import ClassVar

import numpy as np

from discreet.accounting.rounding import UNIT, exp_up, move_up, probability_up, shorten, sum_up, to_float
from discreet.exact import Exact, Floats, ceil_div, decimal, float_up, upper
from discreet.late_dataclass import dataclass

# The orders of every curve: dense where large losses convert best, sparse where small ones do.
ORDERS: tuple[float, ...] = (
    *(i / 10 for i in range(11, 110)),
    *(float(i) for i in range(11, 64)),
    *(float(round(64 * 2 ** (i / 4))) for i in range(4 * 8 + 1)),
)
# Values are whole multiples of 2^-96, rounded up, so that sums are exact and do not depend on the order.
SCALE = 1 << 96
# For larger losses the formulas are not used; the simple bounds are.
_VAST = 1e6


@dataclass(frozen=True, slots=True)
class Renyi:
    """The divergence of order ``orders[i]`` is at most ``values[i]``·2^-96.

    Privacy: for all neighbours and each order α listed, D_α(M(x) ‖ M(x')) ≤ τ(α). At each order τ sums under adaptive
    composition (Mironov 2017, Prop. 1), at a single order fixed in advance also when the budgets are chosen after
    seeing earlier answers (Feldman & Zrnic 2021). To (ε, δ): τ + ln(1 − 1/α) − ln(δα)/(α − 1) for any order
    (Balle, Barthe, Gaboardi, Hsu & Sato 2020, Thm. 21; Canonne, Kamath & Steinke 2020, Prop. 12). A group of 2^c: τ at
    order α·2^c, times 3^c (Mironov 2017, Prop. 2); other sizes count as the next power of two. With a ``slack`` δ all
    of this holds outside of a failure of probability δ; failures sum.

    >>> half = Renyi.of(lambda orders: orders * 0.5)
    >>> round(half.epsilon(1e-6), 2)
    5.22
    """

    kind: ClassVar[str] = "rdp"

    orders: tuple[float, ...]
    values: tuple[int, ...]
    slack: Fraction = Fraction(0)

    @classmethod
    def of(cls, curve: Callable[[Floats], Floats]) -> Renyi:
        """A curve from a vectorised function that gives upper bounds."""
        values = curve(np.array(ORDERS))
        return cls(ORDERS, tuple(map(_to_fixed, values.tolist())))

    @classmethod
    def linear(cls, rho: Fraction) -> Renyi:
        """The curve αρ of a Gaussian or of any ρ-zCDP release, exactly up to rounding."""
        top, bottom = rho.numerator * SCALE, rho.denominator << 52
        return cls(ORDERS, tuple(-(-top * order // bottom) for order in _WHOLE))

    def take_least(self, other: Renyi) -> Renyi:
        """The lower of two valid curves at each order."""
        return Renyi(self.orders, tuple(map(min, self.values, other.values)), max(self.slack, other.slack))

    def take_most(self, other: Renyi) -> Renyi:
        """A curve at or above both, at the orders that both know."""
        kept = tuple(order for order in self.orders if order in other.orders)
        values = map(max, self.keep_orders(kept).values, other.keep_orders(kept).values)
        return Renyi(kept, tuple(values), max(self.slack, other.slack))

    def value_at(self, order: float) -> float:
        """τ at one of the orders, rounded up."""
        return move_up(_to_float(self.values[self.orders.index(order)]))

    def epsilon(self, delta: float) -> float:
        spare = self._spare(delta)
        if spare <= 0:
            return math.inf
        log = -math.log(spare)
        best = math.inf
        for order, value in zip(self.orders, self.values):
            terms = (_to_float(value), math.log1p(-1 / order), log / (order - 1), -math.log(order) / (order - 1))
            best = min(best, sum_up(*terms))
        return max(0.0, move_up(best))

    def delta(self, epsilon: float) -> float:
        if math.isinf(epsilon):
            return 0.0
        best = 1.0
        for order, value in zip(self.orders, self.values):
            a = order - 1
            best = min(best, exp_up(a * _to_float(value), -a * epsilon, a * math.log1p(-1 / order), -math.log(order)))
        if not self.slack:
            return best
        slack = to_float(self.slack)
        return probability_up(slack + (1 - slack) * best)

    def _spare(self, delta: float) -> float:
        """The part of a target δ that is left for the conversion: δ = slack + (1 − slack)·spare, rounded down."""
        if not self.slack:
            return delta
        left = decimal(delta) - self.slack
        return float(left / (1 - self.slack)) * (1 - 2.0**-50) if left > 0 else 0.0

    def compose(self, other: Renyi) -> Renyi:
        if self.orders is not other.orders and self.orders != other.orders:
            # Orders that only one of the two knows are dropped.
            kept = tuple(order for order in self.orders if order in other.orders)
            return self.keep_orders(kept).compose(other.keep_orders(kept))
        return Renyi(self.orders, tuple(map(add, self.values, other.values)), shorten(self.slack + other.slack))

    def keep_orders(self, orders: tuple[float, ...]) -> Renyi:
        """The same curve at fewer orders."""
        known = dict(zip(self.orders, self.values))
        return Renyi(orders, tuple(known[order] for order in orders), self.slack)

    def repeat(self, count: int) -> Renyi:
        return Renyi(self.orders, tuple(value * count for value in self.values), self.slack * count)

    def for_group(self, size: int) -> Renyi | None:
        doublings = (size - 1).bit_length()
        if not doublings:
            return self
        if self.slack:
            return None
        known: dict[float, int] = {}
        for order in self.orders:
            # A divergence grows with its order, so the next known order above α·2^c is valid; the rule needs α ≥ 2.
            above = [v for o, v in zip(self.orders, self.values) if o >= order * 2**doublings]
            if order >= 2 and above:
                known[order] = above[0] * 3**doublings
        return Renyi(tuple(known), tuple(known.values())) if known else None

    def words(self) -> str:
        shown = [order for order in (2.0, 8.0, 32.0) if order in self.orders]
        text = ", ".join(f"τ({order:g}) = {self.value_at(order):.4g}" for order in shown)
        return f"{text}, except with probability {float_up(self.slack):.3g}" if self.slack else text


# The orders as whole multiples of 2^-52, which floats between 1 and 2^53 are.
_WHOLE = tuple(int(order * 2**52) for order in ORDERS)


def _ceil(x: Fraction) -> int:
    return ceil_div(x.numerator * SCALE, x.denominator)


def _to_float(value: int) -> float:
    try:
        return value / SCALE
    except OverflowError:
        return math.inf


def _to_fixed(x: float) -> int:
    # A value above every budget; a sum with it stays above.
    return SCALE << 64 if math.isinf(x) else math.ceil(math.ldexp(x, 96))


def pure_curve(epsilon: Exact) -> Renyi:
    """The curve of any ε-private release: that of randomized response, at most min(αε²/2, ε) (Bun & Steinke 2016)."""
    return response_curve(epsilon, 2)


def response_curve(epsilon: Exact, categories: int) -> Renyi:
    """The curve of randomized response: E[ratio^α] = (e^(αε) + e^((1−α)ε) + k − 2)/(e^ε + k − 1)."""
    size = to_float(epsilon)

    def log_moment(orders: Floats) -> Floats:
        # Divided by e^(αε): every term is then at most one.
        rest = (categories - 2) * np.exp(-orders * size)
        top = np.log1p(np.exp(-(2 * orders - 1) * size) + rest)
        bottom = math.log1p((categories - 1) * math.exp(-size))
        return np.asarray((orders - 1) * size + top - bottom)

    return _cap_curve(epsilon, log_moment)


def laplace_curve(epsilon: Fraction) -> Renyi:
    """The curve of continuous Laplace noise (Mironov 2017, Prop. 6)."""
    size = to_float(epsilon)

    def log_moment(orders: Floats) -> Floats:
        tail = np.expm1((1 - 2 * orders) * size) * (orders - 1) / (2 * orders - 1)
        return np.asarray((orders - 1) * size + np.log1p(tail))

    return _cap_curve(epsilon, log_moment)


def discrete_laplace_curve(sensitivity: int, scale: Fraction) -> Renyi:
    """The curve of integer Laplace noise: the losses (Δ − 2x)/scale for 0 ≤ x ≤ Δ have geometric masses."""
    step = to_float(1 / scale)
    size = to_float(sensitivity / scale)

    def log_moment(orders: Floats) -> Floats:
        p = math.exp(-step)
        ratio = (2 * orders - 1) * step
        # Σ_{0<x<Δ} r^x with r = e^(−(2α−1)/scale), in a form without cancellation.
        inner = np.exp(-ratio) * -np.expm1(-ratio * (sensitivity - 1)) / -np.expm1(-ratio)
        moment = (1 + np.exp(-(2 * orders - 1) * size) - math.expm1(-step) * inner) / (1 + p)
        return np.asarray((orders - 1) * size + np.log(moment))

    return _cap_curve(sensitivity / scale, log_moment)


def exponential_curve(epsilon: Exact) -> Renyi:
    """The curve of log-ratios within a range of ε: KL + (α − 1)ε²/8, where KL ≤ η − 1 − ln η with η = ε/(e^ε − 1).

    The second derivative of ln E[ratio^(α−1)] is a variance of a quantity of range ε, so at most ε²/4; KL is largest
    for two-point ratios (Cesar & Rogers 2021, "Bounding, concentrating, and truncating", Lemma 3.4). It is never above
    αε²/8, nor above the curve of any ε-private release.
    """
    size = to_float(epsilon)

    def curve(orders: Floats) -> Floats:
        eta = size / math.expm1(size) if size < 700 else 0.0
        mean = sum_up(eta, -1.0, -math.log(eta)) if eta else math.inf
        return np.asarray((mean + (orders - 1) * size * size / 8) * (1 + 4 * UNIT))

    return Renyi.of(curve).take_least(Renyi.linear(upper(epsilon) ** 2 / 8)).take_least(pure_curve(epsilon))


def _cap_curve(epsilon: Exact, log_moment: Callable[[Floats], Floats]) -> Renyi:
    """A curve from ln E[ratio^α], rounded up, and never above what holds for every ε-private release."""
    size = to_float(epsilon)

    def curve(orders: Floats) -> Floats:
        margin = UNIT * (4 + 2 * orders * size)
        return np.asarray((log_moment(orders) + margin) / (orders - 1) * (1 + UNIT))

    bound = upper(epsilon)
    most = _ceil(bound)
    zcdp = Renyi.linear(bound * bound / 2)
    caps = Renyi(ORDERS, tuple(min(most, value) for value in zcdp.values))
    return Renyi.of(curve).take_least(caps) if size < _VAST else caps
