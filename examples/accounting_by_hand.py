"""Accounting by hand: what releases cost together, a budget that stops, and noise for a target.

Run it with ``python examples/accounting_by_hand.py``. No data is involved.
"""

from __future__ import annotations

from discreet import Budget
from discreet.accounting import Filter, compose, events
from discreet.errors import BudgetExceeded
from discreet.mechanisms import Gaussian


def main() -> None:
    """Compose a fixed plan, spend adaptively, and find the noise that a budget buys."""
    plan = [events.Gaussian(sensitivity=1, sigma=50, count=100), events.Laplace(sensitivity=1, scale=20)]
    account = compose(plan)
    for notion in ("pld", "rdp", "zcdp"):
        print(f"{notion:>5}: ε = {account.epsilon(delta=1e-6, notion=notion):.3f} at δ = 1e-6")
    low, high = account.bounds(delta=1e-6)
    print(f"certified: between {low:.4f} and {high:.4f}")
    print(account.odds().sentence())

    budget, asked = Filter(Budget(epsilon=1)), 0
    try:
        while True:  # questions that depend on earlier answers: a filter counts, a plan would not be valid
            budget.charge(events.Laplace(sensitivity=1, scale=8))
            asked += 1
    except BudgetExceeded as stop:
        print(f"\n{asked} adaptive questions fit; then: {stop}")

    noise = Gaussian(sensitivity=1, rho=0.01)
    print(
        f"\nρ = 0.01 buys Gaussian noise with σ = {noise.standard_error:.3f}, 95 % within ± {noise.error(beta=0.05):g}"
    )


if __name__ == "__main__":
    main()
