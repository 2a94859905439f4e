"""One draw per charge, as the audit sees it; and ledgers that forget, which it must see."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from discreet.audit import repeated_requests
from discreet.audit.findings import Verdict
from discreet.ledger.memory import MemoryLedger, MemoryStore
from discreet.mechanisms.laplace import Laplace


def find_verdicts() -> list[Verdict]:
    return [finding.verdict for finding in repeated_requests.check_repeated_requests(quick=True)]


def test_the_audit_holds_and_leaves_nothing_behind() -> None:
    """Mechanisms and tracing are as they were."""
    release, trace = Laplace.release, sys.gettrace()
    assert find_verdicts() == [Verdict.HOLDS, Verdict.HOLDS]
    assert Laplace.release is release and sys.gettrace() is trace


def test_a_ledger_without_claims_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: as it once was, a request that was not answered is drawn again."""
    for name in ("claim", "record_draw"):
        monkeypatch.setattr(MemoryLedger, name, lambda *_: None)
    monkeypatch.setattr(MemoryStore, "find_lease", lambda *_: None)
    assert find_verdicts() == [Verdict.HOLDS, Verdict.BROKEN]


def test_a_ledger_that_does_not_know_a_request_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: what was asked before is charged and drawn under the same entry of the history."""
    history = MemoryLedger.history

    def forget(self: MemoryLedger) -> Any:
        return history(self)[:1]

    monkeypatch.setattr(MemoryLedger, "replay", lambda *_: None)
    monkeypatch.setattr(MemoryLedger, "find_draws", lambda *_: ())
    monkeypatch.setattr(MemoryLedger, "history", forget)
    assert find_verdicts()[0] is Verdict.BROKEN
