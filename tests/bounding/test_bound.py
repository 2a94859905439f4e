"""Bounding: which integers are measured for a question, which caps hold, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.bounding.bound import bound
from discreet.bounding.contributions import MOST_BITS, BoundedPlan, Counts, Measure, Sensitivity, group_cap, sensitivity
from discreet.errors import Unbounded, UsageError
from discreet.plan.catalog import ContributionLimits
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import Statistic
from discreet.privacy import Neighbours
from tests.worlds.hospital import COUNT, ROWS, UNITS, ask, catalog, column, of

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def kinds(bounded: BoundedPlan) -> list[Counts]:
    return [measure.counts for measure in bounded.measures]


def test_equal_integers_are_measured_once() -> None:
    """A count used by itself, by a mean and by a variance is one measurement; a sum rides on the mean's steps."""
    age = [of(s, "age") for s in (Statistic.COUNT, Statistic.MEAN, Statistic.VARIANCE, Statistic.STDDEV, Statistic.SUM)]
    found = bound(ask(*age), catalog())
    assert kinds(found.bounded) == [Counts.VALUES, Counts.STEPS, Counts.SQUARES]
    assert found.measured == (0, 1, 2)


def test_means_are_taken_from_the_middle_and_sums_from_zero() -> None:
    """Centred steps halve what one row can add; a sum alone needs no count."""
    mean = bound(ask(of(Statistic.MEAN, "age")), catalog()).bounded.measures[1]
    assert mean.origin == 55 and (mean.first, mean.last) == (-55, 55)
    total = bound(ask(of(Statistic.SUM, "cost")), catalog()).bounded
    assert kinds(total) == [Counts.STEPS]
    assert total.measures[0].origin == 0 and total.measures[0].last == 4000


def test_private_keys_bring_a_selector_without_noise_of_its_own() -> None:
    """The count of units that decides which groups are named is not a statistic."""
    found = bound(ask(COUNT, keys=("town",)), catalog())
    assert found.bounded.domain is None
    assert found.selector == 1 and found.measured == (0,)
    assert bound(ask(COUNT, UNITS, keys=("town",)), catalog()).measured == (0, 1)


def test_public_keys_are_all_combinations() -> None:
    """Groups are the product of the keys' values, whether rows fall in or not."""
    found = bound(ask(COUNT, keys=("ward", "sex")), catalog()).bounded
    assert found.domain is not None and len(found.domain) == 6
    assert ("C", "m") in found.domain


@pytest.mark.parametrize(
    ("keys", "cap"),
    [
        ((), None),  # one group only
        (("ward",), 2),  # three wards, at most two a patient
        (("sex",), 1),  # constant per unit: one is enough, and it is enforced
        (("town",), 2),
    ],
)
def test_caps_on_groups(keys: tuple[str, ...], cap: int | None) -> None:
    """A cap where a unit could be in more groups than it may; a declared constant is enforced, not believed."""
    assert bound(ask(COUNT, keys=keys), catalog()).bounded.max_groups == cap


def test_no_cap_where_there_are_few_groups() -> None:
    """With as many groups as a unit may be in, the cap is needless."""
    wide = catalog(limits=ContributionLimits(max_groups=3, max_rows_per_group=3))
    assert bound(ask(COUNT, keys=("ward",)), wide).bounded.max_groups is None


def test_rows_as_units_need_no_caps() -> None:
    """A row is in one group and counts once."""
    found = bound(ask(COUNT, UNITS, keys=("ward",)), catalog(unit=None)).bounded
    assert kinds(found) == [Counts.ROWS]
    assert (found.unit, found.max_groups, found.max_rows, found.max_rows_per_group) == (None, None, None, None)
    assert sensitivity(found, found.measures[0], ADD) == Sensitivity(1, 1, 1, 1)
    assert sensitivity(found, found.measures[0], REPLACE) == Sensitivity(2, 2, 2, 1)


# A whole row, in the parts that are weighed.
ONE = 1 << MOST_BITS


