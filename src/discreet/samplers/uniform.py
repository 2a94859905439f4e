"""Uniform whole numbers below n."""

from __future__ import annotations

import math
from typing import cast, overload

import numpy as np

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource, Words
from discreet.exact import Integers
from discreet.samplers.arguments import Size, read_shape

_WORDS = 1 << 64


@overload
def uniform_below(n: int, size: None = None, *, source: EntropySource = SYSTEM) -> int: ...


@overload
def uniform_below(n: int, size: Size, *, source: EntropySource = SYSTEM) -> Integers: ...


def uniform_below(n: int, size: Size | None = None, *, source: EntropySource = SYSTEM) -> int | Integers:
    """Whole numbers 0, ..., n − 1, each with probability 1/n exactly, for any n ≥ 1.

    ``size=None`` gives one int; a size gives an int64 array of that shape (of Python integers where n > 2^63).

    >>> uniform_below(1)
    0
    >>> bool((uniform_below(6, size=100) < 6).all())
    True
    """
    n = parameters.read_whole(n, "n", most=None)
    if size is None:
        return draw_below(n, source)
    lengths = read_shape(size)
    count = math.prod(lengths)
    if n > 1 << 63:
        values = np.array([draw_below(n, source) for _ in range(count)], dtype=object)
        return cast("Integers", values.reshape(lengths))  # the exception to int64 that the docstring names
    return draw_words_below(n, count, source).view(np.int64).reshape(lengths)


def draw_below(n: int, source: EntropySource) -> int:
    """One uniform number below n: bits are drawn until they are below n, on average less than twice."""
    bits = (n - 1).bit_length()
    while (value := source.bits(bits)) >= n:
        pass
    return value


def draw_words_below(n: int, count: int, source: EntropySource) -> Words:
    """Uniform numbers below n ≤ 2^64: each owns ⌊2^64/n⌋ words, and the few words left over are redrawn."""
    if n == 1:
        return np.zeros(count, dtype=np.uint64)
    values = source.words(count)
    values //= np.uint64(_WORDS // n)
    if n < _WORDS:
        over = np.flatnonzero(values >= np.uint64(n))
        if over.size:
            values[over] = draw_words_below(n, over.size, source)
    return values
