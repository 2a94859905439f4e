"""The engines that the suite holds to the contract, each with its gaps. A new engine adds an entry here, nothing else.

A gap is a test that an engine fails, with the reason: the name of the test's module and of the test, perhaps with its
parameters, as in ``"test_functions.test_function_means_the_same[lower]"``. Gaps are strict: one that no longer fails,
or that names no test, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from discreet.bounding.contributions import BoundedPlan
from discreet.engines.duckdb.dialect import DIALECT, TYPES
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.engines.duckdb.unit_tally import LEAST_ROWS
from discreet.engines.engine import Engine, Groups
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.order import HASH_BITS, PortableOrder, SecretOrder, TypedValue
from discreet.engines.postgres import dialect as postgres
from discreet.plan.catalog import Catalog
from discreet.plan.gaps import MOST_NESTED
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type
from tests.engines.postgres.loading import database, drop_nul, load, open_loaded
from tests.engines.spark import loading as spark_loading
from tests.engines.spark.order import SparkOrder
from tests.engines.worlds import SALT


@dataclass(frozen=True)
class Fault:
    """A source that opens, and that can be damaged so that reading it fails."""

    source: Any
    damage: Callable[[], None]


@dataclass(frozen=True, eq=False)
class EngineUnderTest:
    """An engine as the suite sees it.

    ``make`` opens it over Arrow tables, and over the source of a fault that ``make_fault`` makes in a folder. ``order``
    is its secret order, for the oracle to follow. ``variant_of`` names the engine whose expressions it shares, so that
    these are tested once. ``prepared`` tables leave out rows without the declared unit, which only plans that no
    planner makes can see. ``slow`` engines are asked about fewer worlds. ``forms`` are the kinds of source that it
    reads, as ``discreet.audit.source_forms`` writes them; ``make_small`` opens it with little memory and one thread.
    ``has_nul`` says whether its texts can hold the character NUL; ``missing`` why it cannot run here, if so. Of tests
    with many cases, every case of number ``short_share`` is in short runs, and the others in long ones, as are tests in
    ``left_to_long_runs``, which are named as gaps are. ``deepest`` is how many calls may nest; deeper questions are
    refused.
    """

    name: str
    make: Callable[[Mapping[str, Any], Catalog], Engine]
    make_fault: Callable[[Path, Any], Fault]
    order: SecretOrder = field(default_factory=PortableOrder)
    variant_of: str = ""
    prepared: bool = False
    slow: bool = True
    gaps: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[SourceKind, ...] = (SourceKind.FRAME,)
    make_small: Callable[[Mapping[str, Any], Catalog], Engine] | None = None
    has_nul: bool = True
    missing: str = ""
    short_share: int = 1
    left_to_long_runs: frozenset[str] = frozenset()
    deepest: int = 120

    @contextmanager
    def open(self, tables: Mapping[str, Any], catalog: Catalog) -> Iterator[Engine]:
        engine = self.make(tables, catalog)
        try:
            yield engine
        finally:
            engine.close()

    def run(self, tables: Mapping[str, Any], catalog: Catalog, bounded: BoundedPlan, *, salt: bytes = SALT) -> Groups:
        with self.open(tables, catalog) as engine:
            return engine.run(bounded, salt=salt)

    def run_oracle(self, tables: Mapping[str, Any], catalog: Catalog, bounded: BoundedPlan) -> Groups:
        """What the oracle says, in this engine's secret order."""
        return self.make_oracle(tables, catalog).run(bounded, salt=SALT)

    def make_oracle(self, tables: Mapping[str, Any], catalog: Catalog) -> Engine:
        """The oracle with this engine's secret order, of tables as this engine can hold them."""
        if not self.has_nul:
            tables = {name: drop_nul(table) for name, table in tables.items()}
        return MemoryEngine(tables, catalog, order=self.order)


@cache
def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@dataclass(frozen=True)
class DuckDBOrder:
    """DuckDB's own keyed hash, value by value, by the very words that statements use."""

    bits: int = HASH_BITS

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> int:
        identity = DIALECT.identity(_mark(unit), unit[1])
        return _ask(DIALECT.place_of_group(identity, [(_mark(v), v[1]) for v in key], salt, self.bits), [unit, *key])

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> int:
        return _ask(DIALECT.place_of_row([(_mark(v), v[1]) for v in values], salt), values)


def _mark(value: TypedValue) -> str:
    return f"CAST(? AS {TYPES[value[1]]})"


def _ask(sql: str, values: Sequence[TypedValue]) -> int:
    ((found,),) = _connect().execute(f"SELECT {sql}", [value for value, _ in values]).fetchall()
    return int(found)


@dataclass(frozen=True)
class PostgresOrder:
    """PostgreSQL's own keyed hash, value by value, by the very words that statements use."""

    bits: int = HASH_BITS

    def place_of_group(self, salt: bytes, unit: TypedValue, key: Sequence[TypedValue]) -> int:
        identity = postgres.DIALECT.identity(_mark_numbered(unit, 1), unit[1])
        marked = [(_mark_numbered(value, i), value[1]) for i, value in enumerate(key, 2)]
        return _ask_postgres(postgres.DIALECT.place_of_group(identity, marked, salt, self.bits), [unit, *key])

    def place_of_row(self, salt: bytes, values: Sequence[TypedValue]) -> int:
        marked = [(_mark_numbered(value, i), value[1]) for i, value in enumerate(values, 1)]
        return _ask_postgres(postgres.DIALECT.place_of_row(marked, salt), values)


def _mark_numbered(value: TypedValue, number: int) -> str:
    collation = ' COLLATE "C"' if value[1] is Type.TEXT else ""
    return f"(CAST(${number} AS {postgres.TYPES[value[1]]}){collation})"


