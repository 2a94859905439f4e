"""Tests of direct tables: distances by brute force, variances and intervals as stated, and budgets of pure ε."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.accounting import events
from discreet.entropy import SeededForTestsOnly
from discreet.errors import BudgetExceeded, UsageError
from discreet.exact import Integers
from discreet.privacy import Neighbours
from discreet.publish import publication
from discreet.publish.direct_tables import DirectAllocation, allocate_directly
from discreet.publish.measurements import measure
from discreet.publish.records import dump_measurements, load_measurements
from discreet.publish.verification import holds, verify
from discreet.publish.workload import Workload
from tests.publish.cubes import list_cells, make_tables
from tests.publish.releases import make_plan, open_clinic

WORKLOAD = Workload((2, 3), {(0,): 3.0, (1,): 3.0, (0, 1): 1.0}, {0: 4})
CUBE = np.array([[400, 50, 3], [90, 700, 0]])


def make_vector(found: DirectAllocation, rows: list[tuple[tuple[int, int], int]]) -> Integers:
    """What gets noise, from its definition; a row is a fine cell of the first column and a cell of the second."""
    cube, fine = np.zeros((2, 3), dtype=np.int64), np.zeros(4, dtype=np.int64)
    for (step, other), weight in rows:
        cube[step // 2, other] += weight
        fine[step] += weight
    tables = make_tables(cube, WORKLOAD)
    blocks = [found.multipliers[part] * tables[part].reshape(-1) for part in found.measured]
    return np.concatenate([*blocks, found.fine_multipliers[0] * fine])


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("pure", [True, False])
def test_no_unit_moves_the_vector_further_than_stated(neighbours: Neighbours, pure: bool) -> None:
    """All units of up to two rows, before and after: the stated distance is reached, and never exceeded."""
    found = allocate_directly(WORKLOAD, Fraction(1, 2), pure=pure, neighbours=neighbours, max_rows=2)
    cells = [(step, other) for step, other in product(range(4), range(3))]
    units = [[(c, 1) for c in unit] for size in range(3) for unit in combinations_with_replacement(cells, size)]
    vectors = [make_vector(found, unit) for unit in units]
    others = [make_vector(found, [])] if neighbours is Neighbours.ADD_REMOVE else vectors
    moves = [one - two for one in vectors for two in others]
    if pure:
        assert max(int(np.abs(move).sum()) for move in moves) == found.sensitivity
    else:
        assert max(int((move * move).sum()) for move in moves) == found.squared_sensitivity


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_price_is_what_was_offered(neighbours: Neighbours) -> None:
    pure = allocate_directly(WORKLOAD, Fraction(3, 7), pure=True, neighbours=neighbours, max_rows=3, steps=1 << 16)
    event = pure.noise.event
    assert isinstance(event, events.DiscreteLaplace)
    assert Fraction(event.sensitivity) / Fraction(event.scale) == Fraction(3, 7)
    normal = allocate_directly(WORKLOAD, Fraction(3, 7), pure=False, neighbours=neighbours, max_rows=3)
    assert Fraction(3, 7) * (1 - Fraction(1, 10**9)) <= normal.mu_squared <= Fraction(3, 7)


@pytest.mark.parametrize("pure", [True, False])
def test_values_have_no_bias_and_the_stated_variance(pure: bool) -> None:
    """Tables say the same of each other, and intervals hold; those of half the width do not."""
    workload = Workload.of_ways((2, 3), 2)
    tables = make_tables(CUBE, workload)
    found = allocate_directly(workload, Fraction(1, 2), pure=pure)
    draws = [measure(tables, found, source=SeededForTestsOnly(seed)) for seed in range(800)]
    for part in ((), (1,), (0, 1)):
        values = np.array([draw.table(part) for draw in draws])
        deviation = math.sqrt(found.cell_variance(part))
        assert np.allclose(values.mean(axis=0), tables[part], atol=5 * deviation / math.sqrt(len(draws)))
        assert values.std(axis=0) == pytest.approx(deviation, rel=0.12)
        off = np.abs(values - tables[part])
        half = found.find_half(deviation, Fraction(95, 100))
        assert 0.94 <= (off <= half).mean() <= 0.98
        assert (off <= half / 2).mean() < 0.82
    assert draws[0].table((0, 1)).sum(axis=0) == pytest.approx(draws[0].table((1,)))


def test_what_tables_say_together_is_more_exact_than_one_alone() -> None:
    workload = Workload.of_ways((4, 5), 2)
    found = allocate_directly(workload, Fraction(1), pure=False)
    alone = float(found.variance) / found.scale((0,)) ** 2
    assert found.cell_variance((0,)) < 0.98 * alone


def find_tail(weights: list[float], at: float) -> float:
    """P(|Σ w_i·L_i| > at) for Laplace numbers and weights that all differ, in closed form; the variance is one."""
    scaled = np.array(weights) / math.sqrt(2 * sum(w * w for w in weights))
    parts = [math.prod(a * a / (a * a - b * b) for b in scaled if b != a) * math.exp(-at / a) for a in scaled]
    return float(sum(parts))


@pytest.mark.parametrize("level", [0.5, 0.68, 0.8, 0.9, 0.92, 0.95, 0.99, 0.999])
def test_intervals_hold_for_all_sums_of_laplace_numbers(level: float) -> None:
    """Weights of two to five numbers: never below the stated confidence. The normal width alone would be."""
    found = allocate_directly(Workload((2,), {(0,): 1.0}), Fraction(1), pure=True, steps=1 << 40)
    half, chance, covered = found.find_half(1.0, Fraction(str(level))), np.random.default_rng(0), []
    for _ in range(400):
        weights = sorted(chance.uniform(0.05, 1, chance.integers(2, 6)).tolist())
        if min(np.diff(weights)) > 0.03:  # where they are nearly the same, the closed form loses digits
            covered.append(1 - find_tail(weights, half))
    assert len(covered) > 100
    assert level <= min(covered)
    if level >= 0.95:
        assert 1 - find_tail([1.0, 0.05], NormalDist().inv_cdf((1 + level) / 2)) < level


def test_measurements_on_record_are_the_same() -> None:
    tables = make_tables(CUBE, WORKLOAD)
    found = measure(tables, allocate_directly(WORKLOAD, Fraction(1), pure=True), {0: np.array([300, 153, 90, 700])})
    again = load_measurements(dump_measurements(found))
    assert again.allocation == found.allocation
    assert again.table((0, 1)) == pytest.approx(found.table((0, 1)))


def open_pure() -> Any:
    return open_clinic(budget=discreet.Budget(epsilon=4))


def test_a_budget_of_pure_epsilon_pays_for_a_release(tmp_path: Path) -> None:
    """Charged once, ε and no δ, verified; the same again is free; what is left is what was not spent."""
    curator = open_pure()
    bundle = publication.publish(make_plan(epsilon=3), curator=curator, out=tmp_path / "b")
    assert bundle.manifest["method"]["name"] == "direct"
    assert bundle.manifest["loss"]["epsilon"] == 3
    assert bundle.manifest["loss"]["delta"] == 0
    assert bundle.manifest["best_guess"] == pytest.approx(1 / (1 + math.exp(-3)), abs=0.001)
    assert curator.remaining.startswith("ε 1 of 4")
    assert holds(verify(tmp_path / "b"))
    assert "Laplace noise" in (tmp_path / "b" / "disclosure.txt").read_text(encoding="utf-8")
    assert publication.publish(make_plan(epsilon=3), curator=curator, out=tmp_path / "b").manifest == bundle.manifest
    assert len(curator.history()) == 1
    (charged,) = curator.history()
    (event,) = charged.charge.events
    assert isinstance(event, events.DiscreteLaplace)
    assert Fraction(event.sensitivity) / Fraction(event.scale) == 3


def test_halved_laplace_noise_does_not_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a draw with half the noise under the same charge is seen."""

    def halve(measured: Any) -> dict[str, Any]:
        record = dump_measurements(measured)
        record["direct"]["laplace"] = str(Fraction(record["direct"]["laplace"]) / 2)
        return record

    monkeypatch.setattr(publication, "dump_measurements", halve)
    publication.publish(make_plan(), curator=open_pure(), out=tmp_path / "b")
    assert not holds(verify(tmp_path / "b"))


