"""The two doors to a curator: a codebook on disk, or frames in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from discreet.codebook import Codebook
from discreet.curator import Curator
from discreet.engines.duckdb import DuckDBEngine
from discreet.ledger.ledger import Ledger
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.policy import Policy
from discreet.ledger.sqlite import SQLiteLedger
from discreet.ledger.terms import Terms
from discreet.privacy import Budget, Neighbours


def open_codebook(path: str | Path) -> Curator:
    """The curator of the dataset that a codebook describes: ``discreet.open("hospital.toml")``.

    Data are read where they are, when a question needs them. Charges and answers are kept in a ledger beside the
    codebook, ``hospital.ledger``, which is made when there is none.
    """
    return _curator(Codebook.load(path), None)


def curate(
    tables: Mapping[str, Any],
    *,
    budget: Budget,
    unit: str | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    max_rows: int | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
    types: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    resolution: Mapping[str, Any] | None = None,
    keys: Mapping[str, Iterable[Any]] | None = None,
    constant_per_unit: Collection[str] = (),
    per_query: Any = None,
    name: str = "data",
) -> Curator:
    """A curator of frames in memory (Arrow, pandas or polars), with a ledger in memory that ends with the process.

    ``unit`` names the column that owns rows; None protects one row. What is said about columns by name holds for
    every table that has the column, or say ``"table.column"``.
    """
    book = Codebook.from_frames(
        tables,
        budget=budget,
        unit=unit,
        neighbours=neighbours,
        max_rows=max_rows,
        max_groups=max_groups,
        max_rows_per_group=max_rows_per_group,
        types=types,
        bounds=bounds,
        resolution=resolution,
        keys=keys,
        constant_per_unit=constant_per_unit,
        per_query=per_query,
        name=name,
    )
    return _curator(book, tables)


def _curator(book: Codebook, frames: Mapping[str, Any] | None) -> Curator:
    catalog = book.catalog()
    return Curator(
        name=book.name,
        catalog=catalog,
        engine=DuckDBEngine(book.sources if frames is None else frames, catalog),
        ledger=_ledger(book),
        per_query=book.per_query,
        analysts=book.analysts,
    )


def terms_of(book: Codebook) -> Terms:
    """What a codebook says about spending."""
    return Terms(
        dataset=book.name,
        budget=book.budget,
        unit=book.unit,
        neighbours=book.neighbours,
        policy=Policy.of(per_query=book.per_query, analysts=book.analysts),
    )


def ledger_path(book: Codebook) -> Path:
    """Where the ledger of a codebook is: beside it."""
    return Path(book.name if book.path is None else book.path).with_suffix(".ledger")


def _ledger(book: Codebook) -> Ledger:
    terms = terms_of(book)
    if book.path is None:
        return MemoryLedger.on(terms)
    return SQLiteLedger.on(ledger_path(book), terms)
