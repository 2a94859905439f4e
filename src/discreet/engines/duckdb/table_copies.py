"""Copies of tables that DuckDB must not read as they are, as Parquet files in the engine's private folder.

There are two reasons. Lines of CSV: ``csv_lines`` says why. And Parquet files with a text that is not UTF-8: DuckDB
fails as soon as a question reads a column with one, so one person's bytes would decide whether questions are answered.
In the copy such a text is NULL, alone. Most files have none, and finding out costs a whole reading; so a question is
run on the files, and only where DuckDB fails for this reason, on a copy, from then on. The answer is the same either
way: DuckDB decodes every text that can matter for a question (also for IS NULL), so a question that it answers from the
file met no such text.

A copy belongs to one version of the data and is made when a question first needs it: opening a dataset and looking at
prices read no rows. It has all columns and all rows, whatever the question. Declared numbers of CSV files are numbers
in the copy, read once by the rule of ``stored_texts``; everything else is kept as it is written. Nothing is packed,
which takes longer than asking; so a copy is about as large as the file.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.engines.duckdb.csv_lines import LineCounts, read_rows
from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.plain_lines import find_arrow_type
from discreet.engines.duckdb.scanning import StoredColumn, write_stored_column
from discreet.engines.duckdb.sources import Csv, Parquet
from discreet.engines.failure import LOG
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import decode_texts, is_text
from discreet.plan.types import Type

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


_CopyKey: TypeAlias = tuple[Csv | Parquet, tuple[Type | None, ...]]
"""What a copy is of, and the columns of it that are numbers."""


class TableCopies:
    """The copies of one engine: at most one of each table, of its present version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._made = 0
        self._copies: dict[_CopyKey, TableCopy] = {}

    def find(self, source: Csv | Parquet, kinds: tuple[Type | None, ...] = ()) -> TableCopy | None:
        """The copy that was made of the present version, if one was."""
        known = self._copies.get((source, kinds))
        return known if known is not None and known.of_version == source.version() else None

    def copy_lines(self, source: Csv, numbers: Mapping[str, Type]) -> TableCopy:
        """The rows of CSV files, with some columns as numbers. What was left out is counted in the curator's log."""
        kinds = tuple(map(numbers.get, source.names))

        def write(path: Path) -> None:
            for place, counts in zip(source.paths, write_lines(source, path, kinds)):
                for fault, count in counts.faults.items():
                    LOG.warning("%d lines of %s are left out: %s.", count, place, fault.words)

        return self._make(source, write, kinds)

    def copy_texts(self, source: Parquet) -> TableCopy:
        """The rows of Parquet files, with NULL for every text that is not UTF-8; the curator's log says how many."""

        def write(path: Path) -> None:
            for name, count in write_texts(source, path).items():
                LOG.warning("%d texts of the column %s of %s are NULL: not UTF-8.", count, name, source.paths[0])

        return self._make(source, write)

    def clear(self) -> None:
        """Forget the copies, whose folder goes away."""
        self._copies.clear()

    def _make(
        self, source: Csv | Parquet, write: Callable[[Path], None], kinds: tuple[Type | None, ...] = ()
    ) -> TableCopy:
        """The copy of the present version, made if there is none. That of an older version is removed."""
        with self._lock:
            if (known := self.find(source, kinds)) is not None:
                return known
            old = self._copies.pop((source, kinds), None)
            if old is not None:
                Path(old.path).unlink(missing_ok=True)
            self._made += 1
            version, path = source.version(), self._folder / f"copy-{self._made}.parquet"
            try:
                write(path)
            except BaseException:
                path.unlink(missing_ok=True)  # half a copy is of no use, and the disk may be full
                raise
            self._copies[source, kinds] = copy = TableCopy(str(path), version)
            return copy


def write_lines(source: Csv, path: Path, kinds: Sequence[Type | None] = ()) -> list[LineCounts]:
    """Write the rows of CSV files to a Parquet file that only its owner can read, and count for each file.

    Columns whose kind is INTEGER or REAL become numbers, and NULL where a text is none; all others stay texts.
    """
    import pyarrow as pa
    from pyarrow import parquet

    kinds = kinds or (None,) * len(source.names)
    schema = pa.schema([(name, find_arrow_type(kind)) for name, kind in zip(source.names, kinds)])
    texts = [name for name, kind in zip(source.names, kinds) if find_arrow_type(kind) == pa.string()]
    reader = NumberReader(source, kinds)

    def write(columns: Sequence[Any]) -> None:
        as_declared = [column.type for column in columns] == schema.types
        columns = columns if as_declared else reader.read(columns)
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    with (
        closing(reader),
        open_private(path) as file,
        parquet.ParquetWriter(file, schema, compression="none", use_dictionary=texts) as writer,
    ):
        return [read_rows(name, kinds, write, source.form) for name in source.paths]


class NumberReader:
    """Reads numbers from texts, by the expressions that questions would read them with."""

    def __init__(self, source: Csv, kinds: Sequence[Type | None]) -> None:
        import duckdb

        stored = [StoredColumn(f"c{i}", "VARCHAR", source.form) for i in range(len(kinds))]
        values = [
            column.name if kind is None else write_stored_column(column, kind, None)
            for column, kind in zip(stored, kinds)
        ]
        self._names = [column.name for column in stored]
        self._query = f"SELECT {', '.join(f'{v} AS {n}' for v, n in zip(values, self._names))} FROM block"
        self._connection = duckdb.connect(
            ":memory:", config={"threads": 1, "enable_external_access": False, "python_enable_replacements": False}
        )

    def read(self, texts: Sequence[Any]) -> Sequence[Any]:
        """The columns of some rows, from their texts. All go the same way, so that rows stay together."""
        import pyarrow as pa

        self._connection.register("block", pa.Table.from_arrays(list(texts), names=self._names))
        found: Sequence[Any] = self._connection.sql(self._query).to_arrow_table().columns
        self._connection.unregister("block")
        return found

    def close(self) -> None:
        self._connection.close()


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
