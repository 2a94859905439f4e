"""The mechanisms under audit: for each one a pair of neighbouring inputs whose loss is close to the stated one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations, product
from typing import Any

import numpy as np

from discreet.audit.key_subjects import list_keys
from discreet.audit.subject import Subject, make_joint_probability
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
from discreet.mechanisms.quantiles.ends import CellEnds
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.mechanisms.sum import Sum
from discreet.mechanisms.variance import Variance


def list_subjects() -> list[Subject]:
    """Every mechanism of the package, at least once; those that take longest are last."""
    return [*_list_noises(), *_list_responses(), *_list_cells(), *list_keys(), *_list_statistics(), *_list_choices()]


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
            probability=make_joint_probability(one.probability),
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
            probability=make_joint_probability(moved.probability),
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
            probability=make_joint_probability(both.probability),
            outputs=list(product(range(3), repeat=2)),
            whole=True,
            label="two groups",
        ),
        Subject(mechanism=three, x=[few], y=[more], draw=_make_group_draw(three), label="three"),
        *_list_replaced_cells(),
        _make_ends_subject(),
    ]


def _make_ends_subject() -> Subject:
    """The ends around an estimate that was released before, with and without one row below all others."""
    ends, around = CellEnds(qs=[0.25], first=0, last=10, epsilon=1, beta=0.5), (5,)

    def draw(given: Any, n: int) -> Any:
        return np.array(ends.release_all([given] * n, [around] * n))

    return Subject(
        mechanism=ends,
        x=_make_histogram([4], [18]),
        y=_make_histogram([0, 4], [1, 18]),
        draw=draw,
        fit=20_000,
        probability=lambda output, given: ends.probability(tuple(output), (given, around)),
        outputs=list(product((5, 4, 3, 2, 1, 0), (5, 6, 7, 8, 9, 10))),
        whole=True,
    )


def _list_replaced_cells() -> list[Subject]:
    """A quantile where a replaced unit leaves one group for another, and where it stays in its group."""
    apart = CellQuantiles(qs=[0.25], first=0, last=60, epsilon=1, neighbours="replace")
    within = CellQuantiles(qs=[0.25], first=0, last=4, epsilon=1, neighbours="replace", in_place=True)
    before = [_make_histogram([0, 30], [2, 9]), _make_histogram([0, 30, 60], [1, 2, 6])]
    after = [_make_histogram([0, 30], [3, 9]), _make_histogram([30, 60], [2, 6])]
    low, high = _make_histogram([0, 4], [3, 5]), _make_histogram([0, 4], [4, 4])
    return [
        Subject(
            mechanism=apart,
            x=before,
            y=after,
            draw=_make_group_draw(apart),
            probability=make_joint_probability(apart.probability),
            outputs=list(product((0, 1, 29, 30, 31, 60), repeat=2)),
            slow=True,
            label="replace",
        ),
        Subject(
            mechanism=within,
            x=[low],
            y=[high],
            draw=_make_group_draw(within),
            probability=make_joint_probability(within.probability),
            outputs=range(5),
            whole=True,
            slow=True,
            label="replace in place",
        ),
    ]


def _make_histogram(cells: list[int], counts: list[int]) -> tuple[Integers, Integers]:
    return np.array(cells), np.array(counts)


def _make_group_draw(mechanism: Any) -> Callable[[Any, int], Any]:
    """Draws for n copies of the same groups: the choice in each of them."""

    def draw(given: Any, n: int) -> Any:
        drawn = np.array(mechanism.release_all(list(given) * n)).reshape(n, -1)
        return drawn[:, 0] if drawn.shape[1] == 1 else drawn

    return draw


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
