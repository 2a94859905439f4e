"""Opens a curator: from a codebook on disk (``open_codebook``), or from frames in memory (``curate``)."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec
from uuid import uuid4

from discreet.call_forms import refuse_call
from discreet.codebook import Codebook
from discreet.codebook.entries import OTHERS
from discreet.codebook.spending import DATABASES
from discreet.errors import LedgerError, ParameterError
from discreet.ledger import sqlite
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.chain import Head
from discreet.ledger.headfile import head_path_of
from discreet.ledger.ledger import Ledger
from discreet.ledger.ledger_terms import LedgerTerms
from discreet.ledger.memory import MemoryLedger
from discreet.ledger.other_ledgers import find_other_ledger
from discreet.ledger.policy import PERIODS, Cap, Policy
from discreet.ledger.sqlite import SQLiteLedger
from discreet.parameters import kind_of, refuse
from discreet.plan.source_kinds import SourceKind, split_stored

if TYPE_CHECKING:
    from discreet.curator import Curator

_P = ParamSpec("_P")
# The call to write, where another one does not fit.
_CURATE = 'curate({"visits": frame}, budget=discreet.Budget(epsilon=1))'


def open_codebook(path: str | Path) -> Curator:
    """The curator of the dataset that a codebook describes: ``discreet.open("hospital.toml")``.

    The data stay where they are and are read when a question needs them. Charges and answers are kept in a ledger
    beside the codebook, ``hospital.ledger``, or where the codebook says. A ledger that does not exist is made.
    """
    if not isinstance(path, str | Path):
        fix = f"Write open('hospital.toml'); frames in memory are for {_CURATE}. Nothing was charged."
        raise refuse("path", "the path of a codebook", path, fix)
    return _make_curator(Codebook.load(path), None)


def _take_parameters_of(
    declare: Callable[_P, Codebook],
) -> Callable[[Callable[..., Curator]], Callable[_P, Curator]]:
    """Give a function the parameters of ``declare``, so that they are written once.

    Type checkers and editors see them by the type of this decorator, ``help`` and ``inspect`` by the signature that it
    sets. A call with wrong arguments is refused under the function's own name.
    """

    def decorate(function: Callable[..., Curator]) -> Callable[_P, Curator]:
        signature = inspect.signature(declare).replace(return_annotation="Curator")

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> Curator:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                raise refuse_call(call, args, kwargs, _CURATE) from None
            return function(*args, **kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect and help
        return call

    return decorate


@_take_parameters_of(Codebook.from_frames)
def curate(tables: Mapping[str, Any], **declared: Any) -> Curator:
    """A curator of frames in memory (Arrow, pandas or polars), with a ledger in memory that ends with the process.

    A frame of Spark, or a text such as ``"postgres:clinic.visits"`` or ``"spark:lake.clinic.visits"``, is a table that
    stays where it is.
    ``unit`` names the column that says whose row it is; None protects one row. A table without that column reaches the
    unit by ``foreign_keys``, such as ``{"labs.visit_id": "visits.visit_id"}``, or is ``public``; columns that refer
    together are one mapping of a list. The name of a column means this column in every table that has it;
    ``"table.column"`` means the column of one table.
    """
    if not isinstance(tables, Mapping):
        rule = f"must be frames by name; got {kind_of(tables)}"
        raise ParameterError("tables", rule, f"Write {_CURATE}. Nothing was charged.")
    frames = {name: _find_frame(frame) for name, frame in tables.items()}
    return _make_curator(Codebook.from_frames(frames, **declared), frames)


def _find_frame(given: Any) -> Any:
    """A frame as it is; a text such as ``postgres:clinic.visits`` as the table that it names.

    Spark tells no state of its data. That of a table is given a name here, once, as that of a frame is: until the
    process ends, it must not be changed.
    """
    named = split_stored(given) if isinstance(given, str) else None
    if named is None:
        return given
    from discreet.engines.registry import find_stored_tables

    found = find_stored_tables(*named).values()
    if len(found) > 1:
        rule = f"names {len(found)} tables with {given!r}"
        raise ParameterError("tables", rule, f"Write '{named[0]}:schema.table' for each of them. Nothing was charged.")
    (table,) = found
    return replace(table, release=uuid4().hex) if table.kind is SourceKind.SPARK else table


def _make_curator(book: Codebook, frames: Mapping[str, Any] | None) -> Curator:
    # Those who look at the ledger alone need neither.
    from discreet.curator import Curator
    from discreet.engines.registry import open_engine

    catalog = book.catalog()
    return Curator(
        name=book.name,
        catalog=catalog,
        engine=open_engine(book.sources if frames is None else frames, catalog),
        ledger=open_ledger(book),
        per_query=book.per_query,
        analysts=book.analysts,
        shared_answers=book.shared_answers,
        answer_after=book.answer_after,
    )


def terms_of(book: Codebook) -> LedgerTerms:
    """The budget, the caps and the names of a codebook, as the terms of its ledger."""
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
        policy=Policy(
            caps=tuple(caps), analysts=book.analysts, projects=book.projects, stops=book.document.budget.stops
        ),
        ledger_id=book.ledger_id,
    )


def open_existing_ledger(book: Codebook) -> BaseLedger:
    """The ledger of a codebook as it is on disk, for administration. The codebook's own terms are not compared."""
    if _is_in_database(book):
        from discreet.ledger.postgres import PostgresLedger

        return PostgresLedger.open_existing(str(book.ledger), schema=schema_of(book.name), place=_place_beside(book))
    return SQLiteLedger.open_existing(ledger_path_of(book))


