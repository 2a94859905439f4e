"""The checked codebook: where the data is, who is protected, what is public, and what may be spent.

A codebook comes from a TOML file (``Codebook.load``) or from frames in Python (``Codebook.from_frames``). Both go
through the same rules. It is a frozen value and opens nothing: a source is only the name of a place, which an engine
opens.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.codebook import owners
from discreet.codebook.column_facts import FactsByName
from discreet.codebook.entries import ROW, BudgetEntry, ColumnEntry, Document, SourceEntry, TableEntry
from discreet.codebook.entry_reader import read_entries
from discreet.codebook.frame_types import list_required, types_of
from discreet.codebook.rules import find_problems
from discreet.codebook.spending import DATABASES
from discreet.errors import CodebookError, Problem
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import (
    DEFAULT_JOINED_ROWS,
    DEFAULT_LENGTH,
    Catalog,
    ColumnFacts,
    ContributionLimits,
    TableFacts,
)
from discreet.plan.csv_form import CsvEncoding, CsvForm, DateOrder, delimiter_of_path
from discreet.plan.source_kinds import STORED_KINDS, SourceKind
from discreet.plan.times import list_starts, to_days
from discreet.plan.types import Type, Value
from discreet.privacy import PAYABLE, Budget, Neighbours, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Where the rows of a table are: in files (``path`` may be a pattern), in a table of a DuckDB file, or in one of
    PostgreSQL or Spark, of which ``path`` is the full name, and ``release`` a name for the state of its data.

    ``form`` says how a CSV file is written; it is None for other kinds. ``address`` says where Spark runs, if
    Spark reads it.
    """

    kind: SourceKind
    path: str
    table: str | None = None
    release: str | None = None
    form: CsvForm | None = None
    address: str | None = None

    def __str__(self) -> str:
        return self.path if self.table is None else f"{self.path}, table {self.table}"


