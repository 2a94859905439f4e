"""Shuffling: computes what a batch of local reports costs when nobody knows who sent which report.

A report that is ε₀-private by itself becomes far more private when it is hidden among the reports of n − 1 other
people. This holds only where a separate party really mixes the batch, so a bound is given for a declared ``Shuffler``
only.

The other reports hide one person as follows. With a probability that does not depend on its sender's value, each of
them is drawn from one fixed law, the *cover*. Take an adversary who sees the shuffled batch, knows everybody else's
value *and* knows which reports came from the cover. This adversary still has to find one person's report among the
cover. The adversary is stronger than any real one, and the loss of the batch against it can be summed. ``Cover`` does
the sum; every number is rounded up.

>>> mixer = Shuffler(operator="the mix service", separate=True, anonymous=True, one_report_each=True)
>>> report = events.RandomizedResponse(epsilon=4, categories=2, neighbours="replace")
>>> batch = Shuffled(report=report, people=100_000, shuffler=mixer)
>>> batch.epsilon(1e-6)
0.11816
>>> batch.event(1e-6)
Approximate(epsilon=1477/12500, delta=1/1000000, count=1, neighbours='replace', unit='one row')
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import Exact, Floats, Interval, Ln, float_down, float_up
from discreet.late_dataclass import dataclass
from discreet.local.hadamard import HadamardResponse
from discreet.local.krr import KaryResponse
from discreet.local.projective import ProjectiveResponse
from discreet.local.protocol import Protocol
from discreet.local.subset import SubsetSelection
from discreet.local.unary import UnaryEncoding
from discreet.local.words import WORD
from discreet.parameters import Epsilon, Number
from discreet.privacy import Neighbours

# A bound on the relative error of each binomial probability below. Measured against exact sums: 3e-11 for a billion
# trials; the tests repeat the measurement.
_DOUBT = 1e-9
# The most people of a batch: beyond them the error was not measured.
_MOST_PEOPLE = 10**9
# Cover sizes are summed from this many standard deviations below the mean to this many above it, totals of two answers
# within this many. The mass outside is added to δ.
_BELOW, _ABOVE, _TOTALS = 12.0, 4.0, 10.0
# The most cover sizes, and the most binomial tails that are summed for one δ (with more totals there is one size).
_MOST_SIZES, _MOST_TAILS = 1024, 1 << 15
# A stated ε has this many significant digits, rounded up.
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffler:
    """The declaration that a batch is mixed. All of it must be true, and the operator is responsible for it.

    - ``operator``: who mixes.
    - ``separate``: the operator does not collude with the collector, and sees nothing but sealed or noisy reports.
    - ``anonymous``: names, addresses, tokens, arrival times and the order of the reports do not reach the collector.
    - ``one_report_each``: at most one report of each person is in a batch.
    """

    operator: str
    separate: bool
    anonymous: bool
    one_report_each: bool

    def __post_init__(self) -> None:
        if not isinstance(self.operator, str) or not self.operator.strip():
            raise ParameterError("operator", "must say who mixes the reports", "Give operator='the mix service', say.")
        for name in ("separate", "anonymous", "one_report_each"):
            if getattr(self, name) is not True:
                raise UnknownLoss(
                    f"Shuffling is only worth something where the shuffler is declared {name}=True. "
                    "Without that each report costs its full local loss."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSides:
    """How one report distinguishes two values: some reports point to one value, some to the other, the rest to none.

    ``likely`` is the probability that the report of a person with one value points to it rather than to the other,
    ``unlikely`` that it points to the other; their ratio is e^ε₀. ``silent`` is the probability of those reports that
    point to neither *and* that nobody else's value makes less likely (they support neither value).

    It is valid where, for *each* two values and with these same masses, every report is e^ε₀ times, e^−ε₀ times or
    exactly as likely under one as under the other, and the whole local protocol is ε₀-private. That covers randomized
    response, subset selection, projective geometry, Hadamard and unary encoding.
    """

    likely: Fraction
    unlikely: Fraction
    silent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        fix = "Give the exact probabilities, for example likely=Fraction(3, 4), unlikely=Fraction(1, 4)."
        for name in ("likely", "unlikely", "silent"):
            if not isinstance(getattr(self, name), Fraction):
                raise parameters.refuse(name, "a Fraction", getattr(self, name), fix)
        rest = 1 - self.likely - self.unlikely
        if not (0 < self.unlikely < self.likely and 0 <= self.silent <= rest):
            raise ParameterError("sides", "must be probabilities with unlikely < likely", fix)

    @classmethod
    def of_support(cls, p: Fraction, q: Fraction, ratio: Fraction) -> ReportSides:
        """The sides of a protocol whose report supports the true value with p and another value with q.

        ``ratio`` is e^ε₀ of the integers that the protocol really uses. A report that supports both values, or none,
        points to neither, so likely − unlikely = p − q; it supports none with 1 − p − unlikely.

        >>> ReportSides.of_support(Fraction(3, 4), Fraction(1, 4), Fraction(3))
        ReportSides(likely=Fraction(3, 4), unlikely=Fraction(1, 4), silent=Fraction(0, 1))
        """
        if ratio <= 1:
            raise ParameterError("ratio", "must be above 1", "Give e^ε₀, for example ratio=Fraction(3).")
        unlikely = (p - q) / (ratio - 1)
        return cls(likely=unlikely * ratio, unlikely=unlikely, silent=1 - p - unlikely)


@dataclass(frozen=True, kw_only=True)
class Cover:
    """One randomized response hidden among the cover: the sum behind every bound here.

    Each of ``others`` reports belongs to the cover with probability ``chance``. Of the cover, one part in
    ``categories`` points to each of the two values; ``odds`` is e^−ε₀. With probability ``weight`` the person's report
    is of a kind that the cover has; otherwise it reveals nothing.

    Privacy: given that M reports are cover, δ(ε) is (k(p − q)/N)·E[(a − e^ε·b − (e^ε − 1)N/(e^ε₀ − 1))₊], where
    N = M + 1 and a, b count the two answers among N uniform ones (Balle, Bell, Gascón & Nissim 2019, "The privacy
    blanket of the shuffle model", §5, with the likelihoods of randomized response). It falls with M, since
    anybody can add a cover report: so M may be rounded down, ``chance`` too.
    """

    others: int
    chance: float
    categories: float
    odds: float
    weight: float = 1.0

    @cached_property
    def _sizes(self) -> tuple[Floats, Floats]:
        """Cover sizes M, rising, and for each an upper bound on the probability that the cover is below the next."""
        mean, spread = self.others * self.chance, math.sqrt(self.others * self.chance * (1 - self.chance)) + 1
        first = max(0, math.floor(mean - _BELOW * spread))
        last = min(self.others, math.ceil(mean + _ABOVE * spread))
        grid = np.linspace(first, last, min(last - first + 1, self._count_sizes()))
        sizes: Floats = np.unique(np.floor(grid))
        below = np.append(_at_most(sizes[1:] - 1, self.others, self.chance), 1.0)
        return sizes, np.minimum(below * (1 + _DOUBT), 1.0)

    def _count_sizes(self) -> int:
        """How many different cover sizes are summed, so that the whole sum has at most some ten thousand tails."""
        if self.categories == 2:
            return _MOST_SIZES
        totals = 2 * _TOTALS * (math.sqrt(self.others * self.chance * 2 / self.categories) + 1)
        return max(1, min(_MOST_SIZES, int(_MOST_TAILS / totals)))

    def delta(self, epsilon: float) -> float:
        """At or above δ(ε), for 0 ≤ ε ≤ 700."""
        sizes, below = self._sizes
        each = (
            np.array([self._delta_of_size(size, epsilon) for size in sizes])
            if self.categories > 2
            else self._delta_of_all_sizes(epsilon)
        )
        # True values fall with the size; so may their upper bounds, taken from the right. Then every step is positive.
        each = np.minimum.accumulate(np.minimum(each, 1.0))
        steps = -np.diff(each, append=0.0)
        lost = float(_at_most(sizes[:1] - 1, self.others, self.chance)[0]) if sizes[0] > 0 else 0.0
        total = float(np.sum(steps * below)) + lost
        return min(1.0, self.weight * total * (1 + _DOUBT))

    def _delta_of_all_sizes(self, epsilon: float) -> Floats:
        """δ given each cover size, for two categories, where all N answers are one of the two."""
        n = self._sizes[0] + 1
        return self._scale(_excess(n, n, epsilon, self.odds), n)

    def _delta_of_size(self, size: float, epsilon: float) -> float:
        """δ given one cover size, for more than two categories."""
        n, share = size + 1, 2 / self.categories
        mean, spread = n * share, math.sqrt(n * share * (1 - share)) + 1
        first, last = max(0, math.floor(mean - _TOTALS * spread)), min(n, math.ceil(mean + _TOTALS * spread))
        totals = np.arange(first, last + 1, dtype=np.float64)
        sums = np.sum(_mass(totals, n, share) * _excess(totals, n, epsilon, self.odds)) * (1 + _DOUBT)
        # Outside the window the excess is at most N.
        beyond = n * (_at_most(np.array([first - 1.0]), n, share) + _at_least(np.array([last + 1.0]), n, share))
        return float(self._scale(sums + beyond * (1 + _DOUBT), np.array([n]))[0])

    def _scale(self, excess: Floats, n: Floats) -> Floats:
        k, r = self.categories, self.odds
        factor: Floats = excess * (k * (1 - r) / (1 + (k - 1) * r) * (1 + _DOUBT)) / n
        return factor


def _excess(totals: Floats, n: Floats | float, epsilon: float, odds: float) -> Floats:
    """At or above E[(a − e^ε·b − τ)₊] for a + b = ``totals``, a binomial(a + b, 1/2), τ = (e^ε − 1)·n/(e^ε₀ − 1).

    The sum runs over a ≥ t = (e^ε(a + b) + τ)/(1 + e^ε), and in it Σ(a − c/2)·P[a] telescopes to t·P[t]/2. A t that is
    off by one rounding moves the sum by one rounding of its first part only, which the margin covers.
    """
    grow, power = math.expm1(epsilon), math.exp(epsilon)
    tau = grow * n * odds / (1 - odds)
    t = np.minimum(np.maximum(np.ceil((power * totals + tau) / (1 + power)), 0.0), totals + 1)
    first = (1 + power) * t / 2 * _mass(t, totals, 0.5)
    second = (grow * totals / 2 + tau) * _at_least(t, totals, 0.5)
    bound: Floats = np.maximum(first * (1 + _DOUBT) - second * (1 - _DOUBT), 0.0)
    return bound


def _at_least(k: Floats, n: Floats | float, p: float) -> Floats:
    """P[binomial(n, p) ≥ k]."""
    from scipy.special import betainc  # late: it costs 0.2 s to import

    k, n = np.broadcast_arrays(k, np.asarray(n, dtype=np.float64))
    inside = (k > 0) & (k <= n)
    tail: Floats = np.where(k <= 0, 1.0, 0.0)
    tail[inside] = betainc(k[inside], n[inside] - k[inside] + 1, p)
    return tail


def _at_most(k: Floats, n: float, p: float) -> Floats:
    """P[binomial(n, p) ≤ k]."""
    return _at_least(n - k, n, 1 - p)


_SMALL_STIRLING = np.array(
    [0.0] + [math.lgamma(n + 1) - (0.5 * math.log(2 * math.pi * n) + n * math.log(n) - n) for n in range(1, 16)]
)


def _stirling(n: Floats) -> Floats:
    """Ln n! − ln(√(2πn)·(n/e)^n), for n ≥ 1: by its series, and from a table below 16."""
    x = np.maximum(n, 16.0)
    square = x * x
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680) / square) / square) / square) / x
    return np.where(n < 16, _SMALL_STIRLING[np.minimum(n, 15.0).astype(np.int64)], series)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """x·ln(x/mean) − x + mean, without cancellation where both are close."""
    d = (x - mean) / (x + mean)
    close = np.abs(d) < 0.1
    squares = d * d
    series, power = np.zeros_like(d), d * squares
    for j in range(1, 12):
        series += power / (2 * j + 1)
        power = power * squares
    near = (x - mean) * d + 2 * x * series
    with np.errstate(divide="ignore", invalid="ignore"):
        far = x * np.log(x / mean) - x + mean
    return np.where(close, near, far)


def _mass(k: Floats, n: Floats | float, p: float) -> Floats:
    """P[binomial(n, p) = k] in the form of Loader (2000), which keeps its relative accuracy for any n."""
    k, n = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64))
    mass: Floats = np.zeros(k.shape)
    inside = (k > 0) & (k < n)
    x, m = k[inside], n[inside]
    exponent = _stirling(m) - _stirling(x) - _stirling(m - x)
    exponent -= _deviance(x, m * p) + _deviance(m - x, m * (1 - p))
    mass[inside] = np.exp(exponent) * np.sqrt(m / (2 * math.pi * x * (m - x)))
    for end, chance in ((k == 0) & (n >= 0), 1 - p), ((k == n) & (n > 0), p):
        mass[end] = np.exp(n[end] * math.log(chance))
    return mass


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """A batch of local reports behind a declared shuffler, and what the whole batch costs one person.

    ``report`` is what each person's report costs by itself: ``events.RandomizedResponse`` (with its number of
    categories) or ``events.Pure`` for any ε₀-private protocol, under ``replace``. ``people`` is a number of *honest*
    reports that the batch certainly contains, at most 10^9 (a smaller number is always true): people who drop out or
    lie hide nobody. ``sides`` makes the bound smaller for a protocol whose reports are known to have that form.
    ``drift`` is the total variation distance of a real report from the stated law (thresholds of 64 bits are not quite
    even); n times it is added to δ, for both datasets.

    Privacy: (ε, δ(ε)) for one person who is replaced, against whoever sees the shuffled batch, for every ε at once.
    Any ε₀-private report: with probability e^−ε₀ every other report is drawn from R(x₀) or R(x₁), evenly (a clone), so
    the batch is post-processing of two-way randomized response among binomial(n − 1, e^−ε₀) cover reports (Feldman,
    McMillan & Talwar 2021, "Hiding among the clones", §3; their later constant 2/(e^ε₀ + 1) holds
    for some protocols only, says its erratum, and is not used here). With ``sides``: on reports that point to x₀ every
    other person's law is at least R(x₁)'s, on those that point to x₁ at least R(x₀)'s, on silent ones at least both;
    so 2·unlikely + silent of every report is cover, and with probability likely + unlikely + silent the person's own
    report is randomized response over the same kinds. Else it is the same under both values; telling the adversary
    when that happens costs nothing but tightness. k-way randomized response: the cover is uniform over k answers, with
    probability k/(e^ε₀ + k − 1) (Balle et al. 2019). Never more than ε₀ at δ = 0. Several batches compose as events.
    """

    report: events.RandomizedResponse | events.Pure
    people: int
    shuffler: Shuffler
    sides: ReportSides | None = None
    drift: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not isinstance(self.report, events.RandomizedResponse | events.Pure):
            raise UnknownLoss(
                "Shuffling is priced for reports that are private by themselves, without a δ. "
                "Give events.RandomizedResponse(...) or events.Pure(epsilon=...)."
            )
        if self.report.neighbours != Neighbours.REPLACE:
            fix = "A local report hides any value behind any other: write neighbours='replace'."
            raise ParameterError("neighbours", "of a shuffled report must be replace", fix)
        if self.report.count != 1:
            fix = "A person sends one report to a batch: compose the events of several batches instead."
            raise ParameterError("count", "of a shuffled report must be 1", fix)
        if not isinstance(self.shuffler, Shuffler):
            raise ParameterError("shuffler", "must be declared", "Give Shuffler(operator=..., separate=True, ...).")
        parameters.read_whole(self.people, "people", least=1, most=_MOST_PEOPLE)
        if self.sides is not None and not isinstance(self.sides, ReportSides):
            fix = "Give ReportSides(likely=..., unlikely=...)."
            raise ParameterError("sides", "must be ReportSides or None", fix)
        if not isinstance(self.drift, Fraction) or not 0 <= self.drift < 1:
            raise parameters.refuse("drift", "a Fraction from 0 to below 1", self.drift, "Give drift=Fraction(0).")
        if self.sides is not None and self._local < Ln(self.sides.likely / self.sides.unlikely):
            fix = "Check the two probabilities."
            raise ParameterError("sides", "have a larger ratio than the report's epsilon allows", fix)

    @classmethod
    def of(cls, protocol: Protocol, *, people: int, shuffler: Shuffler) -> Self:
        """A batch of reports of one protocol, with the smallest bound that is known for it.

        >>> mixer = Shuffler(operator="the mix service", separate=True, anonymous=True, one_report_each=True)
        >>> Shuffled.of(KaryResponse.for_epsilon(1, 16), people=10_000, shuffler=mixer).epsilon(1e-6)
        0.018596
        """
        report, sides, drift = _shape_of(protocol)
        return cls(report=report, people=people, shuffler=shuffler, sides=sides, drift=drift)

    @cached_property
    def _local(self) -> Exact:
        return parameters.read_epsilon(self.report.epsilon)

    @cached_property
    def covers(self) -> tuple[Cover, ...]:
        """Every sum that bounds this batch; the smallest bound is used."""
        others = self.people - 1
        odds = Interval.exp_minus(self._local) if self._local < 700 else Interval(Fraction(0), Fraction(1, 2**1000))
        low = _round_down(odds.low)
        found = [Cover(others=others, chance=low, categories=2, odds=low)]
        if isinstance(self.report, events.RandomizedResponse):
            k = self.report.categories
            chance = _round_down(k * odds.low / (1 + (k - 1) * odds.low))
            found.append(Cover(others=others, chance=chance, categories=k, odds=low))
        if self.sides is not None:
            likely, unlikely = self.sides.likely, self.sides.unlikely
            covered = 2 * unlikely + self.sides.silent
            weight = min(1.0, float_up(likely + unlikely + self.sides.silent))
            found.append(
                Cover(
                    others=others,
                    chance=_round_down(covered),
                    categories=float(covered / unlikely),
                    odds=_round_down(unlikely / likely),
                    weight=weight,
                )
            )
        return tuple(found)

    def delta(self, epsilon: Epsilon) -> float:
        """At or above the smallest δ at which the batch is (ε, δ)-private."""
        exact = epsilon if isinstance(epsilon, Ln) else parameters.read_nonnegative(epsilon, "epsilon")
        if exact >= self._local:
            return 0.0
        return self._delta(math.nextafter(float_down(exact), -math.inf) if exact else 0.0)

    def _delta(self, epsilon: float) -> float:
        return min(self._add_drift(cover)(min(epsilon, 700.0)) for cover in self.covers)

    def _add_drift(self, cover: Cover) -> Callable[[float], float]:
        """The profile of one sum; the drift of real reports is added to all sums but the general one."""
        extra = 0.0 if cover is self.covers[0] else float_up(self.people * self.drift)
        return lambda epsilon: min(1.0, cover.delta(epsilon) + extra * (1 + math.exp(epsilon)) * (1 + _DOUBT))

    def epsilon(self, delta: Number) -> float:
        """An ε of five digits at which the batch is (ε, δ)-private; never above the report's own ε₀."""
        limit = float_down(parameters.read_delta(delta))
        local = float_up(self._local)
        if limit == 0:
            return local
        return min(local, *(_find_smallest(self._add_drift(cover), limit, min(local, 700.0)) for cover in self.covers))

    def event(self, delta: Number) -> events.Approximate | events.Pure:
        """The batch as an event for the accountant, at a δ that is chosen in advance."""
        exact = parameters.read_delta(delta)
        epsilon = self.epsilon(exact)
        if not epsilon < self._local:
            return events.Pure(epsilon=self._local, neighbours=Neighbours.REPLACE, unit=self.report.unit)
        return events.Approximate(epsilon=epsilon, delta=exact, neighbours=Neighbours.REPLACE, unit=self.report.unit)


