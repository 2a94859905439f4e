"""The mechanisms under audit: for each one a pair of neighbouring inputs whose loss is close to the stated one.

A subject says how to draw many outputs, and how likely each is. The exact check (is the stated law private?), the fit
(is this the law that is drawn?) and the black box (does the claim hold without any knowledge of the law?) use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np

from discreet.exact import Integers, Interval, ln
from discreet.mechanisms.count import Count
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.noisy_max import NoisyMax, TopK
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.quantiles.cells import CellMode, CellQuantiles
from discreet.mechanisms.quantiles.column_quantiles import Quantile, Quantiles
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.mechanisms.sum import Sum
from discreet.mechanisms.threshold import GaussianThreshold, KeySelection, LaplaceThreshold
from discreet.mechanisms.variance import Variance
from discreet.mechanisms.weighted_selection import WeightedSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism, two neighbouring inputs, and how to check it.

    ``draw(given, n)`` makes n outputs. ``probability(output, given)`` is their law. ``outputs`` are those that are
    checked exactly; with ``whole`` they are all outputs. A ``slow`` subject needs a call for each output, so fewer are
    drawn. ``fit`` is the number of outputs that are compared with the law.
    """

    mechanism: Any
    x: Any
    y: Any
    draw: Callable[[Any, int], Any]
    probability: Callable[[Any, Any], Interval] | None = None
    outputs: Iterable[Any] = ()
    whole: bool = False
    slow: bool = False
    varying: bool = False
    fit: int = 50_000
    label: str = ""

    @property
    def name(self) -> str:
        """The name of the mechanism, with the label of this subject."""
        return type(self.mechanism).__name__ + (f" ({self.label})" if self.label else "")


def list_subjects() -> list[Subject]:
    """Every mechanism of the package, at least once."""
    return [*_list_noises(), *_list_responses(), *_list_choices(), *_list_cells(), *_list_keys(), *_list_statistics()]


def _make_array_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    """Draws of a mechanism whose noise is independent in each place of an array."""
    return lambda given, n: mechanism.release(np.full(n, given))


def _make_single_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    return lambda given, n: [_to_plain(mechanism.release(given)) for _ in range(n)]


def _to_plain(output: Any) -> Any:
    return tuple(output.tolist()) if isinstance(output, np.ndarray) else output


def _list_noises() -> list[Subject]:
    laplace, cents = (
        Laplace(sensitivity=1, epsilon=1),
        Laplace(sensitivity=1, epsilon=0.5, resolution=0.25, dimension=1),
    )
    strong = Laplace(sensitivity=3, epsilon=ln(20))
    gaussian = Gaussian(sensitivity=1, epsilon=1, delta=0.01)
    wide = Gaussian(sensitivity=2, rho=0.5, dimension=1)
    rounded = RoundedGaussian(sensitivity=1, epsilon=1, delta=0.01)
    narrow = RoundedGaussian(sensitivity=2, mu=1)
    return [
        _make_noise_subject(laplace, 10, 11, range(-10, 32)),
        _make_noise_subject(strong, 0, 3, range(-12, 16), "ln 20"),
        _make_noise_subject(cents, 1.0, 2.0, [i / 4 for i in range(-40, 52)], "on a grid"),
        _make_noise_subject(gaussian, 10, 11, range(-4, 26)),
        _make_noise_subject(wide, 0, 2, range(-15, 18), "zCDP"),
        _make_noise_subject(rounded, 10, 11, range(-4, 26)),
        _make_noise_subject(narrow, 0, 2, range(-15, 18), "μ"),
    ]


def _make_noise_subject(mechanism: Any, x: Any, y: Any, outputs: Iterable[Any], label: str = "") -> Subject:
    return Subject(
        mechanism=mechanism,
        x=x,
        y=y,
        draw=_make_array_draw(mechanism),
        probability=mechanism.probability,
        outputs=outputs,
        label=label,
    )


def _list_responses() -> list[Subject]:
    coin, five = RandomizedResponse(epsilon=ln(3)), RandomizedResponse(epsilon=1, categories=5)
    return [
        Subject(
            mechanism=mechanism,
            x=0,
            y=1,
            draw=_make_array_draw(mechanism),
            probability=mechanism.probability,
            outputs=range(mechanism.size),
            whole=True,
            label=label,
        )
        for mechanism, label in ((coin, "the coin"), (five, "5 answers"))
    ]


def _list_selections() -> tuple[Any, ...]:
    return (
        Exponential(sensitivity=1, epsilon=1),
        PermuteAndFlip(sensitivity=1, epsilon=1),
        NoisyMax(sensitivity=1, epsilon=1),
    )


