"""Normal noise, rounded to whole numbers."""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Integers
from discreet.parameters import Number
from discreet.samplers import reference
from discreet.samplers.arguments import Size, read_positive, read_shape


@overload
def rounded_gaussian(variance: Number, size: None = None, *, source: EntropySource = SYSTEM) -> int: ...


@overload
def rounded_gaussian(variance: Number, size: Size, *, source: EntropySource = SYSTEM) -> Integers: ...


def rounded_gaussian(variance: Number, size: Size | None = None, *, source: EntropySource = SYSTEM) -> int | Integers:
    """Whole numbers round(σZ), Z standard normal, exactly, for any rational σ² = ``variance`` above zero."""
    exact = read_positive(variance, "variance")
    if size is None:
        return reference.rounded_gaussian(exact, source)
    lengths = read_shape(size)
    values = [reference.rounded_gaussian(exact, source) for _ in range(math.prod(lengths))]
    return np.array(values, dtype=np.int64).reshape(lengths)
