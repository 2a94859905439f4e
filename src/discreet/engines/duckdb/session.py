"""One locked-down DuckDB connection for one question at a time.

Sources are attached first; then the file system is closed but for the files of the question, extensions and settings
are locked, and only SQL that ``statement`` wrote is run. Statements run beside the calling thread, which meanwhile
reports progress and can be interrupted.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from discreet.engines.duckdb.dialect import pick_parameters, quote_text
from discreet.engines.duckdb.sources import Source
from discreet.engines.engine import ProgressCallback
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

# Rows that are fetched at a time, where an answer is read row by row.
BATCH_ROWS = 4096
# Rows of a public table that may stay for the next question.
MOST_KEPT = 1024
# Cells of all groups together that one array may count.
MOST_CELLS = 1 << 24
# Memory that is taken for granted where a setting is not a number of bytes.
_USUAL_BYTES = 1 << 28
# DuckDB's words where it has no way to draw a progress bar.
_NO_WIDGETS = "required package 'ipywidgets' is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much of the machine a question may use."""

    threads: int
    memory_limit: str
    temp_directory: Path

    def make_generous(self) -> Settings:
        """For a second try: one thread, and four times the memory."""
        size = re.fullmatch(r"([0-9]+)(.*)", self.memory_limit)
        more = self.memory_limit if size is None else f"{4 * int(size[1])}{size[2]}"
        return replace(self, threads=1, memory_limit=more)

    def count_bytes(self) -> int:
        """The memory in bytes, where it is written as a number of them."""
        size = re.fullmatch(r"([0-9]+) ?([KMGT]?)(i?)B", self.memory_limit, re.IGNORECASE)
        if size is None:
            return _USUAL_BYTES
        factor: int = (1024 if size[3] else 1000) ** " KMGT".index(size[2].upper() or " ")
        return int(size[1]) * factor


