"""Projective-geometry response: its variance is close to the least possible, and a report has about a dozen bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet.errors import ParameterError
from discreet.exact import Exact, Integers, Ln
from discreet.late_dataclass import dataclass
from discreet.local.protocol import (
    FrequencyProtocol,
    SymbolProtocol,
    read_epsilon,
    read_integer,
    read_threshold,
    write_threshold,
)
from discreet.local.words import (
    WORD,
    Bytes,
    is_below,
    loss_of,
    near_ratio,
    near_threshold,
    pick,
    pick_weight,
    read_words,
)

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107)
MAX_STATE = 1 << 24  # points; the decoder holds q times as many numbers


def count_points(field: int, dimension: int) -> int:
    """How many points a projective space has: (q^t − 1)/(q − 1)."""
    return int((field**dimension - 1) // (field - 1))


@dataclass(frozen=True, kw_only=True)
class ProjectiveResponse(SymbolProtocol, FrequencyProtocol):
    """Values and reports are points of the projective space of ``dimension`` t over the ``field`` of q elements.

    With probability keep/2^64 a report is one of the points orthogonal to the answer's point, uniformly. Otherwise it
    is one of the other points. Every two values share the same number of orthogonal points, so the estimate is simple.

    Privacy: ε-private for each respondent, under replace.
    Why: a point has probability keep/2^64 over the c = (q^(t−1) − 1)/(q − 1) orthogonal ones or 1 − keep/2^64 over the
    q^(t−1) others, each but for one part in 2^64, which the stated loss counts.
    Reference: Feldman, Nelson, Nguyen & Talwar 2022, §4.
    """

    name: ClassVar[str] = "projective"
    field: int
    dimension: int
    keep: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.field not in PRIMES:
            raise ParameterError("parameters.field", "must be a prime up to 107", "Use 2, 3, 5 or 7.")
        if not 2 <= self.dimension <= 26 or self.field**self.dimension > MAX_STATE * self.field:
            raise ParameterError("parameters.dimension", "makes too many points", "Use a smaller domain or hash.")
        if self.domain_size > count_points(self.field, self.dimension):
            raise ParameterError("parameters.dimension", "has fewer points than the domain", "Use one more.")

    @classmethod
    def find_spaces(cls, domain_size: int) -> list[tuple[int, int]]:
        """For every field the smallest dimension that holds the domain."""
        found = []
        for field in PRIMES:
            dimension = 2
            while count_points(field, dimension) < domain_size:
                dimension += 1
            if field**dimension <= MAX_STATE * field:
                found.append((field, dimension))
        return found

    @classmethod
    def over(cls, exact: Exact, domain_size: int, field: int, dimension: int) -> ProjectiveResponse:
        """The response over one field."""
        inside, outside = count_points(field, dimension - 1), field ** (dimension - 1)
        keep = near_threshold(exact, inside, outside)
        return cls(domain_size=domain_size, field=field, dimension=dimension, keep=keep)

    @classmethod
    def for_epsilon(cls, epsilon: object, domain_size: int) -> ProjectiveResponse:
        """The response over the field with the least variance."""
        exact = read_epsilon(epsilon)
        made = [cls.over(exact, domain_size, field, dimension) for field, dimension in cls.find_spaces(domain_size)]
        if not made:
            raise ParameterError("domain", "is too large for a projective space", "Use hash.")
        return min(made, key=lambda one: one.unit_variance())

    @classmethod
    def read(cls, given: Mapping[str, object], domain_size: int) -> ProjectiveResponse:
        return cls(
            domain_size=domain_size,
            field=read_integer(given, "field", 2, 107),
            dimension=read_integer(given, "dimension", 2, 26),
            keep=read_threshold(given, "keep"),
        )

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"field": self.field, "dimension": self.dimension, "keep": write_threshold(self.keep)}

    @property
    def random_bytes(self) -> int:
        return 16

    @property
    def symbols(self) -> int:
        return count_points(self.field, self.dimension)

    @property
    def inside(self) -> int:
        """How many points are orthogonal to one."""
        return count_points(self.field, self.dimension - 1)

    @property
    def outside(self) -> int:
        """How many points are not orthogonal to one."""
        return int(self.field ** (self.dimension - 1))

    @property
    def epsilon(self) -> Ln:
        return loss_of(near_ratio(self.keep, self.inside, self.outside))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, WORD)

    @property
    def q(self) -> Fraction:
        """Of the points orthogonal to another value, c_i are orthogonal to the answer too and c − c_i are not."""
        shared = count_points(self.field, self.dimension - 2) if self.dimension > 2 else 0
        return self.p * Fraction(shared, self.inside) + (1 - self.p) * Fraction(self.inside - shared, self.outside)

    @property
    def targets(self) -> int:
        return min(self.inside, self.domain_size)

    @cached_property
    def _inverses(self) -> Integers:
        return np.array([0, *(pow(value, -1, self.field) for value in range(1, self.field))], dtype=np.int64)

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        own = to_coordinates(answers, self.field, self.dimension)
        lead = np.argmax(own != 0, axis=1)
        is_inside = is_below(words[:, 0], self.keep)
        near = to_coordinates(pick(words[:, 1], self.inside), self.field, self.dimension - 1)
        far = to_digits(pick(words[:, 1], self.outside), self.field, self.dimension - 1)
        free = np.where(is_inside[:, np.newaxis], near, far)
        full = np.zeros_like(own)
        places = np.arange(self.dimension - 1) + (np.arange(self.dimension - 1) >= lead[:, np.newaxis])
        rows = np.arange(answers.size)
        np.put_along_axis(full, places, free, axis=1)
        full[rows, lead] = (np.where(is_inside, 0, 1) - (own * full).sum(axis=1)) % self.field
        first = full[rows, np.argmax(full != 0, axis=1)]
        return to_number(full * self._inverses[first][:, np.newaxis] % self.field, self.field)

    def chance(self, symbol: int, answer: int) -> Fraction:
        """The exact probability of a symbol, found by following the encoder backwards."""
        own, out = (to_coordinates(np.array([x]), self.field, self.dimension)[0] for x in (answer, symbol))
        product = int((own * out).sum()) % self.field
        lead = int(np.argmax(own != 0))
        if product == 0:
            free = np.delete(out, lead)
            scaled = free * self._inverses[free[np.argmax(free != 0)]] % self.field
            place = int(to_number(scaled[np.newaxis], self.field)[0])
            return self.p * Fraction(pick_weight(place, self.inside), WORD)
        free = np.delete(out * self._inverses[product] % self.field, lead)
        place = 0
        for digit in free.tolist():
            place = place * self.field + digit
        return (1 - self.p) * Fraction(pick_weight(place, self.outside), WORD)

    def count_supports(self, state: Integers) -> Integers:
        """How many reports are orthogonal to each value, for all values at once by a Fourier transform over the field.

        The counts are written on every multiple of their point. Then the transform F satisfies
        F(0) + (q − 1)·F(v) = q·(sum over vectors orthogonal to v); each point has q − 1 vectors.
        """
        q, t = self.field, self.dimension
        weights = q ** np.arange(t - 1, -1, -1)
        grid = np.zeros(q**t, dtype=np.float64)
        for block in _split_numbers(self.symbols):
            vectors = to_coordinates(block, q, t)
            for factor in range(1, q):
                grid[(vectors * factor % q) @ weights] = state[block]
        spectrum = np.fft.rfftn(grid.reshape((q,) * t)).real
        total, found = grid.sum(), np.empty(self.domain_size, dtype=np.int64)
        for block in _split_numbers(self.domain_size):
            vectors = to_coordinates(block, q, t)
            # A real grid has a symmetric spectrum: the half that rfftn leaves out is found at the opposite vector.
            flip = vectors[:, -1] >= spectrum.shape[-1]
            vectors = np.where(flip[:, np.newaxis], -vectors % q, vectors)
            at = spectrum[tuple(vectors.T)]
            found[block] = np.rint((total + (q - 1) * at) / (q * (q - 1))).astype(np.int64)
        return found


def _split_numbers(count: int, step: int = 1 << 18) -> Iterator[Integers]:
    """The numbers below ``count`` in parts, so that the digits of one part fit in memory."""
    return (np.arange(start, min(start + step, count)) for start in range(0, count, step))


def to_digits(numbers: Integers, field: int, places: int) -> Integers:
    """The digits of numbers, most significant first."""
    out = np.empty((numbers.size, places), dtype=np.int64)
    rest = numbers
    for place in range(places - 1, -1, -1):
        rest, out[:, place] = np.divmod(rest, field)
    return out


def to_coordinates(numbers: Integers, field: int, dimension: int) -> Integers:
    """The coordinates of points by their number: a leading one, then the rest in base q."""
    starts = np.array([count_points(field, length) for length in range(dimension)] + [count_points(field, dimension)])
    length = np.searchsorted(starts, numbers, side="right") - 1  # digits after the leading one
    powers = np.array([field**exponent for exponent in range(dimension + 1)], dtype=np.int64)
    # A leading one followed by ``length`` digits r is the number q^length + r.
    return to_digits(powers[length] + numbers - starts[length], field, dimension)


def to_number(vectors: Integers, field: int) -> Integers:
    """The numbers of normalised points."""
    dimension = vectors.shape[1]
    value = np.zeros(vectors.shape[0], dtype=np.int64)
    for place in range(dimension):
        value = value * field + vectors[:, place]
    length = dimension - 1 - np.argmax(vectors != 0, axis=1)
    powers = np.array([field**exponent for exponent in range(dimension)], dtype=np.int64)
    return np.asarray((powers[length] - 1) // (field - 1) + value - powers[length])
