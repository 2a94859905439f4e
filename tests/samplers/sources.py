"""Sources for tests: words of few bits, and choices that a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from discreet.entropy import SeededForTestsOnly, Words
from discreet.exact import Interval

Result = TypeVar("Result")


class SmallWords:
    """A seeded source whose words have only a few bits, so that rare words become common ones."""

    def __init__(self, seed: int, word_bits: int) -> None:
        self._source = SeededForTestsOnly(seed)
        self._word_bits = word_bits

    def words(self, count: int) -> Words:
        return self._source.words(count) >> np.uint64(64 - self._word_bits)

    def word(self) -> int:
        return self._source.bits(self._word_bits)

    def bits(self, count: int) -> int:
        return self._source.bits(count)


class Fixed:
    """A source whose words are all the same, and so are its bits: the way to stand on a border."""

    def __init__(self, word: int, bits: int = 0) -> None:
        self._word, self._bits = word, bits

    def words(self, count: int) -> Words:
        return np.full(count, self._word, dtype=np.uint64)

    def word(self) -> int:
        return self._word

    def bits(self, count: int) -> int:
        return self._bits & ((1 << count) - 1)


class Listed(Fixed):
    """A source with a list of words, one for each request; its bits are all zero."""

    def __init__(self, *words: int) -> None:
        super().__init__(0)
        self._left = list(words)

    def words(self, count: int) -> Words:
        return np.full(count, self.word(), dtype=np.uint64)

    def word(self) -> int:
        return self._left.pop(0)


class Fork(Exception):
    """The written choices are used up, and the next one has these chances."""

    def __init__(self, chances: Sequence[Interval]) -> None:
        self.chances = chances


class Written:
    """A source that makes written choices, so that a test can walk every branch of a sampler.

    Bits are choices among equal chances. ``choose`` is for choices with other chances, for tests that put an event of
    known probability in the place of code that is tested by itself.
    """

    def __init__(self, choices: tuple[int, ...], word_bits: int) -> None:
        self._choices, self._made, self._word_bits = choices, 0, word_bits

    def choose(self, chances: Sequence[Interval]) -> int:
        if self._made == len(self._choices):
            raise Fork(chances)
        self._made += 1
        return self._choices[self._made - 1]

    def bits(self, count: int) -> int:
        return self.choose([Interval.of(Fraction(1, 1 << count))] * (1 << count)) if count else 0

    def word(self) -> int:
        return self.bits(self._word_bits)

    def words(self, count: int) -> Words:
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


def outcomes(
    run: Callable[[Written], Result], *, word_bits: int, least: float = 1e-6
) -> Iterator[tuple[Result | None, Interval]]:
    """Every result of ``run`` with its probability: the whole decision tree of the real code.

    Branches less likely than ``least`` are cut and come as None.
    """
    open_branches: list[tuple[tuple[int, ...], Interval]] = [((), Interval.of(1))]
    while open_branches:
        choices, chance = open_branches.pop()
        if chance.high < least:
            yield None, chance
            continue
        try:
            yield run(Written(choices, word_bits)), chance
        except Fork as fork:
            open_branches += [
                ((*choices, option), (chance * part).trim())
                for option, part in enumerate(fork.chances)
                if part.high > 0
            ]