@dataclass(frozen=True, slots=True)
class Codebook:
    """The public facts and the budget of one dataset. ``path`` is None for a codebook that was made in Python."""

    document: Document
    path: Path | None = None

    @classmethod
    def load(cls, path: str | Path) -> Codebook:
        """The codebook in a file. A ``CodebookError`` lists everything that is wrong with it."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            fix = "Check the path; `discreet init DATA` writes a first codebook."
            raise CodebookError(str(path), (Problem("The file", "cannot be read", fix),)) from error
        except UnicodeDecodeError as error:
            fix = "Save the codebook as UTF-8 text; data belongs in a source."
            raise CodebookError(str(path), (Problem("The file", "is not text", fix),)) from error
        return cls.read(text, file)

    @classmethod
    def read(cls, text: str, path: Path | None = None) -> Codebook:
        """The codebook in a text. Numbers are read as exact decimals.

        Links in ``path`` are followed: under every name that leads to it, a codebook has the same ledger.
        """
        file = "codebook" if path is None else str(path)
        try:
            raw = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as error:
            problem = Problem(
                "The file", f"is not TOML: {str(error).rstrip('.')}", "Mend the line, or see `discreet help codebook`."
            )
            raise CodebookError(file, (problem,)) from None
        return cls(_read_document(raw, file), None if path is None else path.resolve())

    @classmethod
    def from_frames(
        cls,
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
        bins: Mapping[str, Any] | None = None,
        constant_per_unit: Collection[str] = (),
        not_null: Collection[str] = (),
        public: Collection[str] = (),
        foreign_keys: Mapping[str, str] | Collection[Mapping[str, str]] | None = None,
        unique: Collection[str] = (),
        max_frequency: Mapping[str, int] | None = None,
        max_length: Mapping[str, int] | None = None,
        max_values: Mapping[str, int] | None = None,
        max_joined_rows: int | None = None,
        exact_rows: Mapping[str, int] | None = None,
        exact_units: Mapping[str, int] | None = None,
        per_query: Any = None,
        shared_answers: bool = False,
        answer_after: str | None = None,
        name: str = "data",
    ) -> Codebook:
        """A codebook for frames, with the types of their schemas. No value is read.

        The name of a column means this column in every table that has it; ``table.column`` means the column of one
        table. A key None makes NULL a group. Bounds of timestamps may be dates, which mean their midnights. ``bins`` is
        for columns that hold starts of bins: a width (10, "month") or the starts. ``public``, ``exact_rows`` and
        ``exact_units`` name tables. A bare name in ``unique`` means columns of public tables, and in ``max_frequency``
        and ``max_values`` columns of private ones. ``not_null`` names columns without missing values, besides those of
        which an Arrow schema says it: what is missing there all the same counts as a value.
        """
        facts = FactsByName({table: dict(types_of(frame)) for table, frame in tables.items()}, public)
        facts.add("nullable", {f"{table}.{name}": False for table in tables for name in list_required(tables[table])})
        facts.add("type", types)
        facts.add("bounds", {column: tuple(ends) for column, ends in (bounds or {}).items()})
        facts.add("resolution", resolution)
        facts.add_keys(keys or {})
        facts.add_bins(bins or {})
        facts.add("constant_per_unit", dict.fromkeys(constant_per_unit, True))
        facts.add("nullable", dict.fromkeys(not_null, False))
        facts.add("unique", dict.fromkeys(unique, True), public=True)
        facts.add("max_frequency", max_frequency, public=False)
        facts.add("max_length", max_length)
        facts.add("max_values", max_values, public=False)
        facts.add_foreign_keys(foreign_keys or {})
        facts.add_sizes("exact_rows", exact_rows)
        facts.add_sizes("exact_units", exact_units)
        if facts.problems:
            raise CodebookError("curate(...)", tuple(facts.problems))
        limits = {"max_rows": max_rows, "max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
        raw = {
            "name": name,
            "unit": ROW if unit is None else unit,
            "neighbours": str(neighbours),
            "max_joined_rows": max_joined_rows,
            "budget": _to_budget_entry(budget, per_query),
            "shared_answers": shared_answers,
            "answer_after": answer_after,
            "tables": facts.to_tables(_leave_out_none(limits)),
        }
        return cls(_read_document(_leave_out_none(raw), "curate(...)", files=False))

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def unit(self) -> Unit:
        """Who is protected. It is the same in every table."""
        unit = owners.unit_name_of(self.document)
        return Unit(None if unit is None else unit.column)

    @property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.document.neighbours)

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        budget = self.document.budget
        return Budget(**{word: getattr(budget, word) for word in (*PAYABLE, "delta")})

    @property
    def per_query(self) -> Fraction | None:
        """The most that one question may cost, in the currency of the budget (ε or ρ); None without a cap."""
        return self.document.budget.per_query

    @property
    def spending(self) -> BudgetEntry:
        """The budget and all caps, as the file states them."""
        return self.document.budget

    @property
    def analysts(self) -> tuple[str, ...] | None:
        """The names of those who may ask; None where anyone may ask who can open the codebook."""
        return self.document.analysts

    @property
    def projects(self) -> tuple[str, ...] | None:
        """The names of the projects for which one may ask; None where any project is allowed."""
        return self.document.projects

    @property
    def shared_answers(self) -> bool:
        """Whether what was answered to one analyst is free for all of them."""
        return self.document.shared_answers

    @property
    def answer_after(self) -> dt.timedelta | None:
        """The first time after a request at which what read data is handed out; None for at once."""
        return self.document.answer_after

    @property
    def ledger_id(self) -> str | None:
        """The identity that the ledger must have; None where the codebook states none."""
        return self.document.ledger_id

    @property
    def ledger(self) -> str | None:
        """The address of the ledger's database, or the path of its file; None where the codebook was made in Python."""
        place = self.document.ledger
        if self.path is None or (place is not None and place.startswith(DATABASES)):
            return place
        return str(self.path.with_suffix(".ledger") if place is None else self.path.parent / place)

    @property
    def sources(self) -> dict[str, TableSource]:
        """Where the rows of each table are; empty for frames."""
        shared = self.document.source
        folder = Path() if self.path is None else self.path.parent
        found = {name: table.source or shared for name, table in self.document.tables.items()}
        spark = None if self.document.engine is None else self.document.engine.spark
        return {name: _make_source(place, name, folder, spark) for name, place in found.items() if place is not None}

    def size(self, table: str) -> tuple[int | None, int | None]:
        """The declared numbers of rows and of units of a table; None where one is not declared."""
        entry = self.document.tables[table]
        rows, units = entry.exact_rows or entry.rows, entry.exact_units or entry.units
        if entry.public:
            return rows, None
        return rows, rows if self.unit.column is None else units

    def catalog(self) -> Catalog:
        """The public facts that the planner uses."""
        found = owners.find_ways(self.document)
        return Catalog(
            tables={name: self._make_table_facts(name, found.get(name)) for name in self.document.tables},
            neighbours=self.neighbours,
            max_joined_rows=self.document.max_joined_rows or DEFAULT_JOINED_ROWS,
        )

    def _make_table_facts(self, name: str, way: owners.Way | None) -> TableFacts:
        """The facts of one table. ``way`` is None where a row is its own unit, or belongs to nobody."""
        table, unit = self.document.tables[name], self.unit
        owner = None if way is None else way.owner
        columns = {
            column: (Type(entry.type), _make_column_facts(entry, owner=column == owner))
            for column, entry in table.columns.items()
        }
        return TableFacts(
            name=name,
            columns=columns,
            unit=unit,
            limits=_make_limits(table, unit),
            public=table.public,
            owner=None if owner == unit.column else owner,
            link=None if way is None else way.link,
            keys=owners.foreign_keys_of(name, self.document),
            size=table.exact_rows or table.rows or table.exact_units or table.units,
            exact_units=table.exact_rows or table.exact_units,
        )


