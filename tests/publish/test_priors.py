"""Tests of priors: they help where noise hides, cost nothing, move no interval, and lose against what data say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import UsageError
from discreet.publish import publication
from discreet.publish.allocation import allocate
from discreet.publish.estimates import estimate_table
from discreet.publish.measurements import Measurements, measure
from discreet.publish.verification import holds, verify
from discreet.publish.workload import Workload
from tests.publish.cubes import make_tables
from tests.publish.releases import make_plan, open_clinic

WANTED = Workload.of_ways((8, 8), 2)
TRUTH = np.rint(1000 * (0.05 + np.eye(8)[::-1])).astype(np.int64)
WARDS = {"columns": ["sex", "ward"], "table": [["f", "A", 35], ["m", "A", 15], ["f", "B", 9], ["m", "B", 21]]}


def estimate(mu_squared: Fraction, prior: Any, *, pair: bool = True) -> tuple[float, Measurements]:
    """How far the estimate of the pair is from the truth, in parts of the rows."""
    wanted = WANTED if pair else WANTED.without([(0, 1)])
    drawn = measure(make_tables(TRUTH, wanted), allocate(wanted, mu_squared))
    found = Measurements(drawn.allocation, drawn.noisy, priors={} if prior is None else {(0, 1): prior})
    return float(np.abs(estimate_table(found, (0, 1)) - TRUTH).sum() / 2 / TRUTH.sum()), found


def test_a_good_prior_helps_where_the_table_is_noise_or_not_measured() -> None:
    prior = TRUTH / TRUTH.sum()
    for pair in (True, False):
        without = np.mean([estimate(Fraction(1, 3000), None, pair=pair)[0] for _ in range(5)])
        with_it = np.mean([estimate(Fraction(1, 3000), prior, pair=pair)[0] for _ in range(5)])
        assert with_it < 0.7 * without


def test_a_wrong_prior_loses_against_the_data_and_moves_no_value() -> None:
    wrong = np.eye(8) / 8
    far, found = estimate(Fraction(1, 10), wrong)
    assert far < 0.05
    plain = Measurements(found.allocation, found.noisy)
    assert np.array_equal(found.table((0, 1)), plain.table((0, 1)))


def test_a_release_with_a_prior_costs_the_same_and_says_so(tmp_path: Path) -> None:
    curator = open_clinic()
    plan = make_plan(priors=[WARDS], epsilon=1)
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    assert holds(verify(tmp_path / "b"))
    assert "ward" in (tmp_path / "b" / "disclosure.txt").read_text().split("Public tables.")[1]
    other = publication.preview(make_plan(epsilon=1, name="other"), curator=open_clinic())
    assert curator.history()[0].charge.events == other.method.events
    table = bundle.measurements.priors[(0, 1)]
    assert table.shape == bundle.measurements.table((0, 1)).shape
    assert table.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ({"columns": ["ward"], "table": [["A", 1]]}, "two columns"),
        ({"columns": ["ward", "sex"], "table": [["A", "f"]]}, "amount"),
        ({"columns": ["ward", "sex"], "table": [["A", "f", -1]]}, "amount"),
        ({"columns": ["ward", "sex"], "table": [["A", "f", float("nan")]]}, "amount"),
        ({"columns": ["ward", "sex"], "table": [["A", "f", 0]]}, "says nothing"),
        ({"columns": ["ward", "sex"], "table": [["Q", "f", 1]]}, "no cell"),
        ({"columns": ["ward", "town"], "table": [["A", "f", 1]]}, "town"),
        ({"table": []}, "public table"),
    ],
)
def test_what_is_no_table_is_refused(prior: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        publication.preview(make_plan(priors=[prior]), curator=open_clinic())
    with pytest.raises(UsageError, match="same columns"):
        publication.preview(make_plan(priors=[WARDS, WARDS]), curator=open_clinic())
