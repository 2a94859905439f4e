"""Averaging: asks the same question again and again, until the noise is averaged out.

A service that draws fresh noise for every request reveals the truth to a patient attacker. A curator answers the same
question from its record. Questions that only look different are charged, until the budget is used up.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.attacks.asking import curator_of
from discreet.attacks.fiction import Register
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.errors import BudgetExceeded
from discreet.exact import Integers
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace

Means = npt.NDArray[np.float64]

EACH = Fraction(1, 10)
# One question in several spellings, and more questions that mean the same because nobody was born so early.
SPELLINGS = ("born > 1900", "1900 < born", "NOT born <= 1900", "NOT (1900 >= born)")
MEANINGS = tuple(f"born > {1900 - year}" for year in range(1, 25))
LESSON = (
    "Noise of ε = 0.1 protects one answer, not ten thousand of them. discreet gives the same question the same answer, "
    "in any spelling that it can recognise; any other costs as much as the first, and the budget ends."
)


def run(*, towns: int = 400, repeats: int = 10_000) -> Outcome:
    """Guess for each town's mayor whether they are among the debtors, from the mean of many answers."""
    register = Register.of(towns)
    once, often = (
        Rate.agreement(_is_listed(register, _average_fresh_answers(register, k)), register.listed) for k in (1, repeats)
    )
    asked = _ask(register)
    private = Rate.agreement(_is_listed(register, asked.means), register.listed)
    return Outcome(
        name="averaging",
        raw=often,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="fresh noise, asked once", rate=once),
            Bar(label=f"fresh noise, asked {repeats:,} times", rate=often),
            Bar(label="discreet, asked until refused", rate=private),
        ),
        facts={"answered and charged": asked.charged, "given again, free": asked.again, "refused": asked.refused},
    )


def _is_listed(register: Register, means: Means) -> npt.NDArray[np.bool_]:
    return means - register.others > 0.5


def _average_fresh_answers(register: Register, repeats: int) -> Means:
    """The mean of so many answers with fresh noise, from a service without a memory."""
    noise = Laplace(sensitivity=1, epsilon=EACH)
    total = np.zeros(register.towns, dtype=np.int64)
    for first in range(0, repeats, 1000):
        several = np.broadcast_to(register.counts, (min(1000, repeats - first), register.towns))
        total += np.asarray(noise.release(several)).sum(axis=0)
    means: Means = total / repeats
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class _CuratorAnswers:
    """The mean of all different answers of the curator, and how often it charged, replayed and refused."""

    means: Means
    charged: int
    again: int
    refused: int


def _ask(register: Register) -> _CuratorAnswers:
    answers: list[Integers] = []
    again = refused = 0
    with curator_of(register.to_frame(), epsilon=EPSILON, keys={"town": range(register.towns)}) as curator:
        for condition in (*SPELLINGS, *SPELLINGS, *MEANINGS):
            sql = f"SELECT town, COUNT(*) AS n FROM people WHERE {condition} GROUP BY town ORDER BY town"
            try:
                answer = curator.ask(sql, epsilon=EACH)
            except BudgetExceeded:
                refused += 1
                continue
            again += answer.replayed
            if not answer.replayed:
                answers.append(np.asarray(answer.table["n"].to_numpy()))
    return _CuratorAnswers(means=np.mean(answers, axis=0), charged=len(answers), again=again, refused=refused)
