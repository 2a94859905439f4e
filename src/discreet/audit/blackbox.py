"""The black box: runs a function on two datasets, many times, and bounds its privacy loss from below.

It works in rounds of doubling size. In each round, the event that best separates the datasets is chosen on all outputs
of earlier rounds, and then counted on fresh outputs only. The two counts give exact bounds (Clopper–Pearson), and these
give a lower bound on ε. Round r may err with probability α/(r(r + 1)), over both directions and both bounds. These add
up to less than α, so the audit may stop at any round. It stops as soon as the claim is refuted.

A pass means: no event of at least the stated mass was found that breaks the claim *on these two datasets*. It is
evidence and not a proof; it does not show smaller masses and other datasets. The grey box and the exact checks are for
those.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import parameters
from discreet.audit.claims import Claim, ClaimLike
from discreet.audit.confidence import lower_bound, runs_needed, smallest_visible, upper_bound
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.audit.output_encoding import Outputs, RaisedError, encode, join_outputs
from discreet.audit.output_features import OutputFeature, make_features
from discreet.entropy import SYSTEM
from discreet.errors import ParameterError
from discreet.exact import Floats, Integers
from discreet.late_dataclass import dataclass
from discreet.parameters import Number

ALPHA = 1e-3
SAMPLES = 100_000
SECONDS = 60.0
VISIBLE = 0.05
_FIRST = 500  # outputs on each dataset for training, before the first count
_CHUNK = 200  # calls between two checks of the time
_PARTS = 4  # two directions, two bounds each
_Z = 3.3  # standard errors of the bounds on training counts


def check(
    fn: Callable[..., Any],
    d: Any,
    d2: Any,
    claim: ClaimLike,
    *,
    samples: int = SAMPLES,
    alpha: Number = ALPHA,
    seconds: float = SECONDS,
    batch: bool = False,
    varying: bool = False,
    timing: bool = False,
    visible: Number = VISIBLE,
    name: str | None = None,
) -> Finding:
    """Whether ``fn`` keeps the privacy it claims, as far as two neighbouring datasets can show it.

    ``fn(d)`` must return one release with fresh noise; with ``batch=True`` it is called as ``fn(d, n)`` and returns n
    of them (a list, or an array along its first axis). ``claim`` is ε, (ε, δ), a Budget or a Loss. At most ``samples``
    runs on each dataset and about ``seconds`` seconds are used. ``varying=True`` says that the shape of an answer (its
    number of rows, say) is part of the release and may vary. ``timing=True`` also uses how long a call takes. A pass
    needs enough runs to see an event of probability ``visible`` beyond the claimed δ.

    Runs are assumed to be independent: ``fn`` must make a new object if the function remembers earlier calls.

    >>> from discreet.mechanisms import Laplace
    >>> noise = Laplace(sensitivity=1, epsilon=1)
    >>> def release(count, n):
    ...     import numpy
    ...     return noise.release(numpy.full(n, count))
    >>> check(release, 10, 11, claim=1, batch=True, samples=20_000).verdict
    <Verdict.HOLDS: 'holds'>
    >>> check(release, 10, 11, claim=0.5, batch=True, samples=20_000).verdict
    <Verdict.BROKEN: 'broken'>
    """
    if not callable(fn):
        raise ParameterError("fn", "must be a function", "Give a function of a dataset that returns one release.")
    stated = Claim.read(claim)
    audit = _Audit(
        runner=_Runner(fn, d, d2, batch=batch, timing=timing, deadline=time.monotonic() + seconds),
        claim=stated,
        alpha=float(parameters.read_probability(alpha, "alpha")),
        samples=parameters.read_whole(samples, "samples", least=2),
        visible=float(parameters.read_probability(visible, "visible")) + min(delta for _, delta in stated.points),
        varying=varying,
        words=(_describe(d), _describe(d2)),
        name=name or str(getattr(fn, "__name__", "function")),
    )
    return audit.run()


@dataclass(slots=True)
class _Runner:
    """Calls the function on both datasets, in random order, and keeps each output or error."""

    fn: Callable[..., Any]
    d: Any
    d2: Any
    batch: bool
    timing: bool
    deadline: float
    errors: int = 0
    empty: int = 0
    calls: int = 0

    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def run_both(self, count: int) -> tuple[Outputs, Outputs]:
        """``count`` outputs on each dataset, or fewer when time is over."""
        if self.batch:
            return self._run_many(self.d, count), self._run_many(self.d2, count)
        first: list[Any] = []
        second: list[Any] = []
        times: tuple[list[float], list[float]] = ([], [])
        while len(first) < count and not (first and self.is_late()):
            for _ in range(min(_CHUNK, count - len(first))):
                flip = SYSTEM.bits(1)
                for which in (flip, 1 - flip):
                    start = time.perf_counter()
                    output = self._run_one(self.d2 if which else self.d)
                    times[which].append(time.perf_counter() - start)
                    (second if which else first).append(output)
                if self.is_late():
                    break
        return self._encode(first, times[0]), self._encode(second, times[1])

    def _encode(self, values: list[Any], times: list[float]) -> Outputs:
        outputs = encode(values)
        if self.timing:
            outputs.seconds = np.array(times)
        return outputs

    def _run_one(self, data: Any) -> Any:
        self.calls += 1
        try:
            value = self.fn(data)
        except Exception as error:
            self.errors += 1
            return RaisedError(type(error).__name__, str(error))
        self.empty += value is None
        return value

    def _run_many(self, data: Any, count: int) -> Outputs:
        self.calls += count
        try:
            values = self.fn(data, count)
        except Exception as error:
            self.errors += count
            return encode([RaisedError(type(error).__name__, str(error))] * count)
        if values is None:
            self.empty += count
            return encode([None] * count)
        if not hasattr(values, "__len__") or len(values) != count:
            raise ParameterError("fn", "must return as many outputs as asked for", "fn(d, n) returns n releases.")
        if not isinstance(values, np.ndarray):
            self.errors += sum(isinstance(value, RaisedError) for value in values)
        return encode(values)


@dataclass(frozen=True, slots=True)
class _OutputEvent:
    """A set of cells of a feature, believed to be likelier on one of the datasets."""

    feature: OutputFeature
    cells: Integers
    score: float
    swapped: bool

    def count(self, outputs: Outputs) -> int:
        chosen = np.zeros(self.feature.size, dtype=bool)
        chosen[self.cells] = True
        return int(chosen[self.feature.cells(outputs)].sum())


@dataclass(frozen=True, slots=True)
class _TestResult:
    """The counts of an event on fresh outputs, and the bounds at the point of the claim that they refute most."""

    event: _OutputEvent
    hits: int
    other: int
    runs: int
    epsilon: float  # a lower bound on the true ε at the point's δ
    delta: float  # a lower bound on the true δ at the point's ε
    point: tuple[float, float]

    @property
    def broken(self) -> bool:
        return self.epsilon > self.point[0]

    @property
    def weight(self) -> tuple[float, float]:
        """The order of results: the largest excess over the claim, or else the closest approach to it."""
        excess = self.epsilon - self.point[0]
        return max(excess, 0.0), self.epsilon / self.point[0] if self.point[0] > 0 else excess


@dataclass(slots=True)
class _Audit:
    runner: _Runner
    claim: Claim
    alpha: float
    samples: int
    visible: float
    varying: bool
    words: tuple[str, str]
    name: str

    def run(self) -> Finding:
        start = time.monotonic()
        best: _TestResult | None = None
        rounds = [self.runner.run_both(min(_FIRST, self.samples // 2 or 1))]
        used, number, smallest = len(rounds[0][0]), 0, math.inf
        while used < self.samples and (number == 0 or not self.runner.is_late()):
            number += 1
            share = self.alpha / (number * (number + 1))
            train = tuple(join_outputs([pair[side] for pair in rounds]) for side in (0, 1))
            events = choose(train[0], train[1], self.claim)
            fresh = self.runner.run_both(min(used, self.samples - used))
            runs = len(fresh[0])
            used += runs
            smallest = min(smallest, smallest_visible(runs, self.claim, share / _PARTS))
            for event in events:
                tested = _test(event, fresh, self.claim, share / _PARTS)
                if best is None or tested.weight > best.weight:
                    best = tested
            if best is not None and best.broken:
                break
            rounds.append(fresh)
        if not (best is not None and best.broken):
            rounds = [(join_outputs([pair[0] for pair in rounds]), join_outputs([pair[1] for pair in rounds]))]
        verdict, detail = self._decide(best, rounds, smallest)
        found = self._make_finding(verdict, detail, best, used, smallest)
        return replace(found, seconds=time.monotonic() - start)

    def _decide(
        self, best: _TestResult | None, rounds: Sequence[tuple[Outputs, Outputs]], smallest: float
    ) -> tuple[Verdict, str]:
        runner = self.runner
        if best is not None and best.broken:
            return Verdict.BROKEN, f"found by: {best.event.feature.name}"
        if runner.errors:
            return Verdict.RAISES, f"the function raised in {runner.errors:,} of {runner.calls:,} runs"
        if runner.empty == runner.calls:
            return Verdict.EMPTY, "the function returned None in every run"
        if not self.varying and any(len(np.unique(side.shapes)) > 1 for pair in rounds for side in pair):
            fix = "Say varying=True if the shape is part of the release."
            return Verdict.SHAPE, f"answers to the same dataset differ in shape. {fix}"
        if smallest > self.visible:
            return Verdict.TOO_FEW, f"an event of probability {self.visible:g} could not have been seen"
        return Verdict.HOLDS, ""

    def _make_finding(
        self, verdict: Verdict, detail: str, best: _TestResult | None, used: int, smallest: float
    ) -> Finding:
        needed = None
        if verdict is Verdict.TOO_FEW:
            # Half of all runs go to training; the last round may err with the share of its number.
            rounds = max(2, int(math.log2(max(used, 2))))
            needed = 2 * runs_needed(self.claim, self.alpha / (rounds * (rounds + 1)) / _PARTS, self.visible)
        point = best.point if best is not None else self.claim.points[0]
        return Finding(
            name=self.name,
            method="black box",
            verdict=verdict,
            detail=detail,
            claim=self.claim.words(),
            claimed=point[0],
            delta=point[1],
            lower=max(0.0, best.epsilon) if best is not None else 0.0,
            delta_lower=max(0.0, best.delta) if best is not None else 0.0,
            alpha=self.alpha,
            samples=used,
            smallest=min(smallest, 1.0),
            needed=needed,
            witness=self._make_witness(best),
        )

    def _make_witness(self, best: _TestResult | None) -> Witness | None:
        if best is None:
            return None
        first, second = reversed(self.words) if best.event.swapped else self.words
        return Witness(
            first=first,
            second=second,
            event=best.event.feature.describe(best.event.cells.tolist()),
            hits=best.hits,
            runs=best.runs,
            other_hits=best.other,
            other_runs=best.runs,
        )


def choose(first: Outputs, second: Outputs, claim: Claim) -> list[_OutputEvent]:
    """For each direction the event with the best chance to refute the claim, by the training outputs.

    One half of them orders the cells of each feature. The other half decides how many cells to take and which feature
    is best. On the same half a feature with many cells would fit the noise and look too good.
    """
    fitted, judged = ([o.take_half(0), o.take_half(1)] for o in (first, second))
    best: dict[bool, _OutputEvent] = {}
    for feature in make_features(fitted[0], judged[0]):
        learnt, kept = (
            [
                np.bincount(feature.cells(side[half]), minlength=feature.size).astype(np.float64)
                for side in (fitted, judged)
            ]
            for half in (0, 1)
        )
        for swapped in (False, True):
            here, there = reversed(learnt) if swapped else learnt
            order = _order(here, there)
            here, there = reversed(kept) if swapped else kept
            taken, score = _choose_prefix(order, here, there, claim)
            if taken and (swapped not in best or score > best[swapped].score):
                best[swapped] = _OutputEvent(feature, order[:taken], score, swapped)
    return list(best.values())


def _order(here: Floats, there: Floats) -> Integers:
    """The cells that were seen on the first dataset, those with the largest ratio first."""
    seen = np.flatnonzero(here)
    return seen[np.argsort(-(here[seen] + 0.5) / (there[seen] + 0.5), kind="stable")]


def _choose_prefix(order: Integers, here: Floats, there: Floats, claim: Claim) -> tuple[int, float]:
    """How many of the ordered cells refute the claim most strongly (by Wilson's bounds), and how strongly."""
    hits, other = np.cumsum(here[order]), np.cumsum(there[order])
    low = _wilson(hits, here.sum(), -_Z)
    high = _wilson(other, there.sum(), _Z)
    score = np.full(len(order), -np.inf)
    for epsilon, delta in claim.points:
        excess = low - delta
        found = np.log(np.maximum(excess, 1e-300)) - np.log(high) - epsilon
        score = np.maximum(score, np.where(excess > 0, found, -np.inf))
    if not len(score) or np.isneginf(score).all():
        return 0, -math.inf
    top = int(np.argmax(score))
    return top + 1, float(score[top])


def _wilson(hits: Floats, runs: float, z: float) -> Floats:
    share = hits / runs
    middle = share + z * z / (2 * runs)
    half = z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    bound: Floats = np.maximum((middle + half) / (1 + z * z / runs), 0.0)
    return bound


def _test(event: _OutputEvent, fresh: tuple[Outputs, Outputs], claim: Claim, alpha: float) -> _TestResult:
    """Count an event on outputs that were not used to choose it."""
    here, there = reversed(fresh) if event.swapped else fresh
    runs, hits, other = len(here), event.count(here), event.count(there)
    low, high = lower_bound(hits, runs, alpha), upper_bound(other, runs, alpha)

    def at(point: tuple[float, float]) -> _TestResult:
        excess = low - point[1]
        epsilon = math.log(excess / high) if excess > 0 else -math.inf
        return _TestResult(event, hits, other, runs, epsilon, low - math.exp(point[0]) * high, point)

    return max(map(at, claim.points), key=lambda tested: tested.weight)


def _describe(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 200 else f"{text[:197]}..."
