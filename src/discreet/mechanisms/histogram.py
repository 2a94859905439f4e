"""Histograms: noisy counts of rows over declared categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Integers, Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.noise_mechanism import AdditiveNoise, NoiseMechanism
from discreet.parameters import Number
from discreet.privacy import Neighbours

_FIX = "Give all labels that may appear, for example categories=['a', 'b']; the data must not decide them."


@dataclass(frozen=True, kw_only=True, repr=False)
class Histogram(NoiseMechanism):
    """Noisy counts of rows for each declared category; rows of other categories are not counted.

    A unit may have rows in at most ``max_groups`` categories, and at most ``per_group`` rows in each; the caller must
    prepare the data so. Every declared category is published, also the empty ones.

    Privacy: the noise's guarantee at these sensitivities, with g = ``max_groups``, w = ``per_group`` and k categories.
    Under add-remove: L1 = min(g, k)·w and L2² = min(g, k)·w². Under replace: L1 = min(2g, k)·w and
    L2² = min(2g, k)·w².
    Why: a unit adds a vector with at most g entries, each from 0 to w. Removing it subtracts one such vector.
    Replacing it adds one and subtracts another: at most 2g entries change, and each by at most w, because both its
    old and its new value are from 0 to w. With one row for each unit this is 1, and 2 under replace.
    Reference: Dwork & Roth 2014, §3.3 (histograms); for the noise see ``Laplace`` and ``Gaussian``.

    >>> Histogram(categories=["a", "b", "c"], epsilon=1).l1, Histogram(categories=4, epsilon=1, neighbours="replace").l1
    (1, 2)
    """

    categories: int | Sequence[Hashable]
    max_groups: int = 1
    per_group: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, categories=_read_categories(self.categories))
        settle(self, max_groups=parameters.read_whole(self.max_groups, "max_groups"))
        settle(self, per_group=parameters.read_whole(self.per_group, "per_group"))
        _ = self.noise  # refuse now what the noise would refuse

    @property
    def labels(self) -> Sequence[Hashable]:
        """The declared categories; a number k stands for 0 to k − 1."""
        return range(self.categories) if isinstance(self.categories, int) else self.categories

    @property
    def dimension(self) -> int:
        """How many counts one unit can change."""
        cells = 2 * self.max_groups if self.neighbours == Neighbours.REPLACE else self.max_groups
        return min(cells, len(self.labels))

    @property
    def l1(self) -> int:
        """The L1 sensitivity."""
        return self.dimension * self.per_group

    @property
    def squared_l2(self) -> int:
        """The squared L2 sensitivity."""
        return self.dimension * self.per_group**2

    @cached_property
    def noise(self) -> AdditiveNoise:
        """The noise that is added to each count."""
        return self._make_noise(l1=self.l1, squared_l2=self.squared_l2, dimension=self.dimension)

    @property
    def parts(self) -> tuple[AdditiveNoise, ...]:
        return (self.noise,)

    def error(self, beta: Number = 0.05, of: int | None = None) -> float:
        """How far the worst count is off, at most, with probability 1 − ``beta``; ``of`` counts, all by default."""
        return self.noise.error(beta, len(self.labels) if of is None else of)

    def count(self, rows: Iterable[Any]) -> Integers:
        """The exact counts, in the order of ``labels``. They are private: never publish them."""
        found = _tally(rows)
        return np.array([found.get(label, 0) for label in self.labels], dtype=np.int64)

    def probability(self, output: Sequence[int], given: Iterable[Any]) -> Interval:
        """P(the released counts = output), in the order of ``labels``, exactly."""
        return self.noise.probability(np.asarray(output), self.count(given))

    def release(self, rows: Iterable[Any], /, *, source: EntropySource = SYSTEM) -> dict[Hashable, int]:
        """The noisy count of each declared category, from the category of each row."""
        return dict(zip(self.labels, self.release_counts(self.count(rows), source=source).tolist()))

    def release_counts(self, counts: object, /, *, source: EntropySource = SYSTEM) -> Integers:
        """Noisy counts from exact ones, in the order of ``labels``: for counts that an engine has made."""
        exact = parameters.read_integers(counts, "counts")
        if exact.shape != (len(self.labels),):
            raise ParameterError("counts", "must be one for each declared category", _FIX)
        return np.asarray(self.noise.release(exact, source=source), dtype=np.int64)


def _read_categories(categories: object) -> int | tuple[Hashable, ...]:
    if isinstance(categories, str | bytes) or not isinstance(categories, Sequence):
        return parameters.read_whole(categories, "categories")
    labels = tuple(categories)
    if not labels or not all(isinstance(label, Hashable) for label in labels) or len(set(labels)) != len(labels):
        raise ParameterError("categories", "must be hashable, all different, and at least one", _FIX)
    return labels


def _tally(rows: Iterable[Any]) -> Counter[Any]:
    """How often each value occurs. Values that cannot be hashed match no label, and are not counted."""
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise ParameterError("rows", "must be one column", "Give the category of each row, as a flat list or array.")
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biuUS":
        values, counts = np.unique(rows, return_counts=True)
        return Counter(dict(zip(values.tolist(), counts.tolist())))
    listed = rows.tolist() if isinstance(rows, np.ndarray) else list(rows)
    try:
        return Counter(listed)
    except TypeError:
        return Counter(row for row in listed if _is_hashable(row))


def _is_hashable(row: object) -> bool:
    try:
        hash(row)
    except TypeError:
        return False
    return True
