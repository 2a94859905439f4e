"""Auditing your own code: a sum that is right, one that forgets how large a salary can be, and one that looks around.

Run it with ``python examples/audit_own_mechanism.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.audit import check, replay
from discreet.mechanisms import Laplace

SALARIES, NEIGHBOUR = [3, 5], [3, 5, 9]  # one person more, who earns 9; nobody earns more than 10

RIGHT = Laplace(sensitivity=10, epsilon=1)
WRONG = Laplace(sensitivity=1, epsilon=1)


def right_total(salaries: Sequence[int], n: int) -> Any:
    """The noise is for a salary of 10."""
    return RIGHT.release(np.full(n, sum(salaries)))


def wrong_total(salaries: Sequence[int], n: int) -> Any:
    """The noise is for a salary of 1."""
    return WRONG.release(np.full(n, sum(salaries)))


def mean(salaries: Sequence[int]) -> Any:
    """The number of people is true, and private."""
    return RIGHT.release(sum(salaries)) / len(salaries)


def main() -> None:
    """From outside, with many runs; and from within, with one."""
    for total in (right_total, wrong_total):
        finding = check(total, SALARIES, NEIGHBOUR, claim=1, batch=True, samples=200_000)
        print(f"{total.__name__}: {finding.verdict}, ε is at least {finding.lower:.3f}")
    print("mean:", replay(mean, SALARIES, NEIGHBOUR).detail)


if __name__ == "__main__":
    main()
