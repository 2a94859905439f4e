"""What happens when the database fails in mid-question: the charge stands, one constant sentence, and nothing leaks.

Real faults of a real server: backends that are ended, a server that stops, a statement that fails and whose words quote
values. A planted word must be in no exception, on no stream and in no log but the curator's own.
"""

from __future__ import annotations

import logging
import re
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.curator import Curator
from discreet.engines.postgres.address import ADDRESS
from discreet.engines.postgres.dialect import PostgresDialect
from discreet.engines.postgres.session import PostgresSession
from discreet.errors import EngineFailure, LedgerStopped, UsageError
from discreet.ledger.base_ledger import BaseLedger
from tests.engines.postgres.loading import database, load

PLANTED = "planted-9f3a"
CODEBOOK = """
name = "clinic"
unit = "patient_id"
[budget]
epsilon = 2
[tables.visits]
source = {{ postgres = "{table}", release = "1" }}
max_rows = 3
[tables.visits.columns]
patient_id = "integer"
ward = {{ type = "text", keys = ["A", "B"] }}
note = "text"
"""
QUESTION = "SELECT ward, COUNT(*) AS n FROM visits WHERE length(note) > 2 GROUP BY ward"
SENTENCE = "The question could not be completed. The charge stands; the curator's log has details."


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Curator]:
    rows = 3000
    table = pa.table(
        {
            "patient_id": list(range(rows)),
            "ward": ["A" if i % 3 else "B" for i in range(rows)],
            "note": [f"{PLANTED} {i}" for i in range(rows)],
        }
    )
    path = tmp_path / "clinic.toml"
    path.write_text(CODEBOOK.format(table=load(table).path))
    monkeypatch.setenv(ADDRESS, database().reader)
    with discreet.open(path) as curator:
        yield curator


def end_backends() -> int:
    """End every backend of the reader; how many there were."""
    import psycopg

    reader = database().reader.split("//")[1].split("@")[0]
    with psycopg.connect(database().owner, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = %s", [reader]
        ).fetchone()
    return int(found[0]) if found else 0


class EndedBackends:
    """Ends the backend of a question just before its statement runs, so many times."""

    def __init__(self, times: int) -> None:
        self.left, self.ended = times, 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read = PostgresSession.read

        def reading(session: Any, sql: str, parameters: Any) -> Any:
            if "scan" in sql and self.left:
                self.left -= 1
                self.ended += end_backends()
            return read(session, sql, parameters)

        monkeypatch.setattr(PostgresSession, "read", reading)


def test_a_backend_that_is_ended_once_changes_nothing(clinic: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is tried once more, by itself, under the same charge."""
    fault = EndedBackends(1)
    fault.install(monkeypatch)
    clinic.ask(QUESTION, epsilon=1)
    assert fault.ended >= 1 and find_left(clinic) == 1


def test_a_request_finishes_under_its_charge(
    clinic: Curator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Twice ended: one constant sentence, the charge stands; then the same request id is answered without another."""
    fault = EndedBackends(2)
    fault.install(monkeypatch)
    with pytest.raises(EngineFailure) as failure:
        clinic.ask(QUESTION, epsilon=1, request="mine")
    assert str(failure.value) == SENTENCE and fault.ended >= 2
    assert find_left(clinic) == 1
    assert PLANTED not in "".join(traceback.format_exception(failure.value))
    assert capfd.readouterr() == ("", "")
    with pytest.raises(LedgerStopped):
        clinic.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    assert isinstance(clinic.ledger, BaseLedger)
    clinic.ledger.allow(by="owner", reason="the server was restarted")
    load(pa.table({"x": [1]}))  # somebody writes to another table
    answer = clinic.ask(QUESTION, epsilon=1, request="mine")
    assert answer is not None and find_left(clinic) == 1


def test_a_backend_ended_while_it_works(clinic: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before its statement but in the middle of it, by a statement that waits."""
    length = PostgresDialect.length
    monkeypatch.setattr(
        PostgresDialect, "length", lambda own, text: f"({length(own, text)} + length(CAST(pg_sleep(0.01) AS text)))"
    )
    stop, ended = threading.Event(), list[int]()

    def end() -> None:
        while not stop.wait(0.5):
            ended.append(end_backends())

    thread = threading.Thread(target=end)
    thread.start()
    try:
        with pytest.raises(EngineFailure) as failure:
            clinic.ask(QUESTION, epsilon=1)
    finally:
        stop.set()
        thread.join()
    assert sum(ended) >= 2 and str(failure.value) == SENTENCE and find_left(clinic) == 1


def test_words_that_quote_values_stay_in_the_curators_log(
    clinic: Curator,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A statement without guards fails, and PostgreSQL quotes the value. It is seen in the curator's log alone."""
    monkeypatch.setattr(PostgresDialect, "length", lambda _, text: f"CAST({text} AS bigint)")
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineFailure) as failure:
        clinic.ask(QUESTION, epsilon=1)
    seen: BaseException | None = failure.value
    while seen is not None:
        assert PLANTED not in "".join(traceback.format_exception(seen)) and PLANTED not in repr(seen.args)
        seen = seen.__cause__ or seen.__context__
    assert str(failure.value) == SENTENCE and capfd.readouterr() == ("", "")
    with_value = {record.name for record in caplog.records if record.exc_info and PLANTED in str(record.exc_info[1])}
    assert with_value == {"discreet.curator"}  # and the fault was one that quotes values
    assert all(PLANTED not in record.getMessage() for record in caplog.records)


def test_a_server_that_is_not_there(clinic: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers: refused before a charge, in words without an address; later the same question is answered."""
    with monkeypatch.context() as patch:
        patch.setattr(PostgresSession, "__init__", _connect_nowhere)
        with pytest.raises(UsageError, match="cannot be reached") as failure:
            clinic.ask(QUESTION, epsilon=1)
        assert "127.0.0.1" not in str(failure.value) and find_left(clinic) == 2
    clinic.ask(QUESTION, epsilon=1)


def _connect_nowhere(*_: Any, **__: Any) -> None:
    import psycopg

    psycopg.connect("postgresql://nobody@127.0.0.1:1/nowhere")


def find_left(curator: Curator) -> float:
    """What is left of the budget, in ε."""
    found = re.search(r"[0-9.]+", curator.remaining)
    assert found is not None
    return float(found[0])
