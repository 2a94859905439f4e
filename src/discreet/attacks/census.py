"""Census-style reconstruction: finds the people of a block from its tables of counts, means, medians and deviations.

No table shows a person. But each table is an equation, ages are whole numbers, and blocks are small. So a search over
all residents that fit every table usually finds one solution. A large part of the 2010 census of the United States was
reconstructed exactly in this way (Abowd et al. 2023). Garfinkel, Abowd & Martindale 2019 have an example with seven
people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple, TypeAlias

import numpy as np

from discreet.attacks.asking import ask_columns, curator_of
from discreet.attacks.fiction import make_coins, make_frame, make_numbers
from discreet.attacks.outcome import EPSILON, Bar, Outcome, Rate
from discreet.exact import Flags, Floats
from discreet.late_dataclass import dataclass

OLDEST = 89
NEIGHBOURS = 5
LESSON = (
    "From exact tables a search finds the one set of residents that fits them. Tables with noise fit nobody, or very "
    "many: the best use of them is hardly better than a coin."
)
TABLE = (
    "SELECT block, woman, works, COUNT(*) AS n, SUM(age) AS ages, SUM(age * age) AS squares "
    "FROM people GROUP BY block, woman, works"
)


class Resident(NamedTuple):
    """A resident in the data of a census."""

    age: int
    woman: bool
    works: bool


CensusBlock: TypeAlias = tuple[Resident, ...]
Ages: TypeAlias = tuple[int, ...]


class Summary(NamedTuple):
    """The table of a group: the number of people, and the mean, standard deviation and median of their ages.

    It has the sums instead of the mean and the deviation, and twice the median, so that all are whole numbers.
    """

    people: int
    ages: int
    squares: int
    middle: int

    @classmethod
    def of(cls, ages: Iterable[int]) -> Summary:
        """The published numbers of a group of these ages."""
        line = sorted(ages)
        middle = line[(len(line) - 1) // 2] + line[len(line) // 2] if line else 0
        return cls(len(line), sum(line), sum(age * age for age in line), middle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The published tables of a block: everyone, women, men, those who work, and how many women work."""

    everyone: Summary
    women: Summary
    men: Summary
    working: Summary
    working_women: int

    @classmethod
    def of(cls, block: CensusBlock) -> Tables:
        """The tables of a block."""
        return cls(
            everyone=Summary.of(p.age for p in block),
            women=Summary.of(p.age for p in block if p.woman),
            men=Summary.of(p.age for p in block if not p.woman),
            working=Summary.of(p.age for p in block if p.works),
            working_women=sum(p.woman and p.works for p in block),
        )


def run(*, blocks: int = 300) -> Outcome:
    """Guess for one person near each block whether they live in it."""
    targets, present, residents = _make_fiction(blocks)
    solved = [find_solutions(Tables.of(block)) for block in residents]
    guesses = [
        2 * sum(target in found for found in several) >= len(several) for target, several in zip(targets, solved)
    ]
    raw = Rate.agreement(guesses, present)
    alone = Rate.of(sum(len(several) == 1 for several in solved), blocks)
    private = Rate.agreement(_guess_from_noise(targets, residents), present)
    return Outcome(
        name="census",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(
            Bar(label="blocks with one solution", rate=alone),
            Bar(label="target found, exact tables", rate=raw),
            Bar(label="target found, discreet", rate=private),
        ),
        facts={"people in a block": f"{NEIGHBOURS} or {NEIGHBOURS + 1}", "ages": f"0 to {OLDEST}"},
    )


def _make_fiction(blocks: int) -> tuple[CensusBlock, Flags, list[CensusBlock]]:
    """A target for each block, whether the target lives there, and the residents."""
    size = NEIGHBOURS + 1
    age = make_numbers("census ages", blocks * size, OLDEST + 1).reshape(blocks, size).tolist()
    woman = make_coins("census women", blocks * size).reshape(blocks, size).tolist()
    works = make_coins("census work", blocks * size).reshape(blocks, size).tolist()
    crowds = [tuple(map(Resident, *rows)) for rows in zip(age, woman, works)]
    present = make_coins("census targets", blocks)
    residents = [crowd if lives else crowd[1:] for crowd, lives in zip(crowds, present.tolist())]
    return tuple(crowd[0] for crowd in crowds), present, residents


