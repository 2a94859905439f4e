"""The two doors to a curator: a codebook on disk, or frames in memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from discreet.codebook import Codebook
from discreet.codebook.entries import OTHERS
from discreet.codebook.spending import DATABASES
from discreet.curator import Curator
from discreet.engines.registry import open_engine
from discreet.errors import LedgerError
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.ledger import Ledger
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.policy import PERIODS, Cap, Policy
from discreet.ledger.sqlite import SQLiteLedger
from discreet.privacy import Budget, Neighbours


def open_codebook(path: str | Path) -> Curator:
    """The curator of the dataset that a codebook describes: ``discreet.open("hospital.toml")``.

    Data are read where they are, when a question needs them. Charges and answers are kept in a ledger beside the
    codebook, ``hospital.ledger``, or where it says; it is made when there is none.
    """
    return _make_curator(Codebook.load(path), None)


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
    public: Collection[str] = (),
    foreign_keys: Mapping[str, str] | None = None,
    unique: Collection[str] = (),
    max_frequency: Mapping[str, int] | None = None,
    per_query: Any = None,
    name: str = "data",
) -> Curator:
    """A curator of frames in memory (Arrow, pandas or polars), with a ledger in memory that ends with the process.

    ``unit`` names the column that owns rows; None protects one row. Tables without it reach it by ``foreign_keys``,
    ``{"labs.visit_id": "visits.visit_id"}``, or are ``public``. What is said about columns by name holds for every
    table that has the column, or say ``"table.column"``.
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
        public=public,
        foreign_keys=foreign_keys,
        unique=unique,
        max_frequency=max_frequency,
        per_query=per_query,
        name=name,
    )
    return _make_curator(book, tables)


def _make_curator(book: Codebook, frames: Mapping[str, Any] | None) -> Curator:
    catalog = book.catalog()
    return Curator(
        name=book.name,
        catalog=catalog,
        engine=open_engine(book.sources if frames is None else frames, catalog),
        ledger=_open_ledger(book),
        per_query=book.per_query,
        analysts=book.analysts,
    )


def terms_of(book: Codebook) -> LedgerTerms:
    """What a codebook says about spending."""
    spending = book.spending
    caps = [] if book.per_query is None else [Cap(amount=book.per_query, over="query")]
    for over, shares in (("analyst", spending.per_analyst), ("project", spending.per_project)):
        for name, amount in sorted((shares or {}).items()):
            caps.append(Cap(amount=amount, over=over, name=None if name == OTHERS else name))
    for period in PERIODS:
        amount = getattr(spending, f"per_{period}")
        caps += [] if amount is None else [Cap(amount=amount, per=period)]
    return LedgerTerms(
        dataset=book.name,
        budget=book.budget,
        unit=book.unit,
        neighbours=book.neighbours,
        policy=Policy(caps=tuple(caps), analysts=book.analysts, projects=book.projects),
    )


def open_existing_ledger(book: Codebook) -> BaseLedger:
    """The ledger of a codebook as it is, for administration, whatever the codebook says about spending."""
    if _is_in_database(book):
        from discreet.ledger.postgres import PostgresLedger

        return PostgresLedger.open_existing(str(book.ledger), schema=schema_of(book.name))
    return SQLiteLedger.open_existing(ledger_path_of(book))


def ledger_path_of(book: Codebook) -> Path:
    """The file of a codebook's ledger: beside it, or where it says; refused where it is in a database."""
    if _is_in_database(book):
        raise LedgerError("This ledger is in a database, not in a file. Use the database's own tools for copies.")
    return Path(book.name).with_suffix(".ledger") if book.ledger is None else Path(book.ledger)


def schema_of(dataset: str) -> str:
    """The schema of a dataset's ledger in a database: its name, and a digest where that is not a plain one.

    >>> schema_of("hospital"), schema_of("Old Town, 2024")
    ('discreet_hospital', 'discreet_old_town_2024_68e8b951')
    """
    plain = re.sub(r"[^a-z0-9]+", "_", dataset.lower())[:40].strip("_")
    digest = "" if plain == dataset else "_" + hashlib.sha256(dataset.encode()).hexdigest()[:8]
    return f"discreet_{plain}{digest}"


def _check_move(book: Codebook) -> None:
    """Refuse to begin elsewhere while the ledger that was used so far lies beside the codebook."""
    if book.path is None or book.document.ledger is None:
        return
    beside = book.path.with_suffix(".ledger")
    if beside.exists() and (_is_in_database(book) or ledger_path_of(book).resolve() != beside.resolve()):
        raise LedgerError(
            f"The codebook names another ledger, but {beside.name} lies beside it: its charges would be forgotten. "
            "Remove the word, or put that file away for good if the data is about other people. Nothing was charged."
        )


def _is_in_database(book: Codebook) -> bool:
    return book.ledger is not None and book.ledger.startswith(DATABASES)


def _open_ledger(book: Codebook) -> Ledger:
    terms = terms_of(book)
    _check_move(book)
    if _is_in_database(book):
        from discreet.ledger.postgres import PostgresLedger

        return PostgresLedger.on(str(book.ledger), terms, schema=schema_of(book.name))
    return MemoryLedger.on(terms) if book.ledger is None else SQLiteLedger.on(ledger_path_of(book), terms)
