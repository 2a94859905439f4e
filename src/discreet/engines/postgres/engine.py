"""The PostgreSQL engine: bounded questions about tables that stay in the database, one generated statement each.

Every question gets a connection and a read-only transaction of its own (``session``). What it runs there is what runs
on every engine of stored tables (``sql.stored_engine``). Where the database is, is said by the environment alone: an
address may hold a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.engines.engine import Capabilities, ProgressCallback
from discreet.engines.order import EngineHash
from discreet.engines.postgres import scanning
from discreet.engines.postgres.address import ADDRESS, find_address
from discreet.engines.postgres.dialect import DIALECT
from discreet.engines.postgres.session import OLDEST, PostgresSession
from discreet.engines.postgres.tables import read_columns, read_name
from discreet.engines.sql.stored_engine import StoredEngine, TableColumns
from discreet.errors import UsageError
from discreet.plan.catalog import Catalog
from discreet.plan.gaps import Gap

# Wide sums are none of them: PostgreSQL takes what leaves a frame from a sum or a count.
GAPS = frozenset({Gap.NUL, Gap.DISTINCT_IN_FRAME, Gap.WIDE_EXTREMES})


class PostgresEngine(StoredEngine[PostgresSession]):
    """Runs bounded questions inside a PostgreSQL database.

    ``sources`` gives for each table its schema and name. ``address`` is for tests; everybody else sets the environment
    variable ``DISCREET_POSTGRES``. ``work_memory`` bounds what each sort or hash of the server holds in memory.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        catalog: Catalog,
        *,
        address: str | None = None,
        work_memory: str = "64MB",
        order: EngineHash | None = None,
    ) -> None:
        super().__init__(sources, catalog, DIALECT, scanning, order)
        self.capabilities = Capabilities(spills=True, gaps=GAPS)
        self._address = find_address() if address is None else address
        self._work_memory = work_memory
        self._names = {table: read_name(str(source.path), table) for table, source in sources.items()}
        self._releases = {table: getattr(source, "release", None) for table, source in sources.items()}
        if self._names:
            self._do("The database cannot be reached", self._check)

    def version(self, table: str) -> str:
        """The declared name of a release; else the state of the database, which moves with every write to any table.

        The state is that of transactions. Nothing else that the database tells is sound: only here equal means that
        nothing was written in between. It tells nothing about rows but that something was written.
        """
        self._check_name(table)
        # Asked in any case: where nobody answers, a question is refused before it is charged.
        ((state,),) = self._do("The database cannot be reached", _read_snapshot)
        if self._releases[table] is not None:
            return f"release {self._releases[table]}"
        low, high, running = str(state).split(":")
        return f"snapshot {high}" if low == high else f"snapshot {high} from {low} without {running}"

    def _connect(
        self,
        *,
        generous: bool = False,
        watch: ProgressCallback | None = None,  # noqa: ARG002  # PostgreSQL tells no progress
    ) -> PostgresSession:
        size = self._work_memory
        return PostgresSession(self._address, work_memory=_multiply_memory(size) if generous else size)

    def _read_stored(self, session: PostgresSession, table: str) -> TableColumns:
        self._check_name(table)
        name = self._names[table]
        return TableColumns(name.sql, read_columns(session, name, table))

    def _refuse(self, problem: str) -> UsageError:
        return UsageError(
            f"{problem}. Check the address in {ADDRESS} and the rights of its role; the curator's log has details. "
            "Nothing was charged."
        )

    def _check(self, session: PostgresSession) -> None:
        """A server that can be asked, and tables as declared; else refused before any question."""
        ((encoding,),) = session.run("SELECT current_setting('server_encoding')")
        if session.server_version < OLDEST:
            raise UsageError(f"PostgreSQL {OLDEST // 10_000} or later is needed. Nothing was charged.")
        if encoding != "UTF8":
            raise UsageError(
                f"The database has the encoding {encoding}, but texts compare by code points in UTF8 alone. "
                "Nothing was charged."
            )
        for table in self._catalog.tables:
            self._check_table(session, table)


def _read_snapshot(session: PostgresSession) -> list[tuple[Any, ...]]:
    return session.run("SELECT CAST(pg_current_snapshot() AS text)")


def _multiply_memory(size: str) -> str:
    """For a second try: four times the memory."""
    number = size.rstrip("kMGTB")
    return f"{4 * int(number)}{size[len(number) :]}"
