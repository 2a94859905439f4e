"""Tests of the look at single columns: one charge, private counts with their intervals beside those of rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.accounting import events
from discreet.errors import UsageError
from discreet.publish import publication
from discreet.publish.bundle import Bundle
from discreet.publish.column_check import check_columns
from discreet.publish.metered_check import check_rows
from tests.publish.releases import make_plan, make_visits, open_clinic

PLAN = make_plan(columns={"ward": {}, "sex": {}, "age": {"bins": 60}}, epsilon=3, rows=3_000)


@pytest.mark.parametrize("budget", [discreet.Budget(epsilon=20, delta=1e-6), discreet.Budget(epsilon=20)])
def test_columns_are_bought_once_and_near_the_truth(tmp_path: Path, budget: discreet.Budget) -> None:
    visits = make_visits(rows=3_000)
    curator = open_clinic(visits, unit=None, max_rows=None, budget=budget)
    bundle = publication.publish(PLAN, curator=curator, out=tmp_path / "b")
    report = check_columns(PLAN, tmp_path / "b", curator=curator, epsilon=8)
    again = check_columns(PLAN, bundle, curator=curator, epsilon=8)
    assert str(report) == str(again) and len(curator.history()) == 2
    ward, sex, age = report.columns
    known = visits.to_pandas()
    truth = [(known.ward == "A").sum(), (known.ward == "B").sum(), (known.ward == "C").sum()]
    assert np.abs(ward.value[2:] - truth).max() < 2.5 * ward.half
    rows = bundle.synthetic.to_pandas()
    assert sex.rows[2:].tolist() == [(rows.sex == "f").sum(), (rows.sex == "m").sum()]
    assert age.rows.sum() == len(rows) and ward.distance < 0.1
    drawn = report.draw()
    assert drawn.count("<svg") == 3 and 'class="own"' in drawn and 'class="own-line"' in drawn
    assert len(report.to_rows()) == sum(each.column.size for each in report.columns)
    charged = curator.history()[1].charge
    assert charged.loss.epsilon(budget.slack()) <= 8
    (event,) = charged.events
    assert isinstance(event, events.DiscreteLaplace if budget.notion == "pure" else events.RoundedGaussian)


def test_intervals_of_the_private_counts_cover(tmp_path: Path) -> None:
    """Under many names: 90 % at least of the intervals of 95 %, over three columns and a few releases."""
    visits = make_visits(rows=2_000)
    known = visits.to_pandas()
    truth = {"f": (known.sex == "f").sum(), "m": (known.sex == "m").sum()}
    curator = open_clinic(visits, unit=None, max_rows=None, budget=discreet.Budget(rho=100))
    inside = []
    for number in range(12):
        plan = make_plan(columns={"sex": {}}, epsilon=None, rho=0.5, rows=2_000, name=f"r{number}")
        publication.publish(plan, curator=curator, out=tmp_path / str(number))
        (sex,) = check_columns(plan, tmp_path / str(number), curator=curator, rho=0.01).columns
        inside += [sex.low[2 + i] <= truth[key] <= sex.high[2 + i] for i, key in enumerate("fm")]
    assert np.mean(inside) >= 0.75, "24 intervals: fewer than 18 have a probability below 1e-4"


def test_named_keys_and_other_bundles(tmp_path: Path) -> None:
    """Keys that were named from the data are those of the bundle; what does not belong together is refused."""
    plan = make_plan(columns={"ward": {"keys": "private"}, "sex": {}}, epsilon=4)
    curator = open_clinic(keys={"sex": ["f", "m"]})
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    report = check_columns(plan, bundle, curator=curator, epsilon=1)
    ward = report.columns[0]
    assert "A" in (ward.column.values or ()) and ward.value[ward.column.first :].max() > 500
    assert 900 < check_rows(plan, bundle, curator=curator, epsilon=1, ways=2).k_marginal < 1010
    for other in (plan | {"epsilon": 3}, plan | {"name": "x"}):
        with pytest.raises(UsageError, match=r"another plan.*Nothing was charged"):
            check_columns(other, bundle, curator=curator, epsilon=1)
    bundle.manifest["columns"].pop()  # as somebody edited it
    with pytest.raises(UsageError, match=r"columns of this bundle.*Nothing was charged"):
        check_columns(plan, Bundle(bundle.folder, bundle.manifest), curator=curator, share=Fraction(1, 20))
