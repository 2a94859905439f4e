"""Every lesson: decisive on plain statistics, within the bound on private answers; and the parts that make it so."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.attacks import (
    LESSONS,
    census,
    differencing,
    fiction,
    float_bits,
    linkage,
    sum_order,
    synthetic_rows,
    timing,
)
from discreet.attacks.outcome import Outcome
from discreet.mechanisms import Sum

# Smaller than what the command line runs, large enough to be sure: each assertion below fails by chance less than once
# in ten million runs (noise is drawn afresh every time).
SIZES: dict[str, dict[str, int]] = {
    "linkage": {"zips": 200},
    "differencing": {"towns": 600},
    "averaging": {"towns": 150},
    "reconstruction": {"people": 48, "questions": 240, "towns": 4, "programs": 4},
    "census": {"blocks": 150},
    "membership": {"members": 40, "places": 3000},
    "synthetic-rows": {"towns": 300},
    "sparse-ratings": {"subscribers": 600, "targets": 120},
    "float-bits": {"people": 1000},
    "sum-order": {"attempts": 2000},
    "timing": {"attempts": 2000},
    "error-oracle": {"people": 16},
    "long-text": {"people": 4},
    "fan-out": {"people": 4},
    "second-draw": {},
    "bad-bytes": {"files": 6},
    "open-quote": {"files": 6},
    "second-budget": {},
    "first-row": {},
    "unsaved-report": {"people": 120},
    "left-copy": {"people": 8},
    "poisoning": {"surveys": 3},
    "collusion": {"towns": 150},
}
# Poisoning is the exception: it asks how far estimates move, and privacy does not help.
GUESSING = sorted(set(LESSONS) - {"poisoning"})


def module(name: str) -> ModuleType:
    return import_module(f"discreet.attacks.{name.replace('-', '_')}")


@cache
def outcome(name: str) -> Outcome:
    """The lesson in its small size, run once for all tests."""
    result: Outcome = module(name).run(**SIZES[name])
    return result


def bar(name: str, label: str) -> float:
    """The rate of the bar whose label has these words."""
    (found,) = [one.rate.value for one in outcome(name).bars if label in one.label]
    return found


def test_every_lesson_is_tested() -> None:
    """No lesson is listed without a size here, and each has a module that tells what it teaches."""
    assert set(SIZES) == set(LESSONS)
    assert all((module(name).__doc__ or "").strip() for name in LESSONS)


@pytest.mark.parametrize("name", GUESSING)
def test_plain_statistics_give_people_away(name: str) -> None:
    """Without privacy the attack is right in at least 95 of 100 cases."""
    assert outcome(name).raw.value >= 0.95


@pytest.mark.parametrize("name", GUESSING)
def test_private_answers_keep_within_the_bound(name: str) -> None:
    """With privacy it is right no more often than e^ε/(1 + e^ε), plus three standard errors."""
    result = outcome(name)
    assert result.bound == pytest.approx(math.e / (1 + math.e))
    assert result.private.value <= result.bound + 3 * math.sqrt(result.bound * (1 - result.bound) / result.private.n)
    assert result.holds
    assert result.epsilon == 1


@pytest.mark.parametrize("name", sorted(LESSONS))
def test_outcomes_say_what_they_are(name: str) -> None:
    """The name is the one it was asked by, the first bars are on the page, and nothing is wider than a terminal."""
    result = outcome(name)
    assert result.name == name
    assert {result.raw, result.private} <= {one.rate for one in result.bars}
    assert all(len(line) <= 80 for line in result.picture())
    assert result.lesson in result.text()


# ---- negative controls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lesson", "size"),
    [
        (differencing, {"towns": 300}),
        (linkage, {"zips": 60}),
        (sum_order, {"attempts": 300}),
        (timing, {"attempts": 300}),
        (census, {"blocks": 250}),
        (synthetic_rows, {"towns": 60}),
    ],
    ids=["differencing", "linkage", "sum-order", "timing", "census", "synthetic-rows"],
)
def test_too_little_noise_is_noticed(lesson: Any, size: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """If answers cost five hundred times what is claimed, the attack succeeds and the outcome does not hold."""
    monkeypatch.setattr(lesson, "EPSILON", 500)
    assert not lesson.run(**size).holds


# ---- one by one -------------------------------------------------------------------------------------------------


def test_linkage_shows_no_rows() -> None:
    """There are no rows to join: asking for them is refused."""
    assert outcome("linkage").facts["SELECT * FROM people"] == "refused"


def test_hiding_small_counts_does_not_help() -> None:
    """Differencing works on counts that are all large."""
    assert bar("differencing", "small counts hidden") == 1.0


def test_averaging_is_stopped_by_the_ledger() -> None:
    """Other spellings are replayed, other questions are charged, and after ten of them everything is refused."""
    facts = outcome("averaging").facts
    assert facts == {"answered and charged": 10, "given again, free": 7, "refused": 15}
    assert bar("averaging", "asked once") < 0.8 < bar("averaging", "asked 10,000 times")


def test_colluders_share_one_budget() -> None:
    """Ten analysts are answered at a tenth each; with a budget for each of them all would be."""
    facts = outcome("collusion").facts
    assert facts == {"analysts who got an answer": "10 of 50", "without a shared budget": 50}


@pytest.mark.parametrize("how", ["exact, least squares", "fives, least squares", "fives, linear program"])
def test_rounding_does_not_stop_reconstruction(how: str) -> None:
    """Both solvers get the table back, also from rounded counts."""
    assert bar("reconstruction", how) >= 0.95


def test_neither_solver_beats_the_bound() -> None:
    """The linear program on private answers is as blind as least squares."""
    rate, n = bar("reconstruction", "discreet, linear program"), 4 * 48
    assert rate <= outcome("reconstruction").bound + 3 * math.sqrt(0.2 / n)


def test_most_blocks_have_one_solution() -> None:
    """Tables of means, medians and spreads are nearly as good as the list of residents."""
    assert bar("census", "one solution") >= 0.95


def test_rounded_frequencies_are_as_good() -> None:
    """Two digits are enough to tell participants from strangers."""
    assert bar("membership", "rounded") >= 0.95


def test_bits_say_more_than_sizes() -> None:
    """By size the naive noise is as good as any; it is the last bits that betray."""
    assert bar("float-bits", "sizes only") < 0.7 < bar("float-bits", "naive floats, all bits")


def test_noise_takes_the_same_work_whatever_its_size() -> None:
    """discreet draws as many words for one answer as for another; the slow sampler does not.

    Words are counted. What a real clock adds is shown by the lesson, but depends on the load of the machine.
    """
    slow, ours = outcome("timing").facts["words that an answer takes"].split(", ")
    assert "to" in slow
    assert ours == "1 discreet"
    assert bar("timing", "slow sampler, with its work") > bar("timing", "slow sampler, answers only") + 0.1


def test_no_trap_makes_an_error() -> None:
    """The plain engine fails for each person who is there; the curator for nobody."""
    facts = outcome("error-oracle").facts
    assert facts == {"questions": 16, "errors of the engine": 8, "errors of discreet": 0}


def test_what_could_be_too_much_is_refused_for_everybody() -> None:
    """The plain engine fails for the old half; the curator refuses all questions, before any data is read."""
    refused = {"questions": 4, "out of memory": 2, "refused by discreet": 4}
    assert outcome("long-text").facts == refused
    assert outcome("fan-out").facts.items() >= refused.items()


def test_all_pairs_of_a_persons_rows_are_cut_for_everybody() -> None:
    """20 rows joined with themselves: the plain engine fails for the old half, the curator answers all questions."""
    facts = outcome("fan-out").facts
    assert facts["own rows, out of memory"] == 2 and facts["own rows, failures of discreet"] == 0
    assert bar("fan-out", "plain engine, own rows") == 1 and bar("fan-out", "discreet, own rows") == 0.5


def test_retries_look_at_one_draw() -> None:
    assert outcome("second-draw").facts == {"looks at fresh noise": 121, "different looks here": 1, "charges": 1}


def test_one_line_and_one_value_stay_alone() -> None:
    """The plain engine fails on half of the files, or counts nothing; the curator answers all of them alike."""
    assert outcome("bad-bytes").facts == {"files": 6, "failures of the engine": 3, "failures of discreet": 0}
    facts = outcome("open-quote").facts
    assert facts["smallest naive count"] < 100 and facts["smallest count here"] > 1900


def test_no_other_name_has_a_budget() -> None:
    """A link spends the other half of the one budget; copies, second names and a deleted ledger are refused."""
    assert outcome("second-budget").facts == {"budgets by name": 60, "answers of discreet": 2, "names refused": 3}


def test_first_lines_that_are_rows_are_refused() -> None:
    assert outcome("first-row").facts == {"files": 20, "refused by discreet": 20}


def test_a_budget_buys_two_reports() -> None:
    """After a failed save, from two programs, for four tasks."""
    assert outcome("unsaved-report").facts == {"reports of a forgetful client": 121, "most reports here": 2}


def test_copies_are_private_and_go_with_their_process() -> None:
    assert outcome("left-copy").facts == {
        "answered after a fork": "False with a plain copy, True with discreet",
        "files left at the next opening": "1 plain, 0 of discreet",
    }


def test_poisoning_is_worse_under_privacy() -> None:
    """Fakes move the private survey further, less at a larger ε, never beyond the bound; and the alarm tells."""
    result = outcome("poisoning")
    assert result.raw.value == pytest.approx(0.05, abs=0.001)
    assert result.raw.value < bar("poisoning", "ε = 4") < result.private.value <= result.bound
    assert result.holds
    assert result.bound == pytest.approx(0.05 * (math.e + 15) / (math.e - 1), rel=1e-4)
    assert bar("poisoning", "alarm without fakes") == 0.0
    assert bar("poisoning", "alarm with fakes") == 1.0


# ---- fiction ----------------------------------------------------------------------------------------------------


def test_fictional_data_are_the_same_everywhere() -> None:
    """Numbers follow from words alone."""
    assert fiction.make_numbers("anybody", 3, 1000).tolist() == fiction.make_numbers("anybody", 5, 1000)[:3].tolist()
    assert fiction.make_numbers("anybody", 4, 1000).tolist() == [424, 666, 8, 458]


def test_secrets_are_balanced() -> None:
    """Half of the coins are heads, so that neither blind answer is better than the other."""
    assert fiction.make_coins("x", 1001).sum() == 500
    assert fiction.make_coins("x", 10).tolist() != fiction.make_coins("y", 10).tolist()


def test_register_adds_up() -> None:
    """The table has the others and the mayors who are listed, town by town."""
    register = fiction.Register.of(50)
    table = register.to_frame()
    assert np.bincount(table["town"].to_numpy(), minlength=50).tolist() == register.counts.tolist()
    mayors = set(table.filter(table["mayor"])["town"].to_pylist())
    assert mayors == set(np.flatnonzero(register.listed).tolist())
    assert register.listed.sum() == 25


# ---- census: the solver -----------------------------------------------------------------------------------------

people = st.builds(census.Resident, age=st.integers(0, census.OLDEST), woman=st.booleans(), works=st.booleans())


@settings(deadline=None, max_examples=60)
@given(block=st.lists(people, max_size=5).map(tuple))
def test_every_solution_fits_and_the_truth_is_one(block: census.CensusBlock) -> None:
    """The solver finds the true block, each solution has the published tables, and none is found twice."""
    tables = census.Tables.of(block)
    found = census.find_solutions(tables)
    assert tuple(sorted(block)) in found
    assert all(census.Tables.of(one) == tables for one in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_solver_agrees_with_trying_everything(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow oracle: with few ages, all blocks can be tried."""
    monkeypatch.setattr(census, "OLDEST", 5)
    everybody = [census.Resident(*who) for who in itertools.product(range(6), (False, True), (False, True))]
    by_tables: dict[census.Tables, set[census.CensusBlock]] = {}
    for block in itertools.combinations_with_replacement(everybody, size):
        by_tables.setdefault(census.Tables.of(block), set()).add(tuple(sorted(block)))
    assert all(set(census.find_solutions(tables)) == blocks for tables, blocks in by_tables.items())


