"""Tests of two stages: what is paid adds up, averages have the stated variance, and what hangs together is found."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.errors import UsageError
from discreet.exact import Integers
from discreet.privacy import Neighbours, Unit
from discreet.publish import publication
from discreet.publish.allocation import allocate
from discreet.publish.estimates import estimate_table
from discreet.publish.manifest import add_up
from discreet.publish.measurements import measure
from discreet.publish.method import drop_noise
from discreet.publish.records import dump_measurements, load_measurements
from discreet.publish.stages import is_worthwhile, measure_stages, plan_stages
from discreet.publish.table_distances import find_squared_distance, score_tables
from discreet.publish.verification import holds, verify
from discreet.publish.workload import Attributes, Workload, list_subsets
from tests.publish.cubes import make_tables
from tests.publish.releases import make_plan, open_clinic

SIZES = (60, 60, 50, 5, 2)
WANTED = Workload.of_ways(SIZES, 2, one_way_weight=10)
ROWS = 40_000
MU = Fraction(1, 30)


def count_planted() -> dict[Attributes, Integers]:
    """Tables in which the two widest columns hang together, and no others do."""
    chance = np.random.default_rng(0)
    one = chance.integers(0, 60, ROWS)
    two = np.where(chance.random(ROWS) < 0.7, (one * 7 + 3) % 60, chance.integers(0, 60, ROWS))
    codes = [one, two, *(chance.integers(0, size, ROWS) for size in SIZES[2:])]
    found: dict[Attributes, Integers] = {}
    for pair in combinations(range(len(SIZES)), 2):
        for part in list_subsets(pair):
            shape = WANTED.shape(part)
            cells = np.ravel_multi_index([codes[c] for c in part], shape) if part else np.zeros(ROWS, dtype=np.int64)
            found[part] = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return found


def find_error(measured: Any, tables: dict[Attributes, Integers]) -> float:
    pairs = [part for part in tables if len(part) == 2]
    return float(np.mean([np.abs(estimate_table(measured, p) - tables[p]).sum() / 2 / ROWS for p in pairs]))


def test_a_strong_dependence_that_one_shot_drops_is_found() -> None:
    tables = count_planted()
    allocation, dropped = drop_noise(WANTED, MU, ROWS)
    assert (0, 1) in dropped
    assert is_worthwhile(MU, 10, len(dropped), ROWS)
    one = measure({part: tables[part] for part in allocation.workload.closure}, allocation)
    two = measure_stages(tables, plan_stages(WANTED, MU))
    assert two.allocation.covers((0, 1))
    assert find_error(two, tables) < 0.8 * find_error(one, tables)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_what_is_drawn_costs_what_was_declared(neighbours: Neighbours) -> None:
    """All stages together, whatever was chosen: at most the price, and nearly all of it."""
    terms = {"steps": 4, "max_rows": 3, "neighbours": neighbours, "unit": Unit("person")}
    stages = plan_stages(WANTED, MU, **terms)
    tables = {part: 4 * table for part, table in count_planted().items()}
    found = measure_stages(tables, stages)
    charged = add_up(stages.events).mu_squared
    assert add_up(found.drawn_events).mu_squared <= charged <= MU
    assert add_up(found.drawn_events).mu_squared > MU * Fraction(99, 100)
    assert found.scores is not None and found.first is not None
    scale = (3 * 4) ** 2 * (1 if neighbours is Neighbours.ADD_REMOVE else 4)
    assert found.scores.squared_sensitivity == 10 * scale, "ten scores, each moved by a whole unit"
    again = load_measurements(dump_measurements(found))
    assert add_up(again.drawn_events).mu_squared == add_up(found.drawn_events).mu_squared
    assert np.allclose(again.table((0,)), found.table((0,)))


def test_averages_of_both_stages_have_the_stated_variance() -> None:
    """One-way cells over many draws; the variance of the last stage alone would be too large."""
    wanted = Workload.of_ways((4, 3), 2)
    cube = np.arange(12).reshape(4, 3) * 100
    tables = {(): cube.sum(), (0,): cube.sum(axis=1), (1,): cube.sum(axis=0), (0, 1): cube}
    stages = plan_stages(wanted, Fraction(1, 10))
    draws = [measure_stages(tables, stages) for _ in range(400)]
    errors = np.array([(found.table((0,)) - tables[(0,)]) ** 2 for found in draws])
    stated = np.mean([found.allocation.cell_variance((0,)) for found in draws])
    assert errors.mean() == pytest.approx(stated, rel=0.15)
    alone = allocate(draws[0].allocation.workload, stages.rest).cell_variance((0,))
    assert alone > 1.2 * stated


def test_intervals_of_chosen_tables_cover() -> None:
    """Cells of a table that is measured only in some draws: 93 to 97 % of their intervals, and not of half."""
    wanted = Workload.of_ways((4, 3, 3), 2)
    cube = np.random.default_rng(3).integers(0, 60, (4, 3, 3)) + 200 * np.eye(3)[None, :, :].astype(np.int64)
    tables = make_tables(cube, wanted)
    stages = plan_stages(wanted, Fraction(1, 300))
    covered, halved, times = [], [], 0
    for _ in range(250):
        found = measure_stages(tables, stages)
        for pair in ((0, 1), (0, 2)):
            if found.allocation.covers(pair):
                times += 1
                off = np.abs(found.table(pair) - tables[pair])
                width = 1.96 * np.sqrt(found.allocation.cell_variance(pair))
                covered += list((off <= width).reshape(-1))
                halved += list((off <= width / 2).reshape(-1))
    assert 50 < times < 490, "chosen now and then"
    assert 0.93 <= np.mean(covered) <= 0.97
    assert np.mean(halved) < 0.75


def test_the_rule_is_public() -> None:
    assert not is_worthwhile(MU, 100, 4, 10**6), "too little is dropped"
    assert is_worthwhile(MU, 100, 5, 10**6)
    assert not is_worthwhile(MU, 100, 50, 1_000), "scores could not tell"
    assert not is_worthwhile(MU, 0, 0, 10**6)


def test_a_release_in_two_stages_is_charged_once_and_verified(tmp_path: Path) -> None:
    curator = open_clinic(budget=discreet.Budget(epsilon=4, delta=1e-6))
    plan = make_plan(method="two stages", epsilon=2)
    told = str(publication.preview(plan, curator=curator))
    assert "two stages: the plan asks for it" in told
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    (entry,) = curator.history()
    assert entry.charge.loss.epsilon(Fraction(1, 10**6)) <= 2
    assert len(bundle.manifest["mechanisms"]) == len(entry.charge.events) == 3
    assert bundle.manifest["method"]["name"] == "two stages"
    assert holds(verify(tmp_path / "b"))
    assert bundle.ask("SELECT COUNT(*) AS n FROM release WHERE ward = 'A'").promised
    with pytest.raises(UsageError, match=r"two stages.*Nothing was charged"):
        publication.preview(make_plan(method="guess", epsilon=1), curator=curator)
    with pytest.raises(UsageError, match=r"none is wanted.*Nothing was charged"):
        publication.preview(make_plan(method="two stages", ways=1, name="other", epsilon=1), curator=curator)


SMALL = Workload.of_ways((2, 2, 2), 2)


def list_small_tables() -> list[Integers]:
    """Every table of up to two rows over 2 × 2 × 2 cells."""
    cells = np.eye(8, dtype=np.int64).reshape(8, 2, 2, 2)
    rows = [combinations_with_replacement(range(8), size) for size in range(3)]
    return [cells[list(chosen)].sum(axis=0) for each in rows for chosen in each]


def find_choice_law(scores: list[int], deviation: float, least: int) -> list[float]:
    """The exact law of which scores are at least so large after rounded normal noise: a probability for each set."""
    above = [1 - NormalDist(score, deviation).cdf(least - 0.5) for score in scores]
    return [math.prod(p if inside else 1 - p for p, inside in zip(above, each)) for each in product((0, 1), repeat=3)]


def find_worst_choice(squared_sensitivity: int, mu: float) -> float:
    """The largest Φ⁻¹(P) − Φ⁻¹(Q) over all events of the choice, all tables, and all rows that may be added."""
    stages = plan_stages(SMALL, Fraction(1))
    deviation, worst, law = math.sqrt(squared_sensitivity) / mu, 0.0, NormalDist()
    expected = [np.array([[1, 0], [0, 1]]), np.array([[0, 1], [1, 0]]), np.array([[1, 1], [0, 0]])]

    def score(cube: Integers) -> list[int]:
        tables = make_tables(cube, SMALL)
        return [int(each) for each in score_tables([tables[pair] for pair in stages.scored], expected)]

    for cube in list_small_tables():
        for cell in range(8):
            more = cube.copy()
            more.reshape(-1)[cell] += 1
            for least in (1, 2, 3):
                one, two = (find_choice_law(score(each), deviation, least) for each in (cube, more))
                for event in product((0, 1), repeat=8):
                    p, q = (sum(x for x, inside in zip(each, event) if inside) for each in (one, two))
                    if 1e-9 < p < 1 - 1e-9 and 1e-9 < q < 1 - 1e-9:
                        worst = max(worst, abs(law.inv_cdf(p) - law.inv_cdf(q)))
    return worst


def test_the_law_of_the_choice_is_as_private_as_stated() -> None:
    """On every neighbouring pair of small tables, all events of the exact law of the choice. Control: a factor of 2."""
    mu = 0.5
    stated = find_squared_distance(3, 1, 1, Neighbours.ADD_REMOVE)
    assert find_worst_choice(stated, mu) <= mu + 1e-9
    assert find_worst_choice(stated, 2 * mu) > mu, "half the sensitivity (twice the μ) would be seen"
