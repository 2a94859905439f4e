"""A measured figure and how far chance moves it. Peers import this in environments of their own: NumPy alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Figure:
    """A number, its standard error, and from how many draws. A number from theory has no error and no draws."""

    value: float
    scatter: float = 0.0
    draws: int = 0

    @classmethod
    def of_errors(cls, errors: Any) -> Figure:
        """The root of the mean square of independent errors.

        Its standard error is that of the mean square over twice the root (the derivative of the root).
        """
        squares = np.square(np.ravel(np.asarray(errors, dtype=float)))
        root = math.sqrt(float(squares.mean()))
        scatter = float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2 * root) if len(squares) > 1 else math.inf
        return cls(root, scatter, len(squares))

    @classmethod
    def of_counts(cls, counts: Any) -> Figure:
        """The mean of independent counts."""
        found = np.asarray(counts, dtype=float)
        scatter = float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.inf
        return cls(float(found.mean()), scatter, len(found))

    @property
    def relative(self) -> float:
        """The standard error as a part of the number."""
        return self.scatter / self.value

    def over(self, other: Figure) -> Figure:
        """The ratio of two independent figures."""
        ratio = self.value / other.value
        return Figure(ratio, ratio * math.hypot(self.relative, other.relative))

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {100 * self.relative:.1f} %" if self.draws else f"{self.value:.4g}"
