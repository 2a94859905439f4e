"""Sum order: float sums are rounded, so one row can move a sum by far more than its bound.

When a float sum passes a power of two, its steps get coarser, and small values are rounded up. A row in front makes the
sum pass the power earlier, and then every later row adds to the difference (Casacuberta, Shoemate, Vadhan & Wagaman
2022). Noise for the bound of one row then hides nothing. Sums of whole numbers have no such steps and do not depend on
the order.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sum import Sum

Floats32: TypeAlias = npt.NDArray[np.float32]

BOUND = 4096
FIRST = 1 << 24  # where single-precision floats stop having every whole number
FINE = Fraction(1, 1 << 23)  # the values are multiples of this
LESSON = (
    "The naive sum keeps to its bound in every row, and still one row moves it many times as far. Exact sums in whole "
    "steps move by one bound at most, in whatever order the rows come."
)


def run(*, attempts: int = 2000, crossings: int = 4) -> Outcome:
    """Guess whether one row of value 4096 is in front of a table that the attacker knows."""
    rows = craft_rows(crossings)
    target = np.array([BOUND], dtype=np.float32)
    without, with_target = naive_sum(rows), naive_sum(np.concatenate([target, rows]))
    present = make_coins("row in front", attempts)
    # Even the best noise cannot help here: the sensitivity is wrong.
    noise = Laplace(sensitivity=BOUND, epsilon=EPSILON)
    naive = np.asarray(noise.release(np.where(present, int(with_target), int(without))))
    raw = Rate.agreement(naive > (without + with_target) / 2, present)
    exact = Sum(bounds=(0, BOUND), resolution=FINE, epsilon=EPSILON)
    (less,), (more,) = (exact.answers(values) for values in (rows, np.concatenate([rows, target])))
    sums = np.asarray(exact.noise.release(np.where(present, more, less)))
    private = Rate.agreement(sums > (less + more) / 2, present)
    moved = (with_target - without) / BOUND
    backwards = naive_sum(rows[::-1])
    return Outcome(
        name="sum-order",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="float sum, noise for the bound", rate=raw), Bar(label="discreet", rate=private)),
        facts={
            "rows": f"{len(rows):,}",
            "one row moves the float sum by": f"{moved:g} times its bound",
            "the same rows backwards differ by": f"{abs(backwards - without):,.0f}",
            "one row moves the exact sum by": f"{(more - less) * FINE / BOUND} times its bound",
        },
    )


def naive_sum(values: Floats32) -> float:
    """A sum in single precision, row after row, as many engines compute it for a column of floats."""
    return float(np.cumsum(values, dtype=np.float32)[-1])


def craft_rows(crossings: int) -> Floats32:
    """Rows within 0 to 4096 after which one row more in front makes the sum 2^crossings bounds larger.

    Two sums are followed: without the row and with it. Each round brings the larger one to a power of two, and the
    other just below; then values slightly above the step are added until the smaller one has arrived, too. Below the
    power they count once, above it they are rounded up to double.
    """
    small, large, power, step = BOUND * (FIRST // BOUND - 1), FIRST, FIRST, 1
    parts = [np.full(FIRST // BOUND - 1, BOUND, dtype=np.float32)]
    for _ in range(crossings):
        count = (power - small) // step
        value = np.nextafter(np.float32(step), np.float32(2 * step))
        parts.append(np.full(count, value, dtype=np.float32))
        small, large = power, large + 2 * step * count
        power, step = 2 * power, 2 * step
        filler = max(0, -(-(power - large) // BOUND))
        parts.append(np.full(filler, BOUND, dtype=np.float32))
        small, large = small + BOUND * filler, large + BOUND * filler
    return np.concatenate(parts)
