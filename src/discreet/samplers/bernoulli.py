"""Coins with an exact bias: rational, e^(−x), or any computable real."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import overload

import numpy as np
import numpy.typing as npt

from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Flags, Ln
from discreet.parameters import Number
from discreet.samplers import lazy
from discreet.samplers.arguments import PLAIN, Size, read_nonnegative, read_probability, read_rational, read_shape
from discreet.samplers.block_table import GUARD
from discreet.samplers.exponents import Exponents

_WORD_BITS = 64


@overload
def bernoulli(p: Number, size: None = None, *, source: EntropySource = SYSTEM) -> bool: ...


@overload
def bernoulli(p: Number, size: Size, *, source: EntropySource = SYSTEM) -> Flags: ...


def bernoulli(p: Number, size: Size | None = None, *, source: EntropySource = SYSTEM) -> bool | Flags:
    """True with probability p exactly, for any rational p from 0 to 1; one bool, or a bool array of that shape.

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    return _flip(_ratio_bounds(p if type(p) in PLAIN else read_rational(p, "p")), size, source)


@lru_cache(maxsize=64)
def _ratio_bounds(p: Number) -> lazy.RealBounds:
    return _prepare_first_word(lazy.bounds_of_ratio(read_probability(p, "p")))


@overload
def bernoulli_exp(x: Number | Ln, size: None = None, *, source: EntropySource = SYSTEM) -> bool: ...


@overload
def bernoulli_exp(x: Number | Ln, size: Size, *, source: EntropySource = SYSTEM) -> Flags: ...


def bernoulli_exp(x: Number | Ln, size: Size | None = None, *, source: EntropySource = SYSTEM) -> bool | Flags:
    """True with probability e^(−x) exactly, for any rational x ≥ 0 or exact logarithm.

    >>> bernoulli_exp(0)
    True
    """
    return _flip(_exp_minus_bounds(x if type(x) in (Ln, *PLAIN) else read_rational(x, "x")), size, source)


@lru_cache(maxsize=64)
def _exp_minus_bounds(x: Number | Ln) -> lazy.RealBounds:
    return _prepare_first_word(lazy.bounds_of_exp_minus(x if isinstance(x, Ln) else read_nonnegative(x, "x")))


def _prepare_first_word(bounds: lazy.RealBounds) -> lazy.RealBounds:
    """The same bounds, with those for the first word computed once. Nearly every flip needs only these."""
    first = bounds(_WORD_BITS)
    return lambda bits: first if bits == _WORD_BITS else bounds(bits)


@overload
def bernoulli_real(bounds: lazy.RealBounds, size: None = None, *, source: EntropySource = SYSTEM) -> bool: ...


@overload
def bernoulli_real(bounds: lazy.RealBounds, size: Size, *, source: EntropySource = SYSTEM) -> Flags: ...


def bernoulli_real(
    bounds: lazy.RealBounds, size: Size | None = None, *, source: EntropySource = SYSTEM
) -> bool | Flags:
    """True with probability p exactly, for a real p from 0 to 1 that ``bounds(bits)`` encloses: low ≤ 2^bits·p ≤ high.

    The enclosure must shrink as bits grow: high − low stays below some constant.

    >>> bernoulli_real(lambda bits: (1 << bits, 1 << bits))
    True
    """
    if not callable(bounds):
        raise ParameterError("bounds", "must be a function of a number of bits", "Return whole numbers (low, high).")
    return _flip(bounds, size, source)


def _flip(bounds: lazy.RealBounds, size: Size | None, source: EntropySource) -> bool | Flags:
    """Compare a uniform number with p for each flip. One word decides, except for the two or three words next to p."""
    if size is None:
        return lazy.is_below(source.word(), _WORD_BITS, bounds, source)
    lengths = read_shape(size)
    words = source.words(math.prod(lengths))
    low, high = bounds(_WORD_BITS)
    flips: Flags = words <= np.uint64(low - 1) if low > 0 else np.zeros(words.size, dtype=np.bool_)
    maybe = words <= np.uint64(high - 1) if high > 0 else flips
    for lane in np.flatnonzero(flips != maybe).tolist():
        flips[lane] = lazy.is_below(int(words[lane]), _WORD_BITS, bounds, source)
    return flips.reshape(lengths)


def bernoulli_exp_each(
    scores: npt.ArrayLike, factor: Number = 1, *, origin: Number = 0, source: EntropySource = SYSTEM
) -> Flags:
    """One coin for each entry: True with probability exp(−factor·(scores_i − origin)) exactly.

    Scores are whole numbers or floats (each the dyadic rational it is); factor and origin any rationals for which no
    exponent is negative. ``origin`` saves callers a subtraction that would round.

    A float comparison decides an entry that is further than ``GUARD`` from a tie; ``lazy.is_below`` decides the others.

    >>> bernoulli_exp_each([0, 0, 0]).tolist()
    [True, True, True]
    """
    exponents = Exponents.read(scores, factor, origin=origin)
    if exponents.has_negative():
        raise ParameterError("scores", "must not make an exponent negative", "Give factor·(scores − origin) ≥ 0.")
    words = source.words(exponents.size)
    gap = words.astype(np.float64) * 2.0**-_WORD_BITS - np.exp(-exponents.approximate)
    flips: Flags = gap < 0
    for lane in np.flatnonzero(np.abs(gap) <= GUARD).tolist():
        flips[lane] = lazy.is_below(
            int(words[lane]), _WORD_BITS, lazy.bounds_of_exp_minus(exponents.exact_exponent(lane)), source
        )
    return flips.reshape(exponents.shape)
