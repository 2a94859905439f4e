"""The laws of the noise: P(x) ∝ exp(−E(|x|)) on the whole numbers, where E(m) = linear·m + square·m² is rational."""

from __future__ import annotations

from fractions import Fraction

from discreet.late_dataclass import dataclass

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One distribution. Discrete Laplace and geometric have only ``linear``, the discrete Gaussian only ``square``.

    ``signed`` laws are on all whole numbers, others on 0, 1, 2, ... The exponent is convex and grows without end.
    """

    linear: Fraction = _ZERO
    square: Fraction = _ZERO
    signed: bool = True

    def exponent(self, magnitude: int | Fraction) -> Fraction:
        """E(m), the exact exponent; also between whole numbers."""
        return magnitude * (self.linear + self.square * magnitude)

    def rise(self, start: int, end: int | Fraction) -> Fraction:
        """E(end) − E(start)."""
        return self.exponent(end) - self.exponent(start)

    def slope(self, magnitude: int) -> Fraction:
        """The derivative of E. E is convex, so it rises by at least this much with every later step."""
        return self.linear + 2 * self.square * magnitude

    def find_reach(self, level: Fraction) -> int:
        """The smallest m ≥ 1 with E(m) ≥ level."""
        high = 1
        while self.exponent(high) < level:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.exponent(middle) >= level else (middle, high)
        return high