@cache
def _connect_to_postgres() -> Any:
    import psycopg

    return psycopg.RawCursor(psycopg.connect(database().owner, autocommit=True))


def _ask_postgres(sql: str, values: Sequence[TypedValue]) -> int:
    ((found,),) = _connect_to_postgres().execute(f"SELECT {sql}", [value for value, _ in values]).fetchall()
    return int(found)


def _make_dropped_table(folder: Path, table: Any) -> Fault:
    """A table that is dropped, and with it what a question would read."""
    place = load(table)
    return Fault(place, lambda: database().execute(f"DROP TABLE {place.path}"))


def _make_duckdb(
    *, prepared: bool = False, threads: int = 2, memory_limit: str = "1GB", least_tallied: int = LEAST_ROWS
) -> Callable[[Mapping[str, Any], Catalog], Engine]:
    def make(tables: Mapping[str, Any], catalog: Catalog) -> Engine:
        engine = DuckDBEngine(tables, catalog, threads=threads, memory_limit=memory_limit, least_tallied=least_tallied)
        for table in catalog.tables if prepared else ():
            engine.prepare(table)
        return engine

    return make


class _NoRow(dict[str, Any]):
    def items(self) -> Any:
        raise ValueError("Jane Doe, 42")


def _make_bad_row(folder: Path, table: Any) -> Fault:
    """Rows with one among them that cannot be read."""
    rows = table.to_pylist()
    return Fault(rows, lambda: rows.append(_NoRow()))


def _make_damaged_file(folder: Path, table: Any) -> Fault:
    """A Parquet file whose middle is overwritten."""
    path = folder / "t.parquet"
    pq.write_table(table, path, compression="none")

    def damage() -> None:
        content = bytearray(path.read_bytes())
        content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
        path.write_bytes(content)

    return Fault(path, damage)


MEMORY = EngineUnderTest(
    "memory",
    MemoryEngine,
    _make_bad_row,
    slow=False,
    gaps={
        "test_measures.test_what_could_overflow_is_refused": "Python's integers do not overflow",
        **{
            f"test_relations.test_ambiguous_plans_are_refused[{name}]": "no text mixes names up, and values have types"
            for name in (
                "a table with itself",
                "a window that covers a column",
                "a join of types",
                "a key that is a feature",
                "one name twice",
                "one name twice below",
            )
        },
    },
)


def _make_duckdb_variant(
    name: str, *, prepared: bool = False, least_tallied: int = LEAST_ROWS, **options: Any
) -> EngineUnderTest:
    return EngineUnderTest(
        name,
        _make_duckdb(prepared=prepared, least_tallied=least_tallied),
        _make_damaged_file,
        DuckDBOrder(),
        variant_of="" if name == "duckdb" else "duckdb",
        prepared=prepared,
        forms=(SourceKind.FRAME, SourceKind.PARQUET, SourceKind.CSV, SourceKind.DUCKDB),
        make_small=_make_duckdb(prepared=prepared, threads=1, memory_limit="160MB", least_tallied=least_tallied),
        **options,
    )


DUCKDB = _make_duckdb_variant("duckdb")
POSTGRES = EngineUnderTest(
    "postgres",
    open_loaded,
    _make_dropped_table,
    PostgresOrder(),
    has_nul=False,
    gaps={
        "test_relations.test_columns_that_nobody_reads_still_matter[9-False]": "public rows hold NUL; the "
        "planner refuses them (plan/gaps.py)",
    },
)
SPARK = EngineUnderTest(
    "spark",
    spark_loading.open_loaded,
    _make_damaged_file,
    SparkOrder(),
    missing=spark_loading.missing(),
    short_share=8,
    left_to_long_runs=frozenset(
        {  # others of the same kind stay
            "test_hostile_person.test_no_extreme_value_decides_the_outcome",
            "test_measures.test_agreement_where_limits_bind[integer]",
            "test_measures.test_another_salt_takes_other_values",
            "test_measures.test_every_claim_is_kept[integer]",
            "test_measures.test_the_order_of_rows_does_not_matter_to_values",
            "test_relational_sensitivity.test_engines_agree_on_relations",
            "test_relational_sensitivity.test_every_engine_keeps_every_claim_of_mixed_owners",
        }
    ),
    deepest=MOST_NESTED,
)
ENGINES = (
    MEMORY,
    DUCKDB,
    # Prepared tables are read in ranges, others in parts, as if they had very many rows.
    _make_duckdb_variant("duckdb_prepared", prepared=True, least_tallied=0),
    _make_duckdb_variant(
        "duckdb_in_parts",
        least_tallied=0,
        short_share=4,
        left_to_long_runs=frozenset(
            {  # of joins and of choices, which are made in one statement
                "test_agreement.test_every_group_is_chosen_as_often",
                "test_relational_sensitivity.test_engines_agree_on_relations",
                "test_relational_sensitivity.test_every_engine_keeps_every_claim",
                "test_relational_sensitivity.test_every_engine_keeps_every_claim_of_mixed_owners",
            }
        ),
    ),
    POSTGRES,
    SPARK,
)


def find_gap(engine: EngineUnderTest, module: str, test: str) -> str | None:
    """Why a test is expected to fail. ``test`` is its name as pytest writes it, the engine among its parameters."""
    return next((engine.gaps[name] for name in list_names(engine, module, test) if name in engine.gaps), None)


def list_names(engine: EngineUnderTest, module: str, test: str) -> tuple[str, str]:
    """The names that a test on an engine may have in lists: with its other parameters, and without any."""
    own = engine.name
    for old, new in ((f"[{own}]", ""), (f"[{own}-", "["), (f"-{own}]", "]"), (f"-{own}-", "-")):
        test = test.replace(old, new)
    return f"{module}.{test}", f"{module}.{test.partition('[')[0]}"
