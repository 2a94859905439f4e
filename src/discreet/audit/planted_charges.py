"""Planted bugs in what is charged and kept: in prices, in the curator's line, in the ledger and in the local model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet import batch_price, charged_answers, computation_preview, quote
from discreet.accounting import spending_classes
from discreet.accounting.account import compose
from discreet.accounting.events import Event
from discreet.accounting.filters import Filter
from discreet.accounting.spending_classes import SUMS, ClassCurrency
from discreet.audit.planting import PlantedBug, Planter, get, swap, swap_all
from discreet.batch_price import PricedBatch
from discreet.curator import Curator
from discreet.engines.memory.engine import MemoryEngine
from discreet.entropy import SYSTEM
from discreet.exact import upper
from discreet.frontends.outer.outer_reader import OuterReader
from discreet.ledger import base_ledger, state
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.ledger import Charge
from discreet.ledger.policy import DATASET
from discreet.ledger.state import Rules, State
from discreet.local import krr
from discreet.local.person import Person
from discreet.offer import BudgetOffer
from discreet.privacy import Budget
from discreet.quote_desk import QuoteDesk
from discreet.release import Plan, Release


def _swap_cached(owner: type, name: str, change: Any) -> Planter:
    """A bug in a cached property: ``change`` gets the object and the right value."""

    def make(right: Any) -> Any:
        found = cached_property(lambda self: change(self, get(right, self)))
        found.__set_name__(owner, name)
        return found

    return swap(owner, name, make)


def _without_selection(release: Release, _: tuple[Event, ...]) -> tuple[Event, ...]:
    drawn = (*release.noises.values(), *release.choices.values(), *release.ends.values())
    return tuple(event for mechanism in drawn for event in mechanism.events)


def _halve_charge(charge: Charge) -> Charge:
    kept = charge.events[: max(1, len(charge.events) // 2)]
    return replace(charge, events=kept, loss=compose(kept).loss)


def _halve_batch(right: Any) -> Any:
    def price(*given: Any, fixed: bool = False, **more: Any) -> PricedBatch:
        found: PricedBatch = right(*given, fixed=fixed, **more)
        return found if fixed else replace(found, charged=found.charged[: len(found.charged) // 2])

    return price


def _charge_first(right: Any) -> Any:
    """Of several questions at stated prices the first is charged."""

    def price(*given: Any) -> Any:
        quoted = right(*given)
        return replace(quoted, events=quoted.plans[0].events)

    return price


def _as_public(right: Any, place: str) -> Any:
    """A method that takes all tables of its object's catalog for public ones."""

    def call(self: Any, *given: Any) -> Any:
        kept = getattr(self, place)
        shown = {name: replace(table, public=True) for name, table in kept.tables.items()}
        setattr(self, place, replace(kept, tables=shown))
        try:
            return right(self, *given)
        finally:
            setattr(self, place, kept)

    return call


def _without_delta(event: Event) -> Event:
    named: dict[str, Any] = {"delta": 0}
    return replace(event, **named) if getattr(event, "delta", 0) else event


def _reserve_without_delta(right: Any) -> Any:
    def reserve(self: BaseLedger, charge: Charge) -> Any:
        kept = tuple(map(_without_delta, charge.events))
        return right(self, replace(charge, events=kept, loss=compose(kept).loss))

    return reserve


def _swap_classes(planter: Planter) -> Planter:
    """A bug in the classes of a filter. What is stored of them is passed by, so that nothing wrong stays."""
    return swap_all(
        swap(spending_classes, "_make_classes", lambda right: right.__wrapped__),
        swap(state, "_currency_of", lambda right: right.__wrapped__),
        planter,
    )


def _add_without_mu(right: Any) -> Any:
    place = SUMS.index("mu_squared")

    def add(self: ClassCurrency, total: Any, price: Any) -> Any:
        return right(self, total, (*price[:place], Fraction(0), *price[place + 1 :]))

    return add


def _amend_anew(right: Any) -> Any:
    def amend(self: BaseLedger, **more: Any) -> Any:
        found = right(self, **more)
        self.state.totals.pop(DATASET, None)
        return found

    return amend


def _refund(right: Any) -> Any:
    def fail(self: BaseLedger, reservation: Any) -> None:
        right(self, reservation)
        self.state.totals.pop(DATASET, None)

    return fail


def _go_on(right: Any) -> Any:
    def fail(self: BaseLedger, reservation: Any) -> None:
        right(self, reservation)
        self.state.stopped.clear()

    return fail


