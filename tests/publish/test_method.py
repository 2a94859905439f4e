"""Tests of methods: what is dropped follows from public numbers, and the reason says so."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.publish.allocation import allocate
from discreet.publish.design import design
from discreet.publish.method import MOST_NOISE, choose_method, drop_noise
from discreet.publish.noise_prediction import predict_noise
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.workload import Workload
from tests.publish.releases import make_plan, open_clinic

WORKLOAD = Workload.of_ways((2, 3, 60, 80), 2, one_way_weight=10)


def test_tables_of_noise_are_dropped_and_others_get_better() -> None:
    allocation, dropped = drop_noise(WORKLOAD, Fraction(1, 100), 5_000)
    assert (2, 3) in dropped
    assert not {(0,), (1,), (2,), (3,)} & set(dropped), "one-way tables are kept"
    kept = [part for part in allocation.workload.weights if len(part) > 1]
    assert all(predict_noise(allocation, part, 5_000) <= MOST_NOISE for part in kept)
    everything = allocate(WORKLOAD, Fraction(1, 100))
    assert all(allocation.cell_variance(part) < everything.cell_variance(part) for part in kept)


def test_nothing_is_dropped_where_rows_are_many() -> None:
    assert drop_noise(WORKLOAD, Fraction(1, 100), 10**7)[1] == ()


@pytest.mark.parametrize(
    ("more", "rows", "name", "words"),
    [
        ({}, 10**7, "one shot", "can be told from noise"),
        ({}, 3_000, "one shot", "are dropped"),
        ({}, 20, "independent", "mostly noise"),
        ({"ways": 1}, 6_000, "one-way", "single columns"),
        ({}, None, "one shot", "unknown number of rows"),
    ],
)
def test_the_reason_is_told(more: dict[str, int], rows: int | None, name: str, words: str) -> None:
    plan = ReleasePlan.from_dict(make_plan(**more))
    found = choose_method(design(plan, open_clinic().catalog), Fraction(1, 20), rows)
    assert found.name == name
    assert words in found.reason
    assert found.allocation.mu_squared <= Fraction(1, 20)
    assert found.predict_error((0,)) is None if rows is None else found.predict_error((0,)) is not None
