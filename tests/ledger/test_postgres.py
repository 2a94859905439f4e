"""PostgreSQL with several servers of ours: races, kills, a crash of the database, and settings that are refused."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, LedgerError, LedgerFailure, ParameterError, RequestInFlight
from discreet.ledger import administration
from discreet.ledger.postgres import VERSION, PostgresLedger, PostgresStore, _import_psycopg
from discreet.privacy import Budget
from tests.ledger.charges import ONE, TERMS, charge
from tests.ledger.processes import LARGE, PRICE, Outbox, ask, fork, kill, wait
from tests.ledger.server import Server, server


@pytest.fixture
def database() -> Server:
    return server()


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    return f"t_{os.getpid()}_{abs(hash(request.node.name)) % 10**8}"


def open_postgres(database: Server, schema: str, budget: Budget = ONE, **other: Any) -> PostgresLedger:
    return PostgresLedger.open(database.address, budget=budget, schema=schema, **{**TERMS, **other})


def check(database: Server, schema: str, outbox: Outbox) -> None:
    """Nothing released uncharged; every charge can be finished once."""
    with open_postgres(database, schema, LARGE, lease=0.0) as book:
        entries = {entry.charge.request: entry for entry in book.history()}
        assert book.spent == PRICE * len(entries)
        for request, record in outbox.released():
            assert book.reserve(charge(request, PRICE)).record == record
        for request in entries:
            ask(book, outbox, request)
        assert all(entry.answered for entry in book.history()) and book.spent == PRICE * len(entries)
        administration.verify(book)


def serve(database: Server, schema: str, outbox: Outbox, name: str, questions: int) -> None:
    book = open_postgres(database, schema, LARGE)
    for i in range(questions):
        ask(book, outbox, f"{name}-{i}")


def test_two_servers_one_killed(database: Server, schema: str, tmp_path: Path) -> None:
    """One of two servers is killed mid-way, again and again; the other goes on, and nothing is lost or overspent."""
    outbox, chance = Outbox(tmp_path), random.Random(3)  # noqa: S311  # moments of kills, not noise
    open_postgres(database, schema, LARGE).close()
    steady = fork(lambda: serve(database, schema, outbox, "steady", 150))
    for i in range(12):
        victim = fork(lambda i=i: serve(database, schema, outbox, f"victim {i}", 10_000))  # type: ignore[misc]  # one argument
        time.sleep(0.03 + chance.random() * 0.06)
        assert kill(victim) == -signal.SIGKILL
    assert wait(steady) == 0
    check(database, schema, outbox)
    assert sum(request.startswith("steady") for request, _ in outbox.released()) >= 150


def test_processes_race_for_a_tight_budget(database: Server, schema: str) -> None:
    """Sixteen processes, a budget of fifty charges: exactly fifty get through."""
    open_postgres(database, schema).close()

    def spend(who: int) -> None:
        book = open_postgres(database, schema)
        for i in range(8):
            with suppress(BudgetExceeded):
                book.commit(book.reserve(charge(f"{who}-{i}", Fraction(1, 50))), {})

    pids = [fork(lambda who=who: spend(who)) for who in range(16)]  # type: ignore[misc]  # one argument
    assert [wait(pid) for pid in pids] == [0] * 16
    with open_postgres(database, schema) as book:
        assert len(book.history()) == 50 and book.spent == 1
        administration.verify(book)


def test_a_crash_of_the_database_loses_nothing(database: Server, schema: str, tmp_path: Path) -> None:
    """After the server died as in a loss of power, an idle ledger connects again, and has everything."""
    outbox = Outbox(tmp_path)
    book = open_postgres(database, schema, LARGE)
    for i in range(5):
        ask(book, outbox, f"r{i}")
    held = book.reserve(charge("unfinished", PRICE))
    database.crash()
    book.commit(held, {"value": 1})
    assert len(book.history()) == 6
    book.close()
    check(database, schema, outbox)
    assert len(outbox.released()) >= 6


def test_settings_that_forget_are_refused(database: Server, schema: str) -> None:
    """A server that does not wait for its disk is not a place for a ledger."""
    with pytest.raises(LedgerError, match="does not wait"):
        PostgresLedger.open(
            f"{database.address}?options=-c%20synchronous_commit%3Doff", budget=ONE, schema=schema, **TERMS
        )


def test_bad_addresses_and_names(database: Server, schema: str) -> None:
    """No server, a name that is none, another codebook: refused with what to do."""
    with pytest.raises(LedgerFailure, match="cannot be used"):
        PostgresLedger.open("postgresql://tests@127.0.0.1:1/postgres?connect_timeout=2", budget=ONE, **TERMS)
    for name in ("", "A", 'x"; DROP TABLE lines', "x" * 64, None):
        with pytest.raises(ParameterError, match="schema"):
            open_postgres(database, name)  # type: ignore[arg-type]  # also wrong kinds
    open_postgres(database, schema).close()
    with pytest.raises(LedgerError, match="ledger amend"):
        open_postgres(database, schema, Budget(epsilon=2))
    with pytest.raises(LedgerError, match="another dataset"):
        open_postgres(database, schema, dataset="school")


def test_the_tables_only_grow_and_later_versions_are_refused(database: Server, schema: str) -> None:
    """Changes by hand are refused by the database; a later version asks for an upgrade."""
    with open_postgres(database, schema) as book:
        book.reserve(charge("r"))
    psycopg = _import_psycopg()
    with psycopg.connect(database.address, autocommit=True) as other:
        other.execute(f"SET search_path TO {schema}")
        for statement in ("UPDATE lines SET line = ''", "DELETE FROM lines", "TRUNCATE lines CASCADE"):
            with pytest.raises(psycopg.Error, match="append-only"):
                other.execute(statement)
        other.execute(f"UPDATE turns SET version = {VERSION + 1}")
    with pytest.raises(LedgerError, match="Upgrade"):
        open_postgres(database, schema)


def test_a_busy_database_says_so(database: Server, schema: str) -> None:
    """Who waits for longer than patience allows is told to ask again; nothing halts."""
    with open_postgres(database, schema, patience=0.1) as book:
        with _import_psycopg().connect(database.address) as other:
            other.execute(f"SET search_path TO {schema}")
            other.execute("LOCK TABLE turns IN EXCLUSIVE MODE")
            with pytest.raises(RequestInFlight, match="busy"):
                book.reserve(charge("r"))
            assert book.spent == 0
        assert book.reserve(charge("r")).record is None


def _connection_of(book: PostgresLedger) -> Any:
    assert isinstance(book._store, PostgresStore)
    return book._store.connection


def test_a_lost_idle_connection_is_opened_again(database: Server, schema: str) -> None:
    """While nothing is going on; a connection that is lost inside a transaction halts the ledger."""
    with open_postgres(database, schema) as book, _import_psycopg().connect(database.address, autocommit=True) as other:
        book.reserve(charge("a"))
        pid = _connection_of(book).info.backend_pid
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        book.commit(book.reserve(charge("b")), {"value": 1})
        assert _connection_of(book).info.backend_pid != pid

        def lose() -> None:
            other.execute("SELECT pg_terminate_backend(%s)", (_connection_of(book).info.backend_pid,))
            book._store.find_by_number(0)

        with pytest.raises(LedgerFailure):
            book._write(lose)
        with pytest.raises(LedgerFailure):
            book.reserve(charge("c"))
    with open_postgres(database, schema) as book:
        assert len(book.history()) == 2