def _draw_anew(right: Any) -> Any:
    def make(self: Person, task: Any, purpose: str, value: bytes, length: int) -> bytes:
        fresh = SYSTEM.bits(8 * length).to_bytes(length, "big")
        found: bytes = fresh if purpose == "permanent" else right(self, task, purpose, value, length)
        return found

    return make


def _read_first(right: Any) -> Any:
    """Data is read, and only then the question is charged."""

    def answer(self: Curator, quoted: Any, *more: Any) -> Any:
        for plan in quoted.plans:
            for release in plan.releases:
                self._charged.run(release, None, generous=False)
        return right(self, quoted, *more)

    return answer


def _double_limits(right: Any) -> Any:
    """Limits for twice the ε. What is stored of currencies is passed by, so that nothing wrong stays."""

    def find(budget: Budget, *more: Any) -> Any:
        taken = budget.with_amount(2 * upper(budget.amount())) if budget.notion == "approx" else budget
        return right.__wrapped__(taken, *more)

    return find


CHARGES = (
    PlantedBug(
        name="keys for free",
        changes="the rule that names private keys is not charged",
        section="questions",
        plant=_swap_cached(Release, "events", _without_selection),
    ),
    PlantedBug(
        name="one grouping charged",
        changes="of several groupings the first is charged",
        section="questions",
        plant=_swap_cached(Plan, "events", lambda plan, _: plan.releases[0].events),
    ),
    PlantedBug(
        name="a question at half its price",
        changes="the ledger is charged half of what is released, and the answer says the whole",
        section="curator",
        plant=swap(QuoteDesk, "make_charge", lambda right: lambda *given, **more: _halve_charge(right(*given, **more))),
    ),
    PlantedBug(
        name="a batch at half its price",
        changes="the ledger is charged half of a batch",
        section="curator",
        plant=swap(quote, "price_batch", _halve_batch),
    ),
    PlantedBug(
        name="a fixed batch at twice its ε",
        changes="the noise of a fixed batch is for twice the charged ε",
        section="curator",
        plant=swap(
            batch_price,
            "_find_largest",
            lambda right: lambda make_plans, epsilon, slack: right(make_plans, 2 * epsilon, slack),
        ),
    ),
    PlantedBug(
        name="a computation at the price of its first question",
        changes="of the questions of a computation that state their prices the first is charged",
        section="curator",
        plant=swap(computation_preview, "quote_each", _charge_first),
    ),
    PlantedBug(
        name="private tables beside released answers",
        changes="what stands outside of SELECT WITH DIFFERENTIAL_PRIVACY reads private tables, and engines show them",
        section="curator",
        plant=swap_all(
            swap(OuterReader, "_find_table", lambda right: _as_public(right, "catalog")),
            swap(MemoryEngine, "count_public", lambda right: _as_public(right, "_catalog")),
            swap(MemoryEngine, "read_public", lambda right: _as_public(right, "_catalog")),
        ),
    ),
    PlantedBug(
        name="a share that buys twice as much",
        changes="shares of the budget that sum to one cost more than all of it",
        section="curator",
        plant=swap(BudgetOffer, "to_share", lambda right: lambda self: 2 * right(self)),
    ),
    PlantedBug(
        name="shares that are not counted",
        changes="each share is priced, and charged, as if it were the first",
        section="curator",
        plant=swap_all(
            swap(ClassCurrency, "share_left", lambda _: lambda *_given: Fraction(1)),
            swap(ClassCurrency, "fits", lambda _: lambda *_given: True),
        ),
    ),
    PlantedBug(
        name="identity without the data's version",
        changes="after the data changed, old answers and unfinished charges are taken for new ones",
        section="curator",
        plant=swap(
            quote,
            "_identify",
            lambda right: lambda name, plans, versions, charged: right(name, plans, [""] * len(versions), charged),
        ),
    ),
    PlantedBug(
        name="identity without the dataset",
        changes="another dataset's answers would be taken for its own",
        section="curator",
        plant=swap(quote, "_identify", lambda right: lambda _, *more: right("", *more)),
    ),
    PlantedBug(
        name="a constant salt",
        changes="the secret order is known to everybody",
        section="curator",
        plant=swap(charged_answers, "_draw_salt", lambda _: lambda _source: b"\0" * 16),
    ),
    PlantedBug(
        name="a retry draws again",
        changes="an interrupted question gets fresh noise for the same charge",
        section="curator",
        plant=swap_all(
            swap(BaseLedger, "claim", lambda _: lambda *_given: None),
            swap(BaseLedger, "record_draw", lambda _: lambda *_given: None),
        ),
    ),
    PlantedBug(
        name="data before the charge",
        changes="a question that is refused has read the data",
        section="curator",
        plant=swap(Curator, "_answer", _read_first),
    ),
    PlantedBug(
        name="a failure is refunded",
        changes="a question that failed after it read data costs nothing",
        section="curator",
        plant=swap(BaseLedger, "fail", _refund),
    ),
    PlantedBug(
        name="a failure stops nobody",
        changes="failures may be caused again and again",
        section="curator",
        plant=swap(BaseLedger, "fail", _go_on),
    ),
)

