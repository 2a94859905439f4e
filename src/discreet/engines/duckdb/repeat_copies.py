"""The rows of a table whose keys repeat, found once for each version of the data (``engines.sql.repeated_keys``).

Keys and rows lie in two Parquet files in the engine's private folder. Who has such keys is nobody's business but the
curator's, and leaves the engine only as what every question would find out for itself. Looking for them takes the same
work whoever has some: the keys of all rows are counted, and then all rows are compared with keys that are never empty.
"""

# ruff: noqa: S608  # all SQL is written here, from our own plans; names are quoted and texts bound
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from discreet.engines.duckdb.dialect import TYPES, quote_text
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.duckdb.sources import Source
from discreet.engines.duckdb.table_copies import TableCopy, open_private
from discreet.engines.sql.dialect import quote_name
from discreet.engines.sql.relations import StoredTable
from discreet.late_dataclass import dataclass
from discreet.plan.types import Type

_RepeatKey: TypeAlias = tuple[str, tuple[str, ...]]
"""A source and the names of columns."""

# Two values of each type, far apart. A row may have them all the same: then it is read with those whose keys repeat,
# which changes nothing.
_ENDS: Mapping[Type, tuple[str, str]] = {
    Type.BOOLEAN: ("false", "true"),
    Type.INTEGER: ("-9223372036854775807", "9223372036854775807"),
    Type.REAL: ("'-1.7976931348623157e+308'", "'1.7976931348623157e+308'"),
    Type.TEXT: ("''", "chr(1114111)"),
    Type.DATE: ("'0001-01-01'", "'9999-12-31'"),
    Type.TIMESTAMP: ("'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
}


@dataclass(frozen=True, slots=True)
class RepeatCopy:
    """The keys that repeat, and the rows that have them."""

    keys: TableCopy
    rows: TableCopy

    def remove(self) -> None:
        for copy in (self.keys, self.rows):
            Path(copy.path).unlink(missing_ok=True)


class RepeatCopies:
    """What one engine keeps: at most one pair of files for each table and columns, of its present version."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._settings = folder, settings
        self._lock = threading.Lock()
        self._made = 0
        self._known: dict[_RepeatKey, RepeatCopy] = {}

    def find(
        self, source: Source, stored: StoredTable, types: Mapping[str, Type], columns: tuple[str, ...]
    ) -> RepeatCopy:
        """What repeats in the present version. ``stored`` and ``types`` have every declared column."""
        key, version = (source.write_from(), columns), source.version()
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.keys.of_version == version:
                return known
            if known is not None:
                known.remove()
                del self._known[key]
            self._made += 1
            names = (f"repeated-{self._made}-{part}.parquet" for part in ("keys", "rows"))
            found = RepeatCopy(*(TableCopy(str(self._folder / name), version) for name in names))
            try:
                self._write(source, stored, types, columns, found)
            except BaseException:
                found.remove()  # half a file is of no use, and the disk may be full
                raise
            self._known[key] = found
            return found

    def _write(
        self,
        source: Source,
        stored: StoredTable,
        types: Mapping[str, Type],
        columns: Sequence[str],
        copy: RepeatCopy,
    ) -> None:
        names = [f"b{i}" for i in range(len(columns))]
        by = ", ".join(names)
        values = ", ".join(f"{stored.columns[c]} AS {name}" for c, name in zip(columns, names))
        grouped = f"SELECT {by} FROM (SELECT {values} FROM {stored.source}) GROUP BY {by} HAVING count(*) > 1"
        ends = [", ".join(f"CAST({_ENDS[types[c]][end]} AS {TYPES[types[c]]})" for c in columns) for end in range(2)]
        keys = f"{grouped} UNION SELECT {ends[0]} UNION SELECT {ends[1]}"
        listed = ", ".join(f"{sql} AS {quote_name(name)}" for name, sql in stored.columns.items())
        same = " AND ".join(f"{quote_name(c)} IS NOT DISTINCT FROM {name}" for c, name in zip(columns, names))
        rows = f"SELECT * FROM (SELECT {listed} FROM {stored.source}) SEMI JOIN {copy.keys.write_from()} ON {same}"
        for target in (copy.keys, copy.rows):
            open_private(Path(target.path)).close()
        with Session(self._settings, [source, copy.keys, copy.rows]) as session:
            for query, target in ((keys, copy.keys), (rows, copy.rows)):
                session.run(f"COPY ({query}) TO {quote_text(target.path)} (FORMAT parquet, USE_TMP_FILE false)")

    def clear(self) -> None:
        """Forget the files, whose folder goes away."""
        self._known.clear()
