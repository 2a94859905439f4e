"""Reconstruction: finds the whole table from enough answers that are all nearly right.

The attacker asks for the sizes of many subsets, writes one linear equation for each, and solves them. Noise or rounding
that is small compared with the square root of the number of people only slows the attack down (Dinur & Nissim 2003).
The subsets are chosen by arithmetic on public numbers, as in the attack on Diffix (Cohen & Nissim 2018).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.attacks.asking import ask_columns, curator_of
from discreet.attacks.fiction import make_coins, make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags, Floats, Integers

ROUNDED = 5
TOGETHER = 16  # counts in one question
LESSON = (
    "Exact subset counts are a system of linear equations, and counts rounded to fives are almost as good. The same "
    "questions to discreet share one budget: the noise of each grows with their number, and the solution is a guess."
)


def run(*, people: int = 96, questions: int = 384, towns: int = 12, programs: int = 2) -> Outcome:
    """Guess for every inhabitant of every town whether they are in the table; ``programs`` towns also by linprog."""
    numbers = 100_000 + make_numbers("subset numbers", people, 900_000)
    present = make_coins("subset members", towns * people).reshape(towns, people)
    moduli = _find_primes(questions)
    design = (numbers[None, :] % moduli[:, None] < moduli[:, None] // 2).astype(np.float64)
    exact: Floats = present @ design.T
    rounded = ROUNDED * np.round(exact / ROUNDED)
    noisy = _ask(numbers, present, moduli)
    rates = {
        "exact, least squares": _solve_by_squares(design, exact, present),
        "rounded to fives, least squares": _solve_by_squares(design, rounded, present),
        "rounded to fives, linear program": _solve_by_program(design, rounded[:programs], present[:programs]),
        "discreet, least squares": _solve_by_squares(design, noisy, present),
        "discreet, linear program": _solve_by_program(design, noisy[:programs], present[:programs]),
    }
    return Outcome(
        name="reconstruction",
        raw=rates["rounded to fives, least squares"],
        private=rates["discreet, least squares"],
        lesson=LESSON,
        bars=tuple(Bar(label=label, rate=rate) for label, rate in rates.items()),
        facts={"people in each town": people, "questions": questions, "towns": towns},
    )


def _find_primes(count: int) -> Integers:
    """The first primes from 101 on; remainders of numbers by them are independent."""
    sieve = np.ones(20 * count + 1000, dtype=np.bool_)
    for factor in range(2, int(len(sieve) ** 0.5) + 1):
        sieve[factor * factor :: factor] = False
    return np.flatnonzero(sieve[101:])[:count] + 101


def _ask(numbers: Integers, present: Flags, moduli: Integers) -> Floats:
    """All subset counts of all towns, from the curator; every count gets an equal share of ε."""
    town, place = np.nonzero(present)
    table = make_frame({"person": np.arange(len(town)), "town": town, "number": numbers[place]})
    found: list[Integers] = []
    with curator_of(table, epsilon=EPSILON, keys={"town": range(len(present))}) as curator:
        for first in range(0, len(moduli), TOGETHER):
            some = moduli[first : first + TOGETHER].tolist()
            counts = ", ".join(f"COUNT_IF(number % {p} < {p // 2}) AS n{p}" for p in some)
            sql = f"SELECT town, {counts} FROM people GROUP BY town"
            share = Fraction(EPSILON * len(some), len(moduli))
            found += ask_columns(curator, sql, [f"n{p}" for p in some], epsilon=share)
    return np.stack(found, axis=1).astype(np.float64)


def _solve_by_squares(design: Floats, answers: Floats, present: Flags) -> Rate:
    """The bits nearest to the least-squares solution."""
    solution, *_ = np.linalg.lstsq(design, answers.T)
    return Rate.agreement(solution.T > 0.5, present)


def _solve_by_program(design: Floats, answers: Floats, present: Flags) -> Rate:
    """The bits nearest to shares from 0 to 1 whose counts are least far off in sum: a linear program."""
    solutions = [_solve_least_absolute(design, town) for town in answers]
    return Rate.agreement(np.stack(solutions) > 0.5, present)


def _solve_least_absolute(design: Floats, answers: Floats) -> Floats:
    """Shares x minimising Σ|A·x − b|: each |…| is a variable of its own, at least A·x − b and at least b − A·x."""
    from scipy.optimize import linprog

    questions, people = design.shape
    off = np.eye(questions)
    result = linprog(
        np.concatenate([np.zeros(people), np.ones(questions)]),
        A_ub=np.block([[design, -off], [-design, -off]]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * people + [(0, None)] * questions,
        method="highs",
    )
    solution: Floats = result.x[:people]
    return solution
