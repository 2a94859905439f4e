"""The protocol of spending over any store. ``ledger`` states its guarantees, ``group_commit`` its transactions."""

from __future__ import annotations

import json
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Self

from discreet.accounting.currencies import Currency
from discreet.accounting.sums import Price
from discreet.entropy import SYSTEM
from discreet.errors import (
    BudgetExceeded,
    DrawLost,
    InternalError,
    LedgerDamaged,
    LedgerError,
    ParameterError,
    RequestConflict,
    RequestInFlight,
)
from discreet.exact import Exact
from discreet.ledger import chain, lease_owners
from discreet.ledger.amount_text import dump_budget
from discreet.ledger.chain import Head
from discreet.ledger.charge_history import describe_events, entry_of
from discreet.ledger.charge_price import ChargePrices
from discreet.ledger.frame_index import FrameIndex
from discreet.ledger.group_commit import GroupCommit
from discreet.ledger.ledger import Charge, Entry, Record, Reservation
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.log_scan import scan
from discreet.ledger.policy import Policy, check_name
from discreet.ledger.record_reader import RecordReader
from discreet.ledger.state import COUNTING, EVERYONE, Rules, State, sum_under
from discreet.ledger.store import Lease, ReservationRow, Store
from discreet.privacy import Budget, Neighbours, Unit

# After this many seconds a run may be started again by another process, if nobody can know whether the first one ended.
LEASE = 600.0
# How many draws of one frame are looked through for what a question needs, newest first.
MOST_DRAWS = 100
_RETRY = "Ask again with the same request id; it is charged once."


