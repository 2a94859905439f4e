"""Work, counted instead of timed: a count is the same on every machine and under every load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

# What refuses or bounds must end within so many calls. The most that one needs is 203,371; without limits there are
# texts and plans that need any number.
MOST_CALLS = 1_000_000


def count_calls(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C, until the work returns or raises.

    >>> count_calls(lambda: [abs(i) for i in range(10)]) - count_calls(lambda: [abs(i) for i in range(3)])
    7
    """
    count = 0

    def see(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
