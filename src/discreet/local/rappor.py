"""RAPPOR: a permanent noisy Bloom filter for each answer, and fresh noise on top of it in each report.

The permanent bits come from HMAC with the person's secret, so they are always the same without being stored. The
cohort, which decides the hash functions, is also fixed for each person.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Flags, Floats, Integers, Interval, Ln, lower
from discreet.late_dataclass import dataclass
from discreet.local import planes
from discreet.local.planes import ALWAYS
from discreet.local.protocol import TallyProtocol, read_epsilon, read_integer
from discreet.local.words import Bytes, loss_of, read_symbols, symbol_bytes

_NAMES = ("permanent_one", "permanent_other", "instant_one", "instant_other")


@dataclass(frozen=True, kw_only=True)
class Rappor(TallyProtocol):
    """A Bloom filter of ``bits`` with ``hashes``; it gets permanent noise once, and fresh noise in every report.

    Privacy: any number of reports of one answer together are ε-private, under replace, with
    e^ε = (one·(2^16 − other)/(other·(2^16 − one)))^hashes for the permanent thresholds. One report alone costs
    ``instant_loss``, which is less.
    Why: all reports of an answer are made from its permanent bits and fresh coins; two answers differ in at most
    ``hashes`` bits that one sets and as many that the other sets.
    Reference: Erlingsson, Pihur & Korolova 2014, Theorems 1 and 2.
    """

    name: ClassVar[str] = "rappor"
    bits: int
    hashes: int
    cohorts: int
    permanent_one: int
    permanent_other: int
    instant_one: int
    instant_other: int

    def __post_init__(self) -> None:
        parameters.read_whole(self.bits, "parameters.bits", least=8, most=1 << 16)
        parameters.read_whole(self.hashes, "parameters.hashes", most=16)
        parameters.read_whole(self.cohorts, "parameters.cohorts", most=1 << 16)
        for one, other in ((self.permanent_one, self.permanent_other), (self.instant_one, self.instant_other)):
            if not 0 < other < one < ALWAYS:
                raise ParameterError("parameters", "must satisfy 0 < other < one < 65536 twice", "Use for_epsilon.")

    @classmethod
    def for_epsilon(cls, epsilon: object, *, bits: int = 128, hashes: int = 2, cohorts: int = 16) -> Rappor:
        """The protocol whose permanent bits cost at most ε in all reports; a report shows them with 3/4 against 1/2."""
        half = Interval.exp_minus(lower(read_epsilon(epsilon)) / (2 * hashes)).high
        other = max(1, math.ceil(ALWAYS * half / (1 + half)))
        if other >= ALWAYS // 2:
            raise ParameterError("epsilon", "is below what 16-bit thresholds can keep", "Use fewer hashes, or more ε.")
        return cls(
            bits=bits,
            hashes=hashes,
            cohorts=cohorts,
            permanent_one=ALWAYS - other,
            permanent_other=other,
            instant_one=ALWAYS * 3 // 4,
            instant_other=ALWAYS // 2,
        )

    @classmethod
    def read(cls, given: Mapping[str, object]) -> Rappor:
        """The protocol from a task's parameters."""
        return cls(
            bits=read_integer(given, "bits", 8, 1 << 16),
            hashes=read_integer(given, "hashes", 1, 16),
            cohorts=read_integer(given, "cohorts", 1, 1 << 16),
            **{name: read_integer(given, name, 1, ALWAYS - 1) for name in _NAMES},
        )

    @property
    def parameters(self) -> dict[str, int | str]:
        own: dict[str, int | str] = {"bits": self.bits, "hashes": self.hashes, "cohorts": self.cohorts}
        return own | {name: int(getattr(self, name)) for name in _NAMES}

    @property
    def random_bytes(self) -> int:
        return planes.DIGITS * planes.row_bytes(self.bits)

    @property
    def payload_bytes(self) -> int:
        return symbol_bytes(self.cohorts) + planes.row_bytes(self.bits)

    @property
    def state_size(self) -> int:
        """For each cohort its bits, then for each cohort its people."""
        return self.cohorts * self.bits + self.cohorts

    @property
    def epsilon(self) -> Ln:
        one, other = self.permanent_one, self.permanent_other
        return loss_of(Fraction(one * (ALWAYS - other), other * (ALWAYS - one)) ** self.hashes)

    @property
    def instant_loss(self) -> Ln:
        """The loss of one report alone."""
        one, other = self.bit_chances
        return loss_of((one * (1 - other) / (other * (1 - one))) ** self.hashes)

    @property
    def bit_chances(self) -> tuple[Fraction, Fraction]:
        """The probability that a report has a bit set, for a bit of the answer and for any other."""
        high, low = Fraction(self.instant_one, ALWAYS), Fraction(self.instant_other, ALWAYS)
        one, other = (
            low + Fraction(kept, ALWAYS) * (high - low) for kept in (self.permanent_one, self.permanent_other)
        )
        return one, other

    def find_places(self, value: str, cohort: int) -> list[int]:
        """The bits of a value in a cohort; two hashes may give the same bit."""
        found = []
        for number in range(self.hashes):
            head = cohort.to_bytes(4, "big") + bytes([number])
            word = int.from_bytes(hashlib.sha256(head + value.encode()).digest()[:4], "big")
            found.append(word * self.bits >> 32)
        return found

    def make_permanent_bits(self, value: str, cohort: int, stream: bytes) -> Bytes:
        """The permanent bits of an answer, from its own stream of bytes."""
        random = np.frombuffer(stream, dtype=np.uint8)[np.newaxis]
        packed = planes.compare(random, self.permanent_other)
        own = planes.compare(random, self.permanent_one)
        for place in self.find_places(value, cohort):
            at = np.array([place])
            planes.put(packed, at, own[:, place >> 3] >> (7 - (place & 7)) & 1 == 1)
        planes.clear_tail(packed, self.bits)
        return packed

    def make_report(self, permanent: Bytes, cohort: int, random: Bytes) -> Bytes:
        """One report: each permanent bit with fresh noise."""
        one, other = planes.compare(random, self.instant_one), planes.compare(random, self.instant_other)
        packed = permanent & one | ~permanent & other
        planes.clear_tail(packed, self.bits)
        head = np.frombuffer(cohort.to_bytes(symbol_bytes(self.cohorts), "big"), dtype=np.uint8)
        return np.concatenate([np.broadcast_to(head, (packed.shape[0], head.size)), packed], axis=1)

    def find_valid(self, payload: Bytes) -> Flags:
        width = symbol_bytes(self.cohorts)
        return (read_symbols(payload[:, :width]) < self.cohorts) & planes.tail_is_clear(payload[:, width:], self.bits)

    def tally(self, payload: Bytes) -> Integers:
        width = symbol_bytes(self.cohorts)
        cohorts = read_symbols(payload[:, :width])
        state = np.zeros((self.cohorts, self.bits), dtype=np.int64)
        for cohort in np.unique(cohorts):
            state[cohort] = planes.count_columns(payload[cohorts == cohort, width:], self.bits)
        return np.concatenate([state.reshape(-1), np.bincount(cohorts, minlength=self.cohorts)])

    def decode(self, state: Integers, candidates: Sequence[str]) -> tuple[Floats, Floats]:
        """Frequencies of the candidates and their standard errors, by least squares over all cohorts.

        They are unbiased when every answer is among the candidates. The errors assume that the bits of a report are
        independent.
        """
        people = state[-self.cohorts :]
        used = np.flatnonzero(people)
        counts = state[: -self.cohorts].reshape(self.cohorts, self.bits)[used]
        one, other = (float(chance) for chance in self.bit_chances)
        shares = counts / people[used, np.newaxis]
        bits = ((shares - other) / (one - other)).reshape(-1)
        errors = (shares * (1 - shares) / people[used, np.newaxis]).reshape(-1) / (one - other) ** 2
        inverse = np.linalg.pinv(self._make_design(candidates, used))
        return inverse @ bits, np.sqrt(inverse**2 @ errors)

    def _make_design(self, candidates: Sequence[str], cohorts: npt.NDArray[np.intp]) -> Floats:
        design = np.zeros((cohorts.size, self.bits, len(candidates)))
        for row, cohort in enumerate(cohorts.tolist()):
            for column, value in enumerate(candidates):
                design[row, self.find_places(value, cohort), column] = 1
        return design.reshape(-1, len(candidates))