def _list_choices() -> list[Subject]:
    x, y = [3, 2, 2, 0], [2, 3, 3, 1]
    places = range(4)
    found = [
        Subject(
            mechanism=m,
            x=x,
            y=y,
            draw=_make_single_draw(m),
            probability=m.probability,
            outputs=places,
            whole=True,
            slow=True,
        )
        for m in _list_selections()
    ]
    two = TopK(k=2, sensitivity=1, epsilon=1)
    found.append(
        Subject(
            mechanism=two,
            x=x,
            y=y,
            draw=_make_single_draw(two),
            probability=two.probability,
            slow=True,
            outputs=list(permutations(places, 2)),
            whole=True,
        )
    )
    sparse = SparseVector(threshold=2, sensitivity=1, epsilon=1)
    verdicts = [(False,) * i + (True,) for i in range(4)] + [(False,) * 4]
    found.append(
        Subject(
            mechanism=sparse,
            x=[1, 1, 1, 3],
            y=[2, 2, 2, 2],
            draw=_make_single_draw(sparse),
            probability=sparse.probability,
            outputs=verdicts,
            whole=True,
            slow=True,
            varying=True,
        )
    )
    median, three = (
        Quantile(q=0.5, bounds=(0, 10), epsilon=1),
        Quantiles(qs=[0.25, 0.5, 0.75], bounds=(0, 10), epsilon=1),
    )
    found.append(
        Subject(
            mechanism=median,
            x=[3, 3, 4],
            y=[3, 3, 4, 9],
            draw=_make_single_draw(median),
            probability=median.probability,
            outputs=range(11),
            whole=True,
            slow=True,
        )
    )
    found.append(Subject(mechanism=three, x=[3, 3, 4], y=[3, 3, 4, 9], draw=_make_single_draw(three), slow=True))
    return found


def _list_cells() -> list[Subject]:
    """Choices from histograms: in one group, in two that a unit reaches, and for a unit that is replaced by another."""
    one = CellQuantiles(qs=[0.25], first=0, last=10, epsilon=1)
    moved = CellMode(first=0, last=4, epsilon=1, neighbours="replace")
    both = CellQuantiles(qs=[0.5], first=0, last=2, groups=2, epsilon=1)
    three = CellQuantiles(qs=[0.25, 0.5, 0.75], first=0, last=10, epsilon=1)
    few, more = _make_histogram([3, 4], [2, 1]), _make_histogram([3, 4, 9], [2, 1, 1])
    low, high = _make_histogram([0, 1], [2, 1]), _make_histogram([0, 1], [1, 2])
    pair, apart = _make_histogram([0], [2]), _make_histogram([0, 2], [2, 1])
    return [
        Subject(
            mechanism=one,
            x=[few],
            y=[more],
            draw=_make_group_draw(one),
            probability=_make_joint_probability(one.probability),
            outputs=range(11),
            whole=True,
            fit=20_000,
        ),
        Subject(
            mechanism=moved,
            x=[low],
            y=[high],
            draw=_make_group_draw(moved),
            fit=20_000,
            probability=_make_joint_probability(moved.probability),
            outputs=range(5),
            whole=True,
            label="replace",
        ),
        Subject(
            mechanism=both,
            x=[pair, pair],
            y=[apart, apart],
            draw=_make_group_draw(both),
            fit=20_000,
            probability=_make_joint_probability(both.probability),
            outputs=list(product(range(3), repeat=2)),
            whole=True,
            label="two groups",
        ),
        Subject(mechanism=three, x=[few], y=[more], draw=_make_group_draw(three), label="three"),
    ]


def _make_histogram(cells: list[int], counts: list[int]) -> tuple[Integers, Integers]:
    return np.array(cells), np.array(counts)


def _make_group_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    """Draws for n copies of the same groups: the choice in each of them."""

    def draw(given: Any, n: int) -> Any:
        drawn = np.array(mechanism.release_all(list(given) * n)).reshape(n, -1)
        return drawn[:, 0] if drawn.shape[1] == 1 else drawn

    return draw


def _make_joint_probability(each: Callable[[Any, Any], Interval]) -> Callable[[Any, Any], Interval]:
    """The joint probability of groups or keys that are independent."""

    def probability(output: Any, given: Any) -> Interval:
        found = Interval.of(1)
        for one, private in zip(np.atleast_1d(output).tolist(), given):
            found *= each(one, private)
        return found

    return probability