def find_solutions(tables: Tables) -> list[CensusBlock]:
    """Every block that has these tables, each once."""
    found: set[CensusBlock] = set()
    for women in _find_ages(tables.women):
        for men in _find_ages(tables.men):
            if Summary.of(women + men) == tables.everyone:
                found.update(_assign_work(women, men, tables))
    return sorted(found)


def _find_ages(summary: Summary) -> list[Ages]:
    """All ages, in order, that have these sums and this median."""
    return [
        ages for ages in _list_ages(summary.people, summary.ages, summary.squares, 0) if Summary.of(ages) == summary
    ]


def _list_ages(count: int, total: int, squares: int, least: int) -> Iterator[Ages]:
    """Ages from ``least`` on, in order, with this sum and this sum of squares.

    The square of a sum is at most count times the sum of squares. The last two numbers follow from both sums.
    """
    if total * total > count * squares or squares < 0:
        return
    if count == 0:
        if total == squares == 0:
            yield ()
        return
    if count == 2:
        apart = math.isqrt(2 * squares - total * total)
        first, second = (total - apart) // 2, (total + apart) // 2
        if first >= least and second <= OLDEST and first + second == total and first**2 + second**2 == squares:
            yield first, second
        return
    for age in range(least, min(OLDEST, total // count) + 1):
        for rest in _list_ages(count - 1, total - age, squares - age * age, age):
            yield (age, *rest)


def _assign_work(women: Ages, men: Ages, tables: Tables) -> Iterator[CensusBlock]:
    """Every choice of working residents that fits the table of those who work."""
    working_men = tables.working.people - tables.working_women
    for some in combinations(range(len(women)), tables.working_women):
        for others in combinations(range(len(men)), working_men):
            ages = [women[i] for i in some] + [men[i] for i in others]
            if Summary.of(ages) == tables.working:
                people = [Resident(age=age, woman=True, works=i in some) for i, age in enumerate(women)]
                people += [Resident(age=age, woman=False, works=i in others) for i, age in enumerate(men)]
                yield tuple(sorted(people))


def _guess_from_noise(targets: Sequence[Resident], residents: Sequence[CensusBlock]) -> Flags:
    """Guess from the same sums of the curator which is likelier: the target lives there, or does not.

    With Laplace noise the likelihood is exp(−Σ|answer − sum|·ε/(3·largest change)). The attacker averages it over up to
    two other people of any age in the target's part of the table, as many as five neighbours would have there.
    """
    measured = _ask(residents)
    sums, weights = _list_others()
    scales = np.array([1, OLDEST, OLDEST**2]) * 3 / EPSILON
    guesses = []
    for block, target in enumerate(targets):
        answer = measured[block, int(target.woman), int(target.works)]
        own = np.array([1, target.age, target.age**2])
        here, away = (
            weights @ np.exp(-np.abs((answer - sums - own * lives) / scales).sum(axis=1)) for lives in (True, False)
        )
        guesses.append(here > away)
    return np.array(guesses)


def _list_others() -> tuple[Floats, Floats]:
    """Up to two people of any ages: their number, sum and sum of squares, and how likely such a group is."""
    sums, weights = [], []
    for size in range(3):
        groups = list(combinations_with_replacement(range(OLDEST + 1), size))
        chance = math.comb(NEIGHBOURS, size) * 0.25**size * 0.75 ** (NEIGHBOURS - size)
        sums += [[size, sum(group), sum(age * age for age in group)] for group in groups]
        weights += [chance / len(groups)] * len(groups)
    return np.array(sums, dtype=np.float64), np.array(weights)


def _ask(residents: Sequence[CensusBlock]) -> Floats:
    """Count, sum and sum of squares by block, sex and work: an array of shape (blocks, 2, 2, 3)."""
    rows = [(number, *person) for number, block in enumerate(residents) for person in block]
    block, age, woman, works = zip(*rows)
    table = make_frame({"person": np.arange(len(rows)), "block": block, "age": age, "woman": woman, "works": works})
    keys = {"block": range(len(residents)), "woman": [False, True], "works": [False, True]}
    with curator_of(table, epsilon=EPSILON, keys=keys, bounds={"age": (0, OLDEST)}) as curator:
        found = ask_columns(
            curator, TABLE, ["n", "ages", "squares"], by=("block", "woman", "works"), epsilon=Fraction(EPSILON)
        )
    return np.stack(found, axis=1).reshape(len(residents), 2, 2, 3).astype(np.float64)
