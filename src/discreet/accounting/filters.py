"""Filters and odometers: budgets when each cost is chosen after seeing earlier answers.

A *filter* gets a budget before the first answer and refuses a charge that does not fit. All charges that it accepts are
together within the budget, even when every event, and the decision to go on, depends on all earlier answers.
Interactive mechanisms may run at the same time (Haney et al. 2023). A filter counts in one notion, because only simple
sums allow all this:

- ``pure``: Σε ≤ ε (Rogers, Roth, Ullman & Vadhan 2016).
- ``zcdp``: Σρ ≤ ρ (Feldman & Zrnic 2021; Whitehouse, Ramdas, Rogers & Wu 2023).
- ``gdp``: Σμ² ≤ μ² (Smith & Thakurta 2022).
- ``rdp``: Στ(α) ≤ limit, at a single order α that is fixed when the filter is made (Feldman & Zrnic 2021).
- ``approx``: (ε, δ) by several sums side by side, of which one has to hold; see ``spending_classes.py``.

There is no filter on privacy-loss distributions: composing curves and stopping at the target is not valid when the
events are chosen on the way (Tran, Koskela, Räisä & Honkela 2026). They price fixed plans, in an ``Account``.

The work and memory of a charge do not grow with the number of charges. Sums are exact until their denominators exceed
128 bits; then they are rounded up to multiples of 10^-24.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from fractions import Fraction

from discreet.accounting import currencies
from discreet.accounting.approximate import ApproximateNotion
from discreet.accounting.currencies import Currency
from discreet.accounting.events import Event
from discreet.accounting.notions import loss_of
from discreet.accounting.rounding import shorten
from discreet.accounting.spending_classes import FAILURE_PART, ClassCurrency
from discreet.accounting.sums import Price
from discreet.errors import BudgetExceeded, MixedGuarantees, ParameterError, UnknownLoss
from discreet.exact import Exact, float_up, lower, sqrt_lower, upper
from discreet.parameters import Epsilon, Number
from discreet.privacy import Budget, Loss, Neighbours, Notion, Unit

# The prices of this many different charges are stored.
_MEMORY = 4096


class _ChargeCounter:
    """The base of filters and odometers: one protected unit, a lock, and a count of charges."""

    def __init__(self, unit: Unit | str | None, neighbours: Neighbours | str) -> None:
        self.unit = Unit.read(unit)
        self.neighbours = Neighbours.read(neighbours)
        self._lock = threading.Lock()
        self._charges = 0

    @property
    def charges(self) -> int:
        """How many charges were accepted."""
        return self._charges

    def _read_loss(self, charge: Event | Loss) -> Loss:
        if isinstance(charge, Event):
            charge = loss_of(charge)
        if not isinstance(charge, Loss):
            raise ParameterError("charge", "must be an event or a loss", "Give for example mechanism.privacy.")
        if (charge.unit, charge.neighbours) != (self.unit, self.neighbours):
            raise MixedGuarantees(
                f"The budget protects {self.unit} under {self.neighbours}, the charge {charge.unit} under "
                f"{charge.neighbours}. State both for the same unit and relation."
            )
        return charge


class Filter(_ChargeCounter):
    """A budget that refuses charges that do not fit; safe when charges are chosen adaptively, and from many threads.

    ``notion`` is the budget's own unless an (ε, δ) budget is asked to run in ``"rdp"``, at a fixed ``order``.
    ``share`` is the part of an (ε, δ) budget's δ that is kept for the δ of events; the rest pays for the conversions
    from μ and from Rényi divergences. With ``share=1`` the filter is basic composition: Σε ≤ ε and Σδ ≤ δ.

    Privacy: everything released against accepted charges is together within the budget, for this unit and relation.
    Reason and references: the list in the module's docstring.

    >>> from discreet.accounting import events
    >>> budget = Filter(Budget(epsilon=1))
    >>> for _ in range(10):
    ...     budget.charge(events.Pure(epsilon=0.1))
    >>> budget.can(events.Pure(epsilon=1e-9)), budget.remaining
    (False, Fraction(0, 1))
    """

    def __init__(
        self,
        budget: Budget,
        *,
        unit: Unit | str | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        notion: str | None = None,
        order: float | None = None,
        share: Number = FAILURE_PART,
    ) -> None:
        super().__init__(unit, neighbours)
        if not isinstance(budget, Budget):
            raise ParameterError("budget", "must be a Budget", "Say Budget(epsilon=1, delta=1e-9), for example.")
        self.budget = budget
        self._currency: Currency = currencies.choose_currency(budget, notion, order, share)
        self._total: Price = self._currency.nothing
        self._prices: dict[int, tuple[object, Price]] = {}

    def charge(self, charge: Event | Loss) -> None:
        """Record a charge before its release, or raise BudgetExceeded and record nothing."""
        price = self._price(charge)
        with self._lock:
            total = self._currency.add(self._total, price)
            if not self._currency.fits(total):
                raise BudgetExceeded(f"The charge does not fit what is left of {self.budget!r}; nothing was charged.")
            self._total = total
            self._charges += 1

    def can(self, charge: Event | Loss) -> bool:
        """Whether this charge would fit now."""
        return self._currency.fits(self._currency.add(self._total, self._price(charge)))

    def _price(self, charge: Event | Loss) -> Price:
        # By identity, because values are slow to hash. The object is kept, so no other object can get its id.
        found = self._prices.get(id(charge))
        if found is not None:
            return found[1]
        price = self._currency.price(self._read_loss(charge))
        if len(self._prices) >= _MEMORY:
            self._prices.clear()
        self._prices[id(charge)] = (charge, price)
        return price

    @property
    def spent(self) -> Exact:
        """What is spent, in the budget's own form (ε, ρ or μ), rounded up; for (ε, δ) the ε that holds at its δ."""
        return self._currency.amount_of(self._total)

    @property
    def remaining(self) -> Fraction:
        """What can still be charged, rounded down: budget less spent; of (ε, δ) the ε of one pure release."""
        if isinstance(self._currency, ClassCurrency):
            return self._currency.largest_epsilon(self._total)
        if self.budget.notion == "gdp":  # squares add up
            return sqrt_lower(max(Fraction(0), lower(self.budget.amount()) ** 2 - self._total[0]))
        spent, amount = self.spent, self.budget.amount()
        return Fraction(0) if not spent < amount else max(Fraction(0), lower(amount) - upper(spent))

    @property
    def sums(self) -> Mapping[str, Fraction]:
        """The running sums on which the filter decides, by name."""
        return self._currency.sums(self._total)

    def __repr__(self) -> str:
        left = f"{float_up(self.spent):.6g} spent by {self._charges:,} charges"
        return f"Filter({self.budget!r}, {left}; {self.unit}, {self.neighbours})"


