"""Differencing: subtracts the count of everyone but one person from the count of everyone.

Two harmless questions, "how many debtors has the town?" and "how many who are not the mayor?", differ by one person.
It does not help to hide small counts, because neither count is small.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import ask_column, curator_of
from discreet.attacks.fiction import Register
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate

ALL = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
ALL_BUT_ONE = "SELECT town, COUNT(*) AS n FROM people WHERE NOT mayor GROUP BY town"
SMALLEST = 10
LESSON = (
    "Exact counts give the mayor away in every town, and hiding counts below 10 hides nothing. With noise the "
    "difference is mostly noise, and both questions are paid for from one budget."
)


def run(*, towns: int = 1000) -> Outcome:
    """Guess for each town's mayor whether they are among the debtors."""
    register = Register.of(towns)
    everyone, but_one = register.counts, register.others
    exact = Rate.agreement(everyone - but_one == 1, register.listed)
    shown = (everyone >= SMALLEST) & (but_one >= SMALLEST)
    hidden = Rate.agreement(shown & (everyone - but_one == 1), register.listed)
    private = Rate.agreement(_ask_differences(register) > 0, register.listed)
    return Outcome(
        name="differencing",
        raw=hidden,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="exact counts", rate=exact),
            Bar(label="small counts hidden", rate=hidden),
            Bar(label="discreet", rate=private),
        ),
    )


def _ask_differences(register: Register) -> np.ndarray:
    """The same two questions, at half of the budget each."""
    with curator_of(register.to_frame(), epsilon=EPSILON, keys={"town": range(register.towns)}) as curator:
        first = ask_column(curator, ALL, epsilon=EPSILON / 2)
        second = ask_column(curator, ALL_BUT_ONE, epsilon=EPSILON / 2)
    return first - second
