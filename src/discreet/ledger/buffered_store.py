"""Keeps the writes of a transaction until it commits, and then gives them to the database together.

With many questions in one transaction this takes a few calls instead of a few hundred. Reads use the kept writes first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field

from discreet.late_dataclass import dataclass
from discreet.ledger.store import Lease, ReservationRow


@dataclass
class PendingChanges:
    """Changes that are not in the database yet."""

    head: tuple[int, str] | None = None
    lines: list[tuple[int, str]] = field(default_factory=list)
    rows: dict[int, ReservationRow] = field(default_factory=dict)
    claims: dict[int, int] = field(default_factory=dict)
    draws: dict[int, tuple[int, str]] = field(default_factory=dict)
    answers: dict[int, tuple[int, str]] = field(default_factory=dict)
    leases: dict[int, Lease | None] = field(default_factory=dict)

    def apply(self, row: ReservationRow) -> ReservationRow:
        """A row with what this transaction added to it."""
        if row.claimed is None and row.number in self.claims:
            row = row._replace(claimed=self.claims[row.number])
        if row.drawn is None and row.number in self.draws:
            drawn, draw = self.draws[row.number]
            row = row._replace(drawn=drawn, draw=draw)
        if row.answered is None and row.number in self.answers:
            answered, answer = self.answers[row.number]
            row = row._replace(answered=answered, answer=answer)
        return row


RESERVATION_COLUMNS = ", ".join(ReservationRow._fields)


class BufferedStore(ABC):
    """A ``Store`` over a database. Subclasses have the methods that begin with an underscore; see also ``store.Store``.

    Both databases have the same tables, so the queries are written here once, with ``?`` for each value.
    """

    _pending: PendingChanges = PendingChanges()

    @abstractmethod
    def _begin(self, *, write: bool) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _rollback(self) -> None: ...

    @abstractmethod
    def _read_head(self) -> tuple[int, str]: ...

    @abstractmethod
    def _read_lines(self, first: int) -> Iterator[tuple[int, str]]: ...

    @abstractmethod
    def _find_rows(self, where: str, *values: object) -> list[ReservationRow]: ...

    @abstractmethod
    def _find_lease(self, number: int) -> Lease | None: ...

    @abstractmethod
    def _execute_many(self, query: str, values: Sequence[Sequence[object]]) -> None: ...

    def _write(self, pending: PendingChanges) -> None:
        """Give the changes to the database."""
        answers = [(answered, answer, number) for number, (answered, answer) in pending.answers.items()]
        leases = [(number, lease.owner, lease.until) for number, lease in pending.leases.items() if lease is not None]
        claims = [(claimed, number) for number, claimed in pending.claims.items()]
        draws = [(drawn, draw, number) for number, (drawn, draw) in pending.draws.items()]
        marks = ", ".join("?" * len(ReservationRow._fields))
        add_row = f"INSERT INTO reservations ({RESERVATION_COLUMNS}) VALUES ({marks})"  # noqa: S608  # a constant
        for query, values in (
            ("INSERT INTO lines VALUES (?, ?)", pending.lines),
            (add_row, list(pending.rows.values())),
            ("UPDATE reservations SET claimed = ? WHERE number = ? AND claimed IS NULL", claims),
            ("UPDATE reservations SET drawn = ?, draw = ? WHERE number = ? AND drawn IS NULL", draws),
            ("UPDATE reservations SET answered = ?, answer = ? WHERE number = ? AND answered IS NULL", answers),
            ("DELETE FROM leases WHERE number = ?", [(number,) for number in pending.leases]),
            ("INSERT INTO leases VALUES (?, ?, ?)", leases),
            ("UPDATE head SET number = ?, hash = ?", [] if pending.head is None else [pending.head]),
        ):
            if values:
                self._execute_many(query, values)

    def begin(self, *, write: bool) -> None:
        self._pending = PendingChanges()
        self._begin(write=write)

    def commit(self) -> None:
        self._flush()
        self._commit()

    def rollback(self) -> None:
        self._pending = PendingChanges()
        self._rollback()

    def _flush(self) -> None:
        pending, self._pending = self._pending, PendingChanges()
        if pending != self._pending:
            self._write(pending)

    def read_head(self) -> tuple[int, str]:
        return self._pending.head or self._read_head()

    def read_lines(self, first: int) -> Iterator[tuple[int, str]]:
        if self._pending.lines:
            self._flush()
        return self._read_lines(first)

    def append(self, number: int, line: str, digest: str) -> None:
        self._pending.lines.append((number, line))
        self._pending.head = (number, digest)

    def add_reservation(self, row: ReservationRow) -> None:
        self._pending.rows[row.number] = row

    def find_by_request(self, analyst: str, request: str) -> ReservationRow | None:
        fresh = [row for row in self._pending.rows.values() if (row.analyst, row.request) == (analyst, request)]
        found = fresh or self._find_rows("analyst = ? AND request = ?", analyst, request)
        return self._pending.apply(found[0]) if found else None

    def find_by_identity(self, identity: str) -> list[ReservationRow]:
        fresh = [row for row in self._pending.rows.values() if row.identity == identity]
        return [self._pending.apply(row) for row in (*self._find_rows("identity = ?", identity), *fresh)]

    def find_by_number(self, number: int) -> ReservationRow | None:
        fresh = self._pending.rows.get(number)
        found = [fresh] if fresh is not None else self._find_rows("number = ?", number)
        return self._pending.apply(found[0]) if found else None

    def add_claim(self, number: int, claimed: int) -> None:
        self._pending.claims[number] = claimed

    def add_draw(self, number: int, drawn: int, draw: str) -> None:
        self._pending.draws[number] = (drawn, draw)

    def add_answer(self, number: int, answered: int, answer: str) -> None:
        self._pending.answers[number] = (answered, answer)

    def find_lease(self, number: int) -> Lease | None:
        return self._pending.leases[number] if number in self._pending.leases else self._find_lease(number)

    def set_lease(self, number: int, lease: Lease | None) -> None:
        self._pending.leases[number] = lease
