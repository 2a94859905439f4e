"""Fan-out: one row becomes millions by joins with a list that the question brings, only if one person is old.

The list is public and the person has one row. Joined with the list three times, this row has 8 million partners, and a
median per person has to hold them all. The engine runs out of memory for that person only. In discreet it is a public
fact how many rows a question can make of one, and beyond 10,000 it is refused when it is read.

Nor is a list needed: 20 rows of one person, joined with themselves until there are five of each, make 3.2 million. Such
questions are common, so they are answered: below the joins so few rows of each person remain that no more than 10,000
can be made of them.
"""

from __future__ import annotations

import numpy as np

from discreet.attacks.asking import fails_at_curator, fails_in_engine
from discreet.attacks.fiction import make_coins, make_frame
from discreet.attacks.outcome import Bar, Outcome, Rate

PARTNERS = 200
ROWS = 20
MEMORY = "40MB"
LESSON = (
    "Three joins with a list of 200 make 8 million rows of one, and the plain engine fails for those who are old. "
    "discreet counts what joins can make of a row from public facts alone, and refuses the question for everybody. "
    "A person's rows joined with themselves are cut to a few first, for everybody, and then no question fails."
)


def run(*, people: int = 6) -> Outcome:
    """Guess for each person whether they are over 50, from whether a question about them fails."""
    old = make_coins("fan-out", people)
    once = make_frame({"person": np.arange(people), "age": np.where(old, 70, 30)})
    often = make_frame({name: np.repeat(once[name].to_numpy(), ROWS) for name in ("person", "age")})
    listed = [write_question(person) for person in range(people)]
    paired = [write_pairs(person) for person in range(people)]
    naive, ours = fails_in_engine(once, listed, memory=MEMORY), fails_at_curator(once, listed)
    naive_pairs, our_pairs = fails_in_engine(often, paired, memory=MEMORY), fails_at_curator(often, paired)
    raw, private = Rate.agreement(naive, old), Rate.agreement(ours, old)
    return Outcome(
        name="fan-out",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="plain engine", rate=raw),
            Bar(label="plain engine, own rows", rate=Rate.agreement(naive_pairs, old)),
            Bar(label="discreet", rate=private),
            Bar(label="discreet, own rows", rate=Rate.agreement(our_pairs, old)),
        ),
        facts={
            "questions": people,
            "out of memory": int(naive.sum()),
            "refused by discreet": int(ours.sum()),
            "own rows, out of memory": int(naive_pairs.sum()),
            "own rows, failures of discreet": int(our_pairs.sum()),
        },
    )


def write_question(person: int) -> str:
    """A count of everybody, over a median that has millions of values if this person is over 50."""
    listed = ", ".join(f"(1, {k})" for k in range(PARTNERS))
    chosen = f"CASE WHEN p.person = {person} AND p.age > 50 THEN 1 ELSE 0 END"
    joins = " ".join(f"JOIN (VALUES (0, 0), {listed}) AS {name}(g, k) ON {chosen} = {name}.g" for name in "abc")
    middle = f"SELECT p.person, MEDIAN(a.k + b.k + c.k) AS middle FROM people p {joins} GROUP BY p.person"
    return f"SELECT COUNT(*) AS n FROM ({middle}) AS t WHERE middle >= 0"


def write_pairs(person: int) -> str:
    """A count of everybody, over a median of all combinations of five of this person's rows, if they are over 50."""
    joins = " ".join(f"JOIN people {name} ON a.person = {name}.person" for name in "bcde")
    chosen = f"a.person = {person} AND a.age > 50"
    middle = f"SELECT a.person, MEDIAN(a.age + e.age) AS middle FROM people a {joins} WHERE {chosen} GROUP BY a.person"
    return f"SELECT COUNT(*) AS n FROM ({middle}) AS t WHERE middle >= 0"
