"""Filters and odometers: exact limits, every currency, refusals that charge nothing, threads, and flat cost."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import pytest

from discreet.accounting import Filter, Odometer, compose, events, loss_of
from discreet.errors import BudgetExceeded, MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import decimal, ln
from discreet.privacy import Budget
from tests.work_counts import count_calls


def fill(budget: Filter, event: events.Event, most: int = 100_000) -> int:
    """How many charges fit."""
    for done in range(most):
        try:
            budget.charge(event)
        except BudgetExceeded:
            return done
    return most


@pytest.mark.parametrize(
    ("epsilon", "each", "fits"),
    [
        (1, 0.1, 10),
        (1, Fraction(1, 3), 3),
        (0.3, 0.1, 3),
        (1, 1, 1),
        (1, 1.0000001, 0),
        (ln(9), ln(3), 2),
        (ln(9), 1, 2),
    ],
)
def test_pure_limits_are_exact(epsilon: float, each: float, fits: int) -> None:
    """Ten tenths, three thirds and ln 3 twice fit exactly; not one more."""
    budget = Filter(Budget(epsilon=epsilon))
    assert fill(budget, events.Pure(epsilon=each)) == fits
    assert budget.charges == fits


def test_remaining_is_exactly_zero_when_full() -> None:
    for epsilon, each in ((1, Fraction(1, 3)), (ln(27), ln(3))):
        budget = Filter(Budget(epsilon=epsilon))
        assert budget.spent == 0
        fill(budget, events.Pure(epsilon=each))
        assert budget.remaining == 0
        assert budget.spent == budget.budget.amount()


def test_logarithms_and_numbers_share_a_budget() -> None:
    budget = Filter(Budget(epsilon=ln(9)))
    budget.charge(events.Pure(epsilon=ln(3)))
    budget.charge(events.Pure(epsilon=1))
    assert not budget.can(events.Pure(epsilon=0.1))
    budget.charge(events.Pure(epsilon=0.0986))
    assert 0 < budget.remaining < Fraction(1, 10**4)
    assert float(budget.sums["epsilon"]) == pytest.approx(math.log(3) + 1.0986)


def test_refusal_charges_nothing() -> None:
    budget = Filter(Budget(epsilon=1))
    budget.charge(events.Pure(epsilon=0.75))
    before = (budget.spent, budget.charges, budget.sums)
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        budget.charge(events.Pure(epsilon=0.5))
    assert (budget.spent, budget.charges, budget.sums) == before
    budget.charge(events.Pure(epsilon=0.25))
    assert "1 spent by 2 charges" in repr(budget)


def test_concentrated_and_gaussian_budgets() -> None:
    zcdp = Filter(Budget(rho=0.5))
    assert fill(zcdp, events.Gaussian(sensitivity=1, sigma=10)) == 100
    assert zcdp.spent == Fraction(1, 2)
    assert zcdp.remaining == 0
    gdp = Filter(Budget(mu=1))
    assert fill(gdp, events.Gaussian(sensitivity=1, sigma=10)) == 100
    assert gdp.spent == 1
    assert gdp.sums == {"mu_squared": Fraction(1)}
    with pytest.raises(UnknownLoss, match="gdp"):
        gdp.charge(events.DiscreteGaussian(squared_sensitivity=1, variance=100))
    pure = Filter(Budget(mu=1))
    assert fill(pure, events.Pure(epsilon=0.1)) == 63
    with pytest.raises(UnknownLoss, match="δ of its own"):
        pure.charge(events.Approximate(epsilon=0.1, delta=1e-9))
    with pytest.raises(UnknownLoss, match="δ of its own"):
        Filter(Budget(rho=0.5)).charge(events.ZeroConcentrated(rho=0.1, delta=1e-9))


def test_approximate_budget_allows_basic_sums_and_concentrated_ones() -> None:
    """Ten Laplace releases of 0.1 fit (1, 1e-6); many small ones go further than basic composition."""
    basic = Filter(Budget(epsilon=1, delta=1e-6))
    assert fill(basic, events.Laplace(sensitivity=1, scale=10)) == 10
    assert basic.spent == 1
    small = Filter(Budget(epsilon=1, delta=1e-6))
    fits = fill(small, events.Pure(epsilon=0.01))
    assert fits > 4 * 100
    assert compose([events.Pure(epsilon=0.01, count=fits)]).epsilon(1e-6) < 1
    gaussian = Filter(Budget(epsilon=1, delta=1e-6))
    gaussian.charge(events.Gaussian(sensitivity=1, sigma=10))
    assert "epsilon" not in gaussian.sums
    assert 0 < gaussian.remaining < 1


def test_events_with_delta_use_their_share() -> None:
    event = events.Approximate(epsilon=0.1, delta=1e-7)
    fifth = Filter(Budget(epsilon=1, delta=1e-6))
    assert fill(fifth, event) == 2
    assert fifth.sums["delta"] == Fraction(2, 10**7)
    whole = Filter(Budget(epsilon=1, delta=1e-6), share=1)
    assert fill(whole, event) == 10
    assert not whole.can(events.Gaussian(sensitivity=1, sigma=1000))
    none = Filter(Budget(epsilon=1, delta=1e-6), share=0)
    none.charge(events.Pure(epsilon=0.1))
    assert not none.can(event)
    slack = Filter(Budget(epsilon=1, delta=1e-6))
    slack.charge(events.ZeroConcentrated(rho=0.001, delta=1e-7))
    assert slack.sums["delta"] == Fraction(1, 10**7)


def test_counted_pairs_are_charged_one_by_one() -> None:
    """Five hundred (0.01, 0) in one event cost Σε²/2, not (Σε)²/2."""
    one = Filter(Budget(epsilon=1, delta=1e-6))
    one.charge(events.Approximate(epsilon=0.01, delta=1e-12, count=400))
    assert one.sums["rho"] == Fraction(400, 20000)


def test_rdp_filter_at_a_fixed_order() -> None:
    """The order is fixed in advance; what fits is what converts to the budget at that order."""
    budget = Filter(Budget(epsilon=1, delta=1e-6), notion="rdp")
    event = events.PoissonSampled(event=events.Gaussian(sensitivity=1, sigma=2), rate=0.01)
    fits = fill(budget, event, 5000)
    assert fits > 100
    assert compose([event.times(fits)]).epsilon(1e-6, "rdp") <= 1.0
    assert budget.spent <= 1
    fixed = Filter(Budget(epsilon=1, delta=1e-6), notion="rdp", order=32)
    assert 0 < fill(fixed, event, 5000) != fits
    assert fixed.sums.keys() == {"tau"}
    with pytest.raises(ParameterError, match="order"):
        Filter(Budget(epsilon=1, delta=1e-6), notion="rdp", order=2.03)
    with pytest.raises(ParameterError, match="too small"):
        Filter(Budget(epsilon=0.1, delta=1e-6), notion="rdp", order=2)
    with pytest.raises(ParameterError, match="order"):
        Filter(Budget(epsilon=1, delta=1e-6), order=2)
    grouped = loss_of(events.ZeroConcentrated(rho=1)).for_group(64)
    with pytest.raises(UnknownLoss, match="order"):
        Filter(Budget(epsilon=1000, delta=1e-6), notion="rdp", order=1.5).charge(grouped)


def test_there_is_no_filter_on_distributions() -> None:
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=1)):
        with pytest.raises(UnknownLoss, match="not valid when events are chosen"):
            Filter(budget, notion="pld")


@pytest.mark.parametrize("notion", ["zcdp", "gdp", "rdp", "approx", "fdp"])
def test_notions_that_do_not_fit_the_budget_are_refused(notion: str) -> None:
    with pytest.raises(ParameterError, match="notion"):
        Filter(Budget(epsilon=1), notion=notion)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterError, match="budget"):
        Filter(1.0)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ParameterError, match="charge"):
        Filter(Budget(epsilon=1)).charge(0.1)  # type: ignore[arg-type]  # on purpose
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(ParameterError, match="share"):
            Filter(Budget(epsilon=1, delta=1e-6), share=share)
    with pytest.raises(MixedGuarantees, match="one patient"):
        Filter(Budget(epsilon=1)).charge(events.Pure(epsilon=0.1, unit="patient"))
    with pytest.raises(MixedGuarantees, match="replace"):
        Filter(Budget(epsilon=1)).charge(events.Pure(epsilon=0.1, neighbours="replace"))
    Filter(Budget(epsilon=1), unit="patient", neighbours="replace").charge(
        events.Pure(epsilon=0.1, unit="patient", neighbours="replace")
    )
    unpriced = loss_of(events.Approximate(epsilon=1, delta=1e-9))
    with pytest.raises(UnknownLoss):
        Filter(Budget(epsilon=1)).charge(unpriced)


def test_losses_are_charged_like_their_events() -> None:
    event = events.Laplace(sensitivity=1, scale=4)
    one, two = Filter(Budget(epsilon=1)), Filter(Budget(epsilon=1))
    one.charge(event)
    two.charge(loss_of(event))
    assert one.spent == two.spent == Fraction(1, 4)


def test_sums_are_rounded_up_never_down() -> None:
    """Thousands of unlike fractions: the running sum stays short and never falls below the exact one."""
    budget, exact = Filter(Budget(epsilon=10)), Fraction(0)
    for i in range(400):
        each = Fraction(1, 10007 + 2 * i)
        budget.charge(events.Pure(epsilon=each))
        exact += each
    assert exact <= budget.sums["epsilon"] <= exact + Fraction(400, 10**24)
    assert budget.sums["epsilon"].denominator.bit_length() <= 128


def test_many_threads_never_overspend() -> None:
    budget, event = Filter(Budget(epsilon=1)), events.Pure(epsilon=0.001)
    passed: list[int] = []

    def work() -> None:
        passed.append(fill(budget, event))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 1000 == budget.charges


def measure_sums(budget: Filter) -> int:
    """How many binary digits the longest sum has."""
    return max(part.numerator.bit_length() + part.denominator.bit_length() for part in budget._total)


def test_cost_of_a_charge_does_not_grow() -> None:
    """The last of 10,000 charges calls no more functions than the first, and its sums stay short."""
    budget, event = Filter(Budget(epsilon=1000, delta=1e-6)), events.Pure(epsilon=Fraction(1, 997))

    def charge_often(count: int) -> None:
        for _ in range(count):
            budget.charge(event)

    def charge(count: int) -> int:
        return count_calls(lambda: charge_often(count))

    charge(100)
    first, size = charge(500), measure_sums(budget)
    charge(9000)
    assert charge(500) < 1.01 * first
    assert measure_sums(budget) <= size + 16  # 10,000 has 14 digits more than 1 in base two
    assert budget.charges == 10_100


def test_remembered_prices_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.accounting.filters._MEMORY", 3)
    budget = Filter(Budget(epsilon=100))
    for i in range(1, 20):
        budget.charge(events.Pure(epsilon=Fraction(1, i)))
        assert len(budget._prices) <= 3
    assert budget.charges == 19


def test_odometer_keeps_the_total_in_every_shared_notion() -> None:
    total = Odometer()
    assert total.epsilon() == total.delta(1) == 0.0
    with pytest.raises(UnknownLoss, match="Nothing was charged"):
        _ = total.loss
    for _ in range(10):
        total.charge(events.Laplace(sensitivity=1, scale=10))
    assert total.epsilon() == 1.0
    assert {notion.kind for notion in total.loss.notions} == {"pure", "approx", "zcdp", "rdp", "gdp"}
    total.charge(events.Gaussian(sensitivity=1, sigma=10))
    assert {notion.kind for notion in total.loss.notions} == {"zcdp", "rdp", "gdp"}
    assert total.epsilon() == math.inf
    assert total.epsilon(1e-6) < 2
    assert 0 < total.delta(1) < 0.1
    assert "after 11 charges" in repr(total)
    assert "zcdp" in repr(total)


def test_odometer_refuses_what_it_cannot_add_and_keeps_the_total() -> None:
    total = Odometer()
    total.charge(events.ZeroConcentrated(rho=1, delta=1e-9))
    lonely = loss_of(events.Pure(epsilon=1))
    only_pure = type(lonely)((lonely.notion("pure"),), lonely.unit, lonely.neighbours)
    with pytest.raises(UnknownLoss, match="share no notion"):
        total.charge(only_pure)
    assert total.charges == 1
    with pytest.raises(MixedGuarantees):
        total.charge(events.Pure(epsilon=1, unit="x"))


def test_odometer_sums_pairs_and_nothing_tighter() -> None:
    """Adaptive totals of pairs are basic sums; the optimal theorem is for fixed plans."""
    total = Odometer()
    for _ in range(100):
        total.charge(events.Approximate(epsilon=0.01, delta=1e-9))
    assert total.epsilon(1e-6, "approx") <= 1.0
    assert total.epsilon(1e-7, "approx") == 1.0
    fixed = compose([events.Approximate(epsilon=0.01, delta=1e-9, count=100)]).epsilon(1e-6, "approx")
    assert fixed < total.epsilon(1e-6, "approx")


def test_total_agrees_with_the_account_of_the_same_events() -> None:
    total = Odometer()
    plan = [events.Laplace(sensitivity=1, scale=10), events.Exponential(epsilon=0.3), events.Pure(epsilon=ln(2))]
    for event in plan:
        total.charge(event)
    account = compose(plan)
    for notion in ("pure", "zcdp", "rdp"):
        assert total.epsilon(1e-6, notion) == pytest.approx(account.epsilon(1e-6, notion), rel=1e-12)
    assert decimal(total.epsilon()) >= 0
