"""The base classes of all local protocols, and the arithmetic that most protocols share.

A protocol is a frozen set of integers. It turns an answer and random bytes into a payload of fixed length. It adds
payloads up into a vector of integers. It knows the exact probability of each payload for each answer, and its loss is
computed from these probabilities. Calibration (``for_epsilon``) chooses the integers; all else is computed from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from discreet import parameters
from discreet.accounting import events
from discreet.errors import ParameterError
from discreet.exact import Exact, Flags, Integers, Ln
from discreet.late_dataclass import dataclass
from discreet.local import planes
from discreet.local.words import (
    HALF,
    MAX_EPSILON,
    WORD,
    Bytes,
    read_symbols,
    symbol_bytes,
    write_symbols,
)

_FIX = "Make the task with Task.for_epsilon, or copy it whole from its author."


def read_epsilon(value: object) -> Exact:
    """Read the loss of one report, which must be above zero and at most 32."""
    exact = parameters.read_epsilon(value)
    if exact > MAX_EPSILON:
        raise parameters.refuse("epsilon", f"at most {MAX_EPSILON}", value, "A larger loss protects nobody.")
    return exact


def read_integer(given: Mapping[str, object], name: str, least: int, most: int) -> int:
    """Read one integer of a task's parameters. A threshold above 2^53 is written as a string of digits."""
    value = given.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"parameters.{name}", f"must be a whole number from {least} to {most}", _FIX)
    return value


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """The base of every protocol; the protocols themselves are in other modules of this package.

    An ``EncodingProtocol`` takes answers as whole numbers (an index, a scaled number, or rows of key words) and one row
    of random bytes for each answer. A ``TallyProtocol`` adds payloads up. ``find_valid`` says which payloads a client
    can have sent.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def random_bytes(self) -> int:
        """Random bytes for one report."""

    @property
    @abstractmethod
    def payload_bytes(self) -> int:
        """Bytes of one payload."""

    @property
    @abstractmethod
    def epsilon(self) -> Ln:
        """The stated loss: the exact logarithm of the largest ratio between two probabilities of one payload."""

    @property
    def event(self) -> events.Event:
        """What one report costs its sender, for the accountant."""
        return events.Pure(epsilon=self.epsilon, neighbours="replace", unit="respondent")

    @property
    @abstractmethod
    def parameters(self) -> dict[str, int | str]:
        """The integers, as a task carries them."""

    @abstractmethod
    def find_valid(self, payload: Bytes) -> Flags:
        """Which rows are payloads that a client could have sent."""


@dataclass(frozen=True, kw_only=True)
class EncodingProtocol(Protocol):
    """A protocol that makes a report from one answer and random bytes alone."""

    @abstractmethod
    def encode(self, answers: Integers, random: Bytes) -> Bytes:
        """One payload for each answer, from its row of random bytes."""

    @abstractmethod
    def probability(self, payload: bytes, answer: int) -> Fraction:
        """The exact probability of a payload, given the answer."""

    @abstractmethod
    def list_payloads(self) -> Iterator[bytes]:
        """Every possible payload. It is for small domains, where a test can check the whole matrix of probabilities."""


@dataclass(frozen=True, kw_only=True)
class TallyProtocol(Protocol):
    """A protocol whose reports add up to a vector of fixed size."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """Integers of the aggregator's state."""

    @abstractmethod
    def tally(self, payload: Bytes) -> Integers:
        """The state that these valid payloads add up to."""


