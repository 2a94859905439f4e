"""What happens when the database fails in mid-question: the charge stands, one constant sentence, and nothing leaks.

Real faults of a real server: backends that are ended, a server that stops, a statement that fails and whose words quote
values. A planted word must be in no exception, on no stream and in no log but the curator's own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
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
from tests.ledger.server import Server

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


def write_clinic(folder: Path, rows: int) -> Path:
    """A codebook of a table with planted words."""
    table = pa.table(
        {
            "patient_id": list(range(rows)),
            "ward": ["A" if i % 3 else "B" for i in range(rows)],
            "note": [f"{PLANTED} {i}" for i in range(rows)],
        }
    )
    path = folder / "clinic.toml"
    path.write_text(CODEBOOK.format(table=load(table).path))
    return path


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Curator]:
    path = write_clinic(tmp_path, rows=3000)
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


def test_a_backend_that_is_ended_once_changes_nothing(clinic: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is tried once more, by itself, under the same charge."""
    ended = list[int]()
    break_reading(monkeypatch, 1, lambda: ended.append(end_backends()))
    clinic.ask(QUESTION, epsilon=1)
    assert sum(ended) >= 1 and find_left(clinic) == 1


def test_a_request_finishes_under_its_charge(
    clinic: Curator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Twice ended: one constant sentence, the charge stands; then the same request id is answered without another."""
    ended = list[int]()
    break_reading(monkeypatch, 2, lambda: ended.append(end_backends()))
    with pytest.raises(EngineFailure) as failure:
        clinic.ask(QUESTION, epsilon=1, request="mine")
    assert str(failure.value) == SENTENCE and sum(ended) >= 2
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


class Relay:
    """Stands between the curator and the server, and can cut what goes through it, as a network would."""

    def __init__(self, port: int) -> None:
        self._server, self._socket, self._open = port, socket.create_server(("127.0.0.1", 0)), list[socket.socket]()
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(("127.0.0.1", self._server))
                self._open += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError), target:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def cut(self) -> int:
        """End all connections; how many there were."""
        ended, self._open = self._open, []
        alive = sum(each.fileno() >= 0 for each in ended)
        for each in ended:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        return alive // 2

    def close(self) -> None:
        self.cut()
        self._socket.close()


def break_reading(monkeypatch: pytest.MonkeyPatch, times: int, fault: Callable[[], object]) -> None:
    """Let something happen just before the statement of a question runs, so many times."""
    read, left = PostgresSession.read, [times]

    def reading(session: Any, sql: str, parameters: Any) -> Any:
        if "scan" in sql and left[0]:
            left[0] -= 1
            fault()
        return read(session, sql, parameters)

    monkeypatch.setattr(PostgresSession, "read", reading)


def fail_then_finish(clinic: Curator, capfd: pytest.CaptureFixture[str], mend: Callable[[], object]) -> None:
    """A question fails with the constant sentence; mended, the same request is answered under the same charge."""
    with pytest.raises(EngineFailure) as failure:
        clinic.ask(QUESTION, epsilon=1, request="mine")
    assert str(failure.value) == SENTENCE and find_left(clinic) == 1
    assert PLANTED not in "".join(traceback.format_exception(failure.value))
    assert capfd.readouterr() == ("", "")
    mend()
    assert isinstance(clinic.ledger, BaseLedger)
    clinic.ledger.allow(by="owner", reason="mended")
    assert clinic.ask(QUESTION, epsilon=1, request="mine") is not None
    assert find_left(clinic) == 1


def test_a_connection_that_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the network, and not by the server: once is mended by itself, twice is a failure."""
    relay = Relay(database().started.port)
    path = write_clinic(tmp_path, rows=100)
    monkeypatch.setenv(ADDRESS, database().reader.replace(f":{database().started.port}/", f":{relay.port}/"))
    cuts = list[int]()
    with discreet.open(path) as curator:
        with monkeypatch.context() as patch:
            break_reading(patch, 1, lambda: cuts.append(relay.cut()))
            curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
        assert len(cuts) == 1 and cuts[0] > 0 and find_left(curator) == 1.5
    other = tmp_path / "other"
    other.mkdir()
    with discreet.open(write_clinic(other, rows=100)) as curator:
        break_reading(monkeypatch, 2, lambda: cuts.append(relay.cut()))
        fail_then_finish(curator, capfd, lambda: None)
    assert len(cuts) == 3 and all(cuts)
    relay.close()


def test_a_full_disk(clinic: Curator, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """There is no room for what does not fit into memory, in the second try neither, which has more memory."""
    reader = database().reader.split("//")[1].split("@")[0]
    memory = "work_memory"
    start = PostgresSession.__init__
    monkeypatch.setattr(PostgresSession, "__init__", lambda own, address, **_: start(own, address, **{memory: "64kB"}))
    database().execute(f"ALTER ROLE {reader} SET temp_file_limit = 0")
    try:
        fail_then_finish(clinic, capfd, lambda: database().execute(f"ALTER ROLE {reader} RESET temp_file_limit"))
    finally:
        database().execute(f"ALTER ROLE {reader} RESET temp_file_limit")


def test_a_backend_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the system, for want of memory say: the whole server starts anew, and lets nobody in meanwhile.

    So the second try fails, too. The server is one of this test alone.
    """
    started = Server()
    try:
        with psycopg.connect(started.address, autocommit=True) as connection:
            connection.execute("CREATE TABLE visits (patient_id bigint, ward text, note text)")
            connection.execute(f"INSERT INTO visits SELECT i, 'A', '{PLANTED}' FROM generate_series(1, 500) AS t(i)")
        path = tmp_path / "clinic.toml"
        path.write_text(CODEBOOK.format(table="public.visits"))
        monkeypatch.setenv(ADDRESS, started.address)
        with discreet.open(path) as curator:
            break_reading(monkeypatch, 1, lambda: kill_backend(started))
            fail_then_finish(curator, capfd, lambda: wait_for(started))
    finally:
        started.stop()


def kill_backend(started: Server) -> None:
    """End the backends of a server without a word."""
    with psycopg.connect(started.address, autocommit=True) as connection:
        others = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()
    for (pid,) in others:
        os.kill(pid, signal.SIGKILL)


def wait_for(started: Server) -> None:
    for _ in range(600):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(started.address):
            return
        threading.Event().wait(0.1)
    raise AssertionError("the server does not come back")


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