class Session:
    """A connection that can read the sources of one question and nothing else."""

    def __init__(self, settings: Settings, sources: Sequence[Source]) -> None:
        import duckdb

        self.settings = settings
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": settings.threads,
            "memory_limit": settings.memory_limit,
            "temp_directory": str(settings.temp_directory),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "allow_persistent_secrets": "false",
            # A connection that waits for the next question keeps no rows in memory.
            "enable_external_file_cache": "false",
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self._cursors: list[DuckDBPyConnection] = []
        self._tables: set[str] = set()
        self._kept: dict[str, Any] = {}
        self._counted: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(settings.threads + 1)  # one waits for DuckDB
        self._running: list[Future[Any]] = []
        try:
            for source in sources:
                source.attach(self._connection)
            self._turn_on_progress()
            # It takes computed keys for equal ones, and then groups a whole table below a join for nothing.
            self._connection.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")
            # A file is named several times in a statement, and again in the next: what stands at its end is read once.
            # DuckDB looks at its time of change each time, and a session is for one version of its sources anyway.
            self._connection.execute("SET parquet_metadata_cache = true")
            self._lock([path for source in sources for path in source.paths])
        except BaseException:
            self.close()
            raise

    def _turn_on_progress(self) -> None:
        """Have DuckDB count how far a statement is, and print nothing.

        In a notebook without ipywidgets DuckDB refuses every setting of its progress bar, which is then off. So there
        a watcher hears of the end alone.
        """
        import duckdb

        try:
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")
        except duckdb.InvalidInputException as error:
            if _NO_WIDGETS not in str(error):
                raise

    def _lock(self, paths: Sequence[str]) -> None:
        listed = ", ".join(quote_text(path) for path in paths)
        for setting in (
            f"allowed_paths = [{listed}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")

    @property
    def most_cells(self) -> int:
        return MOST_CELLS

    def fill(self, table: str, values: Any) -> None:
        """Copy an Arrow table into the connection's own database, for all of its cursors and for this question."""
        if self._kept.pop(table, None) is not None:
            self._connection.execute(f"DROP TABLE {table}")
        self._tables.add(table)
        self._connection.register("incoming", values)
        self._connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def keep(self, table: str, values: Any) -> None:
        """Like ``fill``, for what a plan alone says. A small table stays: the next question often has the same."""
        known = self._kept.get(table)
        if known is None or not known.equals(values):
            self.fill(table, values)
            if values.num_rows <= MOST_KEPT:
                self._kept[table] = values
                self._tables.discard(table)

    def make_table(self, table: str, columns: Sequence[str]) -> None:
        """An empty table in the connection's own database, for all of its cursors."""
        self._tables.add(table)
        self._connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")

    def store(self, table: str, query: str, parameters: Mapping[str, str]) -> None:
        """Keep what a query yields in the connection's own database, for all of its cursors."""
        self._tables.add(table)
        self.run(f"CREATE TABLE {table} AS {query}", parameters)

    def count_rows(self, source: str) -> int:
        """The rows of a source, counted once: a connection belongs to one version of it."""
        if source not in self._counted:
            self._counted[source] = int(self.run(f"SELECT count(*) FROM {source}")[0][0])
        return self._counted[source]

    def append(self, table: str, values: Any) -> None:
        """Add an Arrow table to one that is the session's own, also while a stream is open."""
        cursor = self._open_cursor()
        self._tables.add(table)
        cursor.register("more", values)
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT * FROM more LIMIT 0")
        cursor.execute(f"INSERT INTO {table} SELECT * FROM more")
        cursor.unregister("more")

    def run(
        self, sql: str, parameters: Mapping[str, str] | None = None, watch: ProgressCallback | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one statement to its end and fetch what it yields."""
        given = pick_parameters(sql, parameters or {})

        def job() -> list[tuple[Any, ...]]:
            found: list[tuple[Any, ...]] = self._connection.execute(sql, given).fetchall()
            return found

        return self._wait(self._submit(job), lambda: self._report_progress(watch))

    def read(
        self, sql: str, parameters: Mapping[str, str] | None = None, watch: ProgressCallback | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Run one statement and give its rows one by one, of which a few thousand are fetched at a time."""
        given = pick_parameters(sql, parameters or {})
        fetch = partial(self._connection.fetchmany, BATCH_ROWS)

        def start() -> list[tuple[Any, ...]]:
            self._connection.execute(sql, given)
            return fetch()

        rows = self._wait(self._submit(start), lambda: self._report_progress(watch))
        while rows:
            yield from rows
            full = len(rows) == BATCH_ROWS
            rows = self._wait(self._submit(fetch), lambda: self._report_progress(watch)) if full else []

    def _report_progress(self, watch: ProgressCallback | None) -> None:
        share = 0.0 if watch is None else self._connection.query_progress()
        if watch is not None and 0 <= share <= 100:
            watch(share / 100)

    def stream(
        self, sql: str, parameters: Mapping[str, str], batch_rows: int, watch: ProgressCallback | None = None
    ) -> Iterator[Any]:
        """Run one statement and give its rows as Arrow batches, as they come."""

        def start() -> Any:
            return self._connection.sql(sql, params=pick_parameters(sql, parameters)).to_arrow_reader(batch_rows)

        reader = self._wait(self._submit(start), lambda: self._report_progress(watch))
        while (batch := self._wait(self._submit(next, reader, None), lambda: self._report_progress(watch))) is not None:
            yield batch

    def run_with_cursors(self, jobs: Sequence[Callable[[DuckDBPyConnection], T]]) -> Iterator[T]:
        """Run jobs, each with a cursor of its own, as ``pipe`` does."""
        free = [self._open_cursor() for _ in range(self.settings.threads + 1)]

        def run(job: Callable[[DuckDBPyConnection], T]) -> T:
            cursor = free.pop()
            try:
                return job(cursor)
            finally:
                free.append(cursor)

        return self.pipe(partial(run, job) for job in jobs)

    def pipe(self, jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run jobs beside each other and give their results in order.

        A few jobs ahead of the reader keep every thread busy and memory flat.
        """
        waiting: deque[Future[T]] = deque()
        for job in jobs:
            waiting.append(self._submit(job))
            if len(waiting) > self.settings.threads:
                yield self._wait(waiting.popleft(), lambda: None)
        while waiting:
            yield self._wait(waiting.popleft(), lambda: None)

    def _open_cursor(self) -> DuckDBPyConnection:
        self._cursors.append(self._connection.cursor())
        return self._cursors[-1]

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        future = self._pool.submit(work, *arguments)
        self._running = [known for known in self._running if not known.done()] + [future]
        return future

    def _wait(self, future: Future[T], tick: Callable[[], None]) -> T:
        try:
            while True:
                try:
                    return future.result(0.1)
                except TimeoutError:
                    tick()
        except BaseException:
            # A failure of one job, or an interrupt from the keyboard, ends the others before it goes on its way.
            self._stop()
            raise

    def _stop(self) -> None:
        """End whatever runs. Asked again and again, because a statement may only be about to start."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        while not all(future.done() for future in self._running):
            for connection in (self._connection, *self._cursors):
                connection.interrupt()
            wait(self._running, timeout=0.02)

    def forget(self) -> None:
        """Drop what a question has made here; the sources stay, and what ``keep`` keeps."""
        if not all(future.done() for future in self._running):
            raise InternalError("A statement of a question runs on.")
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()
        for table in sorted(self._tables):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        self._tables.clear()

    def close(self) -> None:
        """Forget everything."""
        self._stop()
        for connection in (*self._cursors, self._connection):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
