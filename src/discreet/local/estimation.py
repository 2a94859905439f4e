"""Estimates from the counts of an aggregator: unbiased values with intervals, and consistent values.

Estimation is post-processing: it costs nothing and may be repeated. The intervals are for the people who answered (the
noise alone), except for means, where they also include that the people are a sample. Each result says which it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.local.aggregate import Aggregator
from discreet.local.hashing import LocalHashing
from discreet.local.number import NumberProtocol
from discreet.local.protocol import FrequencyProtocol
from discreet.local.rappor import Rappor
from discreet.local.wave import SquareWave


@dataclass(frozen=True, kw_only=True)
class Frequencies:
    """Shares of the people for each value.

    ``values`` are unbiased and may be negative; ``low`` and ``high`` hold for each value alone with probability
    ``level``, ``low_all`` and ``high_all`` for all values together. ``consistent`` are shares that are never negative
    and sum to one (Norm-Sub): nearer to the truth over all, biased for each, and without an interval.
    """

    names: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    low_all: Floats
    high_all: Floats
    consistent: Floats
    people: int
    level: float
    about: str = "the people who answered"

    def rows(self) -> list[dict[str, object]]:
        """One record for each value."""
        columns = (self.values, self.low, self.high, self.low_all, self.high_all, self.consistent)
        keys = ("share", "low", "high", "low_all", "high_all", "consistent")
        return [
            {"value": name} | {key: float(column[place]) for key, column in zip(keys, columns)}
            for place, name in enumerate(self.names)
        ]


@dataclass(frozen=True, kw_only=True)
class MeanEstimate:
    """The unbiased mean of a number with its interval; ``consistent`` is the mean clamped to the range."""

    value: float
    low: float
    high: float
    consistent: float
    people: int
    level: float
    about: str = "the population that the people are a sample of"


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The distribution over buckets with the greatest likelihood; ``edges`` are the ends of the buckets.

    It has no intervals, because it is smoothed.
    """

    shares: Floats
    edges: Floats
    people: int

    @property
    def mean(self) -> float:
        """The mean of the distribution."""
        return float(self.shares @ (self.edges[:-1] + self.edges[1:]) / 2)

    def below(self, value: float) -> float:
        """The share of people at or under a value."""
        return float(np.interp(value, self.edges, np.concatenate([[0.0], np.cumsum(self.shares)])))

    def quantile(self, share: float) -> float:
        """The value with this share of the people below it."""
        level = float(parameters.read_probability(share, "share"))
        sums = np.concatenate([[0.0], np.cumsum(self.shares)])
        return float(np.interp(level * sums[-1], sums, self.edges))


def estimate(
    aggregate: Aggregator, *, level: float = 0.95, candidates: Sequence[str] | None = None
) -> Frequencies | MeanEstimate | Distribution:
    """The estimates from all reports. ``candidates`` are the values to look for in a RAPPOR task."""
    protocol = aggregate.task.protocol
    level = float(parameters.read_probability(level, "level"))
    if isinstance(protocol, Rappor):
        return _estimate_rappor(aggregate, protocol, level, candidates)
    if isinstance(protocol, NumberProtocol):
        return estimate_mean(aggregate, level=level)
    if isinstance(protocol, SquareWave):
        return _estimate_distribution(aggregate, protocol)
    return estimate_frequencies(aggregate, level=level)


def estimate_frequencies(aggregate: Aggregator, *, level: float = 0.95) -> Frequencies:
    """Shares of the values, from any frequency protocol."""
    protocol, state = aggregate.task.protocol, aggregate.state
    if isinstance(protocol, FrequencyProtocol):
        supports = protocol.count_supports(state)[: aggregate.task.domain.count]
    elif isinstance(protocol, LocalHashing):
        supports = state
    else:
        raise ParameterError("task", "does not count frequencies", "Use estimate(...).")
    names = aggregate.candidates or aggregate.task.domain.names()
    return estimate_from_supports(
        supports, aggregate.people, float(protocol.p), float(protocol.q), names=names, level=level
    )