@pytest.mark.parametrize(
    "more",
    [
        {"questions": [{"name": "q", "sql": "SELECT COUNT(*) AS n FROM visits"}]},
        {"columns": {"ward": {}, "age": {"ranges": "all"}}},
        {"columns": {"ward": {}, "patient": {"keys": "private"}}, "where": "age > 3"},
        {"method": "two stages"},
        {"epsilon": None, "rho": 0.1},
    ],
)
def test_what_pure_epsilon_does_not_pay_for_is_refused(more: dict[str, Any]) -> None:
    curator = open_pure()
    with pytest.raises((UsageError, discreet.DiscreetError), match="Nothing was charged"):
        publication.preview(make_plan(**more), curator=curator)
    assert not curator.history()


def test_more_than_one_question_may_cost_is_refused() -> None:
    curator = open_clinic(budget=discreet.Budget(epsilon=4), per_query=1)
    with pytest.raises(BudgetExceeded, match=r"at most ε 1.*Nothing was charged"):
        publication.preview(make_plan(epsilon=2), curator=curator)
    assert publication.preview(make_plan(epsilon=1), curator=curator).fits


def test_direct_tables_can_be_asked_for_with_normal_noise(tmp_path: Path) -> None:
    bundle = publication.publish(make_plan(method="direct"), curator=open_clinic(), out=tmp_path / "b")
    assert bundle.manifest["method"]["name"] == "direct"
    assert bundle.manifest["mechanisms"][0]["kind"] == "RoundedGaussian"
    assert holds(verify(tmp_path / "b"))


def test_all_cells_are_measured() -> None:
    """Wanted tables only: smaller ones follow from them."""
    found = allocate_directly(Workload((2, 3), {(0, 1): 1.0}), Fraction(1), pure=True)
    assert found.measured == ((0, 1),)
    assert found.covers((0,))
    assert found.covers(())
    assert len(list_cells((2, 3))) == 6
