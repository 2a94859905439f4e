"""Connections that are kept: nothing of one question reaches the next, and what failed is not used again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines.duckdb.session import MOST_KEPT, Session, Settings
from discreet.engines.duckdb.session_pool import MOST_IDLE, SessionPool
from discreet.engines.duckdb.sources import Database, Frame, Parquet


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(threads=1, memory_limit="200MB", temp_directory=tmp_path / "spill")


def test_a_connection_is_used_again_and_holds_nothing_of_before(settings: Settings) -> None:
    """Tables, cursors and settings of a question are gone; the lock stays."""
    pool, frame = SessionPool(), Frame(pa.table({"a": [1]}))
    with pool.lease(settings, [frame]) as first:
        first.fill("domain", pa.table({"k0": ["secret"]}))
        first.append("extra", pa.table({"x": [5]}))
        assert first.run("SELECT count(*) FROM domain") == [(1,)]
    with pool.lease(settings, [frame]) as second:
        assert second is first
        for gone in ("domain", "extra"):
            with pytest.raises(duckdb.CatalogException):
                second._connection.execute(f"SELECT * FROM {gone}")  # as a statement of ours would
        with pytest.raises(duckdb.Error):
            second._connection.execute("SET threads = 2")
        assert second.run(f"SELECT a FROM {frame.write_from()}") == [(1,)]
    pool.close()


def test_small_tables_of_plans_stay_until_there_are_others(settings: Settings) -> None:
    """What a plan says stays; what was found in rows does not, even under the same name."""
    pool, frame = SessionPool(), Frame(pa.table({"a": [1]}))
    groups = pa.table({"k0": ["A", "B"]})
    with pool.lease(settings, [frame]) as first:
        first.keep("domain", groups)
        first.keep("listed0", pa.table({"listed": range(MOST_KEPT + 1)}))
    with pool.lease(settings, [frame]) as second:
        assert second is first and second.run("SELECT count(*) FROM domain") == [(2,)]
        with pytest.raises(duckdb.CatalogException):
            second._connection.execute("SELECT * FROM listed0")
        second._connection.execute("DELETE FROM domain")  # to see whether it is made anew
        second.keep("domain", pa.table({"k0": ["A", "B"]}))
        assert second.run("SELECT count(*) FROM domain") == [(0,)]
        second.keep("domain", pa.table({"k0": ["C"]}))
        assert second.run("SELECT k0 FROM domain") == [("C",)]
        second.fill("domain", pa.table({"k0": ["private"]}))
        assert second.run("SELECT k0 FROM domain") == [("private",)]
    with pool.lease(settings, [frame]) as third:
        assert third is first
        with pytest.raises(duckdb.CatalogException):
            third._connection.execute("SELECT * FROM domain")
    pool.close()


def test_two_questions_never_share_one(settings: Settings) -> None:
    pool, frame = SessionPool(), Frame(pa.table({"a": [1]}))
    with pool.lease(settings, [frame]) as one, pool.lease(settings, [frame]) as other:
        assert one is not other
    pool.close()


def test_what_failed_is_not_used_again(settings: Settings) -> None:
    pool, frame = SessionPool(), Frame(pa.table({"a": [1]}))
    with pytest.raises(duckdb.Error), pool.lease(settings, [frame]) as first:
        first.run("SELECT nothing")
    with pool.lease(settings, [frame]) as second:
        assert second is not first
    pool.close()


def test_new_data_needs_a_new_connection(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of a file, other settings, another process."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    pool, source = SessionPool(), Parquet((str(path),))
    query = f"SELECT sum(a) FROM {source.write_from()}"
    with pool.lease(settings, [source]) as first:
        assert first.run(query) == [(1,)]
    pq.write_table(pa.table({"a": [1, 41]}), path)
    with pool.lease(settings, [source]) as second:
        assert second is not first and second.run(query) == [(42,)]
    with pool.lease(settings.make_generous(), [source]) as generous:
        assert generous not in (first, second)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pool.lease(settings, [source]) as forked:
        assert forked not in (first, second)
    pool.close()
    monkeypatch.undo()
    for left in (first, second, generous):
        left.close()


def test_a_database_file_is_let_go(settings: Settings, tmp_path: Path) -> None:
    """Its owner can write to it as soon as a question is over."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as own:
        own.execute("CREATE TABLE t AS SELECT 1 AS a")
    pool, source = SessionPool(), Database(str(path), "t")
    with pool.lease(settings, [source]) as session:
        assert session.run(f"SELECT a FROM {source.write_from()}") == [(1,)]
    with duckdb.connect(str(path)) as own:
        own.execute("INSERT INTO t VALUES (2)")


def open_and_close_beside_another(folder: str) -> None:
    """Two tables of a file, in many connections one after the other, while another one has the file."""
    path = Path(folder) / "t.duckdb"
    with duckdb.connect(str(path)) as own:
        own.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE s AS SELECT 2 AS a")
    settings = Settings(threads=1, memory_limit="200MB", temp_directory=Path(folder) / "spill")
    sources = [Database(str(path), table) for table in ("t", "s")]
    query = " UNION ALL ".join(f"SELECT a FROM {source.write_from()}" for source in sources)
    with Session(settings, sources) as other:
        for _ in range(100):
            with Session(settings, sources) as session:
                assert sorted(session.run(query)) == [(1,), (2,)]
        assert sorted(other.run(query)) == [(1,), (2,)]


def test_a_file_can_be_opened_after_others_closed_it(tmp_path: Path) -> None:
    """In a process of its own: with ATTACH IF NOT EXISTS DuckDB waits forever after some ten connections."""
    program = "import sys; from tests.engines.duckdb.test_session_pool import open_and_close_beside_another as work; "
    call = [sys.executable, "-c", program + "work(sys.argv[1])", str(tmp_path)]
    subprocess.run(call, check=True, timeout=120)  # noqa: S603


def test_few_connections_wait(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, close = list[Session](), Session.close

    def closing(session: Session) -> None:
        closed.append(session)
        close(session)

    monkeypatch.setattr(Session, "close", closing)
    pool = SessionPool()
    for number in range(MOST_IDLE + 2):
        with pool.lease(settings, [Frame(pa.table({"a": [number]}))]):
            pass
    assert len(closed) == 2
    pool.close()
    assert len(closed) == MOST_IDLE + 2
