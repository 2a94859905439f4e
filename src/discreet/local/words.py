"""From random bytes to decisions, in integers: what every report of every client is made of.

A *word* is 8 random bytes, big-endian. Two things are done with words, and no third: compare one with a threshold
(``is_below``), and scale one to a small range (``pick``). Both have exact rational probabilities over 2^64, which is
how the stated ε of a task can be computed from the integers that are really used. The same rules are written for
other languages in docs/local-wire.md.
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
# Beyond this loss a report protects nobody, and 64-bit thresholds would begin to be coarse.
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
    """Whether each word is under the threshold: true with probability threshold/2^64."""
    if threshold >= WORD:
        return np.ones(words.shape, dtype=np.bool_)
    return words < np.uint64(threshold)


def pick(words: Words, choices: int) -> Integers:
    """⌊word·choices/2^64⌋: one of ``choices`` numbers, each as likely as the others but for one part in 2^64."""
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
    """Numbers that step over one value: below it they stay, from it on they move up by one."""
    return index + (index >= skipped)


def odds_floor(epsilon: Exact) -> Fraction:
    """A rational at or below e^ε: the largest ratio that a report may show."""
    if isinstance(epsilon, Ln):
        return epsilon.of
    return 1 / Interval.exp_minus(epsilon).high


def keep_threshold(epsilon: Exact, even: Fraction) -> int:
    """The largest T with T/(2^64 − T) ≤ e^ε·even: how often to keep so that the loss stays within ε.

    ``even`` is what the odds of keeping would be without any loss.
    """
    odds = odds_floor(epsilon) * even
    return min(WORD - 1, math.floor(WORD * odds / (1 + odds)))


def loss_of(ratio: Fraction) -> Ln:
    """The stated loss of a report whose likeliest and unlikeliest probabilities have this ratio, exactly."""
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
