"""Keys of a table that repeat, found once for each version of the data (``engines.sql.repeated_keys``).

They lie in a Parquet file in the engine's private folder. Which keys repeat is nobody's business but the curator's, and
leaves the engine only as what every question would find out for itself.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Source
from discreet.engines.duckdb.table_copies import TableCopy, open_private

_RepeatKey: TypeAlias = tuple[str, tuple[str, ...], int]
"""A source, the SQL of columns, and how many rows may have the same values of them."""


class RepeatCopies:
    """The repeated keys of one engine: at most one file for each table and columns, of its present version."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._settings = folder, settings
        self._lock = threading.Lock()
        self._made = 0
        self._known: dict[_RepeatKey, tuple[TableCopy, int]] = {}

    def find(self, source: Source, columns: Sequence[str], most: int) -> tuple[TableCopy, int]:
        """The values of columns, b0 …, that more than ``most`` rows of the present version have, and how many."""
        key, version = (source.write_from(), tuple(columns), most), source.version()
        with self._lock:
            known = self._known.get(key)
            if known is not None and known[0].of_version == version:
                return known
            if known is not None:
                Path(known[0].path).unlink(missing_ok=True)
                del self._known[key]
            self._made += 1
            found = TableCopy(str(self._folder / f"repeated-{self._made}.parquet"), version)
            try:
                count = self._write(source, columns, most, found)
            except BaseException:
                Path(found.path).unlink(missing_ok=True)  # half a file is of no use, and the disk may be full
                raise
            self._known[key] = (found, count)
            return found, count

    def _write(self, source: Source, columns: Sequence[str], most: int, copy: TableCopy) -> int:
        names = [f"b{i}" for i in range(len(columns))]
        listed, by = ", ".join(f"{sql} AS {name}" for sql, name in zip(columns, names)), ", ".join(names)
        query = f"SELECT {by} FROM (SELECT {listed} FROM {source.write_from()}) GROUP BY {by} HAVING count(*) > {most}"
        open_private(Path(copy.path)).close()
        with Session(self._settings, [source, copy]) as session:
            copied = session.run(f"COPY ({query}) TO {quote_text(copy.path)} (FORMAT parquet, USE_TMP_FILE false)")
        return int(copied[0][0])

    def clear(self) -> None:
        """Forget the files, whose folder goes away."""
        self._known.clear()
