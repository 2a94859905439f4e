"""Copies of tables that DuckDB must not read as they are, as Parquet files in the engine's private folder.

There are two reasons. Lines of CSV: ``csv_lines`` says why. And Parquet files with a text that is not UTF-8: DuckDB
fails as soon as a question reads a column with one, so one person's bytes would decide whether questions are answered.
In the copy such a text is NULL, alone. Most files have none, and finding out costs a whole reading; so a question is
run on the files, and only where DuckDB fails for this reason, on a copy, from then on. The answer is the same either
way: DuckDB decodes every text that can matter for a question (also for IS NULL), so a question that it answers from the
file met no such text.

A copy belongs to one version of the data and is made when a question first needs it: opening a dataset and looking at
prices read no rows. It has all columns and all rows, whatever the question.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.csv_lines import LineCounts, read_rows
from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.sources import Csv, Parquet
from discreet.engines.failure import LOG
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import decode_texts, is_text

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
        self._copies: dict[Csv | Parquet, TableCopy] = {}

    def find(self, source: Csv | Parquet) -> TableCopy | None:
        """The copy that was made of the present version, if one was."""
        known = self._copies.get(source)
        return known if known is not None and known.of_version == source.version() else None

    def copy_lines(self, source: Csv) -> TableCopy:
        """The rows of CSV files. What was left out is counted in the curator's log."""

        def write(path: Path) -> None:
            for place, counts in zip(source.paths, write_lines(source, path)):
                for fault, count in counts.faults.items():
                    LOG.warning("%d lines of %s are left out: %s.", count, place, fault.words)

        return self._make(source, write)

    def copy_texts(self, source: Parquet) -> TableCopy:
        """The rows of Parquet files, with NULL for every text that is not UTF-8; the curator's log says how many."""

        def write(path: Path) -> None:
            for name, count in write_texts(source, path).items():
                LOG.warning("%d texts of the column %s of %s are NULL: not UTF-8.", count, name, source.paths[0])

        return self._make(source, write)

    def clear(self) -> None:
        """Forget the copies, whose folder goes away."""
        self._copies.clear()

    def _make(self, source: Csv | Parquet, write: Callable[[Path], None]) -> TableCopy:
        """The copy of the present version, made if there is none. That of an older version is removed."""
        with self._lock:
            if (known := self.find(source)) is not None:
                return known
            old = self._copies.pop(source, None)
            if old is not None:
                Path(old.path).unlink(missing_ok=True)
            self._made += 1
            version, path = source.version(), self._folder / f"copy-{self._made}.parquet"
            try:
                write(path)
            except BaseException:
                path.unlink(missing_ok=True)  # half a copy is of no use, and the disk may be full
                raise
            self._copies[source] = copy = TableCopy(str(path), version)
            return copy


def write_lines(source: Csv, path: Path) -> list[LineCounts]:
    """Write the rows of CSV files to a Parquet file that only its owner can read, and count for each file."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.string()) for name in source.names])

    def write(columns: list[Any]) -> None:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    with open_private(path) as file, parquet.ParquetWriter(file, schema) as writer:
        return [read_rows(name, len(source.names), write, source.form) for name in source.paths]


def write_texts(source: Parquet, path: Path) -> dict[str, int]:
    """Write the rows of Parquet files with all text decoded, and count by column the texts that are none."""
    import pyarrow as pa
    from pyarrow import dataset, parquet

    stored = dataset.dataset(list(source.paths), format="parquet").schema
    texts = [field.name for field in stored if is_text(field.type)]
    as_bytes = pa.schema([field.with_type(pa.large_binary()) if is_text(field.type) else field for field in stored])
    schema = pa.schema([field.with_type(pa.large_string()) if is_text(field.type) else field for field in stored])
    lost = Counter[str]()
    files = dataset.dataset(list(source.paths), format="parquet", schema=as_bytes)
    with open_private(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for batch in files.to_batches():
            columns = dict(zip(batch.schema.names, batch.columns))
            decoded = {name: decode_texts(columns[name]) for name in texts}
            lost.update({name: values.null_count - columns[name].null_count for name, values in decoded.items()})
            writer.write_table(pa.table({**columns, **decoded}, schema=schema))
    return {name: count for name, count in lost.items() if count}


def open_private(path: Path) -> Any:
    """A new file to write, with the rights 0600 from its first moment."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