def _shape_of(protocol: Protocol) -> tuple[events.RandomizedResponse | events.Pure, ReportSides | None, Fraction]:
    """The event of one report, its sides where they are known, and how far its real law is from the even one."""
    any_report = events.Pure(epsilon=protocol.epsilon, neighbours=Neighbours.REPLACE, unit="respondent")
    match protocol:
        case KaryResponse(domain_size=d, p=p) if p * d > 1:
            # The loss is that of the integers in use: picks are uneven, so it is a little above the even law's, whose
            # response is one of the larger loss with more noise on top.
            # Each of d − 1 picks is off by less than one part in 2^64; the distance is half of their sum.
            report = events.RandomizedResponse(
                epsilon=protocol.epsilon, categories=d, neighbours=Neighbours.REPLACE, unit="respondent"
            )
            return report, None, _unevenness(d - 1)
        case HadamardResponse(p=p) if 2 * p > 1:
            return any_report, ReportSides.of_support(p, protocol.q, p / (1 - p)), Fraction(0)
        case UnaryEncoding(p=p, q=q):
            return any_report, ReportSides.of_support(p, q, protocol.epsilon.of), Fraction(0)
        case SubsetSelection(domain_size=d, size=w, p=p) if p * d > w:
            # Its own docstring: the chance of every set is within d²/2^61 of the even one, relative.
            ratio = p * (d - w) / ((1 - p) * w)
            return any_report, ReportSides.of_support(p, protocol.q, ratio), Fraction(8 * d * d, WORD)
        case ProjectiveResponse(inside=c, outside=rest, p=p) if p * rest > (1 - p) * c:
            ratio = p * rest / ((1 - p) * c)
            return any_report, ReportSides.of_support(p, protocol.q, ratio), _unevenness(max(c, rest))
    return any_report, None, Fraction(0)


def _unevenness(choices: int) -> Fraction:
    """The distance of ``pick`` from an even choice, at most."""
    return Fraction(0) if WORD % choices == 0 else Fraction(choices, WORD)


def _round_down(x: Fraction) -> float:
    """A float at or below x ≥ 0, as the binary number that it is."""
    nearest = float(x)
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, 0.0)


def _find_smallest(profile: Callable[[float], float], limit: float, high: float) -> float:
    """The smallest five-digit ε found with profile(ε) ≤ limit; infinite if there is none up to ``high``."""
    if profile(0.0) <= limit:
        return 0.0
    if profile(high) > limit:
        return math.inf
    low = high * 2.0**-40
    while high > low * (1 + 10.0**-_DIGITS):
        middle = math.sqrt(low * high)
        if profile(middle) <= limit:
            high = middle
        else:
            low = middle
    # Rounded up, and once more where the float lies below its decimal; the profile falls, so the bound stays.
    exponent = math.floor(math.log10(high)) - _DIGITS + 1
    steps = math.floor(Fraction(high) / Fraction(10) ** exponent) + 1
    return float_up(steps * Fraction(10) ** exponent)
