"""Counts that may name keys: which they are, and what remains to be measured."""

from __future__ import annotations

import pytest

from discreet.bounding.bound import BoundedQuestion, bound
from discreet.bounding.contributions import Counts
from discreet.bounding.named_counts import name_by_count
from discreet.plan.catalog import ContributionLimits
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import Statistic
from tests.worlds.hospital import COUNT, UNITS, ask, catalog, of

ONE_EACH = ContributionLimits(max_groups=2, max_rows_per_group=1)
SEVERAL = ContributionLimits(max_groups=2, max_rows_per_group=3)


def form_of(
    *aggregates: Aggregate, limits: ContributionLimits = ONE_EACH, keys: tuple[str, ...] = ("town",)
) -> BoundedQuestion:
    return bound(ask(*aggregates, keys=keys), catalog(limits=limits))


def test_rows_are_units_where_a_unit_has_one_row() -> None:
    """COUNT(*) is then the count of units; neither rows nor weights need to be measured."""
    found = name_by_count(form_of(COUNT))
    assert found is not None
    assert [measure.counts for measure in found.bounded.measures] == [Counts.NAMED]
    assert found.estimates[0].count == found.selector == 0
    assert found.weights is None and found.measured == (0,)


def test_units_name_keys_whatever_the_rows() -> None:
    """COUNT(DISTINCT unit) is what keys are named by, also where a unit has several rows; COUNT(*) then is not."""
    assert name_by_count(form_of(UNITS, limits=SEVERAL)) is not None
    assert name_by_count(form_of(COUNT, limits=SEVERAL)) is None


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_that_are_limited_in_all_are_weighed(rows: int) -> None:
    """The secret order would favour units' small groups, so the count is measured by itself."""
    limits = ContributionLimits(max_rows=rows)
    assert name_by_count(form_of(UNITS, limits=limits)) is None
    assert name_by_count(form_of(COUNT, limits=limits)) is None


def test_rows_that_are_units_name_keys() -> None:
    """Without a unit column every row is in one group, and counts as one."""
    found = name_by_count(bound(ask(COUNT, keys=("town",)), catalog(unit=None)))
    assert found is not None
    assert [measure.counts for measure in found.bounded.measures] == [Counts.ROWS]


def test_other_measures_stay() -> None:
    """A sum beside the count keeps its own measure, under its new number."""
    found = name_by_count(form_of(of(Statistic.SUM, "cost"), COUNT))
    assert found is not None
    assert sorted(measure.counts for measure in found.bounded.measures) == [Counts.NAMED, Counts.STEPS]
    total, count = found.estimates
    assert total.steps is not None and found.bounded.measures[total.steps].counts is Counts.STEPS
    assert count.count == found.selector != total.steps


def test_no_count_no_name() -> None:
    """Only a plain count of units names keys: no sum, no count of values; and public keys need no name."""
    assert name_by_count(form_of(of(Statistic.SUM, "cost"))) is None
    assert name_by_count(form_of(COUNT, keys=("ward",))) is None
    assert name_by_count(form_of(of(Statistic.COUNT, "age"))) is None
