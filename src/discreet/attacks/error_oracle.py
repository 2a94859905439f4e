"""Error oracle: a question fails only if a person is in the data, so its error message reveals that for free.

A condition can be written so that it overflows or cannot be read for one person only. Where errors are shown, each is
a bit that was not charged. In discreet every expression has a value, whatever the data are.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import fails_at_curator, fails_in_engine
from discreet.attacks.fiction import make_coins, make_frame
from discreet.attacks.outcome import Bar, Outcome, Rate

TRAPS = (
    "CAST(CASE WHEN number = {} THEN 'x' ELSE '1' END AS BIGINT) = 1",
    "number + CASE WHEN number = {} THEN 9223372036854775807 ELSE 0 END > 0",
    "number * CASE WHEN number = {} THEN 9223372036854775807 ELSE 0 END > -1",
    "CAST(power(10, CASE WHEN number = {} THEN 30 ELSE 1 END) AS BIGINT) > 0",
)
LESSON = (
    "A plain engine fails for those who are in the data and answers for the others. discreet answers for both: what "
    "has no value is NULL, and every question is charged alike."
)


def run(*, people: int = 40) -> Outcome:
    """Guess for each person whether they are in the data, from whether a question about them fails."""
    present = make_coins("oracle", people)
    table = make_frame({"person": np.flatnonzero(present), "number": 1000 + np.flatnonzero(present)})
    questions = [
        f"SELECT COUNT(*) AS n FROM people WHERE {TRAPS[i % len(TRAPS)].format(1000 + i)}" for i in range(people)
    ]
    naive, ours = fails_in_engine(table, questions), fails_at_curator(table, questions)
    raw, private = Rate.agreement(naive, present), Rate.agreement(ours, present)
    return Outcome(
        name="error-oracle",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="plain engine", rate=raw), Bar(label="discreet", rate=private)),
        facts={"questions": people, "errors of the engine": int(naive.sum()), "errors of discreet": int(ours.sum())},
    )
