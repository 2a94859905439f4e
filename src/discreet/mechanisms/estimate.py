"""A published number with its standard error and its interval."""

from __future__ import annotations

from discreet.late_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value, its standard error, and an interval that covers the truth with probability ``confidence``.

    >>> Estimate(value=12.0, standard_error=1.5, low=9.0, high=15.0, confidence=0.95)
    12 ± 1.5 (95 %: 9 to 15)
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: float

    def __float__(self) -> float:
        return float(self.value)

    def __contains__(self, truth: float) -> bool:
        return self.low <= truth <= self.high

    def __repr__(self) -> str:
        value, low, high = (_format_number(number) for number in (self.value, self.low, self.high))
        return f"{value} ± {self.standard_error:.3g} ({100 * self.confidence:g} %: {low} to {high})"


def _format_number(x: float) -> str:
    return str(x) if isinstance(x, int) else f"{x:.6g}"
