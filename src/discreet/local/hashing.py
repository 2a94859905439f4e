"""Local hashing (OLH): the client draws a hash function, which maps a large or open domain to a few buckets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet import parameters
from discreet.entropy import Words
from discreet.exact import Flags, Integers, Ln, ceil_div, float_up
from discreet.late_dataclass import dataclass
from discreet.local.krr import draw_response, response_chance, response_loss, response_threshold
from discreet.local.protocol import (
    EncodingProtocol,
    read_epsilon,
    read_integer,
    read_threshold,
    unit_variance,
    write_threshold,
)
from discreet.local.words import (
    HALF,
    WORD,
    Bytes,
    read_symbols,
    read_words,
    symbol_bytes,
    write_symbols,
)

MAX_BUCKETS = 1 << 16
_PAIRS = 1 << 17  # pairs of a report and a candidate in one step: they fit the cache


@dataclass(frozen=True, kw_only=True)
class LocalHashing(EncodingProtocol):
    """A report is a seed that the client draws, and a randomized response on the bucket of the answer.

    The seed chooses a hash function, which maps the answer to one of ``buckets``. h(x) is the upper half of
    a_1·x_1 + ... + b modulo 2^64, scaled to the buckets. This family is strongly universal: it is proved that two
    values meet in a bucket with chance 1/g.

    Privacy: ε-private for each respondent, under replace.
    Why: the seed does not depend on the answer, and given the seed the bucket is randomized response.
    Reference: Wang, Blocki, Li & Jha 2017, §5; Dietzfelbinger 1996, Theorem 3 for the hash family.
    """

    name: ClassVar[str] = "hash"
    key_words: int
    buckets: int
    keep: int

    def __post_init__(self) -> None:
        parameters.read_whole(self.key_words, "key words", least=1, most=2)
        parameters.read_whole(self.buckets, "buckets", least=2, most=MAX_BUCKETS)

    @classmethod
    def for_epsilon(cls, epsilon: object, *, key_words: int = 1) -> LocalHashing:
        """The protocol with the least variance: e^ε + 1 buckets, rounded to the nearest whole number."""
        exact = read_epsilon(epsilon)
        buckets = min(MAX_BUCKETS, max(2, round(math.exp(float_up(exact)) + 1)))
        return cls(key_words=key_words, buckets=buckets, keep=response_threshold(exact, buckets))

    @classmethod
    def read(cls, given: Mapping[str, object], key_words: int) -> LocalHashing:
        buckets = read_integer(given, "buckets", 2, MAX_BUCKETS)
        return cls(key_words=key_words, buckets=buckets, keep=read_threshold(given, "keep"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"buckets": self.buckets, "keep": write_threshold(self.keep)}

    @property
    def seed_bytes(self) -> int:
        """Bytes of the seed."""
        return 8 * (self.key_words + 1)

    @property
    def random_bytes(self) -> int:
        return self.seed_bytes + 16

    @property
    def payload_bytes(self) -> int:
        return self.seed_bytes + symbol_bytes(self.buckets)

    @property
    def epsilon(self) -> Ln:
        return response_loss(self.keep, self.buckets)

    @property
    def p(self) -> Fraction:
        """The probability that a report supports its own answer."""
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        """The probability that a report supports a given other value, over the draw of the seed."""
        return Fraction(1, self.buckets)

    def unit_variance(self, frequency: float = 0.0) -> float:
        """N times the variance of an estimated frequency, given the data."""
        return unit_variance(self.p, self.q, frequency)

    @property
    def influence(self) -> float:
        """How many honest people one malicious report can outweigh on the value it is aimed at."""
        return float((1 - self.q) / (self.p - self.q))

    def hash_keys(self, seeds: Words, keys: Words) -> Integers:
        """The bucket of each key under the seed of its row."""
        mixed = seeds[:, -1].copy()
        for word in range(self.key_words):
            mixed += seeds[:, word] * keys[:, word]
        return ((mixed >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32)).astype(np.int64)

    def encode(self, answers: Integers, random: Bytes) -> Bytes:
        words = read_words(random)
        own = self.hash_keys(words[:, : self.key_words + 1], answers.astype(np.uint64).reshape(-1, self.key_words))
        symbol = draw_response(own, self.buckets, self.keep, words[:, -2], words[:, -1])
        payload = np.empty((symbol.size, self.payload_bytes), dtype=np.uint8)
        payload[:, : self.seed_bytes] = random[:, : self.seed_bytes]
        payload[:, self.seed_bytes :] = write_symbols(symbol, symbol_bytes(self.buckets))
        return payload

    def find_valid(self, payload: Bytes) -> Flags:
        return read_symbols(payload[:, self.seed_bytes :]) < self.buckets

    def count_key_supports(self, payload: Bytes, keys: Words) -> Integers:
        """How many of these reports support each candidate key.

        A bucket is a range of the mixed word. A report supports a key when a·x + (b − start) modulo 2^64 is below the
        length of the range, so each pair takes a product, a sum and a comparison.
        """
        seeds = read_words(payload[:, : self.seed_bytes])
        symbols = read_symbols(payload[:, self.seed_bytes :])
        edges = np.array([ceil_div(y * HALF, self.buckets) for y in range(self.buckets + 1)], dtype=np.uint64)
        start = edges[symbols] << np.uint64(32)
        last = ((edges[symbols + 1] - edges[symbols]) << np.uint64(32)) - np.uint64(1)
        offset = seeds[:, -1] - start
        totals = np.zeros(keys.shape[0], dtype=np.int64)
        step = max(1, _PAIRS // max(1, min(keys.shape[0], _PAIRS)))
        for first in range(0, keys.shape[0], _PAIRS):
            part = keys[first : first + _PAIRS]
            columns = [np.ascontiguousarray(part[:, word]) for word in range(self.key_words)]
            for row in range(0, seeds.shape[0], step):
                rows = slice(row, row + step)
                mixed = np.multiply.outer(seeds[rows, 0], columns[0])
                if self.key_words == 2:
                    mixed += np.multiply.outer(seeds[rows, 1], columns[1])
                mixed += offset[rows, np.newaxis]
                totals[first : first + part.shape[0]] += np.count_nonzero(mixed <= last[rows, np.newaxis], axis=0)
        return totals

    def probability(self, payload: bytes, answer: int) -> Fraction:
        """The probability of the bucket, given the seed and the (single) key word; seeds are all equally likely."""
        seed = np.frombuffer(payload[: self.seed_bytes], dtype=">u8").astype(np.uint64)[np.newaxis]
        own = int(self.hash_keys(seed, np.array([[answer] * self.key_words], dtype=np.uint64))[0])
        symbol = int.from_bytes(payload[self.seed_bytes :], "big")
        return response_chance(symbol, own, self.buckets, self.keep)

    def list_payloads(self) -> Iterator[bytes]:
        """Every bucket under a few fixed seeds. A seed alone says nothing about the answer."""
        width = symbol_bytes(self.buckets)
        for number in (0, 1, 0x9E3779B97F4A7C15, WORD - 1):
            seed = b"".join((number * (word + 3) % WORD).to_bytes(8, "big") for word in range(self.key_words + 1))
            yield from (seed + symbol.to_bytes(width, "big") for symbol in range(self.buckets))


def text_keys(values: Sequence[str]) -> Words:
    """The two key words of strings: the first 8 bytes of SHA-256."""
    digests = b"".join(hashlib.sha256(value.encode()).digest()[:8] for value in values)
    return np.frombuffer(digests, dtype=">u4").astype(np.uint64).reshape(-1, 2)


def index_keys(size: int) -> Words:
    """The key words of the values 0 to size − 1."""
    return np.arange(size, dtype=np.uint64)[:, np.newaxis]
