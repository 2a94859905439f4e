"""Reads the arguments of a sampler: exact rationals and array shapes, or a ParameterError before anything is drawn.

Here a float is read as the dyadic rational that it is; ``parameters`` reads it as the decimal that a person typed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from discreet import parameters

Size: TypeAlias = int | tuple[int, ...]

# Types whose values are hashable and mean one rational, so that a cache can be used before they are read. A bool fails
# ``type(x) in PLAIN``: it equals 0 or 1, and a cache would take it for a number.
PLAIN = (int, float, Fraction)


def read_rational(value: object, name: str) -> Fraction:
    """Any finite number as the rational that it is. Integers and fractions may be of any size: draws are exact."""
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return Fraction(float(value))
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    return parameters.read_number(value, name)


def read_positive(value: object, name: str) -> Fraction:
    """A finite number above zero."""
    exact = read_rational(value, name)
    if exact <= 0:
        raise parameters.refuse(name, "above zero", value, f"Give a number above zero, for example {name}=1.")
    return exact


def read_nonnegative(value: object, name: str) -> Fraction:
    """A finite number at or above zero."""
    exact = read_rational(value, name)
    if exact < 0:
        raise parameters.refuse(name, "zero or more", value, f"Give zero or more, for example {name}=1.")
    return exact


def read_probability(value: object, name: str) -> Fraction:
    """A number from zero to one, both included."""
    exact = read_rational(value, name)
    if not 0 <= exact <= 1:
        raise parameters.refuse(name, "between 0 and 1", value, f"Give a probability, for example {name}=0.5.")
    return exact


def read_shape(size: object) -> tuple[int, ...]:
    """The shape that ``size`` asks for: a whole number of values, or a tuple of them."""
    sizes = size if isinstance(size, tuple) else (size,)
    read = tuple(parameters.read_whole(length, "size", least=0) for length in sizes)
    parameters.read_whole(math.prod(read), "size", least=0)
    return read
