"""The state after the lines of a log: the sums, the rules in force and the time.

Every process keeps a state of its own. Inside the transaction in which it decides, it first reads the lines that others
added. The sums follow from the lines alone, in exact numbers and in one order. So all processes agree, and there is no
second copy of the sums that could differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.accounting import currencies
from discreet.accounting import events as ev
from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_left
from discreet.accounting.currencies import Currency
from discreet.accounting.spending_classes import FAILURE_PART, ClassCurrency, price_from_old_sums
from discreet.accounting.sums import Price
from discreet.errors import BudgetExceeded, LedgerDamaged, LedgerError, LedgerStopped
from discreet.exact import Exact, lower, sqrt_lower, upper
from discreet.late_dataclass import dataclass
from discreet.ledger.amount_text import load_budget, price_to_text, read_price
from discreet.ledger.chain import START, Head, digest, make_line_start
from discreet.ledger.policy import DATASET, Bucket, Cap, Policy, period_of
from discreet.privacy import Budget, Neighbours, Unit

VERSION = 1
# Lines that say how far a charge came, and change no sum.
STEPS = ("resumed", "claimed", "drawn")
# Stands for all analysts: no name of one is empty.
EVERYONE = ""
KINDS = (
    "opened", "reserved", "resumed", "claimed", "drawn", "answered", "failed", "allowed", "amended", "renewed",
    "restored",
)  # fmt: skip

_TEXT = r'"(?:[^"\\]|\\.)*"'
START_OF_LINE = re.compile(
    r'"kind":"(?P<kind>[a-z]+)","time":"(?P<time>[0-9T:.-]{26}Z)"'
    rf'(?:,"price":(?P<price>\[[^\]]*\]),"analyst":(?P<analyst>{_TEXT}),"project":(?P<project>{_TEXT})'
    r'|,"of":(?P<of>[0-9]+)(?:,"(?:answer|draw)":"(?P<answer>[0-9a-f]{64})")?)?[,}]'
)
# How (ε, δ) is counted: in classes (``spending_classes``). Ledgers of version 0.1.0 say nothing and were counted in Σε
# and Σρ. They go on so until they are amended or renewed: a filter that changed while analysts look at answers would
# promise less than either.
COUNTING, OLD_COUNTING = "classes", "sums"
_HALT = "Nothing is released until a person has looked: see `discreet help ledger`. Nothing was charged."


@dataclass(frozen=True)
class Rules:
    """A budget and a policy, ready to be checked."""

    budget: Budget
    policy: Policy
    currency: Currency
    caps: tuple[tuple[Cap, Currency], ...]
    counting: str = COUNTING

    @classmethod
    def of(cls, budget: Budget, policy: Policy, counting: str = COUNTING) -> Rules:
        """The rules of a budget and a policy; refused where they cannot be counted together."""
        policy.check(budget)
        caps = tuple((cap, _currency_of(budget.with_amount(cap.limit), counting)) for cap in policy.caps)
        return cls(budget, policy, _currency_of(budget, counting), caps, counting)

    def read_price(self, record: Mapping[str, Any]) -> Price:
        """The price of a charge under these rules. One that was counted otherwise is found anew from its events."""
        price = read_price(json.dumps(record["price"], separators=(",", ":")))
        if len(price) == len(self.currency.nothing):
            return price
        return self.currency.price(compose([ev.load(event) for event in record["events"]]).loss)

    def read_sum(self, text: str) -> Price:
        """A sum that was written, under these rules."""
        total = read_price(text)
        return total if len(total) == len(self.currency.nothing) else price_from_old_sums(total)

    def find_buckets(self, analyst: str, project: str, time: str) -> Iterator[tuple[Bucket, Currency, Cap | None]]:
        """Every sum that a charge is added to, with its currency and its cap."""
        yield DATASET, self.currency, None
        whose = {"dataset": "", "analyst": analyst, "project": project}
        own = {(cap.over, cap.per) for cap, _ in self.caps if cap.name is not None and cap.name == whose[cap.over]}
        for cap, currency in self.caps:
            if cap.over == "query" or (cap.name is None and (cap.over, cap.per) in own):
                continue
            if cap.name is None or cap.name == whose[cap.over]:
                yield (cap.over, whose[cap.over], period_of(cap.per, time)), currency, cap


def _find_left(whole: Budget, currency: Currency, total: Price) -> Fraction:
    """What can still be charged of a budget or a cap of which a sum is spent, rounded down."""
    if isinstance(currency, ClassCurrency):
        return currency.largest_epsilon(total)
    if whole.notion == "gdp":  # squares add up
        return sqrt_lower(max(Fraction(0), lower(whole.amount()) ** 2 - total[0]))
    spent, amount = currency.amount_of(total), whole.amount()
    if not spent < amount or not currency.fits(total):
        return Fraction(0)
    return max(Fraction(0), lower(amount) - upper(spent))


@lru_cache(maxsize=256)
def _currency_of(budget: Budget, counting: str) -> Currency:
    if counting not in (COUNTING, OLD_COUNTING):
        raise LedgerError("This ledger was written by a newer version. Upgrade discreet.")
    if budget.notion == "approx" and counting == OLD_COUNTING:
        return ClassCurrency.of_old_ledger(budget)
    return currencies.choose_currency(budget, None, None, FAILURE_PART)


@dataclass
class State:
    """The sums and rules after line ``number``."""

    number: int = -1
    hash: str = START
    time: str = ""
    ledger: str = ""
    dataset: str = ""
    unit: Unit = field(default_factory=Unit)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    generation: int = 0
    charges: int = 0
    answers: int = 0
    # Who may not be charged until the owner has looked: analysts by name, or everyone.
    stopped: set[str] = field(default_factory=set)
    totals: dict[Bucket, Price] = field(default_factory=dict)
    # Prices of entries that were lost, nobody knows whose, with the time at which this was declared.
    lost: list[tuple[Price, str]] = field(default_factory=list)
    _rules: Rules | None = None

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        if self._rules is None:
            raise LedgerDamaged(f"The ledger has no first entry. {_HALT}")
        return self._rules

    @property
    def total(self) -> Price:
        """The sums over the dataset."""
        return self.totals.get(DATASET, self.rules.currency.nothing)

    @property
    def spent(self) -> Exact:
        """What is spent over the dataset, in the form of the budget, rounded up."""
        return self.rules.currency.amount_of(self.total)

    @property
    def remaining(self) -> Fraction:
        """What can still be charged over the dataset, rounded down; of (ε, δ) the ε of one pure release.

        Nothing where a limit was lowered below what is spent.
        """
        return _find_left(self.rules.budget, self.rules.currency, self.total)

    @property
    def head(self) -> Head:
        """The head of the log."""
        return Head(ledger=self.ledger, number=self.number, hash=self.hash, spent=price_to_text(self.total))

    def admit(self, price: Price, analyst: str, project: str, time: str) -> None:
        """Refuse a charge that the policy or a limit does not allow."""
        rules = self.rules
        rules.policy.admit(analyst, project)
        self.check_running(analyst)
        for rule, currency in rules.caps:
            if rule.over == "query" and not currency.fits(currency.add(currency.nothing, price)):
                raise BudgetExceeded(f"One question may cost at most {rule}; nothing was charged.")
        for bucket, currency, cap in rules.find_buckets(analyst, project, time):
            if not currency.fits(currency.add(self._sum_of(bucket, currency, cap), price)):
                of = repr(rules.budget) if cap is None else f"the cap of {cap}"
                whole = rules.budget if cap is None else rules.budget.with_amount(cap.limit)
                total = self._sum_of(bucket, currency, cap)
                left = describe_left(whole, _find_left(whole, currency, total), currency, total)
                raise BudgetExceeded(
                    f"The charge does not fit what is left of {of}: {left}. Offer less; nothing was charged."
                )

    def check_running(self, analyst: str, *, charged: bool = False) -> None:
        """Refuse while a failed question waits for the owner; what is already charged stays so."""
        if EVERYONE in self.stopped or analyst in self.stopped:
            raise LedgerStopped(charged=charged)

    def absorb(self, number: int, line: str) -> re.Match[str]:
        """Add the next line to the state; LedgerDamaged where it is not the next line of this log."""
        try:
            return self._absorb(number, line)
        except (ValueError, KeyError, TypeError):
            raise LedgerDamaged(f"Entry {number} of the ledger cannot be read. {_HALT}") from None

    def _absorb(self, number: int, line: str) -> re.Match[str]:
        start = make_line_start(self.number + 1, self.hash)
        match = START_OF_LINE.match(line, len(start)) if number == self.number + 1 and line.startswith(start) else None
        if match is None:
            raise LedgerDamaged(f"Entry {self.number + 1} of the ledger was changed, or is missing. {_HALT}")
        kind, time = match["kind"], match["time"]
        if time < self.time:
            raise LedgerDamaged(f"Entry {number} of the ledger is earlier than the one before. {_HALT}")
        if kind == "reserved" and match["price"]:
            self.charge(read_price(match["price"]), json.loads(match["analyst"]), json.loads(match["project"]), time)
        elif kind == "answered" and match["answer"]:
            self.answers += 1
        elif kind not in STEPS or not match["of"]:
            self._declare(kind, line)
        self.number, self.hash, self.time = number, digest(line), time
        return match

    def charge(self, price: Price, analyst: str, project: str, time: str) -> None:
        """Add a price to every sum that it belongs to."""
        for bucket, currency, cap in self.rules.find_buckets(analyst, project, time):
            self.totals[bucket] = currency.add(self._sum_of(bucket, currency, cap), price)
        self.charges += 1

    def _sum_of(self, bucket: Bucket, currency: Currency, cap: Cap | None) -> Price:
        """The sum so far. One that begins after entries were lost begins with the price of those.

        They may all have been of this analyst or project, and in the period in which the loss was declared or before.
        """
        found = self.totals.get(bucket)
        if found is not None:
            return found
        begin = currency.nothing
        if cap is not None:
            for price, time in self.lost:
                begin = currency.add(begin, price) if bucket[2] == period_of(cap.per, time) else begin
        return begin

    def restore(self, lost: Price, time: str) -> None:
        """Count what was lost with a newer log: once over the dataset, and against every cap.

        Rule: of a log with sum ``a`` that had grown to sum ``b``, the lost entries cost at most b − a together. Proof:
        sums only round up, so b is at least a plus their exact prices. Any of them may have been of any analyst, so
        every cap counts all of them.
        """
        before = self.total
        self.totals[DATASET] = _take_larger(before, lost)
        missing = tuple(
            None if a is None or b is None else max(b - a, Fraction(0)) for a, b in zip(before, lost, strict=True)
        )
        caps = {(cap.over, cap.per): currency for cap, currency in self.rules.caps if cap.over != "query"}
        for bucket, total in self.totals.items():
            for (over, per), currency in caps.items():
                if bucket[0] == over and bucket != DATASET and bucket[2] == period_of(per, time):
                    self.totals[bucket] = currency.add(total, missing)
        self.lost.append((missing, time))

    def _declare(self, kind: str, line: str) -> None:
        """Add a line that changes the rules."""
        record = json.loads(line)
        if (kind == "opened") != (self.number == -1):
            raise LedgerDamaged(f"The ledger does not begin with its first entry. {_HALT}")
        match kind:
            case "opened":
                if record["version"] != VERSION:
                    raise LedgerError("This ledger was written by a newer version. Upgrade discreet.")
                self.ledger, self.dataset = record["ledger"], record["dataset"]
                self.unit, self.neighbours = Unit(record["unit"]), Neighbours(record["neighbours"])
                self._rules = _read_rules(record)
            case "amended":
                before, counted = self.total, self.rules.currency
                self._rules = _read_rules(record)
                after = self._rules.currency
                if isinstance(counted, ClassCurrency) and isinstance(after, ClassCurrency):
                    before = after.take_over(before, counted)
                sums = {bucket: read_price(text) for bucket, text in _read_buckets(record["totals"])}
                self.totals = {DATASET: before} | sums
            case "renewed":
                self.generation += 1
                counting = record.get("counting", self.rules.counting)
                self._rules = Rules.of(self.rules.budget, self.rules.policy, counting)
                self.totals.clear()
                self.lost.clear()
            case "restored":
                lost = read_price(record["lost"]["spent"]) if record["lost"]["spent"] else self.total
                if "capped" in record:
                    self.restore(lost, record["time"])
                else:  # written before caps counted what was lost
                    self.totals[DATASET] = _take_larger(self.total, lost)
            case "failed":
                self.stopped.add(record["stops"])
            case "allowed":
                self.stopped.clear()
            case _:
                raise LedgerError(
                    "This ledger has entries of a kind that this version does not know. Upgrade discreet."
                )


def _take_larger(one: Price, other: Price) -> Price:
    """The larger of each sum; an unknown sum stays unknown."""
    return tuple(None if a is None or b is None else max(a, b) for a, b in zip(one, other, strict=True))


def _read_rules(record: Mapping[str, Any]) -> Rules:
    budget, policy = load_budget(record["budget"]), Policy.load(record["policy"])
    return Rules.of(budget, policy, record.get("counting", OLD_COUNTING))


def _read_buckets(record: Mapping[str, Any]) -> Iterator[tuple[Bucket, str]]:
    for key, text in record.items():
        over, whose, period = json.loads(key)
        yield (over, whose, period), text


def sum_under(rules: Rules, lines: Iterable[str], *, with_dataset: bool = False) -> dict[str, str]:
    """The sums that an amendment begins with, as plain values: what the caps of ``rules`` would have counted so far.

    The sum over the dataset is among them only where it is counted otherwise from now on: then every charge is priced
    anew from its events.
    """
    counted = State(_rules=rules)
    for line in lines:
        record = json.loads(line)
        if record["kind"] == "renewed":
            counted.totals.clear()
            counted.lost.clear()
        elif record["kind"] == "restored" and "capped" in record and record["lost"]["spent"]:
            counted.restore(rules.read_sum(record["lost"]["spent"]), record["time"])
        elif record["kind"] == "reserved":
            counted.charge(rules.read_price(record), record["analyst"], record["project"], record["time"])
    return {
        json.dumps(bucket): price_to_text(price)
        for bucket, price in sorted(counted.totals.items())
        if with_dataset or bucket != DATASET
    }
