"""(ε, δ)-differential privacy: a release is ε-private except with probability δ. Three theorems compose it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import exact
from discreet.accounting.rounding import UNIT, find_smallest, move_up, probability_up, shorten, sum_up, to_float
from discreet.accounting.zcdp import epsilon_of
from discreet.exact import Exact, Floats, Ln, decimal, float_up, upper
from discreet.late_dataclass import dataclass

# Up to this many different total losses the optimal theorem is summed term by term.
_MOST_LOSSES = 1 << 16
# For larger losses nothing is summed; the closed bounds are used.
_VAST = 10**6


@dataclass(frozen=True, slots=True)
class ApproximatePart:
    """``count`` releases that are each (epsilon, delta)-private."""

    epsilon: Exact
    delta: Fraction
    count: int = 1


@dataclass(frozen=True, slots=True)
class ApproximateNotion:
    """Releases that are each (ε, δ)-private for its own ε and δ, as a multiset of ``parts``.

    Privacy: for all neighbours x, x' and every set S of outputs, Pr[M(x) ∈ S] ≤ e^ε·Pr[M(x') ∈ S] + δ. The total at a
    target δ is the least of: basic composition (Dwork & Roth 2014, Thm. 3.16: both sum); advanced composition for
    unequal parts (Dwork, Rothblum & Vadhan 2010; Kairouz, Oh & Viswanath 2015, Thm. 3.5) or through ε²/2-zCDP; and the
    optimal one (Kairouz, Oh & Viswanath 2015, Thm. 3.3), where the sum over all total losses is short enough: each
    part is post-processing of randomized response that fails with probability δ, and those are composed exactly. Valid
    when the queries are adaptive and the parameters are fixed in advance. A group of k: (kε, δ(e^(kε) − 1)/(e^ε − 1)).

    >>> ApproximateNotion.of(Fraction(1), Fraction(1, 1000)).repeat(30).delta(22) <= 0.06
    True
    """

    kind: ClassVar[str] = "approx"

    parts: tuple[ApproximatePart, ...]

    @classmethod
    def of(cls, epsilon: Exact, delta: Fraction, count: int = 1) -> ApproximateNotion:
        """``count`` releases that are each (ε, δ)-private."""
        return cls((ApproximatePart(epsilon, delta, count),))

    def epsilon(self, delta: float) -> float:
        best = math.inf
        if self._delta_sum() <= decimal(delta):
            best = float_up(self._epsilon_sum())
        spare = self._spare(delta)
        if spare > 0:
            best = min(best, self._advanced_epsilon(spare), self._optimal_epsilon(delta, best))
        return best

    def delta(self, epsilon: float) -> float:
        basic = 1.0
        if not self._epsilon_sum() > decimal(epsilon):
            basic = min(float_up(self._delta_sum()), probability_up(self._failure()))
        table = self._table()
        return basic if table is None else min(basic, self._delta_from(table, epsilon))

    def basic_total(self) -> tuple[Exact, Fraction]:
        """The single (ε, δ) that basic composition gives: both sums."""
        if len(self.parts) == 1 and self.parts[0].count == 1:
            return self.parts[0].epsilon, self.parts[0].delta
        return self._epsilon_sum(), self._delta_sum()

    def _epsilon_sum(self) -> Exact:
        terms = [exact.multiply(part.epsilon, part.count) for part in self.parts]
        logs = [term for term in terms if isinstance(term, Ln)]
        total: Exact = sum((term for term in terms if isinstance(term, Fraction)), Fraction(0))
        if logs:
            joined = logs[0]
            for term in logs[1:]:
                joined = joined + term
            total = exact.add(joined, total) if total else joined
        return total

    def _delta_sum(self) -> Fraction:
        return min(Fraction(1), sum((part.delta * part.count for part in self.parts), Fraction(0)))

    def _failure(self) -> float:
        """1 − Π(1 − δ): the probability that some part fails."""
        if any(part.delta >= 1 for part in self.parts):
            return 1.0
        return move_up(-math.expm1(math.fsum(part.count * math.log1p(-to_float(part.delta)) for part in self.parts)))

    def _spare(self, delta: float) -> float:
        """The part of a target δ that the parts' own δ leave: δ = 1 − (1 − spare)·Π(1 − δ_i), rounded down."""
        failure = self._failure()
        if delta <= failure:
            return 0.0
        return (delta - failure) / (1 - failure) * (1 - 4 * UNIT) - UNIT * delta

    def _advanced_epsilon(self, spare: float) -> float:
        """The advanced bound for unequal parts: mean loss plus a deviation, or the bound through zCDP; rounded up."""
        squares = mean = 0.0
        for part in self.parts:
            size = to_float(part.epsilon)
            squares += part.count * size * size
            mean += part.count * size * math.tanh(size / 2)
        squares, mean = move_up(squares, 1e-13), move_up(mean, 1e-13)
        deviations = (-math.log(spare), math.log(math.e + math.sqrt(squares) / spare))
        closed = min(sum_up(mean, math.sqrt(2 * squares * deviation)) for deviation in deviations)
        return min(closed, epsilon_of(squares / 2, spare))

    def _optimal_epsilon(self, delta: float, most: float) -> float:
        table = self._table()
        if table is None:
            return math.inf
        return find_smallest(lambda epsilon: self._delta_from(table, epsilon), delta, min(most, float(table[0].max())))

    def _delta_from(self, table: tuple[Floats, Floats], epsilon: float) -> float:
        """δ at ε of composed losses with these probabilities, plus the parts' own failures; rounded up."""
        losses, chances = table
        above = losses > epsilon
        inner = float(-(chances[above] * np.expm1(epsilon - losses[above])).sum())
        inner = min(1.0, move_up(inner, 1e-12))
        failure = self._failure()
        return probability_up(failure + (1 - failure) * inner)

    def _table(self) -> tuple[Floats, Floats] | None:
        """The total losses of the dominating randomized responses, with their probabilities; None if too many."""
        counts: Counter[Exact] = Counter()
        for part in self.parts:
            if part.epsilon > 0:
                counts[part.epsilon] += part.count
        if math.prod(count + 1 for count in counts.values()) > _MOST_LOSSES or any(size > _VAST for size in counts):
            return None
        losses, chances, reach = np.zeros(1), np.ones(1), 0.0
        for epsilon, count in counts.items():
            more, shares = _binomial(to_float(epsilon), count)
            losses, chances = np.add.outer(losses, more).ravel(), np.multiply.outer(chances, shares).ravel()
            reach += count * to_float(epsilon)
        # Sums of losses are off by a few units in the last place of the largest: one margin upwards covers them.
        return losses + UNIT * reach, chances

    def compose(self, other: ApproximateNotion) -> ApproximateNotion:
        return ApproximateNotion(_merge_parts((*self.parts, *other.parts)))

    def repeat(self, count: int) -> ApproximateNotion:
        return ApproximateNotion(
            tuple(ApproximatePart(part.epsilon, part.delta, part.count * count) for part in self.parts)
        )

    def for_group(self, size: int) -> ApproximateNotion:
        return ApproximateNotion(_merge_parts(_group_part(part, size) for part in self.parts))

    def words(self) -> str:
        return f"basic ε = {float_up(self._epsilon_sum()):.6g} at δ = {float_up(self._delta_sum()):.3g}"


