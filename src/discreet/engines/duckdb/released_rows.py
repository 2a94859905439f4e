"""A database that holds released rows and public ones, and nothing else: computations over them run here.

It is a connection of its own in memory, locked down like that of a question, without any source. One thread and one
order of rows make the same computation give the same rows each time. Nothing private can be reached, so its errors may
be shown.
"""

# ruff: noqa: S608  # what is run was written from a tree of nodes on a list (frontends.outer), over our own tables
from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.engines.duckdb.scanning import plan_type
from discreet.engines.duckdb.session import Session, Settings
from discreet.engines.private_folder import PrivateFolder
from discreet.errors import UsageError
from discreet.plan.arrow import load_arrow_types
from discreet.plan.evaluate import settle
from discreet.plan.types import INTEGER_MAX, INTEGER_MIN, NamedColumn, Type, Value

MEMORY = "512MB"


def compute_rows(tables: Mapping[str, Sequence[NamedColumn]], sql: str) -> list[NamedColumn]:
    """The columns that a SELECT over some tables gives.

    A computation that fails is refused with DuckDB's words, which can hold nothing but released values.
    """
    import duckdb

    folder = PrivateFolder(None)
    settings = Settings(threads=1, memory_limit=MEMORY, temp_directory=folder.path / "spill")
    try:
        with Session(settings, []) as session:
            for name, columns in tables.items():
                session.fill(name, _to_arrow(columns))
            described = session.run(f"DESCRIBE SELECT * FROM ({sql})")
            kinds = [_find_type(str(name), str(kind)) for name, kind, *_ in described]
            rows = session.run(sql)
    except duckdb.Error as error:
        raise UsageError(_find_first_line(error)) from None
    finally:
        folder.close()
    return [(str(described[i][0]), kind, [_read_value(row[i], kind) for row in rows]) for i, kind in enumerate(kinds)]


def _to_arrow(columns: Sequence[NamedColumn]) -> Any:
    import pyarrow as pa

    kinds = load_arrow_types()
    return pa.table({name: pa.array(list(values), kinds[kind]) for name, kind, values in columns})


def _find_type(name: str, kind: str) -> Type:
    """The type of a column; whole numbers beyond 64 bits and decimals are reals here."""
    if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
        return Type.INTEGER if kind == "HUGEINT" else Type.REAL
    found = plan_type(kind)
    if found is None:
        raise UsageError(f"The column {name!r} has a type that an answer cannot have ({kind}). CAST it to another.")
    return found


def _read_value(value: Any, kind: Type) -> Value:
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, int) and not isinstance(value, bool) and not INTEGER_MIN <= value <= INTEGER_MAX:
        return None  # as everywhere: what overflows is NULL
    return settle(value, kind)


def _find_first_line(error: Exception) -> str:
    """The first line of DuckDB's words, without its kind of error."""
    return str(error).splitlines()[0].partition("Error: ")[2] or str(error).splitlines()[0]