def estimate_from_supports(
    supports: Integers, people: int, p: float, q: float, *, names: Sequence[str], level: float = 0.95
) -> Frequencies:
    """Shares from the number of reports that support each value, with the probabilities p (own) and q (other)."""
    count = len(names)
    low, high = score_interval(supports, people, p, q, level)
    low_all, high_all = score_interval(supports, people, p, q, 1 - (1 - level) / max(count, 1))
    values = (supports / max(people, 1) - q) / (p - q) if people else np.zeros(count)
    return Frequencies(
        names=tuple(names),
        values=values,
        low=low,
        high=high,
        low_all=low_all,
        high_all=high_all,
        consistent=norm_sub(values),
        people=people,
        level=level,
    )


def z_score(level: float) -> float:
    """How many standard errors a two-sided interval of this level reaches."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def score_interval(supports: Integers, people: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """The shares f that the reports do not contradict: |supports − n·(q + f(p − q))| ≤ z·√(n·v(f)).

    v(f) = f·p(1 − p) + (1 − f)·q(1 − q) is the exact variance of one report's support, given the data. The inequality
    is a quadratic in f; its roots are the ends. Half a report is added on each side, because counts are whole.
    """
    if not people:
        return np.full(supports.shape, 0.0), np.full(supports.shape, 1.0)
    z2, gap = z_score(level) ** 2 / people, p - q
    own, other = p * (1 - p), q * (1 - q)

    def root(shift: float, sign: int) -> Floats:
        above = supports / people + shift / people - q
        half = gap * above + z2 * (own - other) / 2
        # (gap·f)² − 2·half·f + above² − z²·other = 0, as f varies
        inside = np.maximum(half**2 - gap**2 * (above**2 - z2 * other), 0)
        return np.asarray((half + sign * np.sqrt(inside)) / gap**2)

    return root(-0.5, -1), root(0.5, 1)


def norm_sub(values: Floats) -> Floats:
    """The nearest shares that are not negative and sum to one: subtract one number from all, and cut at zero.

    >>> norm_sub(np.array([0.7, 0.5, -0.1])).tolist()
    [0.6, 0.4, 0.0]
    """
    if not values.size:
        return values.copy()
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    kept = int(np.count_nonzero(ordered > excess))
    return np.asarray(np.round(np.maximum(values - excess[kept - 1], 0), 15))


def estimate_mean(aggregate: Aggregator, *, level: float = 0.95) -> MeanEstimate:
    """The mean of a number, from the counts of each symbol."""
    protocol, state, people = aggregate.task.protocol, aggregate.state, aggregate.people
    if not isinstance(protocol, NumberProtocol):
        raise ParameterError("task", "does not measure a number", "Use estimate(...).")
    low, high = aggregate.task.domain.ends
    middle, half = (low + high) / 2, (high - low) / 2
    if people < 2:
        return MeanEstimate(value=middle, low=-math.inf, high=math.inf, consistent=middle, people=people, level=level)
    scores = protocol.scores
    value = float(state @ scores) / people
    variance = float(state @ (scores - value) ** 2) / (people - 1)
    reach = z_score(level) * math.sqrt(variance / people)
    return MeanEstimate(
        value=middle + half * value,
        low=middle + half * (value - reach),
        high=middle + half * (value + reach),
        consistent=middle + half * min(1.0, max(-1.0, value)),
        people=people,
        level=level,
    )


def _estimate_distribution(aggregate: Aggregator, protocol: SquareWave) -> Distribution:
    domain = aggregate.task.domain
    low, high = domain.ends if domain.numeric else (0.0, float(domain.count))
    edges = np.linspace(low, high, protocol.buckets + 1)
    return Distribution(shares=protocol.fit_distribution(aggregate.state), edges=edges, people=aggregate.people)


def _estimate_rappor(
    aggregate: Aggregator, protocol: Rappor, level: float, candidates: Sequence[str] | None
) -> Frequencies:
    if not candidates:
        raise ParameterError("candidates", "are missing", "Say which values to look for.")
    values, errors = protocol.decode(aggregate.state, candidates)
    one, every = z_score(level), z_score(1 - (1 - level) / len(candidates))
    return Frequencies(
        names=tuple(candidates),
        values=values,
        low=values - one * errors,
        high=values + one * errors,
        low_all=values - every * errors,
        high_all=values + every * errors,
        consistent=norm_sub(values),
        people=aggregate.people,
        level=level,
        about="the people who answered, if the candidates cover all answers",
    )
