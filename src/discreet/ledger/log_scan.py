"""Checks a whole ledger: every line follows from the one before, every answer has its hash in the log, the sums hold.

To read a million entries in seconds, equal prices are counted first and added up when the rules change. The sums are
the same as those of adding one by one, as long as no sum has to be rounded. Where one may have been rounded, the prices
are added one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from json.encoder import encode_basestring_ascii as quoted
from typing import TypeAlias, TypeVar

from discreet.accounting.currencies import Currency, LogarithmCurrency
from discreet.accounting.sums import Price
from discreet.errors import LedgerDamaged
from discreet.ledger.amount_text import load_budget, read_price
from discreet.ledger.policy import Bucket, Policy
from discreet.ledger.state import OLD_COUNTING, START_OF_LINE, Rules, State, sum_under
from discreet.ledger.store import ReservationRow, Store

_LOOK = "Nothing is released until a person has looked: see `discreet help ledger`. Nothing was charged."
# Sums with longer denominators than this, in bits, may have been rounded on the way.
_EXACT = 100

# How lines go on after "kind":" , and how long the time is that follows.
_RESERVED, _TIME = 'reserved","time":"', 27
# Lines that say how far a charge came, each with what its reservation must say of it.
_STEPS = ('answered","time":"', 'claimed","time":"', 'drawn","time":"')
_CHARGE_TEXT = re.compile(r'","price":(\[[^\]]*\]),"analyst":("(?:[^"\\]|\\.)*"),"project":("(?:[^"\\]|\\.)*")')

T = TypeVar("T")
_ChargeKind: TypeAlias = tuple[str, str]
"""Charges that are alike: price, analyst and project as they are written, and the day."""


def scan(store: Store, *, strictly: bool = False) -> State:
    """The state that a store's lines add up to, or LedgerDamaged.

    ``strictly`` also checks that no limit was ever exceeded, that amendments began with the right sums, and the
    store's own bookkeeping of its file.
    """
    try:
        return _Walk(store, strictly=strictly).run()
    except (ValueError, TypeError, AttributeError, KeyError):  # values of kinds that no ledger of ours holds
        raise LedgerDamaged(f"The ledger's file is damaged. {_LOOK}") from None


class _Walk:
    """One pass over the lines and, at the same time, over the reservations."""

    def __init__(self, store: Store, *, strictly: bool) -> None:
        self.store, self.strictly, self.state = store, strictly, State()
        self.alike: Counter[_ChargeKind] = Counter()
        self.since = 0  # the first line under the present rules
        self.analysts = _Analysts()
        self.due: dict[int, str] = {}  # the lines that must record an answer, and how they must go on after their time

    def run(self) -> State:
        """The state at the end."""
        self._walk_lines()
        state = self.state
        if self.due or self.store.read_head() != (state.number, state.hash):
            raise LedgerDamaged(f"The end of the ledger was changed, or is missing. {_LOOK}")
        if state.number < 0:
            raise LedgerDamaged(f"The ledger has no entries. {_LOOK}")
        if self.strictly:
            self.store.check()
        return state

    def _walk_lines(self) -> None:
        state, due, alike = self.state, self.due, self.alike
        rows = _fetch_in_portions(self.store.read_reservations())
        sha256, analysts = hashlib.sha256, self.analysts
        number, previous, time = -1, state.hash, ""
        row = next(rows, None)
        for at, line in _fetch_in_portions(self.store.read_lines(0)):
            start = f'{{"number":{number + 1},"previous":"{previous}","kind":"'
            begin = len(start)
            if at != number + 1 or not line.startswith(start):
                raise LedgerDamaged(f"Entry {number + 1} of the ledger was changed, or is missing. {_LOOK}")
            if line.startswith(_STEPS, begin):
                kind = line[begin : line.index('"', begin)]
                begin += len(kind) + len('","time":"')
                said = due.pop(at, None)
                # The line may go on after what it must say, such as with the time before which nothing is told.
                if said is None or not (kind + line[begin + _TIME :]).startswith((f"{said}}}", f"{said},")):
                    raise LedgerDamaged(f"What entry {at} recorded was changed or is missing. {_LOOK}")
                when = line[begin : begin + _TIME]
                state.answers += kind == "answered"
            elif line.startswith(_RESERVED, begin):
                begin += len(_RESERVED)
                when, end = line[begin : begin + _TIME], line.index(',"request":', begin)
                text = line[begin + _TIME : end]
                if row is None or row.number != at or analysts[text] != row.analyst:
                    raise LedgerDamaged(f"Entry {at} of the ledger has lost its reservation. {_LOOK}")
                self._check_reservation(line, end, row)
                alike[text, when[:10]] += 1
                row = next(rows, None)
            else:
                when = self._take_other_line(at, line, number, previous, time)
            if when < time:
                raise LedgerDamaged(f"Entry {at} of the ledger is earlier than the one before. {_LOOK}")
            number, previous, time = at, sha256(line.encode()).hexdigest(), when
        if row is not None:
            raise LedgerDamaged(f"There are reservations that no entry made. {_LOOK}")
        self._add_up(number + 1)
        state.number, state.hash, state.time = number, previous, time

    def _check_reservation(self, line: str, end: int, row: ReservationRow) -> None:
        """Check that a reservation has the names of its line, and that its answer is complete."""
        if not line.startswith(f',"request":{quoted(row.request)},"identity":{quoted(row.identity)},', end):
            raise LedgerDamaged(f"The reservation of entry {row.number} was changed. {_LOOK}")
        if row.claimed is not None:
            self.due[row.claimed] = f'claimed","of":{row.number}'
        for kind, field, at, text in (
            ("drawn", "draw", row.drawn, row.draw),
            ("answered", "answer", row.answered, row.answer),
        ):
            if at is not None and text is not None:
                digest = hashlib.sha256(text.encode()).hexdigest()
                self.due[at] = f'{kind}","of":{row.number},"{field}":"{digest}"'
            elif at is not None or text is not None:
                raise LedgerDamaged(f"What was {kind} for entry {row.number} is not whole. {_LOOK}")

    def _take_other_line(self, at: int, line: str, number: int, previous: str, time: str) -> str:
        """Take a line that is neither a charge nor an answer: add up to here, and let the state absorb the line."""
        found = START_OF_LINE.search(line)
        if found is not None and found["kind"] == "resumed" and found["of"]:
            return found["time"]
        self._add_up(at)
        if self.strictly and '"kind":"amended"' in line[:120]:
            self._check_amendment(at, line)
        state = self.state
        state.number, state.hash, state.time = number, previous, time
        return state.absorb(at, line)["time"]

    def _add_up(self, end: int) -> None:
        """Add what was charged under the present rules, up to a line, and check that it was allowed."""
        if self.alike:
            state, rules = self.state, self.state.rules
            charges = state.charges + self.alike.total()
            grown: dict[Bucket, Currency] = {}
            for (text, day), times in self._count_charges(rules, end):
                price, who, what = _read_charge(text)
                when = f"{day}T"
                state.charge(_multiply(price, times), who, what, when)
                grown |= {bucket: currency for bucket, currency, _ in rules.find_buckets(who, what, when)}
            state.charges = charges
            if self.strictly and not all(currency.fits(state.totals[bucket]) for bucket, currency in grown.items()):
                raise LedgerDamaged(f"Entries of the ledger before number {end} exceed a limit. {_LOOK}")
        self.alike.clear()
        self.since = end

    def _count_charges(self, rules: Rules, end: int) -> Iterator[tuple[_ChargeKind, int]]:
        """The charges, equal ones together where no sum can have been rounded, otherwise one by one in order."""
        bottoms = [part.denominator for text, _ in self.alike for part in _read_charge(text)[0] if part is not None]
        before = [part.denominator for total in self.state.totals.values() for part in total if part is not None]
        if not isinstance(rules.currency, LogarithmCurrency) and math.lcm(*bottoms, *before).bit_length() <= _EXACT:
            return iter(self.alike.items())
        return self._read_one_by_one(end)

    def _read_one_by_one(self, end: int) -> Iterator[tuple[_ChargeKind, int]]:
        for at, line in self.store.read_lines(self.since):
            if at >= end:
                return
            begin = line.index('"kind":"') + len('"kind":"')
            if line.startswith(_RESERVED, begin):
                begin += len(_RESERVED)
                yield (line[begin + _TIME : line.index(',"request":', begin)], line[begin : begin + 10]), 1

    def _check_amendment(self, number: int, line: str) -> None:
        """Check that an amendment begins with the sums of what was charged before."""
        record = json.loads(line)
        rules = Rules.of(
            load_budget(record["budget"]), Policy.load(record["policy"]), record.get("counting", OLD_COUNTING)
        )
        earlier = (text for at, text in self.store.read_lines(0) if at < number)
        moves = rules.counting != self.state.rules.counting
        if sum_under(rules, earlier, with_dataset=moves) != record["totals"]:
            raise LedgerDamaged(f"Entry {number} of the ledger begins with wrong sums. {_LOOK}")


def _fetch_in_portions(items: Iterator[T]) -> Iterator[T]:
    """The same items, fetched in portions. Two streams that alternate at every item would be much slower."""
    while portion := list(islice(items, 512)):
        yield from portion


@lru_cache(maxsize=65_536)
def _read_charge(text: str) -> tuple[Price, str, str]:
    """The price, analyst and project from the text of a line."""
    found = _CHARGE_TEXT.fullmatch(text)
    if found is None:
        raise ValueError("not a charge")
    return read_price(found[1]), json.loads(found[2]), json.loads(found[3])


class _Analysts(dict[str, str]):
    """The analyst of each text of a charge, read once."""

    def __missing__(self, text: str) -> str:
        self[text] = _read_charge(text)[1]
        return self[text]


def _multiply(price: Price, count: int) -> Price:
    return price if count == 1 else tuple(None if part is None else part * count for part in price)
