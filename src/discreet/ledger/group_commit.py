"""Group commit: many threads share one transaction and one wait for the disk.

All threads of a process give their work to one of them, the leader, which does it in a single transaction. Each piece
of work decides inside the transaction, on a state that includes every line; a refusal writes nothing. If a write fails,
nothing of the batch counts as done, nothing is released, and the ledger halts. It must be opened again to find out what
reached the disk.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError, LedgerDamaged, LedgerFailure, RequestInFlight
from discreet.late_dataclass import dataclass
from discreet.ledger.state import State
from discreet.ledger.store import Store
from discreet.uninterrupted import run_uninterrupted

LOG = logging.getLogger("discreet.ledger")
T = TypeVar("T")

# The most pieces of work in one transaction.
_BATCH = 256
_HALTED = "The ledger could not be written and has halted. Open it again to see what was recorded."


@dataclass(eq=False)
class _Job(Generic[T]):
    """Work that waits for a leader."""

    work: Callable[[], T]
    value: list[T] = field(default_factory=list)
    error: Exception | None = None
    done: bool = False
    leads: bool = False
    # Released when the work is done, or when this thread must lead.
    ready: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.ready.acquire()


class GroupCommit:
    """Work on a store by many threads and processes, one transaction after the other."""

    def __init__(self, store: Store, state: State) -> None:
        self.store = store
        self.state = state
        self._halted: str | None = None
        self._led = False  # whether some thread leads, or was woken to lead
        self._reset_locks()

    def write(self, work: Callable[[], T]) -> T:
        """Do work in a transaction, together with everyone else who waits; durable when this returns.

        No interrupt reaches a transaction, so none can leave half of it behind or halt the ledger.
        """
        return run_uninterrupted(lambda: self._write(work))

    def _write(self, work: Callable[[], T]) -> T:
        if self._pid != os.getpid():
            self._reset_locks()
        job = _Job(work)
        with self._waiting:
            self._queue.append(job)
            leads = not self._led
            self._led = True
        try:
            if not leads:
                job.ready.acquire()
            if not job.done:
                self._lead_once()
        except BaseException:  # an interrupt: nobody may wait for a thread that has ended
            self._leave(job, leads=leads)
            raise
        if job.error is not None:
            raise job.error
        return job.value[0]

    def _leave(self, job: _Job[Any], *, leads: bool) -> None:
        """Withdraw work that was not begun, and let another thread lead."""
        with self._waiting:
            if job in self._queue:
                self._queue.remove(job)
                if leads or job.leads:
                    self._pass_on()

    def _lead_once(self) -> None:
        """Do everything that waits, in one transaction; then let the next one lead."""
        batch: list[_Job[Any]] = []
        try:
            with self._leader:
                with self._waiting:
                    batch = self._queue[:_BATCH]
                    del self._queue[:_BATCH]
                self._lead(batch)
        finally:
            with self._waiting:
                for job in batch:
                    job.ready.release()
                self._pass_on()

    def _pass_on(self) -> None:
        """Wake the next leader, if anyone waits."""
        self._led = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].ready.release()

    def read(self, work: Callable[[], T]) -> T:
        """Look at everything that is committed; out of reach of interrupts, as writing is."""
        return run_uninterrupted(lambda: self._read(work))

    def _read(self, work: Callable[[], T]) -> T:
        if self._pid != os.getpid():
            self._reset_locks()
        with self._leader:
            self._check_halted()
            try:
                self.store.begin(write=False)
                try:
                    self._catch_up()
                    return work()
                finally:
                    self.store.rollback()
            except LedgerDamaged as error:
                self._halted = str(error)
                raise
            except DiscreetError:
                raise
            except Exception as error:
                raise self._halt(error) from None

    def run_alone(self, work: Callable[[], T]) -> T:
        """Do something with the store, outside of transactions, while no other thread does."""
        with self._leader:
            self._check_halted()
            return work()

    def close(self) -> None:
        """Close the store; later calls are refused."""
        with self._leader:
            self._halted = self._halted or "The ledger was closed. Open it again."
            self.store.close()

    def _lead(self, batch: list[_Job[Any]]) -> None:
        try:
            self._check_halted()
            self.store.begin(write=True)
        except (LedgerFailure, RequestInFlight) as error:
            _finish(batch, error)
            return
        except BaseException as error:
            _finish(batch, self._halt(error))
            if not isinstance(error, Exception):
                raise  # an interrupt stays an interrupt
            return
        before = self.state.number
        try:
            self._catch_up()
            for job in batch:
                self._try(job)
            self.store.commit()
        except BaseException as error:  # a write that failed, in any way: nothing of this batch was done
            self._roll_back()
            _finish(batch, self._halt(error))
            if not isinstance(error, Exception):
                raise
            return
        if self.state.number > before:
            self.store.note_head(self.state.head)
        _finish(batch, None)

    def _try(self, job: _Job[Any]) -> None:
        try:
            job.value.append(job.work())
        except LedgerDamaged:
            raise
        except DiscreetError as refusal:
            job.error = refusal

    def _halt(self, error: BaseException) -> Exception:
        """Halt the ledger, and return the error for the callers."""
        if isinstance(error, LedgerDamaged):
            self._halted = str(error)
            return error
        LOG.error("The ledger could not be written.", exc_info=error)
        self._halted = _HALTED
        return LedgerFailure(
            "The ledger could not be written, so nothing was released. Open it again and ask again with the same "
            "request id; it is charged once."
        )

    def _roll_back(self) -> None:
        try:
            self.store.rollback()
        except Exception:  # the first error is the one that matters
            LOG.exception("The ledger could not be rolled back.")

    def _catch_up(self) -> None:
        """Read the lines that others added since, and check that the known ones are still there."""
        number, digest = self.store.read_head()
        state = self.state
        if (number, digest) == (state.number, state.hash):
            return
        if number > state.number:
            for following, line in self.store.read_lines(state.number + 1):
                state.absorb(following, line)
        if (number, digest) != (state.number, state.hash):
            raise LedgerDamaged(
                "The ledger is not the one it was a moment ago: entries were changed or taken away. Nothing is "
                "released until a person has looked: see `discreet help ledger`. Nothing was charged."
            )

    def _check_halted(self) -> None:
        if self._halted is not None:
            raise LedgerFailure(f"{self._halted} Nothing was released.")

    def _reset_locks(self) -> None:
        """Make new locks. In a forked child the parent's locks may be locked by threads that do not exist there."""
        self._pid = os.getpid()
        self._leader = threading.RLock()
        self._waiting = threading.Lock()
        self._queue: list[_Job[Any]] = []
        self._led = False


def _finish(batch: list[_Job[Any]], error: Exception | None) -> None:
    for job in batch:
        job.error = error or job.error
        job.done = True
