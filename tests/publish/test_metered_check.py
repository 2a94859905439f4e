"""Tests of the metered check: one charge, and a report that is near the truth."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.accounting.events import squared_mu
from discreet.errors import UsageError
from discreet.publish import publication
from discreet.publish.metered_check import check_rows
from tests.publish.releases import make_plan, make_visits, open_clinic


def test_a_check_is_charged_once_and_near_the_truth(tmp_path: Path) -> None:
    visits = make_visits(rows=3_000)
    plan = make_plan(columns={"ward": {}, "sex": {}, "age": {"bins": 5}}, epsilon=6, rows=3_000)
    curator = open_clinic(visits, unit=None, max_rows=None, budget=discreet.Budget(epsilon=16, delta=1e-6))
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    report = check_rows(plan, bundle, curator=curator, epsilon=8)
    again = check_rows(plan, bundle, curator=curator, epsilon=8)
    assert report == again and len(curator.history()) == 2
    (far,) = report.distances.values()
    truth, rows = visits.to_pandas(), bundle.synthetic.to_pandas()
    bins = np.arange(0, 101, 20.2)
    shares = []
    for frame in (truth, rows):
        ward = frame.ward.replace("Z", "(other)").fillna("NULL")
        age = np.digitize(frame.age.fillna(-1), bins)
        shares.append(frame.assign(ward=ward, age=age).groupby(["ward", "sex", "age"]).size())
    exact = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2 / len(rows)
    assert far == pytest.approx(exact, abs=0.03)
    assert report.low <= report.k_marginal <= report.high
    assert "k-marginal" in str(report)
    event = curator.history()[1].charge.events[0]
    assert 7.9 < curator.history()[1].charge.loss.epsilon(Fraction(1, 10**6)) <= 8
    assert squared_mu(event) > 0  # type: ignore[arg-type]  # a rounded Gaussian


def test_propensity_is_another_check_with_its_own_price(tmp_path: Path) -> None:
    plan = make_plan(columns={"ward": {}, "sex": {}}, epsilon=4, rows=3_000)
    curator = open_clinic(
        make_visits(rows=3_000), unit=None, max_rows=None, budget=discreet.Budget(epsilon=16, delta=1e-6)
    )
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    far = check_rows(plan, bundle, curator=curator, epsilon=1, ways=2)
    told = check_rows(plan, bundle, curator=curator, epsilon=1, ways=2, score="propensity")
    assert len(curator.history()) == 3
    assert abs(told.mean) < 0.01 and "pMSE" in str(told) and "<svg" in told._repr_html_()
    one, two = (squared_mu(curator.history()[at].charge.events[0]) for at in (1, 2))  # type: ignore[arg-type]
    assert float(one / two) == pytest.approx(1, rel=0.2) and told.deviation > 0 and far.deviation > 0
    with pytest.raises(UsageError, match=r"score.*Nothing was charged"):
        check_rows(plan, bundle, curator=curator, epsilon=1, ways=2, score="guess")


def test_other_plans_and_ways_are_refused(tmp_path: Path) -> None:
    curator = open_clinic()
    plan = make_plan(columns={"ward": {}, "sex": {}}, epsilon=2)
    bundle = publication.publish(plan, curator=curator, out=tmp_path / "b")
    with pytest.raises(UsageError, match=r"another plan.*Nothing was charged"):
        check_rows(plan | {"epsilon": 1}, bundle, curator=curator, epsilon=1)
    for ways in (0, 3, True):
        with pytest.raises(UsageError, match="ways"):
            check_rows(plan, bundle, curator=curator, epsilon=1, ways=ways)
    assert len(curator.history()) == 1
