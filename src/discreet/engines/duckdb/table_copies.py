"""Copies of tables that DuckDB must not read as they are, as Parquet files in the engine's private folder.

Lines of CSV are one reason: ``csv_lines`` says why. A copy belongs to one version of the data and is made when a
question first needs it: opening a dataset and looking at prices read no rows. Every question asks for the same copy,
all columns and all rows, so what is copied, and when, depends on no question.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.csv_lines import LineCounts, read_rows
from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.sources import Csv
from discreet.engines.failure import LOG

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class TableCopy:
    """A copy as a source."""

    path: str
    of_version: str

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def version(self) -> str:
        return self.of_version

    def attach(self, connection: DuckDBPyConnection) -> None:
        pass

    def write_from(self) -> str:
        return f"read_parquet([{quote_text(self.path)}], hive_partitioning = false)"


class TableCopies:
    """The copies of one engine: at most one of each table, of its present version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._made = 0
        self._copies: dict[tuple[str, ...], TableCopy] = {}

    def copy_lines(self, source: Csv) -> TableCopy:
        """The rows of CSV files. What was left out is counted in the curator's log."""
        with self._lock:
            version = source.version()
            known = self._copies.get(source.paths)
            if known is not None and known.of_version == version:
                return known
            path = self._make_room(source.paths)
            for place, counts in zip(source.paths, write_lines(source, path)):
                for fault, count in counts.faults.items():
                    LOG.warning("%d lines of %s are left out: %s.", count, place, fault.words)
            self._copies[source.paths] = copy = TableCopy(str(path), version)
            return copy

    def clear(self) -> None:
        """Forget the copies, whose folder goes away."""
        self._copies.clear()

    def _make_room(self, paths: tuple[str, ...]) -> Path:
        """A new file's name. The copy of an older version is removed."""
        old = self._copies.pop(paths, None)
        if old is not None:
            Path(old.path).unlink(missing_ok=True)
        self._made += 1
        return self._folder / f"copy-{self._made}.parquet"


def write_lines(source: Csv, path: Path) -> list[LineCounts]:
    """Write the rows of CSV files to a Parquet file that only its owner can read, and count for each file."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.string()) for name in source.names])

    def write(columns: list[Any]) -> None:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    with open_private(path) as file, parquet.ParquetWriter(file, schema) as writer:
        return [read_rows(name, len(source.names), write) for name in source.paths]


def open_private(path: Path) -> Any:
    """A new file to write, with the rights 0600 from its first moment."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