@dataclass(frozen=True, kw_only=True)
class SymbolProtocol(EncodingProtocol, TallyProtocol):
    """A protocol whose payload is one number below ``symbols``; its state counts them."""

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many different payloads there are."""

    @property
    def payload_bytes(self) -> int:
        return symbol_bytes(self.symbols)

    @property
    def state_size(self) -> int:
        return self.symbols

    @abstractmethod
    def respond(self, answers: Integers, random: Bytes) -> Integers:
        """One symbol for each answer."""

    @abstractmethod
    def chance(self, symbol: int, answer: int) -> Fraction:
        """The exact probability of a symbol, given the answer."""

    def encode(self, answers: Integers, random: Bytes) -> Bytes:
        return write_symbols(self.respond(answers, random), self.payload_bytes)

    def find_valid(self, payload: Bytes) -> Flags:
        if self.symbols == 1 << (8 * self.payload_bytes):
            return np.ones(payload.shape[0], dtype=np.bool_)
        return read_symbols(payload) < self.symbols

    def tally(self, payload: Bytes) -> Integers:
        return np.bincount(read_symbols(payload), minlength=self.symbols).astype(np.int64)

    def probability(self, payload: bytes, answer: int) -> Fraction:
        return self.chance(int.from_bytes(payload, "big"), answer)

    def list_payloads(self) -> Iterator[bytes]:
        return (symbol.to_bytes(self.payload_bytes, "big") for symbol in range(self.symbols))


@dataclass(frozen=True, kw_only=True)
class FrequencyProtocol(EncodingProtocol, TallyProtocol):
    """A protocol whose reports *support* values: a report supports its own answer with ``p``, any other with ``q``.

    Its error follows from p and q alone. The estimate of a frequency is (supports/n − q)/(p − q), which is unbiased.
    """

    domain_size: int

    def __post_init__(self) -> None:
        parameters.read_whole(self.domain_size, "domain size", least=2, most=HALF - 1)

    @classmethod
    @abstractmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> Self:
        """The protocol whose stated loss is at most ε, and as close to ε as its integers allow."""

    @classmethod
    @abstractmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> Self:
        """The protocol from a task's parameters."""

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports its own answer."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports a given other answer."""

    @abstractmethod
    def count_supports(self, state: Integers) -> Integers:
        """From the state, how many reports support each value."""

    def unit_variance(self, frequency: float = 0.0) -> float:
        """N times the variance of an estimated frequency, given the data."""
        return unit_variance(self.p, self.q, frequency)

    @property
    def influence(self) -> float:
        """How many honest people one malicious report can outweigh on the value it is aimed at."""
        return float((1 - self.q) / (self.p - self.q))

    @property
    def targets(self) -> int:
        """How many values one malicious report can raise at once."""
        return 1


@dataclass(frozen=True, kw_only=True)
class BitVectorProtocol(FrequencyProtocol):
    """A frequency protocol whose payload has one bit for each value, which is set where the report supports the value.

    The bits are packed, the first value in the highest bit of the first byte; the unused bits of the last byte are 0.
    """

    @property
    def payload_bytes(self) -> int:
        return planes.row_bytes(self.domain_size)

    @property
    def state_size(self) -> int:
        return self.domain_size

    def tally(self, payload: Bytes) -> Integers:
        return planes.count_columns(payload, self.domain_size)

    def count_supports(self, state: Integers) -> Integers:
        return state

    def unpack(self, payload: bytes) -> list[int]:
        """The bits of one payload, in the order of the values."""
        number = int.from_bytes(payload, "big") >> (-self.domain_size % 8)
        return [number >> (self.domain_size - 1 - value) & 1 for value in range(self.domain_size)]

    def pack(self, number: int) -> bytes:
        """The payload whose bits, read as one binary number, are ``number``."""
        return (number << (-self.domain_size % 8)).to_bytes(self.payload_bytes, "big")


def unit_variance(p: Fraction, q: Fraction, frequency: float = 0.0) -> float:
    """n·Var of (supports/n − q)/(p − q) when a share ``frequency`` of the people have the value."""
    own, other, gap = float(p * (1 - p)), float(q * (1 - q)), float(p - q)
    return (frequency * own + (1 - frequency) * other) / gap**2


def write_threshold(value: int) -> str:
    """A threshold as a task carries it: a string, because it may be above 2^53."""
    return str(value)


def read_threshold(given: Mapping[str, object], name: str) -> int:
    """Read a 64-bit threshold, which is neither 0 (never) nor 2^64 (always)."""
    return read_integer(given, name, 1, WORD - 1)
