"""Counts of rows with discrete noise."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sized
from functools import cached_property

import numpy as np

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Interval
from discreet.late_dataclass import dataclass
from discreet.mechanisms.estimate import Estimate
from discreet.mechanisms.mechanism import settle
from discreet.mechanisms.noise_mechanism import AdditiveNoise, NoiseMechanism
from discreet.parameters import Number


@dataclass(frozen=True, kw_only=True, repr=False)
class Count(NoiseMechanism):
    """The number of rows with discrete noise; rows that are False are not counted, so bools count the True ones.

    ``max_rows`` is how many rows one unit can have; the caller must prepare the data so.

    Privacy: the noise's guarantee at sensitivity ``max_rows``, under add-remove and under replace alike.
    Why: a unit owns between 0 and ``max_rows`` of the rows that are counted. Adding, removing or replacing it moves
    the count from one number in that range to another.
    Reference: Dwork & Roth 2014, §3.3 (counting queries); for the noise see ``Laplace`` and ``Gaussian``.

    >>> Count(epsilon=0.5).error(beta=0.05)
    6.0
    """

    max_rows: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, max_rows=parameters.read_whole(self.max_rows, "max_rows"))
        _ = self.parts  # refuse now what the noise would refuse

    @cached_property
    def noise(self) -> AdditiveNoise:
        """The noise that is added to the count."""
        return self._make_noise(l1=self.max_rows, squared_l2=self.max_rows**2)

    @property
    def parts(self) -> tuple[AdditiveNoise, ...]:
        return (self.noise,)

    def error(self, beta: Number = 0.05, of: int = 1) -> float:
        """How far the worst of ``of`` such counts is off, at most, with probability 1 − ``beta``."""
        return self.noise.error(beta, of)

    def probability(self, output: int, given: object) -> Interval:
        """P(released count = output), exactly."""
        return self.noise.probability(output, count_of(given))

    def release(self, rows: object, /, *, confidence: Number = 0.95, source: EntropySource = SYSTEM) -> Estimate:
        """The noisy count of rows: a collection (of bools: how many are True), or the number itself."""
        level = parameters.read_probability(confidence, "confidence")
        count, noise = count_of(rows), self.noise
        bound = int(noise.noise_bound(1 - level))
        released = int(noise.release(count, source=source))
        return Estimate(
            value=released,
            standard_error=noise.standard_error,
            low=released - bound,
            high=released + bound,
            confidence=float(level),
        )


def count_of(rows: object) -> int:
    """How many rows there are, without those that are False. Whether a row counts depends on that row alone."""
    if isinstance(rows, numbers.Integral) and not isinstance(rows, bool | np.bool_):
        return int(rows)
    if isinstance(rows, np.ndarray) and rows.ndim == 1:
        if rows.dtype == object:
            return _count_rows(rows)
        return int(np.count_nonzero(rows)) if rows.dtype.kind == "b" else rows.size
    if isinstance(rows, list | tuple):
        return _count_rows(rows)
    if isinstance(rows, Sized) and not isinstance(rows, str | bytes | dict | np.ndarray):
        return len(rows)
    raise ParameterError("rows", "must be a collection or a whole number", "Give the rows, or bools, or their number.")


def _count_rows(rows: Iterable[object]) -> int:
    return sum(row is not False and row is not np.False_ for row in rows)
