"""Finishing: statistics from noisy integers, the order and choice of rows, and intervals that cover the noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.answer_rows import Rows
from discreet.bounding.bound import bound, bound_all
from discreet.bounding.contributions import unit_bits
from discreet.engines.engine import Groups
from discreet.entropy import SeededForTestsOnly
from discreet.exact import Integers
from discreet.finish import finish
from discreet.offer import Offer
from discreet.plan.catalog import ContributionLimits
from discreet.plan.functions import make_call, make_literal
from discreet.plan.nodes import Aggregate, Order, Output, Question
from discreet.plan.statistics.definitions import Statistic
from discreet.price import PriceTerms, price
from discreet.privacy import Budget, Neighbours, Unit
from discreet.release import NoisyGroups, Plan, Release, draw
from tests.worlds import hospital
from tests.worlds.hospital import COUNT, ask, catalog, of

ADD = Neighbours.ADD_REMOVE


def priced(question: Question, **offer: Any) -> Release:
    terms = PriceTerms(budget=Budget(epsilon=1000), unit=Unit("patient"), neighbours=Neighbours.ADD_REMOVE)
    (release,) = price((bound(question, catalog()),), Offer(**offer), terms).releases
    return release


def in_parts(release: Release, position: int, *steps: int) -> Integers:
    """Steps of a measure in its own units."""
    return np.array([step * release.units(position) for step in steps])


def finished(question: Question, counts: dict[str, int], **offer: Any) -> Rows:
    """The rows for exact counts by ward, as if the noise had been zero."""
    release = priced(question, **(offer or {"epsilon": 1}))
    keys = tuple((ward,) for ward in counts)
    noisy = {position: in_parts(release, position, *counts.values()) for position in release.recoveries}
    return finish(Plan((release,)), [NoisyGroups(keys, noisy)], source=SeededForTestsOnly(1))


BY_WARD = ask(COUNT, keys=("ward",))
WARDS = {"A": 5, "B": 50, "C": 7}


def values(rows: Rows, column: int) -> list[object]:
    return [row[column].value for row in rows.rows]


def test_rows_keep_their_keys() -> None:
    """Without an order, groups stand as they were drawn."""
    rows = finished(BY_WARD, WARDS)
    assert rows.names == ("k0", "a0") and rows.measured == (False, True)
    assert values(rows, 0) == ["A", "B", "C"] and values(rows, 1) == [5, 50, 7]


def test_having_order_limit_and_offset_work_on_released_numbers() -> None:
    """All of them are post-processing."""
    count = BY_WARD.refer_to_aggregate(0)
    having = replace(BY_WARD, having=make_call("greater", count, make_literal(6)))
    assert values(finished(having, WARDS), 0) == ["B", "C"]
    ordered = replace(BY_WARD, order=(Order(count, descending=True),))
    assert values(finished(ordered, WARDS), 0) == ["B", "C", "A"]
    assert values(finished(replace(ordered, limit=1, offset=1), WARDS), 0) == ["C"]


def test_nulls_come_last_in_either_direction() -> None:
    """A group whose mean is unknown ends the list."""
    question = ask(of(Statistic.MEAN, "age"), keys=("ward",))
    for descending in (False, True):
        ordered = replace(question, order=(Order(question.refer_to_aggregate(0), descending=descending),))
        rows = finished(ordered, {"A": 5, "B": 0, "C": 7})
        assert values(rows, 0)[-1] == "B" and values(rows, 1)[-1] is None


def test_nulls_come_first_where_that_is_said() -> None:
    """The others keep their order."""
    question = ask(of(Statistic.MEAN, "age"), keys=("ward",))
    for descending in (False, True):
        order = Order(question.refer_to_aggregate(0), descending=descending, nulls_first=True)
        rows = finished(replace(question, order=(order,)), {"A": 5, "B": 0, "C": 7})
        plain = finished(replace(question, order=(replace(order, nulls_first=False),)), {"A": 5, "B": 0, "C": 7})
        assert values(rows, 0) == ["B", *values(plain, 0)[:-1]]


def test_intervals_of_counts_are_exact_and_symmetric() -> None:
    """The half-width is the noise's own bound at the level."""
    release = priced(BY_WARD, epsilon=1)
    cell = finished(BY_WARD, WARDS).rows[1][1]
    width = math.ceil(release.bound({0: Fraction(1)}))
    assert (cell.low, cell.high) == (50 - width, 50 + width)


