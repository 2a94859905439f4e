"""Mechanisms that break their promise, each in a way that was seen in real software or in a paper, and right ones.

Every entry audits itself and returns the finding. Noise is seeded, so that a run never differs; where only the size
of noise matters it is on whole numbers, so that the bits of floats do not give it away for another reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.accounting import events
from discreet.audit import Finding, check, check_events, replay
from discreet.audit.exact_checks import check_law
from discreet.exact import Interval
from discreet.mechanisms import CellMode, CellQuantiles, Gaussian, Laplace, LaplaceThreshold, WeightedSelection
from discreet.parameters import Number

Array = npt.NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Entry:
    """A mechanism to audit: its number in the catalogue, what is wrong (or right) with it, and its audit."""

    id: str
    what: str
    audit: Callable[[], Finding]
    long: bool = False

    def __str__(self) -> str:
        return f"{self.id} {self.what}"


def lap(rng: Rng, scale: float, size: Any) -> Array:
    """Discrete Laplace noise."""
    p = 1 - np.exp(-1 / scale)
    noise: Array = rng.geometric(p, size) - rng.geometric(p, size)
    return noise


def box(
    fn: Callable[[Any, int, Rng], Any], d: Any, d2: Any, claim: Any, *, samples: int = 100_000, **more: Any
) -> Callable[[], Finding]:
    """A black box whose function takes a seeded generator."""

    def audit() -> Finding:
        rng = np.random.default_rng(20_261_115)
        return check(lambda data, n: fn(data, n, rng), d, d2, claim, batch=True, samples=samples, **more)

    return audit


def laplace(scale: float) -> Callable[[Any, int, Rng], Any]:
    """Noise of a scale on a number or on every number of a list."""

    def fn(data: Any, n: int, rng: Rng) -> Any:
        if isinstance(data, list):
            return np.array(data) + lap(rng, scale, (n, len(data)))
        return data + lap(rng, scale, n)

    return fn


def max_value(noise: Callable[[Rng, Any], Array]) -> Callable[[Any, int, Rng], Any]:
    return lambda q, n, rng: np.round((np.array(q) + noise(rng, (n, len(q)))).max(axis=1), 2)


def svt(
    *, bar: float, answer: float, most: int | None, epsilon: float = 1.0, value: str = "", refresh: float = 0.0
) -> Callable[[Any, int, Rng], Any]:
    """The sparse vector technique as Lyu, Su and Li (2017) tell its six versions: 1 above, 0 below, −1 not reached.

    ``value`` "same" gives the noisy answer that was compared (version 3), "fresh" one with noise of its own.
    """

    def fn(q: Any, n: int, rng: Rng) -> Any:
        queries = np.array(q, dtype=float)
        noise = rng.laplace(0, answer, (n, len(q))) if answer else np.zeros((n, len(q)))
        bars = 1.0 + rng.laplace(0, bar, n)
        out = np.full((n, len(q)), -1.0)
        left = np.full(n, len(q) + 1 if most is None else most)
        for i, query in enumerate(queries):
            above = (query + noise[:, i] >= bars) & (left > 0)
            told = np.ones(n)
            if value == "same":
                told = np.round(query + noise[:, i], 1) + 100
            elif value == "fresh":
                told = 100.0 + query + lap(rng, 3 / epsilon, n)
            out[:, i] = np.where(left > 0, np.where(above, told, 0.0), -1.0)
            left -= above
            if refresh:
                bars = np.where(above, 1.0 + rng.laplace(0, refresh, n), bars)
        return out

    return fn


UP, DOWN = [1] * 5 + [0] * 5, [0] * 5 + [1] * 5


def mean_with_true_n(data: Any, n: int, rng: Rng) -> Any:
    """In hundredths; the noise is scaled by the true number of rows."""
    return round(100 * sum(data) / len(data)) + lap(rng, 100 / len(data), n)


def only_present_keys(data: Any, n: int, rng: Rng) -> Any:
    keys = sorted(set(data))
    return [{k: data.count(k) + int(z) for k, z in zip(keys, lap(rng, 1, len(keys)))} for _ in range(n)]


def bounds_from_data(data: Any, n: int, rng: Rng) -> Any:
    return sum(data) + lap(rng, max(1, max(data) - min(data)), n)


def unclipped_sum(data: Any) -> Any:
    np.clip(data, 0, 5)  # and then forgotten
    return Laplace(sensitivity=5, epsilon=1).release(int(sum(data)))


def nan_passes(data: Any, n: int, rng: Rng) -> Any:
    return np.round(np.clip(np.array(data, dtype=float), 0, 10).sum() + lap(rng, 10, n))


def twice(data: Any, n: int, rng: Rng) -> Any:
    return np.stack([data + lap(rng, 1, n), data + lap(rng, 1, n)], axis=1)


def float32_sum(data: Any, n: int, rng: Rng) -> Any:
    total = np.add.accumulate(np.array(data, dtype=np.float32), dtype=np.float32)[-1]
    return int(total) + lap(rng, 4096, n)


def casacuberta() -> tuple[list[float], list[float]]:
    """Two lists that differ in one row of 4096 whose sums in float32 differ by 8192."""
    small = float(np.nextafter(np.float32(1), np.float32(2)))
    rest = [4096.0] * (2**12 - 1) + [small] * 2**13
    return [4096.0, *rest], rest


def int32_sum(data: Any, n: int, rng: Rng) -> Any:
    with np.errstate(over="ignore"):
        total = np.array(data, dtype=np.int32).sum(dtype=np.int32)
    return int(total) + lap(rng, 10, n)


def fixed_seed(data: Any, n: int, _: Rng) -> Any:
    return np.array([data + lap(np.random.default_rng(7), 1, 1)[0] for _ in range(n)])


def noise_reused(data: Any, n: int, rng: Rng) -> Any:
    """Two counts, everybody and everybody but one, with the same noise."""
    noise = lap(rng, 2, n)
    return np.stack([len(data) + noise, sum(row != "me" for row in data) + noise], axis=1)


def true_threshold(data: Any, n: int, rng: Rng) -> Any:
    return [{"key": data + int(z)} if data >= 2 else {} for z in lap(rng, 1, n)]


def short_threshold(data: Any, n: int, rng: Rng) -> Any:
    """A threshold that ignores δ: whatever is above 1 is published."""
    noisy = data + lap(rng, 1, n)
    return np.where((noisy > 1) & (data > 0), noisy, 0)


def limit_on_true(data: Any, n: int, rng: Rng) -> Any:
    """ORDER BY the true count, LIMIT 1, then noise."""
    top = max(range(len(data)), key=lambda i: data[i])
    return np.stack([np.full(n, top), data[top] + lap(rng, 1, n)], axis=1)


def raises_on_rare(data: Any) -> Any:
    if "rare" in data:
        raise ValueError("cannot convert")
    return Laplace(sensitivity=1, epsilon=1).release(len(data))


def slow_on_rare(data: Any) -> Any:
    if "rare" in data:
        time.sleep(0.002)
    return 1


def residual_noise(data: Any, n: int, rng: Rng) -> Any:
    """A view at scale 10, refined for another analyst by the exact view plus the residual noise only."""
    return np.stack([data + lap(rng, 10, n), data + lap(rng, 0.5, n)], axis=1)


def cached_zero(data: Any, n: int, rng: Rng) -> Any:
    """Twenty times the same question; an answer of 0 is not found in the cache and drawn again."""
    out = np.empty((n, 20), dtype=np.int64)
    cached = np.zeros(n, dtype=np.int64)
    for i in range(20):
        cached = np.where(cached == 0, data + lap(rng, 1, n), cached)
        out[:, i] = cached
    return out


def classical(epsilon: Number, delta: float) -> Callable[[], Finding]:
    sigma = float(np.sqrt(2 * np.log(1.25 / delta)) / float(epsilon))
    return lambda: check_events([events.Gaussian(sensitivity=1, sigma=sigma)], (epsilon, delta))


def dropped_count() -> Finding:
    """Ten releases, priced as one."""
    ten = events.DiscreteLaplace(sensitivity=1, scale=1, count=10)
    return check_events([ten], (1, 1e-6))


def grey(fn: Callable[[Any], Any], d: Any, d2: Any, claim: Any = None) -> Callable[[], Finding]:
    return lambda: replay(fn, d, d2, claim)


def prior_scale(data: Any) -> Any:
    """Noise whose scale is found in the data."""
    return Laplace(sensitivity=max(map(abs, data)), epsilon=1).release(sum(data))


def double_spend(data: Any) -> Any:
    noise = Laplace(sensitivity=1, epsilon=1)
    return noise.release(len(data)), noise.release(len(data))


def true_n_grey(data: Any) -> Any:
    return Laplace(sensitivity=10, epsilon=1).release(sum(data)) / len(data)


def keys_grey(data: Any) -> Any:
    noise = Laplace(sensitivity=1, epsilon=1)
    return {key: noise.release(data.count(key)) for key in sorted(set(data))}


def joint(each: Callable[[Any, Any], Interval]) -> Callable[[Any, Any], Interval]:
    """The law of several independent decisions."""

    def probability(output: Any, given: Any) -> Interval:
        found = Interval.of(1)
        for one, private in zip(output, given):
            found *= each(one, private)
        return found

    return probability


def groups_ignored() -> Finding:
    """The mode of three groups, each at the full ε, for units that are in all of them."""
    rule = CellMode(first=0, last=1, epsilon=1)
    x, y = [([0, 1], [1, 2])] * 3, [([0, 1], [2, 2])] * 3
    return check_law(joint(rule.probability), x, y, list(product(range(2), repeat=3)), rule.privacy, whole=True)


def not_halved() -> Finding:
    """A median with the factor of a monotone score: rank errors move both ways."""
    twice, claimed = (CellQuantiles(qs=[0.5], first=0, last=40, epsilon=e) for e in (2, 1))
    x, y = ([0, 20, 40], [8, 1, 7]), ([0, 20, 40], [8, 1, 8])
    return check_law(twice.probability, x, y, range(41), claimed.privacy, whole=True)


def not_doubled() -> Finding:
    """The mode for units that are replaced, calibrated for units that come or go."""
    rule = CellMode(first=0, last=1, epsilon=1)
    return check_law(rule.probability, ([0, 1], [9, 8]), ([0, 1], [8, 9]), range(2), rule.privacy, whole=True)


def weights_not_spread(data: Any) -> Any:
    """A unit in four keys adds its whole weight to each."""
    rule = WeightedSelection(rho=1, delta=1e-6, max_groups=4)
    return rule.release({key: rule.whole * (90 + data.count(key)) for key in "abcd"})


def one_key_bar() -> Finding:
    """The threshold of one new key, for units that bring eight."""
    one, eight = (WeightedSelection(rho=0.02, delta=0.01, max_groups=g, whole=64) for g in (1, 8))
    law, weight = joint(one.probability), eight.weight(8)
    none = (False,) * 8
    outputs = ("none", "some")

    def probability(output: str, given: int) -> Interval:
        silent = law(none, (given,) * 8)
        return silent if output == "none" else Interval.of(1) - silent

    return check_law(probability, 0, weight, outputs, (0, 0.01), whole=True)


BROKEN = (
    Entry("B1", "scale ε instead of 1/ε", box(laplace(0.5), [3, 0, 2], [3, 1, 2], 0.5)),
    Entry("B2a", "scale 50 % short", box(laplace(0.5), 0, 1, 1)),
    Entry("B2b", "scale 10 % short", box(laplace(0.9), 0, 1, 1, samples=400_000)),
    Entry("B2c", "scale 2 % short", box(laplace(0.98), 0, 1, 1, samples=16_000_000), long=True),
    Entry("B3", "add-remove sensitivity for replace", box(laplace(1), [3, 4], [4, 3], 1)),
    Entry(
        "B4a",
        "noisy max gives the value (Laplace)",
        box(max_value(lambda r, s: r.laplace(0, 2, s)), [0] * 10, [1] * 10, 1),
    ),
    Entry(
        "B4b",
        "noisy max gives the value (exponential)",
        box(max_value(lambda r, s: r.exponential(2, s)), [0] * 10, [1] * 10, 1),
    ),
    Entry(
        "B5",
        "sparse vector 3: gives the compared value",
        box(svt(bar=2, answer=2, most=1, value="same"), UP, DOWN, 1, samples=400_000),
    ),
    Entry(
        "B6", "sparse vector 4: too little noise", box(svt(bar=4, answer=4 / 3, most=1), UP, DOWN, 1, samples=400_000)
    ),
    Entry("B7", "sparse vector 5: no noise on answers", box(svt(bar=2, answer=0, most=None), UP, DOWN, 1)),
    Entry("B8", "sparse vector 6: no end", box(svt(bar=2, answer=2, most=None), UP, DOWN, 1)),
    Entry(
        "B9",
        "sparse vector: the count of yeses is never used",
        box(svt(bar=2, answer=4, most=None), [2] * 20 + [0] * 20, [1] * 20 + [1] * 20, 1, samples=400_000),
    ),
    Entry("B10", "histogram without a bound on cells per person", box(laplace(1), [5, 5, 5, 5], [6, 6, 6, 5], 1)),
    Entry("B11", "join that triples a person's rows", box(laplace(1), 12, 15, 1)),
    Entry("B12", "mean with the true n", box(mean_with_true_n, [0, 0], [0, 0, 1], 1)),
    Entry("B12g", "mean with the true n, grey", grey(true_n_grey, [1, 2], [1, 2, 10])),
    Entry("B13", "keys found in the data", box(only_present_keys, ["a", "b"], ["a", "b", "c"], 1, samples=20_000)),
    Entry("B13g", "keys found in the data, grey", grey(keys_grey, ["a", "b"], ["a", "b", "c"])),
    Entry("B14", "bounds found in the data", box(bounds_from_data, [1, 2, 3], [1, 2, 3, 100], 1)),
    Entry("B14g", "noise scaled by the data, grey", grey(prior_scale, [1, 2], [1, 2, 9])),
    Entry("B15", "clipped, but the raw values summed", grey(unclipped_sum, [1, 2], [1, 2, 100])),
    Entry("B15b", "clipped, but the raw values summed, black box", box(laplace(5), 3, 103, 1)),
    Entry(
        "B16", "a range of zero width: no noise", box(lambda d, n, _: np.full(n, sum(d)), [100, 0], [100, 0, 100], 1)
    ),
    Entry("B17", "no bounds, so no noise", lambda: check(sum, [1.5], [1.5, 2.5], 1, samples=4_000)),
    Entry("B18", "parameters that make the scale 0", box(lambda d, n, r: d + np.round(r.laplace(0, 1e-9, n)), 3, 4, 1)),
    Entry("B19", "NaN passes the clip", box(nan_passes, [1, 2], [1, 2, float("nan")], 1)),
    Entry("B20a", "two releases at the full ε", box(twice, 0, 1, 1)),
    Entry("B20b", "ten releases priced as one", dropped_count),
    Entry("B20g", "two releases at the full ε, grey", grey(double_spend, [1], [1, 2], 1)),
    Entry("B21a", "Laplace noise in floats", box(lambda d, n, r: d + r.laplace(0, 1, n), 0.0, 1.0, 1)),
    Entry("B21b", "Gaussian noise in floats", box(lambda d, n, r: d + r.normal(0, 10, n), 0.0, 1.0, (1, 1e-5))),
    Entry("B22a", "sum in float32", box(float32_sum, *casacuberta(), 1)),
    Entry("B22b", "sum in int32", box(int32_sum, [2**31 - 5], [2**31 - 5, 10], 1)),
    Entry("B23a", "a fixed seed", box(fixed_seed, 0, 1, 1, samples=4_000)),
    Entry("B23b", "the same noise on two questions", box(noise_reused, ["you", "me"], ["you"], 1)),
    Entry("B24a", "classical Gaussian at ε = 10", classical(10, 0.01)),
    Entry("B24b", "classical Gaussian at ε = 8", classical(8, 0.01)),
    Entry("B24c", "classical Gaussian at ε = 10, small δ", classical(10, 1e-5)),
    Entry("B25a", "threshold on the true count", box(true_threshold, 1, 2, 1, samples=20_000, varying=True)),
    Entry("B25b", "threshold without its δ", box(short_threshold, 0, 1, (1, 1e-6))),
    Entry("B25c", "order and limit by true counts", box(limit_on_true, [5, 4], [5, 6], 1)),
    Entry("B26a", "an error on a rare value", lambda: check(raises_on_rare, ["a"], ["a", "rare"], 1, samples=4_000)),
    Entry(
        "B26b",
        "slower on a rare value",
        lambda: check(slow_on_rare, ["a"], ["a", "rare"], 1, samples=2_000, timing=True),
    ),
    Entry(
        "B26c",
        "the number of rows in the open",
        box(lambda d, n, r: [list(row) for row in lap(r, 1, (n, len(d)))], [1, 2], [1, 2, 3], 1, samples=20_000),
    ),
    Entry("B26g", "an error on a rare value, grey", grey(raises_on_rare, ["a"], ["a", "rare"])),
    Entry("B27", "refined with the residual noise only", box(residual_noise, 0, 1, 0.2)),
    Entry("B28", "a cached 0 is drawn again", box(cached_zero, 0, 1, 1, samples=400_000)),
    Entry("B29a", "a mode in each of a unit's groups at the full ε", groups_ignored),
    Entry("B29b", "a median with the factor not halved", not_halved),
    Entry("B29c", "a mode under replace, calibrated for add-remove", not_doubled),
    Entry("B30a", "the threshold of one key for units with eight", one_key_bar),
    Entry("B30g", "weights that are not spread, grey", grey(weights_not_spread, list("abcd"), [])),
)


def gumbel_max(q: Any, n: int, rng: Rng) -> Any:
    return (np.array(q) + rng.gumbel(0, 2, (n, len(q)))).argmax(axis=1)


def truncated(data: Any, n: int, rng: Rng) -> Any:
    return np.clip(data + lap(rng, 1, n), 0, 5)


def snapping(data: Any, n: int, rng: Rng) -> Any:
    """Clamp, add, round to a power of two at or above the scale, clamp (Mironov 2012)."""
    return np.clip(np.round(np.clip(data, -50, 50) + rng.laplace(0, 1, n)), -50, 50)


def prefix_sums(data: Any, n: int, rng: Rng) -> Any:
    return np.cumsum(data) + lap(rng, 1, (n, len(data)))


def rappor(data: Any, n: int, rng: Rng) -> Any:
    """Four bits, one hot, each told wrongly with probability 1/4."""
    bits = np.zeros(4, dtype=np.int64)
    bits[data] = 1
    return bits ^ (rng.random((n, 4)) < 0.25)


def two_halves(data: Any, n: int, rng: Rng) -> Any:
    """A mean of values up to 10: noisy sum and noisy count, half of ε each."""
    total, count = sum(data) + lap(rng, 20, n), len(data) + lap(rng, 2, n)
    return np.round(total / np.maximum(count, 1), 1)


def ours(mechanism: Any, d: Any, d2: Any, **more: Any) -> Callable[[], Finding]:
    return lambda: check(
        lambda x, n: mechanism.release(np.full(n, x)), d, d2, mechanism.privacy, batch=True, alpha=1e-9, **more
    )


def thresholded() -> Finding:
    rule = LaplaceThreshold(epsilon=1, delta=0.01)
    return check(lambda x, n: rule.release_array(np.full(n, x))[1], 0, 1, (1, 0.01), batch=True, alpha=1e-9)


def weighed() -> Finding:
    rule = WeightedSelection(rho=0.2, delta=0.01, max_groups=2)
    return check(
        lambda x, n: rule.release_array(np.tile(x, n)).reshape(n, 2),
        (0, 0),
        (rule.weight(2), rule.weight(2)),
        rule.privacy,
        batch=True,
        alpha=1e-9,
    )


def chosen_in_groups() -> Finding:
    """A unit in two groups: both medians together, at their ε."""
    rule = CellQuantiles(qs=[0.5], first=0, last=2, groups=2, epsilon=1)
    x, y = [([0], [2]), ([0], [2])], [([0, 2], [2, 1])] * 2
    return check_law(joint(rule.probability), x, y, list(product(range(3), repeat=2)), rule.privacy, whole=True)


RIGHT = (
    Entry("C1", "Laplace", box(laplace(1), 0, 1, 1, samples=400_000)),
    Entry("C1o", "Laplace, ours", ours(Laplace(sensitivity=1, epsilon=1), 0, 1)),
    Entry("C2", "randomized response", box(lambda d, n, r: d ^ (r.random(n) < 0.25), 0, 1, float(np.log(3)) + 1e-9)),
    Entry("C3", "Gaussian, ours", ours(Gaussian(sensitivity=1, epsilon=1, delta=0.01), 0, 1)),
    Entry(
        "C4a",
        "noisy max names the winner (Laplace)",
        box(lambda q, n, r: (np.array(q) + r.laplace(0, 2, (n, len(q)))).argmax(axis=1), [1, 1, 0], [0, 0, 1], 1),
    ),
    Entry("C4b", "noisy max names the winner (Gumbel)", box(gumbel_max, [1, 1, 0], [0, 0, 1], 1)),
    Entry("C4c", "medians in two groups", chosen_in_groups),
    Entry("C5a", "sparse vector 1", box(svt(bar=2, answer=4, most=1), UP, DOWN, 1)),
    Entry("C5b", "sparse vector 2", box(svt(bar=4, answer=8, most=2, refresh=4), UP, DOWN, 1)),
    Entry("C5c", "sparse vector with fresh values", box(svt(bar=4, answer=8, most=1, value="fresh"), UP, DOWN, 1)),
    Entry("C6", "histogram, one cell for each person", box(laplace(1), [5, 5, 5], [5, 6, 5], 1)),
    Entry("C7", "truncated geometric", box(truncated, 2, 3, 1)),
    Entry("C8", "snapping", box(snapping, 0, 1, 1.01)),
    Entry("C9", "prefix sums at their composed ε", box(prefix_sums, [1, 0, 0], [0, 0, 0], 3)),
    Entry("C10", "keys by a threshold, at their δ", thresholded),
    Entry("C10w", "keys by weights, at their δ", weighed),
    Entry("C11", "RAPPOR at its own ε", box(rappor, 0, 1, 2 * float(np.log(3)) + 1e-9)),
    Entry("C12", "mean from two halves", box(two_halves, [5, 5], [5, 5, 10], 1)),
)
TIGHT = ("C1", "C1o", "C2", "C6")
