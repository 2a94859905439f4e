"""One locked-down DuckDB connection for one question.

Sources are attached first; then the file system is closed but for the files of the question, extensions and settings
are locked, and only SQL that ``statement`` wrote is run. Statements run beside the calling thread, which meanwhile
reports progress and can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from discreet.engines.dialect import quoted
from discreet.engines.engine import Watch
from discreet.engines.sources import Source

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much of the machine a question may use."""

    threads: int
    memory_limit: str
    temp_directory: Path


class Session:
    """A connection that can read one source and nothing else."""

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
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self._cursors: list[DuckDBPyConnection] = []
        self._pool = ThreadPoolExecutor(settings.threads)
        self._running: list[Future[Any]] = []
        try:
            for source in sources:
                source.attach(self._connection)
            self._lock([path for source in sources for path in source.paths])
        except BaseException:
            self.close()
            raise

    def _lock(self, paths: Sequence[str]) -> None:
        listed = ", ".join(quoted(path) for path in paths)
        for setting in (
            "enable_progress_bar = true",  # without it there is no progress to ask for
            "enable_progress_bar_print = false",
            f"allowed_paths = [{listed}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")

    def fill(self, table: str, values: Any) -> None:
        """Copy a public Arrow table into the connection's own database, for all of its cursors."""
        self._connection.register("incoming", values)
        self._connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def run(self, sql: str, parameters: Sequence[str] = (), watch: Watch | None = None) -> list[tuple[Any, ...]]:
        """Run one statement to its end and fetch what it yields."""

        def job() -> list[tuple[Any, ...]]:
            found: list[tuple[Any, ...]] = self._connection.execute(sql, list(parameters)).fetchall()
            return found

        def tick() -> None:
            share = self._connection.query_progress()
            if watch is not None and 0 <= share <= 100:
                watch(share / 100)

        return self._wait(self._submit(job), tick)

    def spread(self, jobs: Sequence[Callable[[DuckDBPyConnection], T]], collect: Callable[[T], None]) -> None:
        """Run jobs on as many cursors as there are threads; ``collect`` is called here, in no particular order."""
        free = [self._cursor() for _ in range(self.settings.threads)]

        def run(job: Callable[[DuckDBPyConnection], T]) -> T:
            cursor = free.pop()
            try:
                return job(cursor)
            finally:
                free.append(cursor)

        # A few jobs ahead of the collector are enough to keep every thread busy and memory flat.
        waiting = [self._submit(run, job) for job in jobs[: 2 * self.settings.threads]]
        for following in range(len(waiting), len(jobs) + len(waiting)):
            collect(self._wait(waiting.pop(0), lambda: None))
            if following < len(jobs):
                waiting.append(self._submit(run, jobs[following]))

    def _cursor(self) -> DuckDBPyConnection:
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