def _read_document(raw: Mapping[str, Any], file: str, *, files: bool = True) -> Document:
    document = read_entries(raw)
    if isinstance(document, tuple):
        raise CodebookError(file, document)
    wrong = tuple(find_problems(document, files=files))
    if wrong:
        raise CodebookError(file, wrong)
    return document


def _to_budget_entry(budget: Budget, per_query: object) -> dict[str, Any]:
    """A budget as entries of a codebook."""
    if not isinstance(budget, Budget):
        fix = "Give budget=Budget(epsilon=1), Budget(epsilon=1, delta=1e-9), Budget(rho=0.1) or Budget(mu=0.5)."
        raise CodebookError("curate(...)", (Problem("budget", f"must be in {' or '.join(PAYABLE)}", fix),))
    return _leave_out_none({word: getattr(budget, word) for word in (*PAYABLE, "delta")} | {"per_query": per_query})


def _leave_out_none(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that somebody has given."""
    return {word: value for word, value in entries.items() if value is not None}


def _make_source(place: SourceEntry, name: str, folder: Path, spark: str | None) -> TableSource:
    kinds = (SourceKind.PARQUET, SourceKind.CSV, SourceKind.DUCKDB, SourceKind.POSTGRES, SourceKind.SPARK)
    kind = next(kind for kind in kinds if getattr(place, kind) is not None)
    table = (place.table or name) if kind is SourceKind.DUCKDB else None
    where = getattr(place, kind)
    path = where if kind in STORED_KINDS else str(folder / where)
    form = _make_form(place) if kind is SourceKind.CSV else None
    address = spark if kind in (SourceKind.PARQUET, SourceKind.SPARK) else None
    return TableSource(kind=kind, path=path, table=table, release=place.release, form=form, address=address)


def _make_form(place: SourceEntry) -> CsvForm:
    return CsvForm(
        delimiter=place.delimiter or delimiter_of_path(place.csv or ""),
        encoding=CsvEncoding(place.encoding or CsvEncoding.UTF8),
        decimal=place.decimal or ".",
        thousands=place.thousands or "",
        dates=DateOrder(place.dates or DateOrder.YMD),
    )


def _make_limits(table: TableEntry, unit: Unit) -> ContributionLimits:
    if table.public:
        return ContributionLimits()
    if unit.column is None:
        return ContributionLimits(max_rows=1, max_groups=1, max_rows_per_group=1)
    return ContributionLimits(
        max_rows=table.max_rows, max_groups=table.max_groups, max_rows_per_group=table.max_rows_per_group
    )


def _make_column_facts(column: ColumnEntry, *, owner: bool) -> ColumnFacts:
    kind = Type(column.type)
    low, high = (None, None) if column.bounds is None else _read_ends(column, *column.bounds)
    step = Fraction(1) if column.resolution is None and kind is Type.INTEGER else column.resolution
    keys = _list_keys(column, kind)
    return ColumnFacts(
        nullable=column.nullable,
        low=low,
        high=high,
        resolution=step,
        keys=(*keys, None) if keys is not None and column.null_key else keys,
        constant=column.constant_per_unit or owner,
        unique=column.unique,
        frequency=column.max_frequency,
        max_length=(column.max_length or DEFAULT_LENGTH) if kind is Type.TEXT else None,
        max_values=column.max_values,
    )


def _read_ends(column: ColumnEntry, low: Any, high: Any) -> tuple[Fraction, Fraction]:
    """The bounds as exact numbers; of times, their days."""
    if not Type(column.type).is_time:
        return low, high
    if column.bins is not None and column.bins.width is not None:
        # The month of the first day begins before it, and a column of starts of months holds that start.
        low = next(iter(_list_bin_starts(column)))
    return to_days(low), to_days(high)


def _list_keys(column: ColumnEntry, kind: Type) -> tuple[Value, ...] | None:
    """The public groups of a column: its keys, its bins, or true and false."""
    values = column.keys
    if column.bins is not None:
        values = column.bins.edges if column.bins.width is None else tuple(_list_bin_starts(column))
    if values is None:
        return (False, True) if kind is Type.BOOLEAN else None
    convert = {Type.INTEGER: int, Type.REAL: float}.get(kind)
    return tuple(values) if convert is None else tuple(convert(value) for value in values)


def _list_bin_starts(column: ColumnEntry) -> Iterable[Any]:
    """The starts of the bins from the lower bound to the upper one."""
    if column.bounds is None or column.bins is None:
        return
    width = column.bins.width
    value, last = column.bounds
    if isinstance(width, str):
        yield from list_starts(width, value, last)
        return
    while value <= last:
        yield value
        value += width
