"""Long text: a question that needs too much memory only if one person is old, so its failure tells their age.

Text has no size of its own. A question makes a short text for one person, if a condition is true, and multiplies it
33-fold at each of four levels. The engine runs out of memory or it does not. Seven such questions read an exact age,
for hardly any budget. In discreet the longest text of every expression is a public fact, and what could be too long is
refused when the question is read, whatever the data are.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import fails_at_curator, fails_in_engine
from discreet.attacks.fiction import make_coins, make_frame
from discreet.attacks.outcome import Bar, Outcome, Rate

LEVELS, FOLD = 4, 33
MEMORY = "100MB"
LESSON = (
    "The plain engine runs out of memory exactly for those who are old. discreet refuses the question before it reads "
    "any data: its texts could be longer than the limit, and that is so for everybody."
)


def run(*, people: int = 6) -> Outcome:
    """Guess for each person whether they are over 50, from whether a question about them fails."""
    old = make_coins("long text", people)
    table = make_frame({"person": np.arange(people), "age": np.where(old, 70, 30)})
    questions = [write_question(person) for person in range(people)]
    naive, ours = fails_in_engine(table, questions, memory=MEMORY), fails_at_curator(table, questions)
    raw, private = Rate.agreement(naive, old), Rate.agreement(ours, old)
    return Outcome(
        name="long-text",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="plain engine", rate=raw), Bar(label="discreet", rate=private)),
        facts={"questions": people, "out of memory": int(naive.sum()), "refused by discreet": int(ours.sum())},
    )


def write_question(person: int) -> str:
    """A count of everybody, over a text that is long if this person is over 50."""
    start = f"CAST(person AS VARCHAR) || '{'x' * 40}'"
    rows = f"SELECT person, CASE WHEN person = {person} AND age > 50 THEN {start} ELSE '' END AS x0 FROM people"
    for level in range(LEVELS):
        longer = " || ".join([f"x{level}"] * FOLD)
        rows = f"SELECT person, MAX({longer}) AS x{level + 1} FROM ({rows}) AS t{level} GROUP BY person"
    return f"SELECT COUNT(*) AS n FROM ({rows}) AS t WHERE x{LEVELS} > 'a'"
