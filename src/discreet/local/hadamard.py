"""Hadamard response: each answer has a row of a Hadamard matrix; a report is mostly a column where that row is +1."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.errors import ParameterError
from discreet.exact import Integers, Ln
from discreet.late_dataclass import dataclass
from discreet.local.protocol import (
    FrequencyProtocol,
    SymbolProtocol,
    read_epsilon,
    read_integer,
    read_threshold,
    write_threshold,
)
from discreet.local.words import HALF, WORD, Bytes, is_below, keep_threshold, loss_of, read_words


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(SymbolProtocol, FrequencyProtocol):
    """A report is a column j below ``order``. The answer v has the row r = v + 1.

    With probability keep/2^64 the binary digits of j and r have an even number of common ones, otherwise an odd number.
    All columns of the same kind are equally likely.

    Privacy: ε-private for each respondent, under replace, with e^ε = keep/(2^64 − keep).
    Why: half of the columns agree with a row, half do not, and the order is a power of two, so each column has
    probability exactly keep/2^64 or 1 − keep/2^64, over order/2.
    Reference: Acharya, Sun & Zhang 2019, §4, with one block.
    """

    name: ClassVar[str] = "hadamard"
    order: int
    keep: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order & (self.order - 1) or not self.domain_size < self.order <= HALF:
            raise ParameterError("parameters.order", "must be a power of two above the domain size", "Use 2^k.")

    @classmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> HadamardResponse:
        order = 1 << domain_size.bit_length()
        keep = keep_threshold(read_epsilon(epsilon), Fraction(1))
        return cls(domain_size=domain_size, order=order, keep=keep)

    @classmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> HadamardResponse:
        order = read_integer(given, "order", 2, HALF)
        return cls(domain_size=domain_size, order=order, keep=read_threshold(given, "keep"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"order": self.order, "keep": write_threshold(self.keep)}

    @property
    def random_bytes(self) -> int:
        return 16

    @property
    def symbols(self) -> int:
        return self.order

    @property
    def epsilon(self) -> Ln:
        ratio = Fraction(self.keep, WORD - self.keep)
        return loss_of(max(ratio, 1 / ratio))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def targets(self) -> int:
        """All values, because column 0 agrees with every row. An honest client sends it no more often than others."""
        return self.domain_size

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        column = (words[:, 1] >> np.uint64(65 - self.order.bit_length())).astype(np.int64)
        row = answers + 1
        wrong = ((np.bitwise_count(column & row) & 1) == 1) == is_below(words[:, 0], self.keep)
        column ^= (row & -row) * wrong
        return column

    def chance(self, symbol: int, answer: int) -> Fraction:
        odd = (symbol & (answer + 1)).bit_count() & 1
        return (1 - self.p if odd else self.p) * Fraction(2, self.order)

    def count_supports(self, state: Integers) -> Integers:
        """The supports by the fast Walsh–Hadamard transform: even minus odd for every row at once, in integers."""
        difference = transform(state)[1 : self.domain_size + 1]
        return np.asarray((state.sum() + difference) // 2)


def transform(counts: Integers) -> Integers:
    """Σ_j (−1)^(ones in j & r)·counts_j for every r; the length is a power of two."""
    values = counts.astype(np.int64, copy=True)
    step = 1
    while step < values.size:
        pairs = values.reshape(-1, 2, step)
        left, right = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = left, right
        step *= 2
    return values