def read_ledger(book: Codebook) -> AbstractContextManager[BaseLedger]:
    """The ledger of a codebook, to be looked at only; also from a place that cannot be written."""
    return open_existing_ledger(book) if _is_in_database(book) else sqlite.read_ledger(ledger_path_of(book))


def restore_ledger(book: Codebook, *, by: str, reason: str) -> Head:
    """Go on with a ledger of a codebook that is older than its head file, after a backup was put back."""
    place = _place_beside(book)
    if place is not None and _is_in_database(book):
        from discreet.ledger import postgres

        return postgres.restore(str(book.ledger), schema=schema_of(book.name), place=place, by=by, reason=reason)
    return sqlite.restore(ledger_path_of(book), by=by, reason=reason)


def ledger_path_of(book: Codebook) -> Path:
    """The file of a codebook's ledger: beside the codebook, or where it says. A ledger in a database is refused."""
    if _is_in_database(book):
        raise LedgerError("This ledger is in a database, not in a file. Use the database's own tools for copies.")
    return Path(book.name).with_suffix(".ledger") if book.ledger is None else Path(book.ledger)


def schema_of(dataset: str) -> str:
    """The schema of a dataset's ledger in a database: the dataset's name, and a digest if the name has other signs.

    >>> schema_of("hospital"), schema_of("Old Town, 2024")
    ('discreet_hospital', 'discreet_old_town_2024_68e8b951')
    """
    name = re.sub(r"[^a-z0-9]+", "_", dataset.lower())[:40].strip("_")
    digest = "" if name == dataset else "_" + hashlib.sha256(dataset.encode()).hexdigest()[:8]
    return f"discreet_{name}{digest}"


def _check_move(book: Codebook) -> None:
    """Refuse to begin a new ledger elsewhere while the old one lies beside the codebook."""
    if book.path is None or book.document.ledger is None:
        return
    beside = book.path.with_suffix(".ledger")
    if _is_in_database(book):
        left = [beside]  # its head is that of the database's ledger
    elif ledger_path_of(book).resolve() != beside.resolve():
        left = [beside, head_path_of(beside)]
    else:
        return
    for file in left:
        if file.exists():
            raise LedgerError(
                f"The codebook names another ledger, but {file.name} lies beside it: its charges would be forgotten. "
                "Remove the word; or move that file, too, if it belongs to the ledger; or put it away for good if the "
                "data is about other people. Nothing was charged."
            )


def _is_in_database(book: Codebook) -> bool:
    return book.ledger is not None and book.ledger.startswith(DATABASES)


def open_ledger(book: Codebook) -> Ledger:
    """The ledger of a codebook on its terms. One that does not exist is made."""
    terms = terms_of(book)
    _check_move(book)
    if _is_in_database(book):
        from discreet.ledger.postgres import PostgresLedger

        place = _place_beside(book)
        if place is not None and not head_path_of(place).exists():
            _check_others(book, place)
        return PostgresLedger.on(str(book.ledger), terms, schema=schema_of(book.name), place=place)
    if book.ledger is None:
        return MemoryLedger.on(terms)
    path = ledger_path_of(book).resolve()
    if not path.exists():
        _check_second_name(book)
        _check_others(book, path)
    return SQLiteLedger.on(path, terms)


def _place_beside(book: Codebook) -> Path | None:
    """The path beside the codebook that a ledger in a file would have; its head file is used for databases, too."""
    return None if book.path is None else book.path.with_suffix(".ledger")


def _check_second_name(book: Codebook) -> None:
    """Refuse to begin a ledger beside one of two names of the same codebook: the other name may have one."""
    if book.path is not None and book.path.exists() and book.path.stat().st_nlink > 1:
        raise LedgerError(
            f"{book.path.name} has a second name (a hard link), and there may be a ledger beside that one. Remove one "
            "of the two names, or open the codebook that has the ledger. Nothing was charged."
        )


def _check_others(book: Codebook, path: Path) -> None:
    """Refuse to begin a ledger where another one of the same dataset lies: beside it, the codebook, or the data."""
    folders = [path.parent] if book.path is None else [path.parent, book.path.parent]
    folders += [Path(source.path).parent for source in book.sources.values()]
    other = find_other_ledger(folders, dataset=book.name, ledger_id=book.ledger_id, but=path)
    if other is not None:
        raise LedgerError(
            f"There is no ledger {path.name}, but {other} is one of this dataset: its charges would be forgotten. If "
            f'the codebook was renamed, write ledger = "{other.name}" into it, or rename the ledger with its head; '
            "give another dataset another name. Nothing was charged."
        )