class Odometer(_ChargeCounter):
    """The running total of adaptively chosen charges, in every notion that all of them have.

    Privacy: what is claimed is the filter's statement, for every limit at once: for each ε, ρ, μ² or (at one order) τ
    that was fixed before the first answer, everything released while the sum stayed within that limit is within that
    limit. For pure ε the sum read at any moment is itself a valid loss, because it bounds every likelihood ratio. For
    the other notions a limit chosen *after* seeing answers is not covered; state the limit first and use a Filter, or
    read the odometer at times that do not depend on the answers. (ε, δ) pairs are summed, never composed tightly, and
    there is no privacy-loss distribution.

    >>> from discreet.accounting import events
    >>> total = Odometer()
    >>> total.charge(events.Laplace(sensitivity=1, scale=10, count=3))
    >>> total.epsilon()
    0.3
    """

    def __init__(self, *, unit: Unit | str | None = None, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> None:
        super().__init__(unit, neighbours)
        self._notions: tuple[Notion, ...] = ()

    def charge(self, charge: Event | Loss) -> None:
        """Add a charge to the running total."""
        fresh = self._read_loss(charge).notions
        with self._lock:
            total = _add_notions(self._notions, fresh) if self._charges else _start_total(fresh)
            if not total:
                raise UnknownLoss("The charge and the total share no notion in which they could be added.")
            self._notions = total
            self._charges += 1

    @property
    def loss(self) -> Loss:
        """The running total as a loss; refused before the first charge."""
        if not self._charges:
            raise UnknownLoss("Nothing was charged yet, so there is no loss to state.")
        return Loss(self._notions, self.unit, self.neighbours)

    def epsilon(self, delta: Number = 0, notion: str | None = None) -> float:
        """The ε of the running total at this δ; zero before the first charge."""
        return self.loss.epsilon(delta, notion=notion) if self._charges else 0.0

    def delta(self, epsilon: Epsilon, notion: str | None = None) -> float:
        """The δ of the running total at this ε; zero before the first charge."""
        return self.loss.delta(epsilon, notion=notion) if self._charges else 0.0

    def __repr__(self) -> str:
        lines = [f"  {notion.kind:<7} {notion.words()}" for notion in self._notions]
        title = f"Odometer after {self._charges:,} charges ({self.unit}, {self.neighbours})"
        return "\n".join([title, *lines])


def _start_total(fresh: tuple[Notion, ...]) -> tuple[Notion, ...]:
    """The notions that an odometer sums: pairs by basic composition only, and no privacy-loss distribution."""
    kept = (notion for notion in fresh if notion.kind != "pld")
    return tuple(
        ApproximateNotion.of(*notion.basic_total()) if isinstance(notion, ApproximateNotion) else notion
        for notion in kept
    )


def _add_notions(totals: tuple[Notion, ...], fresh: tuple[Notion, ...]) -> tuple[Notion, ...]:
    known = {notion.kind: notion for notion in fresh}
    return tuple(_sum(total, known[total.kind]) for total in totals if total.kind in known)


def _sum(total: Notion, more: Notion) -> Notion:
    if isinstance(total, ApproximateNotion) and isinstance(more, ApproximateNotion):
        (epsilon, delta), (more_epsilon, more_delta) = total.basic_total(), more.basic_total()
        return ApproximateNotion.of(shorten(upper(epsilon) + upper(more_epsilon)), shorten(delta + more_delta))
    return total.compose(more)