def coverage(question: Question, truth: dict[int, int], target: float, column: int, seeds: int) -> float:
    """How often the interval of a column holds the value without noise."""
    release = priced(question, epsilon=2)
    bounded = release.bounded.bounded
    exact = (truth[p] << unit_bits(bounded, measure) for p, measure in enumerate(bounded.measures))
    groups = Groups(((),), tuple((total,) for total in exact))
    source = SeededForTestsOnly(5)
    held = 0
    for _ in range(seeds):
        cell = finish(Plan((release,)), [draw(release, groups, source=source)], source=source).rows[0][column]
        held += cell.low is None or cell.high is None or cell.low <= target <= cell.high  # type: ignore[operator]
    return held / seeds


def test_simulated_intervals_cover() -> None:
    """The 95 % interval of a mean, and of arithmetic on it, holds the true value about 95 % of the time."""
    question = ask(of(Statistic.MEAN, "age"))
    share = make_call("divide", question.refer_to_aggregate(0), make_literal(10))
    question = replace(question, outputs=(*question.outputs, Output("share", share)))
    truth = {0: 400, 1: -1200}  # 400 values, 3 years below 55 on average
    for column, target in ((0, 52.0), (1, 5.2)):
        found = coverage(question, truth, target, column, 300)
        assert 0.90 <= found <= 0.99


@pytest.mark.parametrize("size", [5, 10, 20, 1000])
@pytest.mark.parametrize("kind", [Statistic.MEAN, Statistic.VARIANCE])
def test_small_groups_have_intervals_that_cover(kind: Statistic, size: int) -> None:
    """Both ends are known whatever the noise; in small groups they reach to the bounds and cover more than 95 %."""
    release = priced(ask(of(kind, "age")), epsilon=2)
    ages = np.random.default_rng(size).integers(20, 100, size)
    truth = {"values": size, "steps": int((ages - 55).sum()), "squares": int(((ages - 55) ** 2).sum())}
    groups = Groups(((),), tuple((truth[str(m.counts)],) for m in release.bounded.bounded.measures))
    target = ages.mean() if kind is Statistic.MEAN else ages.var()
    source, held = SeededForTestsOnly(5), 0
    for _ in range(80):
        cell = finish(Plan((release,)), [draw(release, groups, source=source)], source=source).rows[0][0]
        assert isinstance(cell.low, float) and isinstance(cell.high, float)
        held += cell.low <= target <= cell.high
    assert held >= 80 * (0.90 if size >= 20 else 0.97)  # two standard errors below 95 % where it is exact


