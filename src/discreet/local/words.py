"""Turns random bytes into decisions, in integers: every report of every client is made with these functions.

A *word* is 8 random bytes, big-endian. A client does only two things with a word: it compares the word with a threshold
(``is_below``), or it scales the word to a small range (``pick``). Both have exact rational probabilities over 2^64, so
the stated ε of a task can be computed from the integers that are really used. docs/local-wire.md states the same rules
for other languages.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.entropy import EntropySource, Words
from discreet.errors import ParameterError
from discreet.exact import Exact, Flags, Integers, Interval, Ln, ceil_div

WORD = 1 << 64
HALF = 1 << 32
MAX_PICK = 1 << 32
# A report with a larger loss protects nobody, and 64-bit thresholds become too coarse for it.
MAX_EPSILON = 32

Bytes: TypeAlias = npt.NDArray[np.uint8]

_LOW = np.uint64(HALF - 1)
_SHIFT = np.uint64(32)


def read_words(random: Bytes) -> Words:
    """Rows of random bytes as rows of words."""
    return np.ascontiguousarray(random).view(">u8").astype(np.uint64)


def draw_bytes(count: int, width: int, source: EntropySource) -> Bytes:
    """``count`` rows of ``width`` fresh random bytes; the width is a multiple of 8."""
    return source.words(count * width // 8).view(np.uint8).reshape(count, width)


def is_below(words: Words, threshold: int) -> Flags:
    """Whether each word is below the threshold. This is true with probability threshold/2^64."""
    if threshold >= WORD:
        return np.ones(words.shape, dtype=np.bool_)
    return words < np.uint64(threshold)


def pick(words: Words, choices: int) -> Integers:
    """⌊word·choices/2^64⌋: one of ``choices`` numbers, all equally likely up to one part in 2^64."""
    if choices == HALF:
        return (words >> _SHIFT).astype(np.int64)
    times = np.uint64(choices)
    low = ((words & _LOW) * times) >> _SHIFT
    return (((words >> _SHIFT) * times + low) >> _SHIFT).astype(np.int64)


def pick_weight(index: int, choices: int) -> int:
    """How many of the 2^64 words pick this index."""
    return ceil_div((index + 1) * WORD, choices) - ceil_div(index * WORD, choices)


def pick_least(choices: int) -> int:
    """The weight of the least likely index."""
    return WORD // choices


def pick_most(choices: int) -> int:
    """The weight of the likeliest index."""
    return ceil_div(WORD, choices)


def skip_value(index: Integers, skipped: Integers) -> Integers:
    """Indices with one value left out: an index below that value stays, any other moves up by one."""
    return index + (index >= skipped)


def odds_floor(epsilon: Exact) -> Fraction:
    """A rational at or below e^ε: the largest ratio that two probabilities of a report may have."""
    if isinstance(epsilon, Ln):
        return epsilon.of
    return 1 / Interval.exp_minus(epsilon).high


def keep_threshold(epsilon: Exact, even: Fraction) -> int:
    """The largest T with T/(2^64 − T) ≤ e^ε·even. A report is kept with probability T/2^64, at a loss within ε.

    ``even`` is the odds of keeping that would give no loss at all.
    """
    odds = odds_floor(epsilon) * even
    return min(WORD - 1, math.floor(WORD * odds / (1 + odds)))


def near_threshold(epsilon: Exact, near: int, far: int) -> int:
    """The largest threshold within ε for a report of two parts; see ``near_ratio``."""
    return keep_threshold(epsilon, Fraction(pick_least(far), pick_most(near)))


def near_ratio(threshold: int, near: int, far: int) -> Fraction:
    """The largest ratio between two probabilities of one symbol, for a report of two parts.

    With probability threshold/2^64 the report is one of the ``near`` symbols of the answer, otherwise it is one of the
    ``far`` others; ``pick`` chooses within the part. The ratio covers a symbol that is near for one answer and far for
    the other, in both directions, and a symbol that ``pick`` makes more likely for one answer than for the other.
    """
    up = Fraction(threshold * pick_most(near), (WORD - threshold) * pick_least(far))
    down = Fraction((WORD - threshold) * pick_most(far), threshold * pick_least(near))
    return max(up, down, *(Fraction(pick_most(size), pick_least(size)) for size in (near, far)))


def loss_of(ratio: Fraction) -> Ln:
    """The exact stated loss of a report when two probabilities of one payload have at most this ratio."""
    if ratio <= 1:
        fix = "Use a larger epsilon, or fewer values."
        raise ParameterError("parameters", "make a report that does not depend on the answer", fix)
    return Ln(ratio)


def symbol_bytes(symbols: int) -> int:
    """How many bytes a number below ``symbols`` takes on the wire."""
    return max(1, ((symbols - 1).bit_length() + 7) // 8)


def write_symbols(symbols: Integers, width: int) -> Bytes:
    """Numbers as rows of big-endian bytes."""
    if width == 1:
        return symbols.astype(np.uint8)[:, np.newaxis]
    if width == 2:
        return symbols.astype(">u2").view(np.uint8).reshape(-1, 2)
    return np.ascontiguousarray(symbols.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 4 - width :])


def read_symbols(payload: Bytes) -> Integers:
    """Rows of big-endian bytes as numbers."""
    width = payload.shape[1]
    if width == 1:
        return payload[:, 0].astype(np.int64)
    if width == 2:
        return np.ascontiguousarray(payload).view(">u2")[:, 0].astype(np.int64)
    padded = np.zeros((payload.shape[0], 4), dtype=np.uint8)
    padded[:, 4 - width :] = payload
    return padded.view(">u4")[:, 0].astype(np.int64)
