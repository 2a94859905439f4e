"""What a charge costs in the ledger's currency, and whether it may be charged at all."""

from __future__ import annotations

from discreet.accounting.events import Event
from discreet.accounting.sums import Price
from discreet.errors import InternalError, LedgerError, MixedGuarantees, ParameterError
from discreet.ledger.charge_history import loss_of
from discreet.ledger.ledger import Charge
from discreet.ledger.policy import check_name
from discreet.ledger.state import Rules, State
from discreet.privacy import Loss


class ChargePrices:
    """Prices charges under the rules of a state, and checks each against the least that its events cost.

    Prices are stored while the rules stand, because many charges have the same loss or the same events.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._rules: Rules | None = None
        self._least: dict[tuple[Event, ...], Price] = {}
        self._last_price: tuple[Loss | None, Price] = (None, ())

    def find_price(self, charge: Charge) -> Price:
        """What a charge costs in the ledger's currency; refused where that is not known or not possible."""
        (
            check_name(charge.request, "request"),
            check_name(charge.analyst, "analyst"),
            check_name(charge.project, "project"),
        )
        if self._state.dataset and charge.dataset != self._state.dataset:
            raise LedgerError("This ledger is of another dataset. Nothing was charged.")
        if not isinstance(charge.loss, Loss):
            raise ParameterError("loss", "must be a loss", "Give for example mechanism.privacy. Nothing was charged.")
        if (charge.loss.unit, charge.loss.neighbours) != (self._state.unit, self._state.neighbours):
            raise MixedGuarantees(
                f"The ledger protects {self._state.unit} ({self._state.neighbours}), the charge {charge.loss.unit} "
                f"({charge.loss.neighbours}). Nothing was charged."
            )
        if self._rules is not self._state.rules:
            self._rules, self._last_price = self._state.rules, (None, ())
            self._least.clear()
        currency = self._rules.currency
        known, price = self._last_price
        if known is not charge.loss:
            price = currency.price(charge.loss)
            self._last_price = (charge.loss, price)
        needed = self._find_least(charge.events)
        if any(part is not None and part < 0 for part in price) or _is_less(price, needed):
            raise InternalError("The price of a charge is below what its events cost. Nothing was charged.")
        return price

    def _find_least(self, events: tuple[Event, ...]) -> Price:
        """The least price of these events; stored, because many questions have the same events."""
        found = self._least.get(events)
        if found is None:
            if len(self._least) > 4096:
                self._least.clear()
            found = self._least[events] = self._state.rules.currency.price(loss_of(events))
        return found


def _is_less(price: Price, needed: Price) -> bool:
    """Whether any sum is below what it must be; a sum that is not known is never too low."""
    return any(a is not None and (b is None or a < b) for a, b in zip(price, needed, strict=True))
