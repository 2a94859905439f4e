"""Collusion: many analysts, each with a small budget of their own, combine their answers.

A budget for each analyst protects against one analyst only. One budget over all analysts protects people, and the
curator counts so.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.attacks.asking import curator_of
from discreet.attacks.fiction import Register
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.curator import Curator
from discreet.errors import BudgetExceeded
from discreet.exact import Flags, Integers
from discreet.late_dataclass import dataclass

EACH = Fraction(1, 10)
LESSON = (
    "Where every analyst has ε = 1 for themselves, fifty friends have ε = 50. discreet charges one budget for all "
    "analysts together: after the first few, everybody is refused."
)


def run(*, towns: int = 400, analysts: int = 50) -> Outcome:
    """Guess for each town's mayor whether they are among the debtors, from the answers of all analysts."""
    register = Register.of(towns)
    alone = _collude(register, 1, shared=False)
    apart = _collude(register, analysts, shared=False)
    shared = _collude(register, analysts, shared=True)
    return Outcome(
        name="collusion",
        raw=apart.rate,
        private=shared.rate,
        lesson=LESSON,
        bars=(
            Bar(label="own budgets, one analyst", rate=alone.rate),
            Bar(label=f"own budgets, {analysts} analysts", rate=apart.rate),
            Bar(label=f"discreet, {analysts} analysts", rate=shared.rate),
        ),
        facts={"analysts who got an answer": f"{shared.served} of {analysts}", "without a shared budget": apart.served},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CollusionResult:
    rate: Rate
    served: int


def _collude(register: Register, analysts: int, *, shared: bool) -> _CollusionResult:
    """Let each analyst ask in their own words, and average the answers.

    A naive service keeps one account for each analyst. Then the loss of people is the sum of all accounts.
    """
    total, cost = (EPSILON, EACH) if shared else (EPSILON * analysts, Fraction(EPSILON))
    with curator_of(register.to_frame(), epsilon=total, keys={"town": range(register.towns)}) as curator:
        answers = [answer for number in range(analysts) if (answer := _ask(curator, number, cost)) is not None]
    guesses: Flags = np.mean(answers, axis=0) - register.others > 0.5
    return _CollusionResult(rate=Rate.agreement(guesses, register.listed), served=len(answers))


def _ask(curator: Curator, number: int, cost: Fraction) -> Integers | None:
    """The same count in other words, because the same words would get the same answer."""
    sql = f"SELECT town, COUNT(*) AS n FROM people WHERE born > {1900 - number} GROUP BY town ORDER BY town"
    try:
        return np.asarray(curator.ask(sql, epsilon=cost, analyst=f"analyst {number}").table["n"].to_numpy())
    except BudgetExceeded:
        return None
