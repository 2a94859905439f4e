"""Bounding of distinct values, quantiles, modes, bounded sums and several groupings: which integers, which caps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.bounding.bound import bound, bound_all
from discreet.bounding.contributions import Counts, Sensitivity, sensitivity, unit_bits
from discreet.errors import DiscreetError, InternalError, Unbounded, UsageError
from discreet.offer import Offer
from discreet.plan.catalog import ContributionLimits
from discreet.plan.expressions import Expression, Literal
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.price import PriceTerms, price
from discreet.privacy import Budget, Neighbours, Unit
from tests.worlds.hospital import COUNT, ROWS, ask, catalog, column, of


def quantile(name: str, share: Fraction) -> Aggregate:
    return Aggregate(Statistic.QUANTILE, column(name), share)


def test_quantiles_of_one_argument_share_a_spread() -> None:
    """Three quantiles of a column are chosen together, another column's apart; no sums are measured for them."""
    shares = (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4))
    found = bound(ask(*(quantile("age", q) for q in shares), quantile("cost", shares[0])), catalog())
    assert len(found.bounded.spreads) == 2 and found.measured == ()
    assert found.shares_of(0) == tuple(sorted(shares)) and found.shares_of(1) == (Fraction(1, 2),)
    ages, costs = found.bounded.spreads
    assert (ages.first, ages.last) == (0, 110) and ages.resolution == Fraction(1)
    assert costs.resolution == Fraction(1, 4) and costs.last == 4000


def test_spreads_have_a_limited_number_of_cells() -> None:
    """A column with more steps than cells is taken on a coarser grid that still covers its bounds."""
    wide = make_call("clamp", column("free"), make_literal(-1000), make_literal(1_000_000))
    (spread,) = bound(ask(Aggregate(Statistic.QUANTILE, wide, Fraction(1, 2))), catalog()).bounded.spreads
    assert spread.last - spread.first <= 2 * (1 << 16)
    assert spread.first * spread.resolution <= -1000 and spread.last * spread.resolution >= 1_000_000


def test_quantiles_need_bounds_and_modes_need_keys() -> None:
    """Nothing is chosen from values that are not publicly known."""
    with pytest.raises(Unbounded, match="bounds for free"):
        bound(ask(quantile("free", Fraction(1, 2))), catalog())
    with pytest.raises(Unbounded, match=r"Declare keys.*Nothing was charged"):
        bound(ask(of(Statistic.MODE, "town")), catalog())
    (spread,) = bound(ask(of(Statistic.MODE, "ward")), catalog()).bounded.spreads
    assert spread.values == ("A", "B", "C") and (spread.first, spread.last) == (0, 2)


def test_a_unit_brings_as_many_values_as_rows_count() -> None:
    """Without max_values: in all groups together, whole numbers."""
    add, change = Neighbours.ADD_REMOVE, Neighbours.REPLACE
    claims = {
        ROWS: {add: Sensitivity(3, 4, 16, 4), change: Sensitivity(3, 8, 32, 4)},
        ContributionLimits(max_groups=2, max_rows_per_group=3): {
            add: Sensitivity(3, 6, 36, 6),
            change: Sensitivity(3, 12, 72, 6),
        },
    }
    for limits, claimed in claims.items():
        values = bound(ask(of(Statistic.COUNT_DISTINCT, "town"), keys=("ward",)), catalog(limits=limits)).bounded
        assert values.measures[0].counts is Counts.DISTINCT
        assert {n: sensitivity(values, values.measures[0], n) for n in claimed} == claimed


def limit_of(
    argument: Expression,
    *,
    keys: tuple[str, ...] = (),
    own: ContributionLimits | None = None,
    limits: ContributionLimits = ROWS,
    **declared: int,
) -> int | None:
    """How many values one unit brings, with max_values declared for columns."""
    known = catalog(limits=limits)
    facts = known.tables["visits"].columns
    columns = {n: (kind, replace(fact, max_values=declared.get(n))) for n, (kind, fact) in facts.items()}
    known = replace(known, tables={"visits": replace(known.tables["visits"], columns=columns)})
    question = replace(ask(Aggregate(Statistic.COUNT_DISTINCT, argument), keys=keys), limits=own)
    (measure,) = (m for m in bound(question, known).bounded.measures if m.counts is Counts.DISTINCT)
    return measure.max_values


def test_declared_numbers_of_values_win_over_rows() -> None:
    """max_values is for all groups together, also where it is above the limit on rows; a question may ask for less."""
    town, wide = column("town"), ContributionLimits(max_groups=2, max_rows_per_group=3)
    assert [limit_of(town, keys=keys, town=1) for keys in ((), ("ward",), ("town",))] == [1, 1, 1]
    assert limit_of(town, town=9) == limit_of(town, keys=("ward",), limits=wide, town=9) == 9
    assert (limit_of(town), limit_of(town, limits=wide), limit_of(town, keys=("ward",), limits=wide)) == (4, 3, 6)
    assert limit_of(town, keys=("sex",), limits=wide) == 3  # in one group only
    assert limit_of(town, own=ContributionLimits(max_rows=2), town=9) == 2
    assert limit_of(town, own=ContributionLimits(max_rows=2), town=1) == 1


def test_a_constant_has_one_value_in_each_group() -> None:
    assert limit_of(column("sex")) == limit_of(make_call("lower", column("sex"))) == 1
    assert limit_of(column("sex"), keys=("ward",)) == 3
    assert limit_of(column("sex"), keys=("ward",), sex=1) == 1


