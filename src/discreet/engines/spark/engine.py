"""The Spark engine: bounded questions about tables that Spark reads, one generated statement each.

Every question gets a session of its own (``session``). What it runs there is what runs on every engine of stored tables
(``sql.stored_engine``). The owner's session, its settings and its views stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from discreet.engines.engine import Capabilities, ProgressCallback, key_order
from discreet.engines.failure import LOG
from discreet.engines.order import EngineHash
from discreet.engines.spark import scanning
from discreet.engines.spark.dialect import DIALECT
from discreet.engines.spark.jobs import require_executors, require_java
from discreet.engines.spark.session import SparkQuestion, start_spark
from discreet.engines.spark.tables import SparkFrame, open_source, read_columns
from discreet.engines.sql.statement import BoundedStatement
from discreet.engines.sql.stored_engine import StoredEngine, TableColumns
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog
from discreet.plan.gaps import Gap

ADDRESS = "DISCREET_SPARK"
"""The environment variable that says where Spark runs, such as ``spark://host:7077``; without it, on this machine."""
GAPS = frozenset({Gap.DISTINCT_IN_FRAME, Gap.WIDE_EXTREMES, Gap.WIDE_SUMS, Gap.DEEP})


class SparkEngine(StoredEngine[SparkQuestion]):
    """Runs bounded questions on Spark.

    ``sources`` gives for each table Parquet files, a table of a catalog, or a data frame. ``spark`` is a session to
    use; otherwise it is that of the first data frame, or one that is started at ``address``.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        spark: Any = None,
        address: str | None = None,
        order: EngineHash | None = None,
    ) -> None:
        super().__init__(sources, catalog, DIALECT, scanning, order)
        self.capabilities = Capabilities(reports_progress=True, spills=True, gaps=GAPS)
        self._sources = {table: open_source(source, table) for table, source in sources.items()}
        frames = [source.frame for source in self._sources.values() if isinstance(source, SparkFrame)]
        if spark is None and frames:
            spark = frames[0].sparkSession
        try:
            self._spark = spark or start_spark(address or find_address(sources))
        except UsageError:
            raise
        except Exception as error:
            LOG.error("Spark cannot be reached.", exc_info=error)
            raise self._refuse("Spark cannot be reached") from None
        for table in catalog.tables:
            self._do(f"The table {table!r} cannot be opened", self._check_table, table)

    def version(self, table: str) -> str:
        """Of files names and times, of a table the declared name of its release, and of a frame a number."""
        self._check_name(table)
        # Looked at in any case: where nobody works, a question is refused before it is charged.
        require_java(self._spark)
        require_executors(self._spark)
        return self._sources[table].version()

    def close(self) -> None:
        """Forget the frames. Spark itself runs on: others may use it."""
        super().close()
        for source in self._sources.values():
            if isinstance(source, SparkFrame):
                source.frame.sparkSession.catalog.dropGlobalTempView(source.view)

    def _connect(
        self,
        *,
        generous: bool = False,  # noqa: ARG002  # the memory is the cluster's
        watch: ProgressCallback | None = None,
    ) -> SparkQuestion:
        return SparkQuestion(self._spark, watch)

    def _read_stored(self, session: SparkQuestion, table: str) -> TableColumns:
        self._check_name(table)
        frame = self._sources[table].load(session, table)
        view = f"stored{self._tables.index(table)}"
        session.show(view, frame)
        return TableColumns(view, read_columns(frame, table))

    def _read_sorted(self, session: SparkQuestion, query: str, statement: BoundedStatement) -> list[tuple[Any, ...]]:
        # All groups come at once, so they are sorted here: on a cluster that would move them once more.
        keys = len(statement.keys)
        return sorted(session.read(query, statement.parameters), key=lambda row: key_order(row[:keys]))

    def _refuse(self, problem: str) -> UsageError:
        return UsageError(
            f"{problem}. Check the source and the address in {ADDRESS}; the curator's log has details. "
            "Nothing was charged."
        )


def find_address(sources: Mapping[str, Any]) -> str | None:
    """Where Spark runs: the environment first, because an address may hold a token; then the codebook."""
    declared = (getattr(source, "address", None) for source in sources.values())
    return os.environ.get(ADDRESS) or next(filter(None, declared), None)
