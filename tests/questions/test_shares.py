"""Shares of an (ε, δ) budget, asked of a curator: all of it can be spent, in any parts and in any order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import discreet
from discreet import Budget
from discreet.accounting import events
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, ParameterError
from discreet.offer import NoiseFamily, Payment

ROWS = pa.table(
    {"p": list(range(300)), "w": ["abc"[i % 3] for i in range(300)], "z": ["abc"[i % 3] for i in range(300)],
     "age": [i % 90 for i in range(300)]}
)  # fmt: skip
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT w, COUNT(*) AS n FROM t GROUP BY w",
    "SELECT w, AVG(age) AS a, SUM(age) AS s FROM t GROUP BY w",
    "SELECT MEDIAN(age) AS m FROM t",
    "SELECT z, COUNT(*) AS n FROM t GROUP BY z",
)


def open_curator(epsilon: Any = 1, delta: Any = 1e-6, **other: Any) -> Curator:
    return discreet.curate(
        {"t": ROWS},
        unit="p",
        max_groups=2,
        max_rows_per_group=3,
        bounds={"age": (0, 90)},
        keys={"w": ["a", "b", "c"]},
        budget=Budget(epsilon=epsilon, delta=delta),
        **other,
    )


@example([(0, 1), (3, 13), (0, 15), (0, 11), (0, 11), (0, 5)], (1, 1e-6))  # the price of a choice falls slowly
@given(
    st.lists(st.tuples(st.sampled_from(range(len(QUESTIONS))), st.integers(1, 40)), min_size=1, max_size=7),
    st.sampled_from([(1, 1e-6), (8, 1e-9)]),
)
@settings(deadline=None, max_examples=15)
def test_shares_that_sum_to_one_fit(asked: list[tuple[int, int]], budget: tuple[int, float]) -> None:
    """Counts, averages, choices and private keys with any shares of the whole: none is refused."""
    whole = sum(weight for _, weight in asked)
    with open_curator(*budget) as holder:
        for number, (which, weight) in enumerate(asked):
            question = QUESTIONS[which].replace("FROM t", f"FROM t WHERE age >= {number}")
            holder.ask(question, share=Fraction(weight, whole))
        currency, total = holder.ledger.counted
        assert currency.fits(total)


def test_what_is_left_is_what_can_be_asked_for() -> None:
    with open_curator() as holder:
        holder.ask(QUESTIONS[1], share=Fraction(3, 4))
        with pytest.raises(BudgetExceeded, match=r"Offer at most share=0\.25.*Nothing was charged"):
            holder.ask(QUESTIONS[0], share=0.3)
        holder.ask(QUESTIONS[0], epsilon=0.25)
        with pytest.raises(BudgetExceeded, match="Nothing was charged"):
            holder.ask(QUESTIONS[3], share=0.01)


def test_the_last_of_the_budget_fits() -> None:
    """All of ε and all of δ for one question with private keys."""
    with open_curator() as holder:
        answer = holder.ask(QUESTIONS[4], epsilon=1, delta=1e-6)
        assert set(answer.table.column_names) >= {"z", "n"}
        with pytest.raises(BudgetExceeded):
            holder.ask(QUESTIONS[0], share=0.001)


def test_one_question_gets_pure_noise_and_many_get_gaussian_noise() -> None:
    """The better kind of noise is taken, and the preview shows the other."""
    with open_curator() as holder:
        one = holder.preview(QUESTIONS[0], share=1)
        assert isinstance(one.plan.events[0], events.DiscreteLaplace)
        assert "instead   Gaussian" in str(one)
        many = holder.preview(QUESTIONS[0], share=Fraction(1, 50))
        assert isinstance(many.plan.events[0], events.RoundedGaussian)
        assert many.to_dict()["other_noise"][0].startswith("Laplace: n ±")


def test_the_same_question_is_free_although_prices_have_moved() -> None:
    """What a share buys depends on what is left; asked again it is the same release, for nothing."""
    with open_curator() as holder:
        first = holder.ask(QUESTIONS[2], share=Fraction(1, 3))
        holder.ask(QUESTIONS[3], share=Fraction(1, 3))
        again = holder.ask(QUESTIONS[2], share=Fraction(1, 3))
        assert again.replayed
        assert again.table.equals(first.table)
        assert len(holder.history()) == 2


def test_a_fixed_batch_leaves_the_rest() -> None:
    """ε = 2 out of 8 in one fixed batch, then small questions of both kinds; and the other way round."""
    batch, small = QUESTIONS[:3], QUESTIONS[3]
    with open_curator(8) as holder:
        holder.ask_batch(batch, epsilon=2, fixed=True)
        holder.ask(small, epsilon=0.001)
        holder.ask(QUESTIONS[0], rho=0.0001)
    with open_curator(8) as holder:
        holder.ask(small, epsilon=0.001)
        holder.ask(QUESTIONS[0], rho=0.0001)
        holder.ask_batch(batch, epsilon=2, fixed=True)
        (entry,) = [entry for entry in holder.history() if isinstance(entry.charge.events[0], events.FixedPlan)]
        assert entry.charge.loss.has("gdp")


@pytest.mark.parametrize(
    "offer",
    [{"share": 0}, {"share": -0.1}, {"share": 1.01}, {"share": float("nan")}, {"share": 0.1, "epsilon": 0.1}, {}],
)
def test_bad_shares_are_refused(offer: dict[str, Any]) -> None:
    with open_curator() as holder:
        with pytest.raises(ParameterError, match="Nothing was charged"):
            holder.preview(QUESTIONS[0], **offer)
        assert not holder.history()


def test_shares_of_other_budgets() -> None:
    """A share of pure ε or of ρ is that part of it."""
    for budget, amount in ((Budget(epsilon=2), Fraction(1, 5)), (Budget(rho=2), Fraction(1, 5))):
        with discreet.curate({"t": ROWS}, budget=budget) as holder:
            holder.ask(QUESTIONS[0], share=0.1)
            assert holder.ledger.spent == amount


def test_no_preview_says_infinity() -> None:
    with open_curator() as holder:
        for question in QUESTIONS:
            for offer in ({"share": 1}, {"share": 0.01}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.001}):
                shown = holder.preview(question, **offer)
                assert "inf" not in str(shown)
                assert "Infinity" not in str(shown.to_dict()) and "inf" not in str(shown.to_dict()["loss"])


def test_payments_are_read_as_they_were_written() -> None:
    payment = Payment(NoiseFamily.GAUSSIAN, (Fraction(1, 40), Fraction(1, 3)), Fraction(1, 10**7))
    assert Payment.read(str(payment)) == payment
