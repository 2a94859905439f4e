"""One session of Spark for one question, with settings and views of its own beside the owner's.

Only SQL that ``sql`` wrote is run. Public tables come as views of this session, and what is asked for comes back by
Arrow: no Python runs beside the rows. Settings of the cluster or of the owner that would change what a statement means
are set here. Without ANSI mode nothing raises for a value. Whatever goes wrong is raised as Spark raises it; the engine
hides it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar

from discreet.engines.engine import ProgressCallback
from discreet.errors import UsageError

T = TypeVar("T")

SETTINGS: Mapping[str, str] = {
    # What statements mean.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.readSideCharPadding": "false",
    # A file that cannot be read is an error, not a table with fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A join by broadcast that takes long is waited for: how long depends on the data.
    "spark.sql.broadcastTimeout": "1000000",
}
# A session that is started here, and not given: no web page, no words on the terminal.
_OWN_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
}


class SparkQuestion:
    """A session that reads and changes nothing, with views that nobody else sees."""

    def __init__(self, owner: Any) -> None:
        # PySpark repeats the words of the engine, which quote values, in a log of its own that prints.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        self._spark = owner.newSession()
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        self._views: list[str] = []

    @property
    def spark(self) -> Any:
        """The session itself."""
        return self._spark

    @property
    def most_cells(self) -> int:
        return 0  # rows stay where they are, so Spark counts

    def fill(self, table: str, values: Any) -> None:
        """Make a public Arrow table known as a view of this session."""
        self.show(table, self._spark.createDataFrame(values))

    def show(self, table: str, frame: Any) -> None:
        """Make a frame of this session known under a name."""
        frame.createOrReplaceTempView(table)
        self._views.append(table)

    def run(self, sql: str, parameters: Mapping[str, str] | None = None) -> Any:
        """Run one statement to its end; what it yields, as an Arrow table."""
        given = {name: text for name, text in (parameters or {}).items() if f"(:{name} AS " in sql}
        return self._spark.sql(sql, args=given).toArrow()

    def read(self, sql: str, parameters: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
        """Run one statement and give its rows one by one."""
        for batch in self.run(sql, parameters).to_batches(4096):
            yield from zip(*(column.to_pylist() for column in batch.columns))

    def stream(
        self,
        sql: str,
        parameters: Mapping[str, str],
        batch_rows: int,
        watch: ProgressCallback | None = None,  # noqa: ARG002  # the end is told by the engine
    ) -> Iterator[Any]:
        """Run one statement that yields integers and give its rows as Arrow batches."""
        yield from self.run(sql, parameters).to_batches(batch_rows)

    def pipe(self, jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run jobs one after the other."""
        for job in jobs:
            yield job()

    def close(self) -> None:
        """Forget the views."""
        for view in self._views:
            self._spark.catalog.dropTempView(view)
        self._views.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start_spark(address: str) -> Any:
    """A session at an address such as ``local[*]`` or ``spark://host:7077``; one that is there is used again."""
    sql = import_pyspark_sql()
    if address.startswith("sc://"):
        raise UsageError(
            "Spark Connect cannot be used: a plan cannot be looked at there. Use an address such as spark://host:7077. "
            "Nothing was charged."
        )
    builder = sql.SparkSession.builder.appName("discreet").master(address)
    for name, value in _OWN_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def import_pyspark_sql() -> Any:
    """PySpark; refused with a hint where it is not installed."""
    try:
        return import_module("pyspark.sql")
    except ImportError:
        raise UsageError(
            "Tables in Spark need PySpark 4 and Java 17. Install it: pip install 'discreet[spark]'. "
            "Nothing was charged."
        ) from None
