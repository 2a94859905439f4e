"""Membership inference against synthetic rows does no better than the loss allows; with too little noise it does."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import numpy as np

from discreet.entropy import SeededForTestsOnly
from discreet.exact import Floats, Integers
from discreet.publish.allocation import allocate
from discreet.publish.chance import PublicChance
from discreet.publish.estimates import estimate_one_way, estimate_table, estimate_total
from discreet.publish.measurements import measure
from discreet.publish.row_fitting import RowFitter, begin_rows
from discreet.publish.workload import Attributes, Workload
from tests.publish.cubes import make_tables

WORKLOAD = Workload.of_ways((2, 3, 2), 2)
TARGET = (1, 2, 1)
RUNS = 300


def make_cube(*, present: bool) -> Integers:
    """A table in which the target is the only one of its kind."""
    cube = np.full(WORKLOAD.sizes, 12, dtype=np.int64)
    cube[1, 2, :] = cube[1, :, 1] = cube[:, 2, 1] = 0
    cube[TARGET] = int(present)
    return cube


def attack(mu_squared: Fraction, *, present: bool, first: int) -> Floats:
    """How often the target's values, alone and in pairs, are among the rows: high where the target was in the data."""
    allocation, scores = allocate(WORKLOAD, mu_squared), []
    tables = make_tables(make_cube(present=present), WORKLOAD)
    for seed in range(first, first + RUNS):
        measured = measure(tables, allocation, source=SeededForTestsOnly(seed))
        count = max(1, round(estimate_total(measured)))
        chance = PublicChance(str(seed).encode())
        pairs = [part for part in WORKLOAD.weights if len(part) == 2]
        found = {part: estimate_table(measured, part) for part in pairs}
        targets: dict[Attributes, Floats] = {part: table * (count / table.sum()) for part, table in found.items()}
        start = begin_rows([estimate_one_way(measured, column) for column in range(3)], count, chance)
        rows = RowFitter(start, WORKLOAD.sizes, targets, chance).run(5)
        hits = [np.logical_and.reduce([rows[c] == TARGET[c] for c in part]).sum() for part in pairs]
        score = sum(map(int, hits))
        scores.append(float(score) + count)
    return np.array(scores)


def find_advantage(mu_squared: Fraction) -> float:
    """The largest difference of true and false positives over all thresholds."""
    inside, outside = (attack(mu_squared, present=p, first=s) for p, s in ((True, 0), (False, 5000)))
    cuts = np.unique(np.concatenate([inside, outside]))
    return float(max((inside >= cut).mean() - (outside >= cut).mean() for cut in cuts))


def test_an_attack_on_the_rows_stays_within_the_loss() -> None:
    """At μ the advantage is at most 2Φ(μ/2) − 1; the margin is that of 300 runs (p < 1e-9)."""
    mu_squared = Fraction(1, 16)
    most = 2 * NormalDist().cdf(float(mu_squared) ** 0.5 / 2) - 1
    margin = (np.log(4e9) / (2 * RUNS)) ** 0.5 * 2
    assert find_advantage(mu_squared) <= most + margin
    assert find_advantage(Fraction(100)) > most + margin, "the attack works where noise is too small"
