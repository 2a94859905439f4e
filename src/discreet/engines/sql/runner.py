"""What the modules of this room ask of a connection: to take public tables, and to run statements as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from discreet.engines.engine import ProgressCallback

T = TypeVar("T")


class Runner(Protocol):
    """Runs the statements of one question. Members: the sessions of ``duckdb``, ``postgres`` and ``spark``."""

    @property
    def most_cells(self) -> int:
        """So many cells of all groups may be counted here while rows stream by; 0 where streams of rows are slow."""
        ...

    def fill(self, table: str, values: Any) -> None:
        """Make a public Arrow table known under a name."""
        ...

    def stream(
        self, sql: str, parameters: Mapping[str, str], batch_rows: int, watch: ProgressCallback | None = None
    ) -> Iterator[Any]:
        """Run one statement and give its rows as Arrow batches, as they come."""
        ...

    def pipe(self, jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run jobs, beside each other where that is possible, and give their results in order."""
        ...