def _list_keys() -> list[Subject]:
    rule = KeySelection(epsilon=1, delta=0.01)
    noisy = (LaplaceThreshold(epsilon=1, delta=0.01), GaussianThreshold(rho=0.2, delta=0.01))
    found = [
        Subject(
            mechanism=rule,
            x=n,
            y=n + 1,
            draw=lambda given, n: rule.release_array(np.full(n, given)),
            probability=lambda output, given: rule.probability(bool(output), given),
            outputs=(False, True),
            whole=True,
            label=f"{n} or {n + 1} units",
        )
        for n in (0, 3)
    ]
    weighted = WeightedSelection(rho=0.2, delta=0.01, max_groups=2)
    alone, shared = weighted.weight(1), weighted.weight(2)
    found += [
        Subject(
            mechanism=weighted,
            x=x,
            y=y,
            probability=_make_joint_probability(weighted.probability),
            label=label,
            draw=lambda given, n: weighted.release_array(np.tile(given, n)).reshape(n, -1),
            outputs=list(product((False, True), repeat=2)),
            whole=True,
        )
        for x, y, label in (
            ((0, 0), (shared, shared), "two new keys"),
            ((0, 4 * alone), (alone, 4 * alone), "a new key"),
            ((5 * alone, 5 * alone), (5 * alone + shared, 5 * alone + shared), "known keys"),
        )
    ]
    for one in noisy:
        bar = int(one.bar)
        found.append(
            Subject(
                mechanism=one,
                x=1,
                y=2,
                draw=_make_threshold_draw(one),
                probability=_make_threshold_probability(one),
                outputs=[0, *range(bar, bar + 25)],
            )
        )
        found.append(
            Subject(
                mechanism=one,
                x=0,
                y=1,
                draw=_make_threshold_draw(one),
                probability=_make_threshold_probability(one),
                label="a new key",
                outputs=[0, *range(bar, bar + 25)],
            )
        )
    return found


def _make_threshold_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    """The noisy number of units, or 0 where the key is not published."""
    return lambda given, n: mechanism.release_array(np.full(n, given))[1]


def _make_threshold_probability(mechanism: Any) -> Callable[[Any, Any], Interval]:
    return lambda output, given: mechanism.probability(None if output == 0 else int(output), given)


def _list_statistics() -> list[Subject]:
    count, cells = Count(epsilon=1), Histogram(categories=3, epsilon=1)
    moved = Histogram(categories=3, epsilon=1, neighbours="replace")
    total = Sum(bounds=(0, 5), epsilon=1)
    mean, spread = Mean(bounds=(0, 4), epsilon=1), Variance(bounds=(0, 4), epsilon=1)
    rows, more = [1, 2, 3], [1, 2, 3, 4]
    found = [
        Subject(
            mechanism=count,
            x=10,
            y=11,
            draw=lambda given, n: count.noise.release(np.full(n, given)),
            probability=count.probability,
            outputs=range(22),
        ),
        Subject(
            mechanism=total,
            x=rows,
            y=[*rows, 5],
            draw=_make_parts_draw(total),
            probability=_make_single_probability(total),
            outputs=range(-20, 40),
        ),
    ]
    for histogram, y in ((cells, [0, 1, 1, 2]), (moved, [0, 1, 2])):
        found.append(
            Subject(
                mechanism=histogram,
                x=[0, 1, 1],
                y=y,
                draw=_make_histogram_draw(histogram),
                probability=histogram.probability,
                outputs=list(product(range(-2, 5), repeat=3)),
                label=str(histogram.neighbours),
            )
        )
    for statistic, low in ((mean, (-6, -1)), (spread, (-3, -6, 0))):
        spans = [range(first, first + (10 if len(low) == 2 else 8)) for first in low]
        found.append(
            Subject(
                mechanism=statistic,
                x=rows,
                y=more,
                draw=_make_parts_draw(statistic),
                probability=statistic.probability,
                outputs=list(product(*spans)),
                fit=4_000,
            )
        )
    return found


def _make_parts_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    """The noisy whole numbers behind a statistic; what is published is computed from them."""

    def draw(given: Any, n: int) -> Any:
        drawn = [part.release(np.full(n, one)) for part, one in zip(mechanism.parts, mechanism.answers(given))]
        return drawn[0] if len(drawn) == 1 else np.stack(drawn, axis=1)

    return draw


def _make_single_probability(mechanism: Any) -> Callable[[Any, Any], Interval]:
    return lambda output, given: mechanism.probability((int(output),), given)


def _make_histogram_draw(histogram: Histogram) -> Callable[[Any, int], Any]:
    return lambda given, n: histogram.noise.release(np.tile(histogram.count(given), (n, 1)))