def _merge_parts(parts: Iterable[ApproximatePart]) -> tuple[ApproximatePart, ...]:
    """Parts with equal parameters counted together, in one order."""
    counts: Counter[tuple[Exact, Fraction]] = Counter()
    for part in parts:
        counts[part.epsilon, part.delta] += part.count
    ordered = sorted(counts.items(), key=lambda item: (upper(item[0][0]), item[0][1]))
    return tuple(ApproximatePart(epsilon, delta, count) for (epsilon, delta), count in ordered)


def _group_part(part: ApproximatePart, size: int) -> ApproximatePart:
    """A group of k: (kε, δ·(1 + e^ε + … + e^((k−1)ε))), δ rounded up."""
    if size == 1:
        return part
    epsilon = exact.multiply(part.epsilon, size) if part.epsilon else part.epsilon
    if not part.delta:
        return ApproximatePart(epsilon, part.delta, part.count)
    step = to_float(part.epsilon)
    if step * size > 700:
        return ApproximatePart(epsilon, Fraction(1), part.count)
    factor = Fraction(move_up(math.expm1(step * size) / math.expm1(step), 1e-12)) if step else Fraction(size)
    return ApproximatePart(epsilon, min(Fraction(1), shorten(part.delta * factor)), part.count)


def _binomial(step: float, count: int) -> tuple[Floats, Floats]:
    """Losses (count − 2i)·ε with their binomial probabilities, rounded up by less than 10^-11 for up to 65,536."""
    i = np.arange(count + 1, dtype=np.float64)
    factorials = _log_factorials(count)
    logs = factorials[-1] - factorials - factorials[::-1]
    logs -= count * math.log1p(math.exp(-step)) + i * step
    # Each logarithm is off by at most a few units in the last place of the largest term.
    margin = UNIT * (4 + 2 * count * (math.log(count + 1) + 1) + count * step)
    return (count - 2 * i) * step, np.exp(logs + margin)


def _log_factorials(most: int) -> Floats:
    """Logarithms of n! for n = 0 … most: Stirling's series, whose next term is below 10^-13 from n = 16 on."""
    n = np.arange(1, most + 2, dtype=np.float64)  # shifted by one: n!/n is (n − 1)!
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
    logs: Floats = (n - 0.5) * np.log(n) - n + math.log(2 * math.pi) / 2 + series
    head = min(most + 1, 16)
    logs[:head] = [math.lgamma(k + 1) for k in range(head)]
    return logs