def test_expressions_have_as_many_values_as_their_columns_allow() -> None:
    """A function of one column has no more values; of two, all combinations; FILTER adds none."""
    town, sex, age = column("town"), column("sex"), column("age")
    assert limit_of(make_call("lower", town), town=2) == 2
    assert limit_of(make_call("concat", town, sex), town=2) == 2
    assert limit_of(make_call("add", age, make_literal(1)), age=3) == 3
    assert limit_of(make_call("multiply", age, column("cost")), age=2, cost=3) == 6
    assert limit_of(make_call("multiply", age, column("cost")), age=2) == 4
    none = Literal(None, Type.TEXT)
    condition = make_call("greater", column("cost"), make_literal(3))
    assert limit_of(make_call("case", condition, town, none), town=2) == 2
    assert limit_of(make_call("case", condition, town, make_literal("other")), town=2) == 3
    assert limit_of(make_call("case", condition, none, none), town=2) == 1
    assert limit_of(make_call("coalesce", town, sex), town=2) == 3


def test_rows_that_are_their_own_units_need_no_limit_on_values() -> None:
    found = bound(ask(of(Statistic.COUNT_DISTINCT, "town")), catalog(unit=None)).bounded
    assert found.measures[0].max_values is None
    assert sensitivity(found, found.measures[0], Neighbours.ADD_REMOVE) == Sensitivity(1, 1, 1, 1)


def test_distinct_values_without_a_limit_have_no_sensitivity() -> None:
    found = bound(ask(of(Statistic.COUNT_DISTINCT, "town")), catalog()).bounded
    for most in (None, 0):
        with pytest.raises(InternalError, match="without a limit"):
            sensitivity(found, replace(found.measures[0], max_values=most), Neighbours.ADD_REMOVE)


def test_bounded_sums_need_no_bounds_of_rows() -> None:
    """What one unit adds to a group is within [−5, 20], whatever its rows are: 2 groups of 20 at most."""
    total = Aggregate(Statistic.SUM, column("free"), bounds=(Fraction(-5), Fraction(20)))
    found = bound(ask(total, keys=("ward",)), catalog()).bounded
    (measure,) = found.measures
    step = measure.resolution
    moves = sensitivity(found, measure, Neighbours.ADD_REMOVE)
    parts = 1 << unit_bits(found, measure)
    assert moves.l1 * step == 40 * parts and moves.linf * step == 20 * parts and moves.l0 == 3
    replaced = sensitivity(found, measure, Neighbours.REPLACE)
    assert replaced.linf * step == 25 * parts


def test_bounded_counts_are_clamped_in_a_group() -> None:
    """COUNT within [0, 1]: a unit counts once in a group, however many rows it may have there."""
    count = Aggregate(Statistic.COUNT, bounds=(Fraction(0), Fraction(1)))
    found = bound(ask(count, keys=("ward",)), catalog()).bounded
    parts = 1 << unit_bits(found, found.measures[0])
    assert sensitivity(found, found.measures[0], Neighbours.ADD_REMOVE).l1 == 2 * parts
    with pytest.raises(UsageError, match="lower bound is above"):
        bound(ask(replace(count, bounds=(Fraction(2), Fraction(1)))), catalog())


def test_the_questions_own_limits_replace_the_codebooks() -> None:
    """Public parameters of the question; what it leaves open is the codebook's."""
    own = replace(ask(COUNT, keys=("town",)), limits=ContributionLimits(max_groups=7))
    found = bound(own, catalog()).bounded
    assert (found.max_groups, found.max_rows_per_group, found.max_rows) == (7, 3, None)
    rows = bound(replace(own, limits=ContributionLimits(max_rows=9)), catalog()).bounded
    assert (rows.max_groups, rows.max_rows_per_group, rows.max_rows) == (None, None, 9)
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        bound(replace(own, limits=ContributionLimits(max_groups=0)), catalog())


def test_a_least_number_of_units_is_for_private_keys() -> None:
    """Public groups are shown anyway."""
    private = replace(ask(COUNT, keys=("town",)), min_units=50)
    assert bound(private, catalog()).question.min_units == 50
    with pytest.raises(UsageError, match="always shown"):
        bound(replace(ask(COUNT, keys=("ward",)), min_units=50), catalog())


def test_groupings_are_bounded_one_by_one() -> None:
    """Each grouping has its own keys, its own groups and its own caps."""
    question = replace(ask(COUNT, keys=("ward", "sex")), sets=((0, 1), (0,), ()))
    both, ward, none = bound_all(question, catalog())
    assert [len(form.bounded.keys) for form in (both, ward, none)] == [2, 1, 0]
    assert [len(form.bounded.domain or ()) for form in (both, ward, none)] == [6, 3, 1]
    assert both.keys == (0, 1) and ward.keys == (0,) and none.keys == ()
    for wrong in (((0, 5),), ((0, 0),)):
        with pytest.raises(UsageError, match="Nothing was charged"):
            bound_all(replace(question, sets=wrong), catalog())


def test_limits_beyond_all_noise_are_refused_for_free() -> None:
    """A unit that may move a count by 2^70 cannot be hidden."""
    huge = replace(ask(COUNT, keys=("ward",)), limits=ContributionLimits(max_rows=1 << 70))
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)):
        terms = PriceTerms(budget=budget, unit=Unit("patient"), neighbours=Neighbours.ADD_REMOVE)
        with pytest.raises(Unbounded, match=r"no noise can hide it.*Nothing was charged"):
            price((bound(huge, catalog()),), Offer(epsilon=1), terms)