LEDGER = (
    PlantedBug(
        name="a ledger that ignores δ",
        changes="the δ of charges is not summed",
        section="ledger",
        plant=swap(BaseLedger, "reserve", _reserve_without_delta),
    ),
    PlantedBug(
        name="a filter that ignores δ",
        changes="the δ of charges is not summed",
        section="ledger",
        plant=swap(Filter, "charge", lambda right: lambda self, charge: right(self, _without_delta(charge))),
    ),
    PlantedBug(
        name="classes that do not share δ",
        changes="each order of Rényi divergence has the whole δ that all classes should share",
        section="ledger",
        plant=_swap_classes(
            swap(
                spending_classes,
                "_make_classes",
                lambda right: lambda epsilon, rest: (*right(epsilon, rest)[:2], *right(epsilon, 4 * rest)[2:]),
            )
        ),
    ),
    PlantedBug(
        name="a class with too large a limit",
        changes="the μ of Gaussian noise may be a tenth more than its δ allows",
        section="ledger",
        plant=_swap_classes(
            swap(
                spending_classes,
                "mu_for",
                lambda right: lambda epsilon, delta: right(epsilon, delta) * Fraction(11, 10),
            )
        ),
    ),
    PlantedBug(
        name="a class whose sum is not counted",
        changes="the μ² of charges is not summed, so its class always holds",
        section="ledger",
        plant=swap(ClassCurrency, "add", _add_without_mu),
    ),
    PlantedBug(
        name="limits for twice the ε",
        changes="sums of a budget with ε and δ are compared with limits that are too large",
        section="ledger",
        plant=swap(state, "_currency_of", _double_limits),
    ),
    PlantedBug(
        name="sums at half the price",
        changes="half of each charge is counted",
        section="ledger",
        plant=swap(
            State,
            "charge",
            lambda right: lambda self, price, *more: right(self, tuple(Fraction(part) / 2 for part in price), *more),
        ),
    ),
    PlantedBug(
        name="a charge that is not counted before it is accepted",
        changes="the charge that exceeds the budget is accepted",
        section="ledger",
        plant=swap(
            State,
            "admit",
            lambda right: lambda self, price, *more: right(self, tuple(0 * part for part in price), *more),
        ),
    ),
    PlantedBug(
        name="amend forgets what is spent",
        changes="a change of the budget or the policy gives the whole budget again",
        section="ledger",
        plant=swap(BaseLedger, "amend", _amend_anew),
    ),
    PlantedBug(
        name="amend forgets what analysts spent",
        changes="a new cap begins at zero",
        section="ledger",
        plant=swap(base_ledger, "sum_under", lambda _: lambda *_given, **_more: {}),
    ),
    PlantedBug(
        name="restore forgets",
        changes="what was spent after the backup is there again",
        section="ledger",
        plant=swap(State, "restore", lambda _: lambda *_given: None),
    ),
    PlantedBug(
        name="caps are not counted",
        changes="an analyst may spend more than the cap",
        section="ledger",
        plant=swap(
            Rules,
            "find_buckets",
            lambda right: lambda self, *given: (found for found in right(self, *given) if found[2] is None),
        ),
    ),
)

LOCAL = (
    PlantedBug(
        name="answers kept too often",
        changes="a person's true answer is reported more often than stated",
        section="local",
        plant=swap(krr, "is_below", lambda right: lambda words, keep: right(words, keep + (1 << 59))),
    ),
    PlantedBug(
        name="a stated loss that is too small",
        changes="a report is said to cost less than it does",
        section="local",
        plant=swap(krr, "response_loss", lambda right: lambda keep, size: right(keep - keep // 10, size)),
    ),
    PlantedBug(
        name="a person who does not count",
        changes="reports are made beyond the person's budget",
        section="local",
        plant=swap(Person, "_charge", lambda _: lambda _self, memory, _task: memory),
    ),
    PlantedBug(
        name="a new report for an old answer",
        changes="the same answer is reported with fresh noise every time",
        section="local",
        plant=swap(Person, "_make_stream", _draw_anew),
    ),
)
