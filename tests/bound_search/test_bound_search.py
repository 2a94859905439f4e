"""Automatic bounds: the rule, the questions it rests on, what they cost, and what one person cannot do to them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import bound_search as search
from discreet.accounting.account import compose
from discreet.bound_search import missing_bounds
from discreet.bound_search.bound_rule import DOUBTS, NEAR, read_bounds, threshold
from discreet.bound_search.column_bounds import format_number, make_values_question
from discreet.bounding.bound import bound
from discreet.bounding.contributions import unit_bits
from discreet.curator import Curator
from discreet.engines.engine import Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.entropy import SeededForTestsOnly
from discreet.errors import BudgetExceeded, ParameterError, Unbounded, UsageError
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.memory import MemoryLedger
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.offer import Offer
from discreet.plan.catalog import ContributionLimits
from discreet.plan.expressions import Call, Expression
from discreet.plan.magnitude import BUCKETS, IntOrFloat
from discreet.plan.nodes import Aggregate, Question
from discreet.plan.relations import Scan
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type
from discreet.release import draw

PURE, APPROXIMATE, RHO = (
    discreet.Budget(epsilon=100),
    discreet.Budget(epsilon=100, delta=1e-6),
    discreet.Budget(rho=500),
)
OFFERS: list[tuple[discreet.Budget, dict[str, Any]]] = [
    (PURE, {"epsilon": 4}),
    (APPROXIMATE, {"epsilon": 8}),
    (RHO, {"rho": 8}),
]
NOISES: list[Any] = [
    Laplace(sensitivity=1, epsilon=Fraction(1, 2)),
    RoundedGaussian(squared_sensitivity=1, rho=Fraction(1, 10)),
]


def visits(costs: Sequence[float | None], *, per_patient: int = 4) -> pa.Table:
    """Visits with these costs, so many to a patient, and their half as a whole number."""
    return pa.table(
        {
            "patient": pa.array([i // per_patient for i in range(len(costs))], pa.int64()),
            "ward": pa.array(["ABC"[i % 3] for i in range(len(costs))], pa.string()),
            "cost": pa.array(costs, pa.float64()),
            "days": pa.array([None if c is None or not abs(c) < 1e15 else int(c / 2) for c in costs], pa.int64()),
            "age": pa.array([i % 90 for i in range(len(costs))], pa.int64()),
        }
    )


def curator(table: pa.Table, budget: discreet.Budget = PURE, **changes: Any) -> Curator:
    said: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 6,
        "bounds": {"age": (0, 110)},
        "keys": {"ward": ["A", "B", "C"]},
        "budget": budget,
    }
    return discreet.curate({"visits": table}, **(said | changes))


rng = random.Random(5)  # noqa: S311  # data need a seed, not a secret
TYPICAL = visits([math.exp(rng.uniform(math.log(2.1), math.log(60))) for _ in range(8000)])


# The rule


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("buckets", [1, 2, 17, 128, 193])
@pytest.mark.parametrize("doubt", [DOUBTS[0], DOUBTS[-1]])
def test_the_threshold_is_what_noise_alone_seldom_exceeds(noise: Any, buckets: int, doubt: Fraction) -> None:
    """By the exact law: some empty bucket is seen with at most the doubt, and the threshold is not much too high."""
    above = threshold(noise, buckets, doubt)

    def fooled(t: int) -> float:
        one = float(noise.law.tail(t + 1).high) / 2
        return -math.expm1(buckets * math.log1p(-one))

    assert fooled(above) <= float(doubt) * (1 + 1e-9)
    assert fooled(int(above * 0.9) - 1) > float(doubt)


def test_a_bucket_at_the_threshold_is_not_seen_and_one_above_is() -> None:
    """The comparison is strict, and what is seen only with more doubt is read with the least that shows it."""
    noise = NOISES[0]
    assert DOUBTS[0] == Fraction(1, 10**9) and DOUBTS[-1] == Fraction(1, 100)
    counts: dict[IntOrFloat, int] = dict.fromkeys(BUCKETS[Type.INTEGER], 0)
    for stricter, looser in itertools.pairwise(DOUBTS):
        at = threshold(noise, len(counts), stricter)
        assert at > threshold(noise, len(counts), looser)
        found = read_bounds({**counts, 64: at}, noise)
        assert found is not None and found.doubt == looser and found.low == 64 and 128 <= found.high <= 192
        found = read_bounds({**counts, 64: at + 1}, noise)
        assert found is not None and found.doubt == stricter and found.above == at
    assert read_bounds({**counts, 64: threshold(noise, len(counts), DOUBTS[-1])}, noise) is None
    assert read_bounds(counts, noise) is None
    assert read_bounds({}, noise) is None


@pytest.mark.parametrize(
    ("seen", "low", "high"),
    [
        ([64], 64, 128),
        ([32, 64], 32, 128),
        ([16, 64], 0, 128),  # an eighth of the far end is near zero
        ([16, 32], 16, 64),
        ([0], 0, 1),
        ([0, 1], 0, 2),
        ([-64], -128, -64),
        ([-64, -8], -128, 0),
        ([-4, 8], -8, 16),
        ([2**62], 2**62, 2**63 - 1),
        ([-(2**63)], -(2**63), -(2**63)),
        ([0.25, 0.5], 0.25, 1.0),
        ([-0.25, 2.0**63], -0.5, 2.0**64),
        ([0.0], 0.0, 1.0),
    ],
)
def test_bounds_enclose_what_is_seen(seen: list[IntOrFloat], low: IntOrFloat, high: IntOrFloat) -> None:
    """The outer ends of the buckets, zero where it is near, and never an empty range."""
    kind = Type.REAL if isinstance(seen[0], float) else Type.INTEGER
    counts: dict[IntOrFloat, int] = {bucket: 10_000 * (bucket in seen) for bucket in BUCKETS[kind]}
    found = read_bounds(counts, NOISES[0])
    assert found is not None
    wanted = (low, high) if low < high else (low, low + 1)
    assert (found.low, found.high) == wanted
    assert type(found.low) is type(found.high) is (float if kind is Type.REAL else int)


@given(st.dictionaries(st.sampled_from(BUCKETS[Type.REAL]), st.integers(-100, 400), min_size=1))
def test_the_reading_is_a_function_of_released_numbers(counts: dict[IntOrFloat, int]) -> None:
    """Same noisy counts, same bounds, in whatever order they come; everything clearly above noise lies inside."""
    noise = NOISES[1]
    found = read_bounds(counts, noise)
    assert found == read_bounds(dict(reversed(counts.items())), noise) == read_bounds(dict(counts), noise)
    sure = [bucket for bucket, count in counts.items() if count > threshold(noise, len(counts), DOUBTS[0])]
    if sure:
        assert found is not None and found.doubt == DOUBTS[0]
        assert all(found.low <= bucket <= found.high for bucket in sure)


def test_zero_near_an_end_costs_little() -> None:
    """Reaching down to zero leaves the larger end, and widens a range by a seventh at most."""
    for low in (2**k for k in range(12)):
        counts: dict[IntOrFloat, int] = dict.fromkeys(BUCKETS[Type.INTEGER], 0) | {low: 10**6, 2048: 10**6}
        found = read_bounds(counts, NOISES[0])
        assert found is not None and found.high == 4096
        assert found.high - found.low <= (4096 - low) * NEAR / (NEAR - 1)


# Columns


@pytest.mark.parametrize(("budget", "offer"), OFFERS, ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("changes", [{}, {"neighbours": "replace"}, {"unit": None, "max_rows": None}], ids=str)
def test_known_data_give_known_bounds(budget: discreet.Budget, offer: dict[str, Any], changes: dict[str, Any]) -> None:
    """Costs from 2.1 to 60 are found between 0 and 64 or a little more, and their halves between 0 and 32 or more."""
    holder = curator(TYPICAL, budget, **changes)
    cost = search.buy_bounds(holder, "visits", "cost", **offer)
    assert cost.low == 0.0 and cost.high in (64.0, 96.0, 128.0, 192.0, 256.0) and cost.found
    assert cost.suggestion == f"bounds = [0, {cost.high:.0f}]"
    days = search.buy_bounds(holder, "Visits", "DAYS", **offer)
    assert days.low == 0 and days.high in (32, 48, 64, 96, 128) and isinstance(days.high, int)
    assert days.of == "visits.days" and f"between 0 and {days.high}" in days.words
    assert f"for the codebook: bounds = [0, {days.high}]" in str(days)


def test_the_price_is_the_ledgers_charge_and_asking_again_is_free() -> None:
    """What the preview says is what is charged, once; the second time the same bounds come from the record."""
    for budget, offer in OFFERS:
        holder = curator(TYPICAL, budget)
        before = search.preview_bounds(holder, "visits", "cost", **offer)
        assert holder.history() == () or not list(holder.history())
        first = search.buy_bounds(holder, "visits", "cost", **offer)
        again = search.buy_bounds(holder, "visits", "cost", **offer)
        (entry,) = holder.history()
        assert entry.charge.events == before.preview.plan.events
        assert entry.charge.loss == before.preview.loss == first.answer.spent
        assert again.answer.replayed and (again.low, again.high, again.above) == (first.low, first.high, first.above)
        assert first.above == before.above
        assert before.preview.cost in str(before) and "nothing was charged" in str(before)


def drawn(holder: Curator, column: str, groups: Groups, seed: int, **offer: Any) -> search.NoisyRange | None:
    """The reading of exact groups with seeded noise, by the same steps as ``bounds``."""
    question = search.make_column_question("visits", column, holder.catalog)
    (release,) = holder.preview(question, **offer).plan.releases
    noisy = draw(release, groups, source=SeededForTestsOnly(seed))
    (measure,) = noisy.measures.values()
    counts = {key[0]: int(n) for key, n in zip(noisy.keys, measure) if key[0] is not None}
    (noise,) = release.noises.values()
    return read_bounds(counts, noise)  # type: ignore[arg-type]  # buckets of a number


@pytest.mark.parametrize(("budget", "offer"), OFFERS, ids=["pure", "approximate", "zcdp"])
def test_nothing_is_found_in_no_data(budget: discreet.Budget, offer: dict[str, Any]) -> None:
    """Of 100 empty tables about one shows something; with these seeds, no more than five."""
    holder = curator(TYPICAL, budget)
    found = [drawn(holder, "cost", Groups((), ((),)), seed, **offer) for seed in range(100)]
    assert sum(reading is not None for reading in found) <= 5
    assert all(reading is None or reading.doubt > DOUBTS[0] for reading in found)


def test_too_little_for_the_price_is_told_with_advice() -> None:
    """Where nothing is seen there are no bounds, no suggestion, and a sentence that says what to do."""
    holder = curator(visits([5.0] * 4), PURE)
    found = search.buy_bounds(holder, "visits", "cost", epsilon=Fraction(1, 1000))
    if found.found:  # one time in a hundred
        return
    assert found.low is None and found.high is None and found.suggestion is None
    assert "Offer more" in found.words and found.rows.rows == ()
    assert found.to_dict()["codebook"] is None and found.doubt == DOUBTS[-1]


NASTY: list[list[float | None]] = [
    [],
    [None] * 50,
    [math.nan, math.inf, -math.inf, None] * 50,
    [0.0, -0.0] * 50,
    [5e-324, -5e-324, 1e-300] * 50,
    [1.7976931348623157e308, -1.7976931348623157e308] * 50,
]


@pytest.mark.parametrize("costs", NASTY, ids=str)
@pytest.mark.parametrize("column", ["cost", "days"])
def test_no_data_raise_an_error(costs: list[float | None], column: str) -> None:
    """Whatever the data hold, there is an answer, and it has a row for every power of two."""
    found = search.buy_bounds(curator(visits(costs), PURE), "visits", column, epsilon=20)
    kind = Type.REAL if column == "cost" else Type.INTEGER
    assert [row[0].value for row in found.answer.rows.rows] == list(BUCKETS[kind])


def exact(table: pa.Table, **changes: Any) -> dict[Any, Fraction]:
    """The exact counts that the question for bounds of the cost measures, in both engines."""
    holder = curator(table, **changes)
    bounded = bound(search.make_column_question("visits", "cost", holder.catalog), holder.catalog).bounded
    both = []
    for engine in (holder._engine, MemoryEngine({"visits": table}, holder.catalog)):
        groups = engine.run(bounded, salt=b"0123456789abcdef")
        parts = 1 << unit_bits(bounded, bounded.measures[0])
        both.append({key[0]: Fraction(n, parts) for key, n in zip(groups.keys, groups.values[0]) if n})
    assert sum(both[0].values()) == sum(both[1].values())
    return both[0]


def test_one_person_counts_once_whatever_they_bring() -> None:
    """The threshold attack: a person with fifty rows of one huge value, or of every size, adds one in all.

    One unit more, and the chance that its bucket is seen is at most e^ε times the doubt, by the exact law.
    """
    plain_counts = exact(visits([3.0] * 400))
    huge = exact(visits([3.0] * 400 + [1e12] * 4))
    assert plain_counts == {2.0: 100} and huge == {2.0: 100, 2.0**39: 1}
    loud = exact(
        pa.concat_tables(
            [
                visits([3.0] * 400),
                visits([2.0**k for k in range(60)], per_patient=1000).set_column(
                    0, "patient", pa.array([999] * 60, pa.int64())
                ),
            ]
        )
    )
    assert 100.99 < sum(loud.values()) <= 101 and loud[2.0**39] == pytest.approx(1 / 60, rel=1e-3)
    noise = NOISES[0]
    above = threshold(noise, len(BUCKETS[Type.REAL]), DOUBTS[0])
    seen = float(noise.law.tail(above).high) / 2
    assert seen <= math.exp(0.5) * float(DOUBTS[0])


def test_a_value_counts_whatever_is_missing_beside_it() -> None:
    """A patient with one cost and three visits without one counts for the cost."""
    assert exact(visits([3.0, None, math.nan, None] * 100)) == {2.0: 100}


def test_the_codebooks_limits_do_not_matter() -> None:
    """Every unit counts once, so the noise is that of one unit in one group, whatever limits are declared."""
    narrow, wide = (curator(TYPICAL, RHO, max_rows=rows) for rows in (1, 1000))
    one, two = (search.preview_bounds(holder, "visits", "cost", rho=Fraction(1, 10)) for holder in (narrow, wide))
    assert one.above == two.above and one.preview.plan.events == two.preview.plan.events


def test_what_has_no_bounds_to_find_is_refused_for_free() -> None:
    """Texts, unknown columns, unknown tables and missing offers: nothing is charged."""
    holder = curator(TYPICAL)
    with pytest.raises(UsageError, match=r"not a number.*Nothing was charged"):
        search.buy_bounds(holder, "visits", "ward", epsilon=1)
    with pytest.raises(UsageError, match=r"Did you mean 'cost'.*Nothing was charged"):
        search.buy_bounds(holder, "visits", "cst", epsilon=1)
    with pytest.raises(UsageError, match="Nothing was charged"):
        search.buy_bounds(holder, "visitors", "cost", epsilon=1)
    with pytest.raises(ParameterError):
        search.buy_bounds(holder, "visits", "cost")
    with pytest.raises(BudgetExceeded):
        search.buy_bounds(holder, "visits", "cost", epsilon=101)
    assert not list(holder.history())


@settings(max_examples=50)
@given(st.sampled_from([*BUCKETS[Type.REAL], *BUCKETS[Type.INTEGER]]))
def test_numbers_are_written_so_that_they_are_read_back(number: IntOrFloat) -> None:
    """The line for the codebook holds the very number."""
    assert float(format_number(number)) == float(number)


# Questions whose bounds are missing


def read(holder: Curator, words: str) -> Question:
    from discreet.frontends import read_sql

    return read_sql.read(words, holder.catalog)


def names(found: tuple[Expression, ...]) -> list[str]:
    return [str(expression) for expression in found]


def test_what_lacks_bounds_is_found_once() -> None:
    """Sums, means and the like of unbounded numbers; not counts, not what the codebook or a clamp bounds."""
    holder = curator(TYPICAL)
    words = (
        "SELECT ward, SUM(cost) AS a, AVG(cost) AS b, SUM(days) AS c, COUNT(cost) AS d, AVG(age) AS e, COUNT(*) AS f "
    )
    question = read(holder, f"{words} FROM visits GROUP BY ward")
    assert names(search.find_unbounded(question, holder.catalog)) == ["cost", "days"]
    assert search.find_unbounded(read(holder, "SELECT SUM(clamp(cost, 0, 9)) AS s FROM visits"), holder.catalog) == ()
    computed = read(holder, "SELECT SUM(cost * days) AS s FROM visits")
    assert names(search.find_unbounded(computed, holder.catalog)) == ["multiply(cost, days)"]
    cost = holder.catalog.find_table("visits").find_column("cost")
    set_by_analyst = Aggregate(Statistic.SUM, cost, bounds=(Fraction(0), Fraction(9)))
    quantile = Aggregate(Statistic.QUANTILE, cost, Fraction(1, 2))
    assert search.find_unbounded(Question(source=Scan("visits"), aggregates=(set_by_analyst,)), holder.catalog) == ()
    assert search.find_unbounded(Question(source=Scan("visits"), aggregates=(quantile,)), holder.catalog) == (cost,)


def test_bounds_change_what_is_measured_and_nothing_else() -> None:
    """Each unbounded argument is clamped where it is summed; counts, types, outputs and filters stay."""
    holder = curator(TYPICAL)
    words = "SELECT ward, SUM(cost) AS a, COUNT(cost) AS d, SUM(days) AS c FROM visits WHERE cost > 3 GROUP BY ward"
    question = read(holder, words)
    cost, days = search.find_unbounded(question, holder.catalog)
    held = search.add_bounds(question, {cost: (0, 64), days: (-2, 32)})
    assert [str(aggregate) for aggregate in held.aggregates] == [
        "sum(clamp(cost, 0.0, 64.0))", "count(cost)", "sum(clamp(days, -2, 32))",
    ]  # fmt: skip
    assert [a.type for a in held.aggregates] == [a.type for a in question.aggregates]
    assert (held.source, held.keys, held.outputs) == (question.source, question.keys, question.outputs)
    assert search.find_unbounded(held, holder.catalog) == ()
    bound(held, holder.catalog)
    assert isinstance(held.aggregates[2].argument, Call) and held.aggregates[2].argument.type is Type.INTEGER


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE, RHO, discreet.Budget(mu=9)], ids=str)
def test_a_share_of_the_budget_buys_bounds_too(budget: discreet.Budget) -> None:
    """Both steps for a share of the budget, whatever it is counted in."""
    holder = curator(TYPICAL, budget)
    answer = holder.ask("SELECT SUM(cost) AS s FROM visits", share=Fraction(1, 4), bounds="auto")
    assert answer.table.num_rows == 1 and len(list(holder.history())) == 2


@pytest.mark.parametrize(("budget", "offer"), OFFERS, ids=["pure", "approximate", "zcdp"])
def test_both_steps_cost_the_offer_together(budget: discreet.Budget, offer: dict[str, Any]) -> None:
    """One entry for each search and one for the question; their losses add up to what was offered, not more."""
    holder = curator(TYPICAL, budget)
    question = read(holder, "SELECT SUM(cost) AS s, SUM(days) AS d, COUNT(*) AS n FROM visits")
    request = Offer(**offer)
    before = missing_bounds.preview(holder, question, request)
    assert isinstance(before, search.AutomaticPreview) and before.fits and before.open == ("s", "d")
    assert not list(holder.history())
    answer = missing_bounds.ask(holder, question, request)
    entries = list(holder.history())
    kind = "pure" if budget is PURE else "zcdp"
    told = [step.preview.loss for step in before.searches] + [before.final.loss]
    charged = [entry.charge.loss for entry in entries]
    # Under (ε, δ) what a later step buys depends on what the earlier ones left, and so does the kind of its noise.
    near = 0.2 if budget.slack() else 1e-9
    for paid, said in zip(charged, told, strict=True):
        cost, shown = (loss.epsilon(1e-6, notion=kind) for loss in (paid, said))
        assert cost <= shown * (1 + near)
        assert budget.slack() or cost == pytest.approx(shown, rel=near)
    whole = compose([event for entry in entries for event in entry.charge.events]).loss
    spent, priced = (loss.epsilon(0 if budget is PURE else 1e-6, notion=kind) for loss in (whole, before.whole.loss))
    assert spent <= priced * (1 + max(near, 1e-6))
    # There the parts may also be of another kind than the whole, and cost less together.
    assert budget.slack() or spent == pytest.approx(priced, rel=1e-6)
    total, (n,) = sum(c for c in TYPICAL["cost"].to_pylist() if c), [8000]
    (row,) = answer.table.to_pylist()
    assert row["s"] == pytest.approx(total, rel=0.15) and row["n"] == pytest.approx(n, rel=0.05)
    again = missing_bounds.ask(holder, question, request)
    assert again.replayed and again.table == answer.table and len(list(holder.history())) == 3


def test_the_preview_tells_both_steps() -> None:
    """Prices of all steps, what is known now, and that the rest is known after the bounds."""
    holder = curator(TYPICAL, RHO)
    question = read(holder, "SELECT SUM(cost) AS s, COUNT(*) AS n, SUM(cost) / COUNT(*) AS per FROM visits")
    shown = missing_bounds.preview(holder, question, Offer(rho=1))
    text = str(shown)
    assert "step 1 of 2: bounds of cost" in text and "s: its error is known after the bounds" in text
    assert "n: ± " in text and "together  ρ = 1" in text and "ρ = 0.25" in text and "ρ = 0.75" in text
    plainly = shown.to_dict()
    assert plainly["known_after_bounds"] == ["s", "per"] and len(plainly["bounds"]) == 1
    assert {c["name"]: c["error"] is None for c in plainly["question"]["columns"]} == {
        "s": True,
        "n": False,
        "per": True,
    }
    bounded = read(holder, "SELECT SUM(age) AS s FROM visits")
    assert isinstance(missing_bounds.preview(holder, bounded, Offer(rho=1)), discreet.preview.Preview)


def test_nothing_is_bought_that_cannot_be_used() -> None:
    """Too little left for both, an error wanted, an unknown limit: refused before the first step, for free."""
    holder = curator(TYPICAL, discreet.Budget(epsilon=3))
    question = read(holder, "SELECT SUM(cost) AS s FROM visits")
    with pytest.raises(BudgetExceeded, match=r"together.*Nothing was charged"):
        missing_bounds.ask(holder, question, Offer(epsilon=4))
    with pytest.raises(ParameterError, match=r"bounds, which are not known yet.*Nothing was charged"):
        missing_bounds.ask(holder, question, Offer(error={"s": 3}))
    with pytest.raises(BudgetExceeded, match="per_query"):
        missing_bounds.ask(curator(TYPICAL, per_query=1), question, Offer(epsilon=2))
    assert not list(holder.history())
    missing_bounds.ask(holder, question, Offer(epsilon=3))
    assert missing_bounds.ask(holder, question, Offer(epsilon=3)).replayed  # also when nothing is left
    bounded = read(holder, "SELECT SUM(age) AS s FROM visits")
    with pytest.raises(BudgetExceeded):
        missing_bounds.ask(holder, bounded, Offer(epsilon=1))


def test_bounds_that_are_not_found_leave_the_question_unasked() -> None:
    """The search is charged and on record, the question is not, and the message says so."""
    holder = curator(visits([None] * 40), PURE)
    question = read(holder, "SELECT SUM(cost) AS s FROM visits")
    try:
        missing_bounds.ask(holder, question, Offer(epsilon=2))
        told, entries = "", 2  # one time in a hundred noise looks like bounds
    except Unbounded as error:
        told, entries = str(error), 1
    assert not told or "The search was charged, the question was not" in told
    assert len(list(holder.history())) == entries


def test_a_request_id_is_used_for_the_question_and_names_its_searches() -> None:
    """A retry of the same request finds both steps again."""
    holder = curator(TYPICAL, PURE)
    question = read(holder, "SELECT SUM(cost) AS s FROM visits")
    first = missing_bounds.ask(holder, question, Offer(epsilon=4), request="mine", analyst="ann")
    assert [(e.charge.request, e.charge.analyst) for e in holder.history()] == [
        ("mine-bounds-1", "ann"),
        ("mine", "ann"),
    ]
    assert missing_bounds.ask(holder, question, Offer(epsilon=4), request="mine", analyst="ann").table == first.table


def test_numbers_that_are_computed_have_bounds_too() -> None:
    """The search is for what is measured, so also for what no interval arithmetic could bound."""
    holder = curator(TYPICAL, PURE)
    question = read(holder, "SELECT SUM(exp(cost / 100) * days) AS s FROM visits WHERE ward = 'A'")
    (value,) = search.find_unbounded(question, holder.catalog)
    asked = make_values_question(question.source, value, holder.catalog)
    assert asked.limits == ContributionLimits(max_groups=1, max_rows_per_group=1) and "where" in holder.explain(asked)
    true = sum(
        math.exp(c / 100) * d
        for c, d, w in zip(*(TYPICAL[n].to_pylist() for n in ("cost", "days", "ward")))
        if w == "A"
    )
    (row,) = missing_bounds.ask(holder, question, Offer(epsilon=40)).table.to_pylist()
    assert row["s"] == pytest.approx(true, rel=0.05)


# Contributions


def memory_curator(table: pa.Table, budget: discreet.Budget = PURE, **changes: Any) -> Curator:
    """The same curator over the slow engine."""
    holder = curator(table, budget, **changes)
    terms = LedgerTerms(dataset="data", budget=budget, unit=holder.catalog.unit, neighbours=holder.catalog.neighbours)
    return Curator(
        name="data",
        catalog=holder.catalog,
        engine=MemoryEngine({"visits": table}, holder.catalog),
        ledger=MemoryLedger.on(terms),
    )


def skewed() -> pa.Table:
    """400 patients with 3 rows in one ward, 40 with 6, 4 and 2 rows in three wards, and one with 500 rows."""
    rows = [(p, "A") for p in range(400) for _ in range(3)]
    rows += [(p, "ABABAACBABAC"[i]) for p in range(400, 440) for i in range(12)]
    rows += [(999, "ABC"[i % 3]) for i in range(500)]
    return (
        visits([1.0] * len(rows))
        .set_column(0, "patient", pa.array([p for p, _ in rows], pa.int64()))
        .set_column(1, "ward", pa.array([w for _, w in rows], pa.string()))
    )


@pytest.mark.parametrize("make", [curator, memory_curator], ids=["duckdb", "memory"])
def test_contributions_are_quantiles_over_units(make: Any) -> None:
    """Rows, groups and rows in a group of 9 in 10 and of 99 in 100 patients, whatever the codebook's own limits are."""
    holder = make(skewed(), discreet.Budget(epsilon=1000), max_rows=2)
    nine = search.buy_contributions(holder, "visits", by=["ward"], share=Fraction(9, 10), epsilon=150)
    assert (nine.rows, nine.groups, nine.rows_per_group) == (3, 1, 3)
    most = search.buy_contributions(holder, "visits", by=["Ward"], share=Fraction(98, 100), epsilon=150)
    assert (most.rows, most.groups, most.rows_per_group) == (12, 3, 6)
    assert most.suggestions == ("max_rows = 12", "max_groups = 3\nmax_rows_per_group = 6")
    assert "98% of the units in visits" in most.words and "3 groups by ward" in most.words
    rows = search.buy_contributions(holder, "visits", share=Fraction(98, 100), epsilon=50)
    assert rows.rows == 12 and rows.groups is None and rows.suggestions == ("max_rows = 12",)
    assert [e.charge.loss.epsilon() for e in holder.history()] == [150, 150, 50]


def test_a_unit_is_one_row_of_the_question_about_contributions() -> None:
    """One unit moves a count or a rank by one: the price does not depend on the limits, and the preview is free."""
    one, many = (curator(skewed(), PURE, max_rows=rows) for rows in (1, 1000))
    for share, names in ((None, ["units"]), (Fraction(19, 20), ["rows", "groups", "rows_per_group"])):
        offer: dict[str, Any] = {"by": ["ward"], "share": share, "epsilon": 1}
        shown = [search.preview_contributions(holder, "visits", **offer) for holder in (one, many)]
        assert shown[0].plan.events == shown[1].plan.events
        assert [column.name for column in shown[0].columns] == names
    assert not list(one.history())


def test_where_a_row_is_a_unit_there_is_nothing_to_limit() -> None:
    """Refused for free, as are shares that are none."""
    with pytest.raises(UsageError, match=r"one unit a row.*Nothing was charged"):
        search.buy_contributions(curator(skewed(), unit=None, max_rows=None), "visits", epsilon=1)
    with pytest.raises(ParameterError, match="share"):
        search.buy_contributions(curator(skewed()), "visits", share=1, epsilon=1)
