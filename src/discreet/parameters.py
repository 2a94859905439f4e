"""Reads what a caller typed: a function returns an exact value, or raises a ParameterError with the rule and the fix.

Every public constructor reads its parameters here, before anything is drawn. An error names the *kind* of a value and
never the value itself, so that no message can contain data.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError, UsageError
from discreet.exact import Exact, Integers, Ln, decimal

Number: TypeAlias = int | float | Fraction | Decimal
Epsilon: TypeAlias = Number | Ln

# The largest size of a call. A larger one is probably a mistake.
MAX_SIZE = 1 << 31
# The largest loss that is counted. A larger one protects nobody.
MAX_EPSILON = 10_000

# The largest power of ten, and the most digits, of a number that is typed. No float has more.
MAX_EXPONENT = 500
MAX_DIGITS = 800
_SIZE = f"between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT} in size, with at most {MAX_DIGITS} digits"
_SIZE_FIX = "Give a number of everyday size. Nothing was charged."


def kind_of(value: object) -> str:
    """The kind of a value in words, never the value itself.

    >>> kind_of(float("nan")), kind_of(-3), kind_of("x")
    ('NaN', 'a negative int', 'a str')
    """
    if isinstance(value, bool | np.bool_):
        return "a bool"
    if isinstance(value, Decimal) and not value.is_finite():
        return "NaN" if value.is_nan() else "an infinite Decimal"
    if isinstance(value, numbers.Real | Decimal):
        name = type(value).__name__
        if isinstance(value, float | np.floating) and math.isnan(value):
            return "NaN"
        if isinstance(value, float | np.floating) and math.isinf(value):
            return f"an infinite {name}"
        return "zero" if value == 0 else f"a negative {name}" if value < 0 else f"a positive {name}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def refuse(name: str, must: str, value: object, fix: str) -> ParameterError:
    """The error for a parameter that is not what it must be."""
    return ParameterError(name, f"must be {must}; got {kind_of(value)}", fix)


def read_number(value: object, name: str, *, fix: str = "Give an int, float, Fraction or Decimal.") -> Fraction:
    """Any finite real number, exactly. A float is read as the decimal that it prints as.

    Numbers beyond all floats, and decimals with very many digits, are refused before they are written out: the exact
    form of 1e999999999 would fill the memory.
    """
    if isinstance(value, bool | np.bool_):
        raise refuse(name, "a finite number", value, fix)
    if isinstance(value, numbers.Integral):
        return _check_size(Fraction(int(value)), name, value)
    if isinstance(value, Fraction):
        return _check_size(value, name, value)
    if isinstance(value, Decimal):
        if value.is_finite():
            if value and (abs(value.adjusted()) > MAX_EXPONENT or len(value.as_tuple().digits) > MAX_DIGITS):
                raise refuse(name, _SIZE, value, _SIZE_FIX)
            return Fraction(value)
    elif isinstance(value, float | np.floating) and math.isfinite(value):
        return decimal(float(value))
    raise refuse(name, "a finite number", value, fix)


def _check_size(exact: Fraction, name: str, value: object) -> Fraction:
    if abs(exact) > 10**MAX_EXPONENT:
        raise refuse(name, _SIZE, value, _SIZE_FIX)
    return exact


def read_positive(value: object, name: str, *, fix: str | None = None) -> Fraction:
    """A finite number above zero."""
    fix = fix or f"Give a number above zero, for example {name}=1."
    exact = read_number(value, name, fix=fix)
    if exact <= 0:
        raise refuse(name, "above zero", value, fix)
    return exact


def read_nonnegative(value: object, name: str) -> Fraction:
    """A finite number at or above zero."""
    fix = f"Give zero or more, for example {name}=0."
    exact = read_number(value, name, fix=fix)
    if exact < 0:
        raise refuse(name, "zero or more", value, fix)
    return exact


def read_epsilon(value: object, name: str = "epsilon") -> Exact:
    """A privacy loss: a finite number above zero, or an exact logarithm such as ln(3)."""
    exact = (
        value
        if isinstance(value, Ln)
        else read_positive(value, name, fix=f"Give for example {name}=1 or {name}=ln(3).")
    )
    if exact > MAX_EPSILON:
        raise refuse(name, f"at most {MAX_EPSILON:,}", value, "A larger loss protects nobody: release without privacy.")
    return exact


def read_delta(value: object, name: str = "delta") -> Fraction:
    """A failure probability: at least zero and below one."""
    fix = f"Give a probability far below one over the number of people, for example {name}=1e-9."
    exact = read_number(value, name, fix=fix)
    if not 0 <= exact < 1:
        raise refuse(name, "at least 0 and below 1", value, fix)
    return exact


def read_probability(value: object, name: str) -> Fraction:
    """A probability strictly between zero and one."""
    fix = f"Give a probability, for example {name}=0.05."
    exact = read_number(value, name, fix=fix)
    if not 0 < exact < 1:
        raise refuse(name, "strictly between 0 and 1", value, fix)
    return exact


def read_whole(value: object, name: str, *, least: int = 1, most: int | None = MAX_SIZE) -> int:
    """A whole number within [least, most]; ``most=None`` sets no upper end."""
    fix = f"Give a whole number, for example {name}={max(least, 1)}."
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise refuse(name, "a whole number", value, fix)
    if int(value) < least or (most is not None and int(value) > most):
        must = f"{least} or more" if most is None else f"between {least} and {most:,}"
        raise refuse(name, must, value, fix)
    return int(value)


def read_integers(values: object, name: str) -> Integers:
    """Whole numbers as an int64 array. A value that would be rounded or would overflow is refused."""
    fix = "Use FixedPoint to turn reals into whole steps first, and keep values within 64 bits."
    array: npt.NDArray[np.generic] = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and bool((array > np.uint64(2**63 - 1)).any())):
        raise ParameterError(name, f"must be whole numbers that fit int64; got an array of {array.dtype}", fix)
    return array.astype(np.int64)


def find_name(name: str, known: Iterable[str], what: str) -> str:
    """The known name that was meant: written with spaces, underscores or capitals, or an unambiguous part of it.

    >>> [find_name(typed, ["float-bits", "timing"], "attack") for typed in ("Float_Bits", "tim")]
    ['float-bits', 'timing']
    """
    names = tuple(known)
    wanted = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    if wanted in names:
        return wanted
    near = [one for one in names if wanted and (wanted in one or one in wanted)]
    if len(near) == 1:
        return near[0]
    raise UsageError(f"There is no such {what}. Choose one of: {', '.join(names)}.")
