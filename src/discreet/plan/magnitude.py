"""The magnitude of a number: its size as a power of two. It needs no bounds, and all its values are public.

The magnitude is the largest power of two that is not above the number's size, with the number's sign: 5 is in the
bucket 4, −0.3 is in −0.25, and 0 is in 0. Integers have a bucket for every power of two within 64 bits. Reals with a
size below ``SMALLEST`` are in the bucket 0, and those from ``LARGEST`` on are in the last bucket. So all buckets are
known without reading any data.

>>> magnitude(100), magnitude(-1), magnitude(0), magnitude(0.3)
(64, -1, 0, 0.25)
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, Type

IntOrFloat = int | float

# Exponents of the smallest and the largest bucket of reals: from below a billionth to above 10^18.
FIRST_EXPONENT, LAST_EXPONENT = -32, 63
SMALLEST, LARGEST = math.ldexp(1.0, FIRST_EXPONENT), math.ldexp(1.0, LAST_EXPONENT)

_WHOLE = tuple(1 << k for k in range(63))
_REAL = tuple(math.ldexp(1.0, k) for k in range(FIRST_EXPONENT, LAST_EXPONENT + 1))

BUCKETS: Mapping[Type, tuple[IntOrFloat, ...]] = {
    Type.INTEGER: (INTEGER_MIN, *(-size for size in reversed(_WHOLE)), 0, *_WHOLE),
    Type.REAL: (*(-size for size in reversed(_REAL)), 0.0, *_REAL),
}
"""All magnitudes of each type of number, in ascending order."""


def magnitude(number: IntOrFloat) -> IntOrFloat:
    """The bucket of a number, of the number's own type."""
    if isinstance(number, int):
        return 0 if number == 0 else (1 if number > 0 else -1) << (abs(number).bit_length() - 1)
    size = abs(number)
    if size < SMALLEST:
        return 0.0
    # frexp is exact: size = m·2^e with 1/2 ≤ m < 1.
    _, exponent = math.frexp(size)
    return math.copysign(math.ldexp(1.0, min(exponent - 1, LAST_EXPONENT)), number)


def ends(bucket: IntOrFloat) -> tuple[IntOrFloat, IntOrFloat]:
    """The least and the greatest number of a bucket. The end that is farther from zero is rounded up to a power of two.

    >>> ends(64), ends(-0.25), ends(0)
    ((64, 128), (-0.5, -0.25), (0, 0))
    """
    far = 2 * bucket
    if isinstance(bucket, int):
        far = max(INTEGER_MIN, min(INTEGER_MAX, far))
    return (bucket, far) if bucket >= 0 else (far, bucket)
