"""One session of Spark for one question, with settings and views of its own beside the owner's.

Only SQL that ``sql`` wrote is run. Public tables come as views of this session, and what is asked for comes back by
Arrow: no Python runs beside the rows. Settings of the cluster or of the owner that would change what a statement means
are set here. Without ANSI mode nothing raises for a value. Whatever goes wrong is raised as Spark raises it; the engine
hides it.
"""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module, reload
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from discreet.engines.engine import ProgressCallback
from discreet.engines.failure import LOG
from discreet.engines.spark.jobs import JobWatch, is_classic, is_local, watch_connect
from discreet.errors import UsageError

T = TypeVar("T")

_DOUBLING = ("PushDownPredicates", "PushPredicateThroughNonJoin", "PushDownLeftSemiAntiJoin", "FoldablePropagation")
SETTINGS: Mapping[str, str] = {
    # What statements mean.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.readSideCharPadding": "false",
    # A file that cannot be read is an error, not a table with fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A join by broadcast that takes long is waited for: how long depends on the data.
    "spark.sql.broadcastTimeout": "1000000",
    # Expressions are columns over columns (``sql.layers``). A condition that is moved below its columns has them
    # written out, each as often as it is read, which doubles it with every layer; so does what conditions imply, and a
    # constant that is carried up from a query below.
    "spark.sql.optimizer.excludedRules": ",".join(f"org.apache.spark.sql.catalyst.optimizer.{r}" for r in _DOUBLING),
    "spark.sql.constraintPropagation.enabled": "false",
    # Filters made from the other side of a join are looked for by following its keys down to their tables, and on the
    # way every column is written out, too: a join by a logarithm took all memory, without an end.
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # Named queries are put where they are read before anything is looked at, and not one by one afterwards, each time
    # with a look at all. That an outer name would go before an inner one does not matter: no two are the same, and the
    # one query that has names inside (``sql.relations``) stands first, where no other name is known yet.
    "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
    # Every layer of a question takes one turn of the analyser; at the usual 100 a deep question would fail.
    "spark.sql.analyzer.maxIterations": "100000",
}
_QUIET = Path(__file__).with_name("quiet.properties").as_uri()
# A session that is started here, and not given: no web page, and no plans kept to be shown on it; no words on the
# terminal.
_OWN_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # Where memory runs out, Java ends. If it ran on, a thread that others wait for might be gone, and a question would
    # never end. Options of the owner's own, in ``extraJavaOptions``, stay.
    "spark.driver.defaultJavaOptions": f"-XX:+ExitOnOutOfMemoryError -Dlog4j2.configurationFile={_QUIET}",
    "spark.executor.defaultJavaOptions": "-XX:+ExitOnOutOfMemoryError",
}
# Parts in which rows move, on one machine: the usual 200 are too many for a few cores. A task writes each of them by
# itself, so that with fewer a question about units takes a tenth to a fifth less.
_PARTS, _PARTS_FOR_EACH_CORE = "spark.sql.shuffle.partitions", 16
# How often Java is started until it runs.
_MOST_STARTS = 3
# PySpark repeats the words of the engine, which quote values, in logs of its own that print.
_PRINTING_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class SparkQuestion:
    """A session that reads and changes nothing, with views that nobody else sees. It ends with what it runs."""

    def __init__(self, owner: Any, watch: ProgressCallback | None = None) -> None:
        for name in _PRINTING_LOGS:
            logging.getLogger(name).disabled = True
        self._spark = owner.newSession()
        self._views: list[str] = []
        self._jobs = JobWatch(self._spark, watch) if is_classic(self._spark) else None
        self._end_watch: Callable[[], None] | None = None
        try:
            for name, value in SETTINGS.items():
                # Spark Connect prints a warning for some that are set, even to what they are.
                if self._jobs is not None or self._spark.conf.get(name) != value:
                    self._spark.conf.set(name, value)
            if is_local(self._spark):
                self._limit_parts()
            if self._jobs is not None:
                self._jobs.start()
            elif watch is not None:
                self._end_watch = watch_connect(self._spark, watch)
        except BaseException:
            self.close(cancel=True)
            raise

    def _limit_parts(self) -> None:
        """Have rows moved in as many parts as the cores need, or in fewer where the owner has set fewer."""
        most = _PARTS_FOR_EACH_CORE * self._spark.sparkContext.defaultParallelism
        self._spark.conf.set(_PARTS, str(min(int(self._spark.conf.get(_PARTS)), most)))

    @property
    def spark(self) -> Any:
        """The session itself."""
        return self._spark

    @property
    def most_cells(self) -> int:
        return 0  # rows stay where they are, so Spark counts

    def fill(self, table: str, values: Any) -> None:
        """Make a public Arrow table known as a view of this session. Moments have no zone, as everywhere else."""
        frame = self._spark.createDataFrame(values)
        for column in values.schema:
            if str(column.type).startswith("timestamp"):
                frame = frame.withColumn(column.name, frame[column.name].cast("timestamp_ntz"))
        self.show(table, frame)

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
        watch: ProgressCallback | None = None,  # noqa: ARG002  # the session watches all of its statements
    ) -> Iterator[Any]:
        """Run one statement that yields integers and give its rows as Arrow batches."""
        yield from self.run(sql, parameters).to_batches(batch_rows)

    def pipe(self, jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
        """Run jobs one after the other."""
        for job in jobs:
            yield job()

    def close(self, *, cancel: bool = False) -> None:
        """Forget the views; ``cancel`` whatever still runs. What fails here is for the log: the question is over."""
        try:
            if self._jobs is not None:
                self._jobs.finish(cancel=cancel)
                for view in self._views:
                    self._spark.catalog.dropTempView(view)
            else:
                self._close_connect(cancel=cancel)
        except Exception as error:
            LOG.error("A session of Spark was not closed.", exc_info=error)
        self._views.clear()

    def _close_connect(self, *, cancel: bool) -> None:
        """Behind Spark Connect a session is the server's, and goes with its views."""
        if self._end_watch is not None:
            self._end_watch()
        if cancel:
            self._spark.interruptAll()
        self._spark.client.release_session()
        self._spark.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(cancel=error is not None)


def start_spark(address: str | None = None) -> Any:
    """A session at ``local[*]``, ``spark://host:7077`` or ``sc://host:15002``; one that is there is used again.

    Without an address it is the one that is there, or one on this machine.
    """
    sql = import_pyspark_sql()
    if address is not None and address.startswith("sc://"):
        return _start_connect(address)
    if not find_java():
        raise UsageError(
            "Spark needs Java 17. Install it (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME. "
            "Nothing was charged."
        )
    builder = sql.SparkSession.builder.appName("discreet").master(address or "local[*]")
    for name, value in _OWN_SETTINGS.items():
        builder = builder.config(name, value)
    session = start_java(builder)
    if address is not None and session.sparkContext.master != address:
        raise UsageError(
            f"This process has a Spark already, at {session.sparkContext.master}, and not at {address}: a process can "
            "have one. Stop it, or give its data frames to discreet.curate. Nothing was charged."
        )
    return session


def start_java(builder: Any) -> Any:
    """The session of a builder, and the Java that it runs in.

    PySpark forks to start Java. Where the same process has a client of gRPC, as Spark Connect is one, about one fork in
    fifty ends before Java begins, by what gRPC itself does at a fork. Nothing was started then, so it is tried again.
    """
    for _ in range(_MOST_STARTS - 1):
        try:
            return _start_once(builder)
        except RuntimeError as error:
            if "JAVA_GATEWAY_EXITED" not in str(error):
                raise
            LOG.warning("Java ended while Spark started it; it is started again.")
    return _start_once(builder)


def _start_once(builder: Any) -> Any:
    """PySpark warns of new versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.getOrCreate()


def _start_connect(address: str) -> Any:
    try:
        sessions = _import_connect()
    except (ImportError, SystemExit):
        raise UsageError(
            "Spark Connect needs more of PySpark. Install it: pip install 'pyspark[connect]>=4.3'. Nothing was charged."
        ) from None
    session = sessions.SparkSession.builder.remote(address).create()
    if not hasattr(session, "newSession"):
        raise UsageError("Spark Connect needs PySpark 4.3 or later. Nothing was charged.")
    return session


def _import_connect() -> Any:
    """PySpark's client of Spark Connect.

    Whether there is one, PySpark decides in a module for its own tests, the first time that anything calls Java, and
    warns there of new versions of pandas. Where warnings are errors it holds this for a lack: then most of the client
    is left out, and a process whose main module has no file (``python -c``, a worker of a pool) is ended by
    ``sys.exit(0)``, as if it ran PySpark's tests. So it decides again, without warnings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided = import_module("pyspark.testing.utils")
        if not decided.should_test_connect:
            reload(decided)
        return import_module("pyspark.sql.connect.session")


def find_java() -> bool:
    """Whether there is a Java to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java")) if not home else Path(home, "bin", "java").exists()


def import_pyspark_sql() -> Any:
    """PySpark; refused with a hint where it is not installed."""
    try:
        return import_module("pyspark.sql")
    except ImportError:
        raise UsageError(
            "Tables in Spark need PySpark 4 and Java 17. Install it: pip install 'discreet[spark]'. "
            "Nothing was charged."
        ) from None