class BaseLedger:
    """A ledger over a store. See ``ledger.Ledger`` for the protocol and its privacy.

    Make one with ``MemoryLedger``, ``SQLiteLedger.open`` or ``PostgresLedger.open``.
    """

    def __init__(
        self,
        store: Store,
        state: State | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        lease: float = LEASE,
    ) -> None:
        self._store = store
        self._state = state or State()
        self._commits = GroupCommit(store, self._state)
        self._write, self._read = self._commits.write, self._commits.read
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lease_time = lease
        self._frames = FrameIndex()
        self._prices = ChargePrices(self._state)
        self._records = RecordReader(store)
        self._session = lease_owners.begin_session()
        weakref.finalize(self, lease_owners.end_session, self._session)

    def write_opening(self, terms: LedgerTerms) -> None:
        """Write the first line of an empty store. The terms may name the ledger; else it gets a random name."""
        fields = terms.make_opening(str(uuid.UUID(int=SYSTEM.bits(128))))
        self._write(lambda: self._append("opened", fields))

    @property
    def state(self) -> State:
        """The sums and rules after all lines that this process has read."""
        return self._state

    @property
    def budget(self) -> Budget:
        return self._state.rules.budget

    @property
    def policy(self) -> Policy:
        """Caps and names in force."""
        return self._state.rules.policy

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._state.unit

    @property
    def neighbours(self) -> Neighbours:
        """Which datasets must look alike."""
        return self._state.neighbours

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return self._state.dataset

    def replay(self, identity: str, analyst: str | None = None) -> Reservation | None:
        def work() -> Reservation | None:
            for row in self._store.find_by_identity(identity):
                if analyst not in (None, row.analyst):
                    continue
                if row.answered is not None and self._records.read_record(row.number)["identity"] == identity:
                    return self._records.read_reservation(row, self._state.ledger)
            return None

        return self._read(work)

    def find_paid(self, identity: str, analyst: str, *, shared: bool = False) -> str | None:
        def work() -> str | None:
            rows = sorted(self._store.find_by_identity(identity), key=lambda row: row.answered is None)
            for row in rows:
                lost = row.claimed is not None and row.drawn is None
                if (row.analyst == analyst and not lost) or (shared and row.answered is not None):
                    record = self._records.read_record(row.number)
                    if record["identity"] == identity and record.get("paid"):
                        return str(record["paid"])
            return None

        return self._read(work)

    def find_draws(self, frame: str, analyst: str | None = None) -> Sequence[Reservation]:
        def work() -> list[Reservation]:
            self._frames.read_lines(self._store.read_lines(self._frames.next))
            rows = (self._store.find_by_number(number) for number in reversed(self._frames.find(frame)))
            whose = (row for row in rows if row is not None and analyst in (None, row.analyst))
            answered = (row for row in whose if row.answered is not None)
            return [self._records.read_reservation(row, self._state.ledger) for row in islice(answered, MOST_DRAWS)]

        return self._read(work)

    def find_request(self, analyst: str, request: str) -> Reservation | None:
        def work() -> Reservation | None:
            row = self._store.find_by_request(analyst, request)
            return None if row is None else self._records.read_reservation(row, self._state.ledger)

        return self._read(work)

    def fits(self, charge: Charge) -> bool:
        price = self._prices.find_price(charge)

        def work() -> bool:
            try:
                self._state.admit(price, charge.analyst, charge.project, self._read_clock())
            except (LedgerError, BudgetExceeded):
                return False
            return True

        return self._read(work)

    def reserve(self, charge: Charge) -> Reservation:
        price = self._prices.find_price(charge)
        dumped, loss = describe_events(charge.events)
        return self._write(lambda: self._reserve(charge, price, loss, dumped))

    def commit(self, reservation: Reservation, record: Record) -> Record:
        try:
            text = json.dumps(record, separators=(",", ":"))
        except (TypeError, ValueError) as error:
            raise InternalError("An answer must be plain JSON values to be recorded.") from error
        return self._write(lambda: self._commit(reservation, record, text))

    def claim(self, reservation: Reservation) -> None:
        self._write(lambda: self._claim(reservation))

    def record_draw(
        self, reservation: Reservation, draw: Record, not_before: datetime | None = None, frames: Sequence[str] = ()
    ) -> None:
        text = json.dumps(draw, separators=(",", ":"), allow_nan=False)

        def work() -> None:
            row = self._find_row(reservation)
            if row.claimed is None or row.drawn is not None:
                raise InternalError("A draw is recorded once, under a claim.")
            fields: dict[str, Any] = {"of": row.number, "draw": chain.digest(text)}
            if frames:
                fields["frames"] = list(frames)
            if not_before is not None:
                fields["not_before"] = chain.time_to_text(not_before)
            # How long a draw took is nobody's business where answers wait: it has the time of the line before.
            number = self._append("drawn", fields, None if not_before is None else self._state.time)
            self._store.add_draw(row.number, number, text)

        self._write(work)

    def abandon(self, reservation: Reservation) -> None:
        self._write(lambda: self._store.set_lease(reservation.number, None))

    def fail(self, reservation: Reservation) -> None:
        def work() -> None:
            row = self._find_row(reservation)
            stops = row.analyst if self._state.rules.policy.stops == "analyst" else EVERYONE
            self._append("failed", {"of": row.number, "stops": stops})
            self._store.set_lease(row.number, None)

        self._write(work)

    def allow(self, *, by: str, reason: str) -> Head:
        """Go on after a failure; who looked, and what was found, stays on record."""
        fields = {"by": check_name(by, "by"), "reason": _check_reason(reason)}

        def work() -> Head:
            if not self._state.stopped:
                raise LedgerError("The ledger is not stopped, so there is nothing to resume.")
            self._append("allowed", fields)
            return self._state.head

        return self._write(work)

    @property
    def counted(self) -> tuple[Currency, Price]:
        return self._read(lambda: (self._state.rules.currency, self._state.total))

    @property
    def spent(self) -> Exact:
        return self._read(lambda: self._state.spent)

    @property
    def remaining(self) -> Exact:
        return self._read(lambda: self._state.remaining)

    @property
    def head(self) -> Head:
        """The head of the log. Keep it elsewhere, and check it later with ``check_head``."""
        return self._read(lambda: self._state.head)

    @property
    def sums(self) -> Mapping[str, Any]:
        """The exact sums over the dataset on which the filter decides, by name."""
        return self._read(lambda: self._state.rules.currency.sums(self._state.total))

    def history(self) -> Sequence[Entry]:
        def work() -> tuple[Entry, ...]:
            rows = {row.number: row for row in self._store.read_reservations()}
            found = ((line, rows[number]) for number, line in self._store.read_lines(0) if number in rows)
            return tuple(entry_of(line, row, self._state.dataset) for line, row in found)

        return self._read(work)

    def scan(self) -> State:
        """Check the whole log and the store's own records; LedgerDamaged where anything is wrong."""
        return self._read(lambda: scan(self._store, strictly=True))

    def read_lines(self) -> list[str]:
        """The whole log, as text."""
        return self._read(lambda: [line for _, line in self._store.read_lines(0)])

    def read_line(self, number: int) -> str | None:
        """One line of the log, as text; None where there is none of this number."""
        found = self._read(lambda: next(self._store.read_lines(max(number, 0)), None))
        return found[1] if found is not None and found[0] == number else None

    def check_head(self, head: Head) -> None:
        """Refuse a log that does not contain the line of a head: it was cut back or forked, or is another log."""
        found = self.read_line(head.number)
        if head.ledger != self._state.ledger:
            raise LedgerDamaged("This is another ledger than the one the head was taken from.")
        if found is None or chain.digest(found) != head.hash:
            raise LedgerDamaged(
                f"The ledger does not hold entry {head.number} as the head has it: the file is older than the head, or "
                "was forked before it. Nothing is released until a person has looked: see `discreet help ledger`."
            )

    def close(self) -> None:
        lease_owners.end_session(self._session)
        self._commits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def amend(self, *, by: str, reason: str, budget: Budget | None = None, policy: Policy | None = None) -> Head:
        """Record another budget or policy, which is in force from now on. What is spent stays spent.

        Privacy: the guarantee is the budget that is in force in the end. That holds when the amendment was decided
        without looking at answers; a pure budget holds in any case (see ``accounting.filters.Odometer``).
        """
        fields = {"by": check_name(by, "by"), "reason": _check_reason(reason)}

        def work() -> Head:
            before = self._state.rules
            after = Rules.of(budget or before.budget, policy or before.policy)
            if after.budget.notion != before.budget.notion or type(after.currency) is not type(before.currency):
                raise LedgerError(
                    "A budget of another kind cannot take over what was counted. Keep the kind (ε, ε with δ, ρ or μ), "
                    "or start a dataset of another name. Nothing was changed."
                )
            lines = (line for _, line in self._store.read_lines(0))
            sums = sum_under(after, lines, with_dataset=after.counting != before.counting)
            declared = {
                "budget": dump_budget(after.budget),
                "policy": after.policy.dump(),
                "totals": sums,
                "counting": COUNTING,
            }
            self._append("amended", fields | declared)
            return self._state.head

        return self._write(work)

    def renew(self, *, by: str, reason: str, version: str = "") -> Head:
        """Declare that the data is now about other people, so that the whole budget is there again.

        Privacy: true only if no one of the earlier data is in the new data. A new version about the same people keeps
        the same budget, and needs no declaration.
        """
        fields = {"by": check_name(by, "by"), "reason": _check_reason(reason), "version": version}

        def work() -> Head:
            self._append("renewed", fields | {"counting": COUNTING})
            return self._state.head

        return self._write(work)

    def declare_restored(self, lost: Head | None, *, by: str, reason: str) -> Head:
        """Record that an older copy replaced the log. What was spent at the lost head stays spent.

        Nobody knows whose the lost charges were, so each cap counts all of them.
        """
        fields = {"by": check_name(by, "by"), "reason": _check_reason(reason)}
        if lost is None or lost.ledger != self._state.ledger:
            raise LedgerError("There is no head of a newer state of this ledger, so there is nothing to restore.")

        def work() -> Head:
            self._append("restored", fields | {"capped": True, "lost": asdict(lost)})
            return self._state.head

        return self._write(work)

    def _reserve(
        self, charge: Charge, price: Price, loss: Mapping[str, str], dumped: list[dict[str, Any]]
    ) -> Reservation:
        body = _fingerprint(charge, dumped, self._state.generation)
        row = self._store.find_by_request(charge.analyst, charge.request)
        if row is not None and self._records.read_record(row.number)["body"] != body:
            raise RequestConflict(
                "This request id was used for another question, or on data that was since renewed. Use a new id. "
                "Nothing was charged."
            )
        row = row or self._find_unfinished(charge, body)
        if row is not None:
            return self._resume(row)
        time = self._read_clock()
        self._state.admit(price, charge.analyst, charge.project, time)
        fields = {
            "price": [None if part is None else str(part) for part in price],
            "analyst": charge.analyst,
            "project": charge.project,
            "request": charge.request,
            "identity": charge.identity,
            "body": body,
            "version": charge.version,
            "question": charge.question,
            "events": dumped,
            "loss": loss,
            **({"paid": charge.paid} if charge.paid else {}),
        }
        number = self._append("reserved", fields, time)
        self._store.add_reservation(ReservationRow(number, charge.analyst, charge.request, charge.identity))
        self._take_lease(number)
        return Reservation(
            ledger=self._state.ledger,
            number=number,
            hash=self._state.hash,
            analyst=charge.analyst,
            request=charge.request,
        )

    def _find_unfinished(self, charge: Charge, body: str) -> ReservationRow | None:
        """A charge for the same question of the same analyst on the same data that can still be answered."""
        for row in self._store.find_by_identity(charge.identity):
            lost = row.claimed is not None and row.drawn is None
            unanswered = row.analyst == charge.analyst and row.answered is None and not lost
            if unanswered and self._records.read_record(row.number)["body"] == body:
                return row
        return None

    def _claim(self, reservation: Reservation) -> None:
        row = self._find_row(reservation)
        if row.claimed is not None:
            raise RequestInFlight(f"Another run of this question was quicker. {_RETRY}")
        self._state.check_running(row.analyst, charged=True)
        self._store.add_claim(row.number, self._append("claimed", {"of": row.number}))

    def _find_row(self, reservation: Reservation) -> ReservationRow:
        row = self._store.find_by_number(reservation.number)
        if row is None or reservation.ledger != self._state.ledger:
            raise InternalError("Nothing is drawn or recorded without a reservation.")
        return row

    def _resume(self, row: ReservationRow) -> Reservation:
        """A request that was made before: its answer, or leave to run it again under the same charge."""
        reservation = self._records.read_reservation(row, self._state.ledger)
        if reservation.record is not None or (reservation.draw is not None and self._is_due(reservation)):
            return reservation
        lease, now = self._store.find_lease(row.number), self._clock().timestamp()
        # A lease that ends later than any lease can end was given before the clock was set back.
        if lease is not None and now < lease.until <= now + self._lease_time and not lease_owners.is_gone(lease.owner):
            raise RequestInFlight(f"This question is being answered right now. {_RETRY} Nothing was charged.")
        if reservation.draw is not None:
            return reservation
        if row.claimed is not None:
            raise DrawLost
        self._append("resumed", {"of": row.number})
        self._take_lease(row.number)
        return reservation

    def _is_due(self, reservation: Reservation) -> bool:
        """Whether what was drawn may be told. Until then a request that runs looks the same, drawn or not."""
        return reservation.not_before is None or self._clock() >= reservation.not_before

    def _commit(self, reservation: Reservation, record: Record, text: str) -> Record:
        row = self._find_row(reservation)
        if row.answered is None:
            number = self._append("answered", {"of": row.number, "answer": chain.digest(text)})
            self._store.add_answer(row.number, number, text)
            self._store.set_lease(row.number, None)
            return record
        return self._records.read_answer(row)

    def _take_lease(self, number: int) -> None:
        until = self._clock().timestamp() + self._lease_time
        self._store.set_lease(number, Lease(lease_owners.name_of(self._session), until))

    def _append(self, kind: str, fields: Mapping[str, Any], time: str | None = None) -> int:
        number = self._state.number + 1
        line = chain.make_line(number, self._state.hash, kind, time or self._read_clock(), fields)
        self._state.absorb(number, line)
        self._store.append(number, line, self._state.hash)
        return number

    def _read_clock(self) -> str:
        """The time of the ledger, which is never earlier than any time in its log."""
        return max(self._state.time, chain.time_to_text(self._clock()))


def _fingerprint(charge: Charge, dumped: list[dict[str, Any]], generation: int) -> str:
    """A hash of what a request id means: the question and its events, but not the version of the data."""
    facts = [charge.analyst, charge.project, charge.question, dumped, generation]
    return chain.digest(json.dumps(facts, separators=(",", ":")))


def _check_reason(reason: object) -> str:
    if not isinstance(reason, str) or not reason.strip():
        raise ParameterError("reason", "is missing", "Say why, in a sentence: it stays on record.")
    return reason.strip()
