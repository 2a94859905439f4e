"""What is left of a budget, and what it would buy: the nearest offer, the least error, the curve."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet
from discreet.errors import BudgetExceeded
from discreet.remaining_budget import RemainingBudget
from tests.worlds.visits import curator


@pytest.mark.parametrize("budget", [{"epsilon": 2}, {"rho": 1}, {"mu": 1}, {"epsilon": 2, "delta": 1e-6}])
def test_the_share_that_is_left_can_be_spent(budget: dict[str, float]) -> None:
    """For every kind of budget: after a quarter, three quarters are left, and they fit; a little more does not."""
    holder = curator(discreet.Budget(**budget))
    left = RemainingBudget(holder.ledger)
    assert left.share == 1
    holder.ask("SELECT COUNT(*) AS n FROM visits", share=0.25)
    assert float(left.share) == pytest.approx(0.75, rel=1e-6) and left.share <= Fraction(3, 4)
    assert holder.preview("SELECT SUM(age) AS s FROM visits", share=left.share).fits
    assert not holder.preview("SELECT SUM(age) AS s FROM visits", share=left.share + Fraction(1, 100)).fits


def test_an_offer_above_what_is_left_is_shown_and_refused() -> None:
    """A preview says that it does not fit, and what would; asking says what was asked, what is left and what fits."""
    holder = curator(discreet.Budget(epsilon=2, delta=1e-6))
    holder.ask("SELECT COUNT(*) AS n FROM visits", share=0.75)
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    shown = holder.preview(question, share=0.5)
    assert not shown.fits and shown.nearest == "offer at most share=0.25 (epsilon=0.5)"
    assert "1/2 of the budget" in str(shown) and "is left; offer at most share=0.25 (epsilon=0.5)" in str(shown)
    assert not holder.preview_batch([question], share=0.5).fits and shown.to_dict()["nearest"] == shown.nearest
    with pytest.raises(
        BudgetExceeded, match=r"1/2 of the budget.*Left: 1/4 of the budget. Offer at most share=0.25.*Nothing was"
    ):
        holder.ask(question, share=0.5)
    assert len(holder.history()) == 1
    assert holder.preview(question, share=0.25).fits
    holder.ask(question, share=0.25)
    assert holder.preview(question.replace("n ", "m "), share=0.25).answered


def test_an_error_that_no_budget_buys_is_refused_with_the_least_that_is() -> None:
    """In the words of the column, for what is left; a quantile has its error in rows of rank."""
    holder = curator(discreet.Budget(epsilon=1, delta=1e-6))
    question = "SELECT COUNT(*) AS n FROM visits"
    shown = holder.preview(question, error={"n": 5})
    least = holder.preview(question, share=1).columns[0].words()
    assert not shown.fits and f"more than is left; all that is left would buy n {least}" in str(shown)
    for size in (5, 1e-9):
        with pytest.raises(BudgetExceeded, match=rf"[Nn]othing was charged.*would buy n {least}"):
            holder.ask(question, error={"n": size})
    middle = holder.preview("SELECT MEDIAN(age) AS m FROM visits", error={"m": 300})
    assert middle.fits and (middle.columns[0].rows or 0) <= 300
    assert not holder.history()
