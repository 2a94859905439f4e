"""Reads counts of units by key, so that neither an error message nor the order of the keys reveals private data.

Keys are returned in their own order, whatever the order of the input was. Keys without units are left out.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Integers

KeyT = TypeVar("KeyT", bound=Hashable)

_FIX = "Use numbers, text, bytes, dates, None, or tuples of these as keys."


def read_counts(counts: Mapping[KeyT, int]) -> tuple[list[KeyT], Integers]:
    """The keys that have units, in their own order, and the number of units of each."""
    if not isinstance(counts, Mapping):
        raise parameters.refuse("counts", "a mapping from keys to numbers of units", counts, "Give {'a': 3, 'b': 5}.")
    units = read_units(list(counts.values()))
    present = [(key, count) for key, count in zip(counts, units.tolist()) if count > 0]
    present.sort(key=lambda pair: _sort_key(pair[0]))
    return [key for key, _ in present], np.array([count for _, count in present], dtype=np.int64)


def read_units(values: object) -> Integers:
    """Numbers of units: whole, not negative, one-dimensional."""
    if isinstance(values, list) and any(isinstance(value, bool) for value in values):
        raise ParameterError("counts", "must be whole numbers; got a bool", "Count the distinct units of each key.")
    units = parameters.read_integers(values, "counts")
    if units.ndim != 1 or (units.size and int(units.min()) < 0):
        raise ParameterError(
            "counts", "must be one number of units, zero or more, for each key", "Count distinct units."
        )
    return units


def _sort_key(key: object) -> tuple[str, object]:
    """A total order over all allowed keys: by kind first, then by value."""
    plain = key.item() if isinstance(key, np.generic) else key
    match plain:
        case None:
            return "none", 0
        case tuple():
            return "tuple", tuple(_sort_key(part) for part in plain)
        case numbers.Rational():
            return "number", Fraction(plain)
        case float() | Decimal():
            if math.isfinite(plain):
                return "number", Fraction(plain)
            raise ParameterError("counts", "has a key that is NaN or infinite", _FIX)
        case str() | bytes() | timedelta():
            return type(plain).__name__, plain
        case date():
            return "date", plain.isoformat()
        case _:
            raise ParameterError("counts", f"has a key without an order of its own: {parameters.kind_of(key)}", _FIX)
