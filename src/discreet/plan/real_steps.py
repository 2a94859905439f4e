"""The steps in which reals of one unit are added: a power of two, so that no order of addition shows.

Rule. Let L be the size up to which values count, and s the power of two with 2^61 <= s·L < 2^62, but never more than
2^1000, and 1 where L = 0. A value counts as whole steps of 1/s, towards zero, and as what is left of it in whole parts
of a step, of which 2^62 are one. Both are added as integers, H and P; the sum is (H + P/2^62)/s. As doubles, whole
steps in P go to H first. A mean is an integer next to (2^62·H + P)/n, for n values, as a double, in parts of a step.

Where bounds of the values are known, L is 2^20 times the larger of them (``bounding.step_sizes``): it is public, and
engines read rows once; a value a million times beyond its bounds counts as that much. Otherwise L is the largest size
of the values that are added; for windows, of those of the whole part.

What it means. A value with L/2^71 or more in size loses nothing, because a double has 53 bits; smaller ones lose less
than a part, which is less than 2^-122 of L. A sum of one value is that value. Means lie between the smallest and the
largest value: these are whole numbers of parts, so the integer next to the mean is between them, and the double that is
made of it is one of the two next to it. H and P stay below 2^62 for each row, so 2^47 rows stay below 2^109, and means
below 2^125: nothing overflows; only the last division may leave the doubles, which gives the largest real.
"""

from __future__ import annotations

import math

from discreet.plan.expressions import Call, Expression, Literal
from discreet.plan.relations import Feature, FeatureCall
from discreet.plan.types import Type

# The largest value has between 2^61 and 2^62 steps. With 2^47 rows, sums stay below 2^109.
STEP_BITS = 61
# How many parts a step has.
PARTS = 2**62
# Powers of two beyond this are not needed to be finer: the smallest doubles would only get steps of nothing.
FINEST = 1000
# How far beyond its bounds a value still counts as it is.
MARGIN = 2**20


def is_stepped(compute: FeatureCall) -> bool:
    """Whether a feature is a sum or a mean of reals, which is taken in steps."""
    real = compute.argument is not None and compute.argument.type is Type.REAL
    return real and compute.feature in (Feature.SUM, Feature.MEAN)


def find_summed(compute: FeatureCall) -> Expression | None:
    """What a feature reads: its argument, up to the size to which values count."""
    if compute.argument is None or compute.size is None or not is_stepped(compute):
        return compute.argument
    low, high = (Literal(end, Type.REAL) for end in (-compute.size, compute.size))
    return Call("clamp", (compute.argument, low, high), Type.REAL)


def count_steps(largest: float) -> float:
    """How many steps make up 1, where values are so large at most."""
    return 2.0 ** min(STEP_BITS + 1 - math.frexp(largest)[1], FINEST) if largest else 1.0
