"""Two stages: one-way tables first, then noisy scores that say which tables are worth measuring, then these tables.

*Statement.* Three mechanisms with rounded normal noise, whose μ² are fixed before anything is read and add up to the
price: residuals of one-way tables (``allocation``); for every table of several columns its distance from independence,
s_A of ``table_distances``, where the public table is the product of the noisy one-way tables; and residuals of the
tables that were chosen. What the second and third ask depends on what came out before, and their noise does not: each
is μ_i-Gaussian private whatever the earlier results are, so all together are √(Σμ_i²)-Gaussian private (Dong, Roth &
Su 2022, Thm 3.1 and Cor 3.3). The choice is a function of noisy numbers: there is no selection to be paid for.

It is worth it where one shot must drop tables that may hang together strongly, and the scores are exact enough to tell.
``is_worthwhile`` decides that by public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.events import Event, to_exact
from discreet.entropy import SYSTEM, EntropySource
from discreet.exact import Floats, Integers
from discreet.gaussian_price import make_event
from discreet.late_dataclass import dataclass
from discreet.mechanisms.l2_noise import shorten
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.publish.allocation import Allocation, allocate
from discreet.publish.estimates import estimate_table, estimate_total
from discreet.publish.measurements import Measurements, StagedScores, combine_stages, measure
from discreet.publish.noise_prediction import predict_noise
from discreet.publish.table_distances import find_squared_distance, score_tables
from discreet.publish.workload import Attributes, Workload

# What one-way tables and scores get of μ².
FIRST_SHARE = Fraction(1, 5)
SCORE_SHARE = Fraction(1, 20)
# Two stages if so many of the tables would be dropped, and scores are as exact as this part of the rows.
LEAST_DROPPED = Fraction(1, 20)
MOST_SCORE_ERROR = 0.005
# Shrinking makes something of a table even where noise is so many times what it tells.
MOST_HIDDEN = 3.0


def is_worthwhile(mu_squared: Fraction, tables: int, dropped: int, rows: int) -> bool:
    """The public rule: enough would be lost in one shot, and scores can tell what. A unit with one row is judged."""
    if not tables or dropped < LEAST_DROPPED * tables:
        return False
    return math.sqrt(tables / (SCORE_SHARE * mu_squared)) / (2 * rows) <= MOST_SCORE_ERROR


@dataclass(frozen=True)
class Stages:
    """The mechanisms of a release in two stages: one-way tables, scores of these tables, and what is left of μ²."""

    workload: Workload
    first: Allocation
    scores: RoundedGaussian
    rest: Fraction

    @property
    def scored(self) -> tuple[Attributes, ...]:
        """The tables that get a score."""
        return tuple(part for part in self.workload.weights if len(part) > 1)

    @property
    def events(self) -> tuple[Event, ...]:
        """What is charged."""
        last = make_event(self.rest, self.first.unit, self.first.neighbours)
        return (self.first.noise.event, self.scores.event, last)


def plan_stages(workload: Workload, mu_squared: Fraction, **terms: Any) -> Stages:
    """The stages of a workload at a price; ``terms`` are those of ``allocate``."""
    alone = Workload(workload.sizes, {p: w for p, w in workload.weights.items() if len(p) == 1})
    first = allocate(alone, mu_squared * FIRST_SHARE, **terms)
    scored = sum(len(part) > 1 for part in workload.weights)
    squared = find_squared_distance(scored, first.max_rows, first.steps, first.neighbours)
    scores = RoundedGaussian(
        squared_sensitivity=squared,
        variance=shorten(squared / (mu_squared * SCORE_SHARE)),
        neighbours=first.neighbours,
        unit=first.unit,
    )
    return Stages(workload, first, scores, mu_squared * (1 - FIRST_SHARE - SCORE_SHARE))


def measure_stages(
    tables: Mapping[Attributes, Integers],
    stages: Stages,
    fine: Mapping[int, Integers] | None = None,
    *,
    source: EntropySource = SYSTEM,
) -> Measurements:
    """Draw all stages, once. ``tables`` are the exact counts of the whole workload's closure, a row being ``steps``.

    Privacy: the sum of the three μ², for the unit and neighbours of ``stages`` (see above).
    """
    first = measure({part: tables[part] for part in stages.first.workload.closure}, stages.first, source=source)
    expected = [expect_table(first, part) for part in stages.scored]
    exact = score_tables([np.asarray(tables[part]) for part in stages.scored], expected)
    noisy = tuple(int(value) for value in np.asarray(stages.scores.release(exact, source=source)))
    scores = StagedScores(
        stages.scored, noisy, int(stages.scores.event.squared_sensitivity), to_exact(stages.scores.event.variance)
    )
    chosen = choose_tables(stages, first, scores)
    kept = {part: tables[part] for part in chosen.workload.closure}
    last = measure(kept, chosen, {c: (fine or {})[c] for c in chosen.workload.fine}, source=source)
    return combine_stages(last, first, scores)


def expect_table(first: Measurements, attributes: Attributes) -> Integers:
    """A table of independent columns, in whole steps: a public reference."""
    table: Floats = estimate_table(first, attributes) * first.allocation.steps
    return np.rint(table).astype(np.int64)


def choose_tables(stages: Stages, first: Measurements, scores: StagedScores) -> Allocation:
    """The tables that tell more than their noise hides, and the noise of each at what is left. Post-processing.

    While the noise of some table is predicted to be more than its distance from independence, the worst third of those
    goes, and the others get better.
    """
    allocation = first.allocation
    rows = max(1, round(estimate_total(first)))
    far = {p: max(0.0, s / (2 * rows * allocation.steps)) for p, s in zip(scores.tables, scores.noisy)}
    workload = stages.workload
    while True:
        found = allocate(workload, stages.rest, **terms_of(allocation))
        noise = {part: predict_noise(found, part, rows) for part in workload.weights if len(part) > 1}
        worst = sorted((p for p in noise if noise[p] > MOST_HIDDEN * far[p]), key=lambda p: far[p] - noise[p])
        if not worst:
            return found
        workload = workload.without(worst[: math.ceil(len(worst) / 3)])


def terms_of(allocation: Allocation) -> dict[str, Any]:
    """Who is protected, as ``allocate`` wants to know it."""
    names: Sequence[str] = ("steps", "max_rows", "neighbours", "unit")
    return {name: getattr(allocation, name) for name in names}