@pytest.mark.parametrize("size", [5, 400])
@pytest.mark.parametrize("kind", [Statistic.MEAN, Statistic.VARIANCE])
def test_intervals_of_many_groups_cover(kind: Statistic, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups are simulated together: their intervals hold as those of one group do, and are as wide."""
    release = priced(ask(of(kind, "age"), keys=("ward",)), epsilon=2)
    ages = np.random.default_rng(size).integers(20, 100, size)
    truth = {"values": size, "steps": int((ages - 55).sum()), "squares": int(((ages - 55) ** 2).sum())}
    source, count = SeededForTestsOnly(5), 400
    noise = release.draw_noise(count, source)
    exact = {at: truth[str(release.bounded.bounded.measures[at].counts)] * release.units(at) for at in noise}
    noisy = NoisyGroups(tuple((f"{i}",) for i in range(count)), {at: exact[at] + noise[at] for at in noise})
    target, widths = ages.mean() if kind is Statistic.MEAN else ages.var(), []
    for many in (1, 10**9):
        monkeypatch.setattr("discreet.noise_intervals._MANY_GROUPS", many)
        cells = [row[1] for row in finish(Plan((release,)), [noisy], source=source).rows]
        ends = np.array([(cell.low, cell.high) for cell in cells], dtype=np.float64)
        held = float(np.mean((ends[:, 0] <= target) & (target <= ends[:, 1])))
        assert held >= (0.92 if size >= 20 else 0.97)
        widths.append(float(np.mean(ends[:, 1] - ends[:, 0])))
    assert widths[0] == pytest.approx(widths[1], rel=0.03)


def test_noise_of_some_measures_has_the_law_of_all() -> None:
    """Of a count of rows beside a mean: the mean's two measures vary, alone and together, as they do with all."""
    release = priced(ask(COUNT, of(Statistic.MEAN, "age")), epsilon=2)
    recipe = release.bounded.estimates[1]
    wanted = sorted(position for position in (recipe.count, recipe.steps) if position is not None)
    all_noise = release.draw_noise(40_000, SeededForTestsOnly(1))
    noise = release.draw_noise(40_000, SeededForTestsOnly(2), wanted)
    assert sorted(noise) == wanted and set(all_noise) > set(noise)
    for weights in ((1, 0), (0, 1), (30, 1), (30, -1)):
        factors = dict(zip(wanted, map(Fraction, weights), strict=True))
        for drawn in (noise, all_noise):
            together = sum(release.to_steps(at, drawn[at]) * float(factor) for at, factor in factors.items())
            assert float(np.std(together)) == pytest.approx(release.deviation(factors), rel=0.05)


def test_intervals_of_joint_measures_cover() -> None:
    """A count and a sum that come out of the same noisy parts: each is within its bounds 95 % of the time."""
    question = ask(COUNT, of(Statistic.SUM, "age"))
    for column, target in ((0, 400), (1, 21_000)):
        found = coverage(question, {0: 400, 1: 21_000}, target, column, 1000)
        assert 0.925 <= found <= 0.975


def test_the_coverage_check_can_fail() -> None:
    """Negative control: intervals of noise that is far too small do not cover."""
    assert coverage(ask(of(Statistic.MEAN, "age")), {0: 400, 1: -1200}, 58.0, 0, 100) < 0.5


def test_a_level_beyond_simulation_is_not_claimed() -> None:
    """Higher levels give wider intervals, one that simulation cannot reach gives none; counts always have theirs."""
    question = ask(COUNT, of(Statistic.MEAN, "age"))
    widths = []
    for level in (0.9, 0.99, 0.999):
        release = priced(question, epsilon=2, level=level)
        noisy = {position: in_parts(release, position, 400) for position in release.recoveries}
        cell = finish(Plan((release,)), [NoisyGroups(((),), noisy)], source=SeededForTestsOnly(1)).rows[0][1]
        assert isinstance(cell.high, float) and isinstance(cell.low, float)
        widths.append(cell.high - cell.low)
    assert widths[0] < widths[1] < widths[2]
    release = priced(question, epsilon=2, level=1 - 1e-10)
    noisy = {position: in_parts(release, position, 400) for position in release.recoveries}
    count, mean = finish(Plan((release,)), [NoisyGroups(((),), noisy)]).rows[0]
    assert mean.value is not None and mean.low is None and mean.high is None
    assert count.low is not None


def test_groupings_stand_in_one_table() -> None:
    """Keys that a grouping does not group by are NULL, and ORDER BY and LIMIT see the rows of all groupings."""
    question = replace(ask(COUNT, keys=("ward", "sex")), sets=((0,), (1,), ()))
    terms = PriceTerms(budget=Budget(epsilon=9), unit=Unit("patient"), neighbours=ADD)
    plan = price(bound_all(question, catalog()), Offer(epsilon=1), terms)
    drawn = [
        NoisyGroups((("A",), ("B",), ("C",)), {0: in_parts(plan.releases[0], 0, 5, 50, 7)}),
        NoisyGroups((("f",), ("m",)), {0: in_parts(plan.releases[1], 0, 30, 31)}),
        NoisyGroups(((),), {0: np.array([61])}),
    ]
    rows = finish(plan, drawn, source=SeededForTestsOnly(1))
    seen = [tuple(cell.value for cell in row) for row in rows.rows]
    assert seen == [
        ("A", None, 5),
        ("B", None, 50),
        ("C", None, 7),
        (None, "f", 30),
        (None, "m", 31),
        (None, None, 61),
    ]
    first = replace(question, order=(Order(question.refer_to_aggregate(0), descending=True),), limit=2)
    plan = Plan(tuple(replace(r, bounded=replace(r.bounded, question=first)) for r in plan.releases))
    top = [tuple(cell.value for cell in row) for row in finish(plan, drawn).rows]
    assert top == [(None, None, 61), ("B", None, 50)]
    assert all(cell.low is not None for row in rows.rows for cell in row[2:])


def test_groupings_share_the_price() -> None:
    """Three groupings at a third each: together what was offered, each with three times the noise of one alone."""
    question = replace(ask(COUNT, keys=("ward",)), sets=((0,), ()))
    terms = PriceTerms(budget=Budget(epsilon=9), unit=Unit("patient"), neighbours=ADD)
    plan = price(bound_all(question, catalog()), Offer(epsilon=1), terms)
    assert plan.loss.epsilon() == 1.0
    alone = priced(ask(COUNT, keys=("ward",)), epsilon=Fraction(1, 2))
    assert plan.releases[0].noises == alone.noises
    assert plan.error(0) == max(r.error(r.bounded.estimates[0]) or 0 for r in plan.releases)


def test_chosen_cells_become_values() -> None:
    """A quantile is its cell on the grid, held to the bounds; a mode is its value; neither has an interval."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    question = ask(
        Aggregate(Statistic.QUANTILE, hospital.column("cost"), half),
        Aggregate(Statistic.QUANTILE, hospital.column("cost"), quarter),
        Aggregate(Statistic.MODE, hospital.column("ward")),
        Aggregate(Statistic.QUANTILE, hospital.column("age"), half),
    )
    release = priced(question, epsilon=4)
    assert len(release.choices) == 3 and release.loss.epsilon() == pytest.approx(4)
    drawn = NoisyGroups(((),), {}, {0: ((100, 402),), 1: ((2,),), 2: ((41,),)})
    rows = finish(Plan((release,)), [drawn])
    assert [cell.value for cell in rows.rows[0]] == [100.5, 25.0, "C", 41]
    assert rows.measured == (False,) * 4 and all(cell.low is None for cell in rows.rows[0])


def test_what_depends_on_a_choice_has_no_interval() -> None:
    """Arithmetic with a quantile in it claims nothing."""
    question = ask(COUNT, Aggregate(Statistic.QUANTILE, hospital.column("cost"), Fraction(1, 2)))
    mixed = replace(
        question,
        outputs=(Output("x", make_call("add", question.refer_to_aggregate(0), question.refer_to_aggregate(1))),),
    )
    rows = finish(Plan((priced(mixed, epsilon=4),)), [NoisyGroups(((),), {0: np.array([7])}, {0: ((8,),)})])
    (cell,) = rows.rows[0]
    assert cell.value == 9.0 and (cell.low, cell.high) == (None, None) and rows.measured == (False,)


def price_towns(*aggregates: Aggregate) -> Release:
    """Counts of units by private keys, in one group each."""
    limits = ContributionLimits(max_groups=1, max_rows_per_group=1)
    form = bound(ask(*aggregates, keys=("town",)), catalog(limits=limits))
    terms = PriceTerms(budget=Budget(epsilon=3, delta=1e-6), unit=Unit("patient"), neighbours=ADD)
    (release,) = price((form,), Offer(epsilon=1, delta=1e-8), terms).releases
    return release


def test_the_interval_of_a_count_that_named_its_key_holds_given_the_name() -> None:
    """Around the bar, in .93 of the named cases or more; plain noise would miss the small ones."""
    release = price_towns(COUNT)
    assert release.named_count is not None and release.counted == 0
    bar = release.named_count.bar
    source = SeededForTestsOnly(11)
    for count in (bar - 3, bar - 1, bar, bar + 4, bar + 40):
        towns = tuple((f"t{i}",) for i in range(2000))
        drawn = draw(release, Groups(towns, ((count,) * len(towns),)), source=source)
        rows = finish(Plan((release,)), [drawn], source=source).rows
        cells: list[Any] = [row[1] for row in rows]
        held = [cell.low <= count <= cell.high for cell in cells]
        assert sum(held) >= 0.93 * len(held) > 0
        assert all(isinstance(cell.low, int) and isinstance(cell.high, int) for cell in cells)


def test_arithmetic_on_a_count_that_named_its_key_has_its_interval() -> None:
    """Twice the count is simulated from the same law: just above the bar its interval reaches far down."""
    bare = ask(COUNT, keys=("town",))
    twice = make_call("add", bare.refer_to_aggregate(0), bare.refer_to_aggregate(0))
    release = price_towns(COUNT)
    question = replace(bare, outputs=(Output("k0", bare.refer_to_key(0)), Output("d", twice)))
    release = replace(release, bounded=replace(release.bounded, question=question))
    assert release.named_count is not None
    bar = release.named_count.bar
    noisy = NoisyGroups((("near",), ("far",)), {0: np.array([bar, 50 * bar])})
    near, far = (row[1] for row in finish(Plan((release,)), [noisy], source=SeededForTestsOnly(3)).rows)
    low, _ = release.named_count.find_ends(bar, release.level)
    assert isinstance(near.low, int) and near.low <= 2 * low + 2
    assert isinstance(far.low, int) and 100 * bar - far.low < bar
