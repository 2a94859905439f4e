"""Subset selection: a report is a set of w values, which contains the answer more often than a random set would."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from discreet.entropy import Words
from discreet.errors import ParameterError
from discreet.exact import Flags, Integers, Ln, float_up
from discreet.late_dataclass import dataclass
from discreet.local import planes
from discreet.local.protocol import BitVectorProtocol, read_epsilon, read_integer, read_threshold, write_threshold
from discreet.local.words import WORD, Bytes, is_below, keep_threshold, loss_of, read_words

MAX_VALUES = 4096


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(BitVectorProtocol):
    """A set of ``size`` values. It contains the answer with probability keep/2^64; its other values are drawn evenly.

    For small domains no protocol has less variance. With size 1 it is randomized response.

    Privacy: ε-private for each respondent, under replace.
    Why: a set that holds the answer has probability keep/2^64 over the C(d−1, w−1) such sets, another one
    1 − keep/2^64 over C(d−1, w). The sets are drawn value by value with thresholds ⌊need·2^64/left⌋, so each factor is
    off by at most one part in 2^64 over a chance of at least 1/d; the stated loss has a factor that covers all of them.
    Reference: Ye & Barg 2018; Wang et al. 2016.
    """

    name: ClassVar[str] = "subset"
    size: int
    keep: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain_size > MAX_VALUES:
            raise ParameterError("domain", f"is too large for sets: at most {MAX_VALUES:,}", "Use projective.")
        if not 1 <= self.size < self.domain_size:
            raise ParameterError("parameters.size", "must be at least 1 and below the domain size", "Use about d/4.")

    @staticmethod
    def best_size(epsilon: float, domain_size: int) -> int:
        """The whole number w next to d/(e^ε + 1) with the least variance."""
        middle = domain_size / (math.exp(epsilon) + 1)

        def variance(size: int) -> float:
            total = size * math.exp(epsilon) + domain_size - size
            p = size * math.exp(epsilon) / total
            q = (size * (size - 1) * math.exp(epsilon) + size * (domain_size - size)) / ((domain_size - 1) * total)
            return q * (1 - q) / (p - q) ** 2

        around = {max(1, min(domain_size - 1, size)) for size in (math.floor(middle), math.ceil(middle))}
        return min(sorted(around), key=variance)

    @classmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> SubsetSelection:
        exact = read_epsilon(epsilon)
        size = cls.best_size(float_up(exact), domain_size)
        even = Fraction(size, domain_size - size) / _unevenness(domain_size)
        return cls(domain_size=domain_size, size=size, keep=keep_threshold(exact, even))

    @classmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> SubsetSelection:
        size = read_integer(given, "size", 1, domain_size - 1)
        return cls(domain_size=domain_size, size=size, keep=read_threshold(given, "keep"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"size": self.size, "keep": write_threshold(self.keep)}

    @property
    def random_bytes(self) -> int:
        return 8 * self.domain_size

    @property
    def epsilon(self) -> Ln:
        # C(d−1, w)/C(d−1, w−1) = (d − w)/w: the odds of a set with the answer over one without it.
        ratio = Fraction(self.keep * (self.domain_size - self.size), (WORD - self.keep) * self.size)
        return loss_of(max(ratio, 1 / ratio) * _unevenness(self.domain_size))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        """The expected number of values in a set that are not the answer, over the d − 1 other values."""
        return (self.size - self.p) / (self.domain_size - 1)

    @property
    def targets(self) -> int:
        return self.size

    @cached_property
    def _table(self) -> Words:
        """⌊need·2^64/left⌋ for every left and need. The caller handles the case need = left, where the chance is 1."""
        rows = [
            [min(need * WORD // max(left, 1), WORD - 1) for need in range(self.size + 1)]
            for left in range(self.domain_size)
        ]
        return np.array(rows, dtype=np.uint64)

    def encode(self, answers: Integers, random: Bytes) -> Bytes:
        words = read_words(random)
        rows = np.arange(answers.size)
        kept = is_below(words[:, 0], self.keep)
        chosen = np.zeros((answers.size, 8 * self.payload_bytes), dtype=np.bool_)
        chosen[rows, answers] = kept
        need = self.size - kept.astype(np.int64)
        for place in range(self.domain_size - 1):
            left = self.domain_size - 1 - place
            hit = (words[:, place + 1] < self._table[left][need]) | (need == left)
            # The others leave out the answer: from its place on they are one further.
            chosen[rows, place + (place >= answers)] = hit
            need -= hit
        return np.packbits(chosen, axis=1)

    def find_valid(self, payload: Bytes) -> Flags:
        ones = np.bitwise_count(payload).sum(axis=1, dtype=np.int64)
        return np.asarray(planes.tail_is_clear(payload, self.domain_size) & (ones == self.size))

    def probability(self, payload: bytes, answer: int) -> Fraction:
        bits = self.unpack(payload)
        chance = self.p if bits[answer] else 1 - self.p
        need, left = self.size - bits[answer], self.domain_size - 1
        for value, bit in enumerate(bits):
            if value == answer:
                continue
            hit = Fraction(need * WORD // left, WORD)
            chance *= hit if bit else 1 - hit
            need, left = need - bit, left - 1
        return chance

    def list_payloads(self) -> Iterator[bytes]:
        for members in combinations(range(self.domain_size), self.size):
            yield self.pack(sum(1 << (self.domain_size - 1 - value) for value in members))


def _unevenness(domain_size: int) -> Fraction:
    """A bound on how much the ratio of the chances of two sets can exceed its even value.

    Each of d − 1 factors is ⌊x·2^64⌋/2^64 or one minus that, for a chance x or 1 − x of at least 1/d, so it lies
    within 1 ± d/2^64 of the even one; two sets are compared, and (1 + a)/(1 − a) ≤ 1 + 3a for a ≤ 1/3. For 3ab ≤ 1,
    (1 + 3a)^b ≤ 1 + 6ab.
    """
    return 1 + Fraction(6 * domain_size * domain_size, WORD)