@settings(deadline=None, max_examples=40)
@given(size=st.integers(0, 4), total=st.integers(0, 40), squares=st.integers(0, 160), least=st.integers(0, 4))
def test_ages_are_found_from_their_sums(size: int, total: int, squares: int, least: int) -> None:
    """Slow oracle: of all ages from ``least`` to 12, exactly those with this sum and this sum of squares."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(census, "OLDEST", 12)
        found = list(census._list_ages(size, total, squares, least))
    tried = itertools.combinations_with_replacement(range(least, 13), size)
    assert sorted(found) == [ages for ages in tried if (sum(ages), sum(age * age for age in ages)) == (total, squares)]


def test_the_median_of_everyone_tells_women_apart() -> None:
    """Two sets of women with the same tables of their own: a man beside them and the table of everyone decide."""
    women, others = (0, 3, 4, 7), (1, 1, 6, 6)
    assert census.Summary.of(women) == census.Summary.of(others)
    blocks = [
        tuple(sorted(census.Resident(age, sex, False) for age, sex in [*((a, True) for a in ages), (0, False)]))
        for ages in (women, others)
    ]
    assert [census.find_solutions(census.Tables.of(block)) for block in blocks] == [[block] for block in blocks]


@given(ages=st.lists(st.integers(0, 89), min_size=1, max_size=9))
def test_summaries_are_the_usual_statistics(ages: list[int]) -> None:
    """The whole numbers in a table are those behind mean, deviation and median."""
    summary = census.Summary.of(ages)
    assert summary.middle == 2 * statistics.median(ages)
    assert summary.ages / summary.people == pytest.approx(statistics.fmean(ages))
    spread = summary.squares / summary.people - (summary.ages / summary.people) ** 2
    assert spread == pytest.approx(statistics.pvariance(ages), abs=1e-9)


# ---- float bits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0.0, 1.0])
def test_what_happened_is_possible(count: float) -> None:
    """No output of naive noise is called impossible for the count it came from; many are for the other one."""
    outputs = count + float_bits.draw_naive_laplace(float_bits.SCALE, (20_000,))
    assert float_bits.is_possible(outputs, count).all()
    assert 0.2 < float_bits.is_possible(outputs, 1.0 - count).mean() < 0.6


def test_naive_noise_has_the_right_shape() -> None:
    """The naive sampler is naive in its bits only: half of its noise is smaller than scale·ln 2."""
    noise = float_bits.draw_naive_laplace(3.0, (100_000,))
    assert (np.abs(noise) < 3 * math.log(2)).mean() == pytest.approx(0.5, abs=0.01)
    assert (noise > 0).mean() == pytest.approx(0.5, abs=0.01)


# ---- sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crossings", [1, 2, 3, 4])
def test_each_crossing_doubles_what_a_row_does(crossings: int) -> None:
    """Rows are within their bound, and one more in front moves the float sum by 2^crossings bounds."""
    rows = sum_order.craft_rows(crossings)
    assert rows.dtype == np.float32
    assert rows.min() >= 0
    assert rows.max() <= sum_order.BOUND
    target = np.array([sum_order.BOUND], dtype=np.float32)
    moved = sum_order.naive_sum(np.concatenate([target, rows])) - sum_order.naive_sum(rows)
    assert moved == 2**crossings * sum_order.BOUND


def test_exact_sums_have_no_order() -> None:
    """The same rows in any order have the same exact sum, and one row moves it by its own value."""
    rows = sum_order.craft_rows(2)
    exact = Sum(bounds=(0, sum_order.BOUND), resolution=sum_order.FINE, epsilon=1)
    (total,), (back,), (more,) = (
        exact.answers(values) for values in (rows, rows[::-1], np.append(rows, np.float32(sum_order.BOUND)))
    )
    assert total == back
    assert (more - total) * sum_order.FINE == sum_order.BOUND


# ---- timing -----------------------------------------------------------------------------------------------------


def test_slow_sampler_draws_the_right_law() -> None:
    """The slow sampler is right in everything but its time: P(0) and the mean size are those of the law."""
    draw: Callable[..., int] = timing._add_slow_noise
    noise = np.array([draw(0, timing.Meter()) for _ in range(4000)])
    q = math.exp(-1 / timing.MOVE)
    assert np.abs(noise).mean() == pytest.approx(2 * q / (1 - q * q), rel=0.12)
    assert (noise == 0).mean() == pytest.approx((1 - q) / (1 + q), abs=0.01)


def test_meter_counts_every_word() -> None:
    """Single words, arrays and bits are all counted."""
    meter = timing.Meter()
    meter.word()
    meter.words(5)
    meter.bits(65)
    assert meter.drawn == 8
