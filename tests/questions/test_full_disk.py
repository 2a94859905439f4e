"""A disk that is full while a question's rows lie in files: one constant sentence, and the same charge finishes it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet.engines.duckdb import unit_parts
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.session import Settings
from discreet.errors import EngineFailure
from discreet.ledger.base_ledger import BaseLedger

FULL = Path("/dev/full")  # every write to it ends with ENOSPC
COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_disk_fails_alike_and_is_finished_under_the_same_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts of rows that memory does not hold cannot be written; with room again the request is answered."""
    people = [f"secret-{i}" for i in range(500)]
    table = pa.table({"patient": range(500), "name": people, "ward": ["A", "B"] * 250})
    curator = discreet.curate(
        {"visits": table},
        unit="patient",
        max_groups=1,
        max_rows_per_group=1,
        keys={"ward": ["A", "B"]},
        budget=discreet.Budget(epsilon=20),
    )
    engine = curator._engine
    assert isinstance(engine, DuckDBEngine)
    engine._least_tallied = 0
    monkeypatch.setattr(Settings, "count_bytes", lambda _: 1000)
    find_path = unit_parts.UnitParts._find_path
    monkeypatch.setattr(unit_parts.UnitParts, "_find_path", lambda *_: FULL)
    with pytest.raises(EngineFailure) as failed:
        curator.ask(COUNTS, epsilon=10, request="r")
    assert "secret" not in str(failed.value) and "space" not in str(failed.value)
    assert "The charge stands" in str(failed.value) and failed.value.__cause__ is None
    assert not [path for path in engine._folder.rglob("*") if "level" in path.name]
    (charged,) = curator.history()
    monkeypatch.setattr(unit_parts.UnitParts, "_find_path", find_path)
    assert isinstance(curator.ledger, BaseLedger)
    curator.ledger.allow(by="cora", reason="the disk has room again")
    answer = curator.ask(COUNTS, epsilon=10, request="r")
    assert all(abs(n - 250) < 20 for n in answer.table["n"].to_pylist())
    assert [entry.charge for entry in curator.history()] == [charged.charge]
