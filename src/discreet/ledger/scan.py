"""Walk a whole ledger: every line follows from the one before, every answer has its hash in the log, the sums hold."""

from __future__ import annotations

import hashlib
import json
import re
from json.encoder import encode_basestring_ascii as quoted

from discreet.errors import LedgerDamaged
from discreet.ledger.amounts import budget_load
from discreet.ledger.policy import Policy
from discreet.ledger.state import Rules, State, sums_under
from discreet.ledger.store import Row, Store

_LOOK = "Nothing is released until a person has looked: see docs/ledger.md. Nothing was charged."


def scan(store: Store, *, strictly: bool = False) -> State:
    """The state that a store's lines add up to, or LedgerDamaged.

    ``strictly`` also checks that no limit was ever exceeded, that amendments began with the right sums, and the
    store's own bookkeeping of its file.
    """
    try:
        return _walk(store, strictly=strictly)
    except (ValueError, TypeError, AttributeError, KeyError):  # values of kinds that no ledger of ours holds
        raise LedgerDamaged(f"The ledger's file is damaged. {_LOOK}") from None


def _walk(store: Store, *, strictly: bool) -> State:
    state = State()
    due: dict[int, tuple[int, str]] = {}  # lines that must record an answer, and which
    judge = _Judge(store) if strictly else None
    for number, line, row in store.rows():
        match = state.absorb(number, line)
        kind = match["kind"]
        if row is not None:
            _check_names(match, line, row)
            if row.answered is not None and row.answer is not None:
                due[row.answered] = (number, hashlib.sha256(row.answer.encode()).hexdigest())
            elif row.answered is not None or row.answer is not None:
                raise LedgerDamaged(f"The answer of entry {number} is not whole. {_LOOK}")
        elif kind == "reserved":
            raise LedgerDamaged(f"Entry {number} of the ledger has lost its reservation. {_LOOK}")
        if kind == "answered" and due.pop(number, None) != (int(match["of"]), match["answer"]):
            raise LedgerDamaged(f"The answer recorded in entry {number} was changed or is missing. {_LOOK}")
        if judge is not None:
            judge.see(state, match, line)
    if due or store.head() != (state.number, state.hash):
        raise LedgerDamaged(f"The end of the ledger was changed, or is missing. {_LOOK}")
    if state.number < 0:
        raise LedgerDamaged(f"The ledger has no entries. {_LOOK}")
    if judge is not None:
        store.check()
    return state


def _check_names(match: re.Match[str], line: str, row: Row) -> None:
    """A reservation must be found under the names that its line has."""
    names = f'"request":{quoted(row.request)},"identity":{quoted(row.identity)},'
    if match["analyst"] != quoted(row.analyst) or not line.startswith(names, match.end()):
        raise LedgerDamaged(f"The reservation of entry {row.number} was changed. {_LOOK}")


class _Judge:
    """Sees that every charge was allowed when it was made."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def see(self, state: State, match: re.Match[str], line: str) -> None:
        """Take in a line that the state has just taken in."""
        kind = match["kind"]
        if kind == "reserved":
            analyst, project = json.loads(match["analyst"]), json.loads(match["project"])
            for bucket, currency, _ in state.rules.over(analyst, project, match["time"]):
                if not currency.fits(state.totals[bucket]):
                    raise LedgerDamaged(f"Entry {state.number} of the ledger exceeds a limit. {_LOOK}")
        elif kind == "amended":
            self._check_amendment(state.number, line)

    def _check_amendment(self, number: int, line: str) -> None:
        record = json.loads(line)
        rules = Rules.of(budget_load(record["budget"]), Policy.load(record["policy"]))
        earlier = (text for at, text in self._store.lines(0) if at < number)
        if sums_under(rules, earlier) != record["totals"]:
            raise LedgerDamaged(f"Entry {number} of the ledger begins with wrong sums. {_LOOK}")
