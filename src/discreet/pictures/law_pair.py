"""Two laws side by side: what a mechanism gives on a dataset, and what it gives on a neighbour.

Everything that a picture shows follows from the two lists of probabilities: the privacy loss ln(P(o)/Q(o)) at each
output, how often each loss occurs, and the trade-off curve, which is the most that any attacker can do who must say
from which of the two datasets an output came. Probabilities are floats here, because a picture needs a few digits; the
guarantees are computed exactly elsewhere (``accounting``, ``divergence``).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass

Reals: TypeAlias = npt.NDArray[np.float64]
DrawnOutput: TypeAlias = int | str

_SAME = 1e-9
"""Losses that are closer than this are one loss; they differ by the rounding of floats only."""


@dataclass(frozen=True, eq=False)
class LawPair:
    """P and Q over the same outputs, with the words for a caption. What is beyond the outputs has next to no mass.

    ``given`` are the two true answers, for the legend: on the dataset and on its neighbour.

    >>> import numpy as np
    >>> coin = LawPair("coin", "a coin", ("yes", "no"), np.array([0.75, 0.25]), np.array([0.25, 0.75]), ("yes", "no"))
    >>> [round(float(loss), 4) for loss in coin.losses]
    [1.0986, -1.0986]
    >>> [(round(loss, 4), round(chance, 2)) for loss, chance in coin.loss_law]
    [(-1.0986, 0.25), (1.0986, 0.75)]
    >>> [(round(wrong, 2), round(missed, 2)) for wrong, missed in coin.trade_off]
    [(0.0, 1.0), (0.25, 0.25), (1.0, 0.0)]
    """

    name: str
    about: str
    outputs: tuple[DrawnOutput, ...]
    p: Reals
    q: Reals
    given: tuple[str, str]

    def __post_init__(self) -> None:
        if not len(self.outputs) == len(self.p) == len(self.q) > 0:
            raise ParameterError("outputs", "must have one probability on each side", "Give lists of one length.")

    @property
    def is_numeric(self) -> bool:
        """Whether outputs are numbers, which have an order."""
        return isinstance(self.outputs[0], int)

    @cached_property
    def losses(self) -> Reals:
        """The privacy loss at each output, with its sign; infinite where only one side has the output."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((self.p == 0) & (self.q == 0), 0.0, np.log(self.p) - np.log(self.q))

    @cached_property
    def loss_law(self) -> tuple[tuple[float, float], ...]:
        """Each loss with its probability under P, from the least to the largest."""
        order = np.argsort(self.losses, kind="stable")
        starts = np.flatnonzero(_begin(self.losses[order]))
        sums = np.add.reduceat(self.p[order], starts)
        return tuple(zip(self.losses[order][starts].tolist(), sums.tolist()))

    @cached_property
    def trade_off(self) -> tuple[tuple[float, float], ...]:
        """The corners of the trade-off curve: (wrong alarms, missed) of the best test that accuses Q, for each rate.

        A test that accuses where P/Q is small is the best one for its rate of wrong alarms (Neyman and Pearson).
        """
        order = np.argsort(self.losses, kind="stable")
        wrong = np.r_[0.0, np.cumsum(self.p[order])]
        missed = 1 - np.r_[0.0, np.cumsum(self.q[order])]
        wrong[-1], missed[-1] = 1.0, 0.0
        corner = np.r_[_begin(self.losses[order]), True]  # equal losses lie on one straight line
        return tuple(zip(wrong[corner].tolist(), np.maximum(missed, 0)[corner].tolist()))

    def find_missed(self, wrong: float) -> float:
        """The least share of misses at a rate of wrong alarms, on the curve."""
        if not 0 <= wrong <= 1:
            raise ParameterError("wrong", "must be a probability", "Give for example wrong=0.05.")
        return min(
            low if right == left else high + (low - high) * (wrong - left) / (right - left)
            for (left, high), (right, low) in pairwise(self.trade_off)
            if left <= wrong <= right
        )

    @property
    def largest_loss(self) -> float:
        """The largest loss in either direction, over the outputs that are shown."""
        return float(np.max(np.abs(self.losses)))

    @property
    def advantage(self) -> float:
        """The total variation distance: how much better than a coin the best guess is, doubled."""
        return float(np.maximum(self.p - self.q, 0).sum())


def _begin(losses: Reals) -> npt.NDArray[np.bool_]:
    """Where in a sorted list another loss begins; two infinite ones of one sign are the same."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.r_[True, np.diff(losses) > _SAME])
