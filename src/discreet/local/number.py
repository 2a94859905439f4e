"""Protocols for the mean of a number: one bit (Duchi), a window (piecewise), or a random choice of the two (hybrid).

An answer is a whole number X from 0 to 2^32, which stands for a number in the range of the task. The expectation of a
report is exactly a linear function of X, for all three protocols. So the mean of the reports, mapped back by that
function, is unbiased. In units of the half-range the errors are those of the continuous mechanisms on [−1, 1].
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.entropy import Words
from discreet.errors import ParameterError
from discreet.exact import Floats, Integers, Ln, float_up
from discreet.late_dataclass import dataclass
from discreet.local.protocol import SymbolProtocol, read_epsilon, read_integer, read_threshold, write_threshold
from discreet.local.words import (
    HALF,
    WORD,
    Bytes,
    is_below,
    keep_threshold,
    loss_of,
    near_ratio,
    near_threshold,
    pick,
    pick_weight,
    read_words,
)

CELLS = 1 << 12  # cells of a window report: each is one part in 4,096 of the range of the noise
# Below this loss the hybrid is the sign report alone, because a window report is never better there.
HYBRID_FROM = 0.6093524930273093


@dataclass(frozen=True, kw_only=True)
class NumberProtocol(SymbolProtocol):
    """A protocol whose report, scored by ``scores``, has the answer (−1 to 1) as its exact expectation."""

    @property
    @abstractmethod
    def scores(self) -> Floats:
        """For each symbol, the number in units of the half-range that it stands for."""

    def law(self, answer: int) -> Floats:
        """The probabilities of all symbols, as floats."""
        return np.array([float(self.chance(symbol, answer)) for symbol in range(self.symbols)])

    def unit_variance(self, answer: float) -> float:
        """The variance of one scored report, for an answer from −1 to 1."""
        scores, chances = self.scores, self.law(round((answer + 1) / 2 * HALF))
        mean = float(chances @ scores)
        return float(chances @ (scores - mean) ** 2)

    @property
    def influence(self) -> float:
        """How far one malicious report can move the sum, in half-ranges: half the people who change from −1 to 1."""
        return float(np.abs(self.scores).max())


@dataclass(frozen=True, kw_only=True)
class SignResponse(NumberProtocol):
    """One bit, which is one with a probability that grows with the answer from low/2^64 to high/2^64.

    Privacy: ε-private for each respondent, under replace, with e^ε = high/low.
    Why: low + high = 2^64, so both values of the bit have probabilities between low and high over 2^64.
    Reference: Duchi, Jordan & Wainwright 2018, for one dimension.
    """

    name: ClassVar[str] = "sign"
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high or self.low + self.high != WORD:
            raise ParameterError("parameters", "must satisfy 0 < low < high and low + high = 2^64", "Use for_epsilon.")

    @classmethod
    def for_epsilon(cls, epsilon: object) -> SignResponse:
        """The protocol whose bit depends on the answer as much as ε allows."""
        high = keep_threshold(read_epsilon(epsilon), Fraction(1))
        return cls(low=WORD - high, high=high)

    @classmethod
    def read(cls, given: Mapping[str, object]) -> SignResponse:
        """The protocol from a task's parameters."""
        return cls(low=read_threshold(given, "low"), high=read_threshold(given, "high"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"low": write_threshold(self.low), "high": write_threshold(self.high)}

    @property
    def random_bytes(self) -> int:
        return 8

    @property
    def symbols(self) -> int:
        return 2

    @property
    def epsilon(self) -> Ln:
        return loss_of(Fraction(self.high, self.low))

    @property
    def scores(self) -> Floats:
        top = float(Fraction(WORD, self.high - self.low))
        return np.array([-top, top])

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        return self.draw_bits(answers, read_words(random)[:, 0])

    def draw_bits(self, answers: Integers, words: Words) -> Integers:
        """The bit of each answer: word < low + ⌊(high − low)·X/2^32⌋."""
        span, x = self.high - self.low, answers.astype(np.uint64)
        upper, lower = np.uint64(span >> 32), np.uint64(span & (HALF - 1))
        # X ≤ 2^32 and span < 2^64: the product is split so that it stays within 64 bits.
        edge = np.uint64(self.low) + upper * x + ((lower * x) >> np.uint64(32))
        return (words < edge).astype(np.int64)

    def chance(self, symbol: int, answer: int) -> Fraction:
        one = Fraction(self.low + (self.high - self.low) * answer // HALF, WORD)
        return one if symbol else 1 - one


@dataclass(frozen=True, kw_only=True)
class WindowResponse(NumberProtocol):
    """One of ``cells`` numbers: within a window of ``width`` cells with probability inside/2^64, else outside it.

    The window starts at X·(cells − width)/2^32, rounded at random to a whole cell so that its place is unbiased.

    Privacy: ε-private for each respondent, under replace.
    Why: for each place of the window, a cell has probability inside/2^64 over the width or 1 − inside/2^64 over the
    rest, each but for one part in 2^64; the stated loss takes the worst two. A place rounded at random is a mixture.
    Reference: Wang, Xiao, Yang et al. 2019, Algorithm 2, on a grid.
    """

    name: ClassVar[str] = "window"
    cells: int
    width: int
    inside: int

    def __post_init__(self) -> None:
        if not 0 < self.width < self.cells <= 1 << 16:
            raise ParameterError("parameters", "must satisfy 0 < width < cells ≤ 65536", "Use for_epsilon.")

    @classmethod
    def for_epsilon(cls, epsilon: object) -> WindowResponse:
        """The protocol whose window has the least variance at ±1: a share 1/(e^(ε/2) + 1) of the cells."""
        exact = read_epsilon(epsilon)
        width = max(1, round(CELLS / (math.exp(float_up(exact) / 2) + 1)))
        return cls(cells=CELLS, width=width, inside=near_threshold(exact, width, CELLS - width))

    @classmethod
    def read(cls, given: Mapping[str, object]) -> WindowResponse:
        """The protocol from a task's parameters."""
        cells, width = (read_integer(given, name, 1, 1 << 16) for name in ("cells", "width"))
        return cls(cells=cells, width=width, inside=read_threshold(given, "inside"))

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"cells": self.cells, "width": self.width, "inside": write_threshold(self.inside)}

    @property
    def random_bytes(self) -> int:
        return 24

    @property
    def symbols(self) -> int:
        return self.cells

    @property
    def epsilon(self) -> Ln:
        return loss_of(near_ratio(self.inside, self.width, self.cells - self.width))

    @property
    def scores(self) -> Floats:
        """The number from −1 to 1 that each cell stands for.

        The expectation of a cell is A + B·(start of the window); the scores are the inverse of that line.
        """
        spare = self.cells - self.width
        share = Fraction(self.inside, WORD)
        within, rest = Fraction(self.width - 1, 2), Fraction(self.cells * (self.cells - 1), 2)
        # Outside: (sum of all − sum within)/spare, and the sum within is width·start + width·(width − 1)/2.
        slope = share - (1 - share) * Fraction(self.width, spare)
        at_zero = share * within + (1 - share) * (rest - self.width * within) / spare
        start = (np.arange(self.cells) - float(at_zero)) / float(slope)
        return 2 * start / spare - 1

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        return self.draw_cells(answers, words[:, 0], words[:, 1], words[:, 2])

    def draw_cells(self, answers: Integers, rounding: Words, side: Words, cell: Words) -> Integers:
        """A cell for each answer."""
        scaled = answers * (self.cells - self.width)
        start = (scaled >> 32) + ((rounding >> np.uint64(32)).astype(np.int64) < (scaled & (HALF - 1)))
        return draw_in_window(start, self.width, self.cells - self.width, is_below(side, self.inside), cell)

    def chance(self, symbol: int, answer: int) -> Fraction:
        spare = self.cells - self.width
        start, part = divmod(answer * spare, HALF)
        up = Fraction(part, HALF)
        chance = (1 - up) * window_chance(symbol, start, self.width, spare, self.inside)
        return chance + (up * window_chance(symbol, start + 1, self.width, spare, self.inside) if part else 0)

    def law(self, answer: int) -> Floats:
        spare, share = self.cells - self.width, self.inside / WORD
        start, part = divmod(answer * spare, HALF)
        law = np.full(self.cells, (1 - share) / spare)
        gap = share / self.width - law[0]
        for first, weight in ((start, 1 - part / HALF), (start + 1, part / HALF)):
            law[first : first + self.width] += weight * gap
        return law


@dataclass(frozen=True, kw_only=True)
class HybridResponse(NumberProtocol):
    """A window report with probability piecewise/2^64, otherwise a sign report. It has the least worst-case error.

    Privacy: ε-private for each respondent, under replace, with the larger loss of its two parts.
    Why: the choice between the two parts does not depend on the answer.
    Reference: Wang, Xiao, Yang et al. 2019, §3.3.
    """

    name: ClassVar[str] = "hybrid"
    piecewise: int
    window: WindowResponse
    sign: SignResponse

    @classmethod
    def for_epsilon(cls, epsilon: object) -> HybridResponse:
        """The protocol with the least worst-case variance.

        Its share of window reports is 1 − e^(−ε/2) from ε = 0.6094 on, and 2^−64 below it.
        """
        exact = read_epsilon(epsilon)
        value = float_up(exact)
        share = 1 - math.exp(-value / 2) if value > HYBRID_FROM else 0.0
        piecewise = min(WORD - 1, max(1, round(share * HALF) * HALF))
        return cls(piecewise=piecewise, window=WindowResponse.for_epsilon(exact), sign=SignResponse.for_epsilon(exact))

    @classmethod
    def read(cls, given: Mapping[str, object]) -> HybridResponse:
        """The protocol from a task's parameters."""
        return cls(
            piecewise=read_threshold(given, "piecewise"),
            window=WindowResponse.read(given),
            sign=SignResponse.read(given),
        )

    @property
    def parameters(self) -> dict[str, int | str]:
        return {"piecewise": write_threshold(self.piecewise), **self.window.parameters, **self.sign.parameters}

    @property
    def random_bytes(self) -> int:
        return 32

    @property
    def symbols(self) -> int:
        return self.window.cells + 2

    @property
    def epsilon(self) -> Ln:
        return max(self.window.epsilon, self.sign.epsilon)

    @property
    def scores(self) -> Floats:
        return np.concatenate([self.window.scores, self.sign.scores])

    def respond(self, answers: Integers, random: Bytes) -> Integers:
        words = read_words(random)
        cell = self.window.draw_cells(answers, words[:, 1], words[:, 2], words[:, 3])
        bit = self.window.cells + self.sign.draw_bits(answers, words[:, 1])
        return np.where(is_below(words[:, 0], self.piecewise), cell, bit)

    def chance(self, symbol: int, answer: int) -> Fraction:
        share = Fraction(self.piecewise, WORD)
        if symbol < self.window.cells:
            return share * self.window.chance(symbol, answer)
        return (1 - share) * self.sign.chance(symbol - self.window.cells, answer)

    def law(self, answer: int) -> Floats:
        share = self.piecewise / WORD
        return np.concatenate([share * self.window.law(answer), (1 - share) * self.sign.law(answer)])


def draw_in_window(start: Integers, width: int, spare: int, inside: object, cell: Words) -> Integers:
    """A cell of the window where ``inside``, otherwise one of the ``spare`` cells beside it."""
    beside = pick(cell, spare)
    beside += width * (beside >= start)
    return np.where(np.asarray(inside), start + pick(cell, width), beside)


def window_chance(symbol: int, start: int, width: int, spare: int, inside: int) -> Fraction:
    """The exact probability of a cell when the window starts here."""
    if start <= symbol < start + width:
        return Fraction(inside * pick_weight(symbol - start, width), WORD * WORD)
    beside = symbol if symbol < start else symbol - width
    return Fraction((WORD - inside) * pick_weight(beside, spare), WORD * WORD)
