"""Unary encoding: one noisy bit for each value (SUE, the basic one of RAPPOR; OUE, the optimised one)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import ClassVar

from discreet.errors import ParameterError
from discreet.exact import Flags, Integers, Interval, Ln
from discreet.late_dataclass import dataclass
from discreet.local import planes
from discreet.local.planes import ALWAYS
from discreet.local.protocol import BitVectorProtocol, read_epsilon, read_integer
from discreet.local.words import Bytes, loss_of, odds_floor

# A payload of this many bits has 1 MB. Larger reports are refused.
MAX_BITS = 1 << 23


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(BitVectorProtocol):
    """d independent bits: the answer's own bit is set with probability one/2^16, each other bit with other/2^16.

    With one = 1/2 this is the optimised encoding (OUE), with one = 1 − other the symmetric one (SUE).

    Privacy: ε-private for each respondent, under replace, with e^ε = one·(2^16 − other)/(other·(2^16 − one)).
    Why: two answers change the law of two bits only. The ratio is largest for a report in which the bit of the one
    answer is set and the bit of the other is not.
    Reference: Erlingsson, Pihur & Korolova 2014; Wang, Blocki, Li & Jha 2017, §4.
    """

    name: ClassVar[str] = "unary"
    one: int
    other: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.other < self.one < ALWAYS:
            fix = "Use UnaryEncoding.for_epsilon."
            raise ParameterError("parameters", "must satisfy 0 < other < one < 65536", fix)
        if self.domain_size > MAX_BITS:
            raise ParameterError("domain", f"is too large for one bit a value: at most {MAX_BITS:,}", "Use hash.")

    @classmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> UnaryEncoding:
        """The optimised encoding: the answer's bit is a fair coin."""
        odds = odds_floor(read_epsilon(epsilon))
        other = max(1, math.ceil(ALWAYS / (odds + 1)))
        if other >= ALWAYS // 2:
            raise ParameterError("epsilon", "is below what 16-bit thresholds can keep", "Use hadamard, or more.")
        return cls(domain_size=domain_size, one=ALWAYS // 2, other=other)

    @classmethod
    def symmetric(cls, epsilon: object, domain_size: int) -> UnaryEncoding:
        """The symmetric encoding: every bit is flipped with the same probability, e^(ε/2) : 1."""
        exact = read_epsilon(epsilon)
        half = Interval.exp_minus(exact / 2 if isinstance(exact, Fraction) else exact.lower / 2).high
        other = max(1, math.ceil(ALWAYS * half / (1 + half)))
        if other >= ALWAYS // 2:
            raise ParameterError("epsilon", "is below what 16-bit thresholds can keep", "Use hadamard, or more.")
        return cls(domain_size=domain_size, one=ALWAYS - other, other=other)

    @classmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> UnaryEncoding:
        one, other = (read_integer(given, name, 1, ALWAYS - 1) for name in ("one", "other"))
        return cls(domain_size=domain_size, one=one, other=other)

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"one": self.one, "other": self.other}

    @property
    def random_bytes(self) -> int:
        return planes.DIGITS * self.payload_bytes

    @property
    def epsilon(self) -> Ln:
        return loss_of(Fraction(self.one * (ALWAYS - self.other), self.other * (ALWAYS - self.one)))

    @property
    def p(self) -> Fraction:
        return Fraction(self.one, ALWAYS)

    @property
    def q(self) -> Fraction:
        return Fraction(self.other, ALWAYS)

    @property
    def targets(self) -> int:
        return self.domain_size

    def encode(self, answers: Integers, random: Bytes) -> Bytes:
        packed = planes.compare(random, self.other)
        planes.put(packed, answers, planes.compare_at(random, answers, self.one))
        planes.clear_tail(packed, self.domain_size)
        return packed

    def find_valid(self, payload: Bytes) -> Flags:
        return planes.tail_is_clear(payload, self.domain_size)

    def probability(self, payload: bytes, answer: int) -> Fraction:
        chance = Fraction(1)
        for value, bit in enumerate(self.unpack(payload)):
            one = self.p if value == answer else self.q
            chance *= one if bit else 1 - one
        return chance

    def list_payloads(self) -> Iterator[bytes]:
        return (self.pack(number) for number in range(1 << self.domain_size))