@pytest.mark.parametrize(
    ("keys", "limits", "neighbours", "expected"),
    [
        ((), None, ADD, Sensitivity(1, 3, 9, 3)),
        ((), None, REPLACE, Sensitivity(1, 3, 9, 3)),  # one group: it moves by three either way
        (("ward",), None, ADD, Sensitivity(3, 6 * ONE, 18 * ONE**2, 3 * ONE)),  # in all three, two thirds in each
        (("ward",), None, REPLACE, Sensitivity(3, 9 * ONE, 27 * ONE**2, 3 * ONE)),  # three in each of three wards
        (("town",), None, REPLACE, Sensitivity(12 * ONE, 12 * ONE, 36 * ONE**2, 3 * ONE)),
        (("town",), ROWS, ADD, Sensitivity(4 * ONE, 4 * ONE, 16 * ONE**2, 4 * ONE)),
        (("town",), ROWS, REPLACE, Sensitivity(8 * ONE, 8 * ONE, 32 * ONE**2, 4 * ONE)),
        ((), ROWS, REPLACE, Sensitivity(1, 4, 16, 4)),
    ],
)
def test_sensitivities_of_a_count(
    keys: tuple[str, ...], limits: ContributionLimits | None, neighbours: Neighbours, expected: Sensitivity
) -> None:
    """Worked by hand for two groups of three rows, and for four rows in all; in parts of rows where some weigh less."""
    found = bound(ask(COUNT, keys=keys), catalog(limits=limits) if limits else catalog()).bounded
    assert sensitivity(found, found.measures[0], neighbours) == expected


def test_sensitivities_of_signed_steps() -> None:
    """A centred age is within ±55 a row; replacing one patient can swing a ward by 2·55 a row."""
    found = bound(ask(of(Statistic.MEAN, "age"), keys=("town",)), catalog()).bounded
    steps = found.measures[1]
    one, two = 330 * ONE, 660 * ONE
    assert sensitivity(found, steps, ADD) == Sensitivity(one, one, 2 * 165**2 * ONE**2, 165 * ONE)
    assert sensitivity(found, steps, REPLACE) == Sensitivity(two, two, 2 * 330**2 * ONE**2, 330 * ONE)


def test_units_count_once_in_a_group() -> None:
    """However many rows, a unit is one unit of a group."""
    found = bound(ask(UNITS, keys=("ward",)), catalog()).bounded
    assert sensitivity(found, found.measures[0], ADD) == Sensitivity(3, 2 * ONE, 2 * ONE**2, ONE)
    assert group_cap(found) == 2


@pytest.mark.parametrize("statistic", [Statistic.SUM, Statistic.MEAN, Statistic.VARIANCE, Statistic.STDDEV])
def test_missing_bounds_are_refused(statistic: Statistic) -> None:
    """No bounds, no sensitivity: the error names the column and both ways out."""
    with pytest.raises(Unbounded, match=r"bounds for free .* clamp\(free, low, high\).*Nothing was charged"):
        bound(ask(of(statistic, "free")), catalog())


def test_a_clamp_in_the_question_bounds_what_the_codebook_does_not() -> None:
    """clamp(free, -1, 2) can be summed."""
    clamped = Aggregate(Statistic.SUM, make_call("clamp", column("free"), make_literal(-1), make_literal(2)))
    (measure,) = bound(ask(clamped), catalog()).bounded.measures
    assert measure.first * measure.resolution <= -1 and measure.last * measure.resolution >= 2


@pytest.mark.parametrize(
    ("aggregate", "keys", "problem"),
    [
        (COUNT, ("patient",), "single units"),
        (COUNT, ("free",), "single rows"),
        (of(Statistic.SUM, "ward"), (), "needs a number"),
    ],
)
def test_useless_questions_are_refused(aggregate: Aggregate, keys: tuple[str, ...], problem: str) -> None:
    """Groups of one and sums of words end with a reason and without a charge."""
    with pytest.raises(UsageError, match=f"{problem}.*Nothing was charged"):
        bound(ask(aggregate, keys=keys), catalog())


def test_keys_alone_are_free_and_refused() -> None:
    """Public keys are known already."""
    with pytest.raises(UsageError, match="public keys only"):
        bound(ask(keys=("ward",)), catalog())


def test_limits_must_be_declared() -> None:
    """A user-level table without max_groups cannot be grouped."""
    with pytest.raises(Unbounded, match="max_groups"):
        bound(ask(COUNT, keys=("town",)), catalog(limits=ContributionLimits(max_rows_per_group=3)))


def test_squares_stay_small() -> None:
    """Variances are taken on a coarser grid, so that squares of steps stay within 2^30 a row."""
    found = bound(ask(of(Statistic.VARIANCE, "cost")), catalog()).bounded
    squares = next(m for m in found.measures if m.counts is Counts.SQUARES)
    assert squares.row_high <= 1 << 30 and squares.row_low == 0
    assert Measure(counts=Counts.STEPS, first=-4, last=9).row_low == -4
    assert squares.resolution <= Fraction(1, 4) * 2
