"""Types and forms of CSV files, proposed from their values. For the owner of the data, who has given leave.

What is proposed becomes public when the owner keeps it, and it depends on values. So it is kept coarse: a type is
proposed if 19 of 20 values fit it and there are two at least, and no bound, key or size is. One person's odd value then
changes nothing in a large table; it would be NULL, and the owner is told so (``owner_checks``).
"""

# all SQL is written here; names are quoted
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.csv_lines import LineFault, cut_into_blocks
from discreet.engines.duckdb.dialect import quote_text
from discreet.engines.duckdb.owner_checks import connect, load_copy, look_at_columns, write_is_missing, write_total
from discreet.engines.duckdb.scanning import StoredColumn, write_stored_column
from discreet.engines.duckdb.sources import Csv, open_source
from discreet.engines.duckdb.table_copies import TableCopy, write_lines
from discreet.engines.private_folder import PrivateFolder
from discreet.engines.proposal import TypeProposal
from discreet.errors import InternalError
from discreet.late_dataclass import dataclass
from discreet.plan.arrow import is_utf8
from discreet.plan.csv_form import PLAIN_FORM, CsvEncoding, CsvForm, DateOrder
from discreet.plan.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What values look like in any form.
_LOOKS = {
    "code": "0[0-9]+",
    "number": r"[-+]?[0-9.,][0-9.,'\x{00a0}\x{202f} ]*([eE][-+]?[0-9]+)?",
    "date": "[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?",
}
# Ways to write numbers, the likely ones first; and for files with semicolons, which mostly have decimal commas.
_NUMBER_FORMS = ((".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (".", "'"))
_SEMICOLON_FORMS = ((".", ""), (",", ""), (",", "."), (",", " "), (".", ","), (".", "'"), (".", " "))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Of one column: its values that are not missing, how many of them fit each type, and what they look like."""

    values: int
    fits: Mapping[Type, int]
    days: int
    looks: Mapping[str, int]

    def fit(self, kind: Type) -> bool:
        return self.values > 1 and 20 * self.fits[kind] >= 19 * self.values

    def looks_like(self, look: str) -> bool:
        return self.values > 1 and 20 * self.looks[look] >= 19 * self.values

    def choose(self) -> Type:
        """The narrowest type that nearly all values fit. Digits with zeros before them are codes, not numbers."""
        codes = self.looks["code"]
        if self.fit(Type.INTEGER) and 100 * codes >= self.values and codes > 1:
            return Type.TEXT
        if self.fit(Type.INTEGER) and 1000 * (self.fits[Type.REAL] - self.fits[Type.INTEGER]) < self.values:
            return Type.INTEGER
        if self.fit(Type.REAL):
            return Type.REAL
        if self.fit(Type.BOOLEAN):
            return Type.BOOLEAN
        if self.fit(Type.TIMESTAMP):
            return Type.DATE if 20 * self.days >= 19 * self.values else Type.TIMESTAMP
        return Type.TEXT


def propose_types(value: Any, table: str) -> TypeProposal:
    """The form and the types of the columns of a CSV source."""
    source = open_source(value, table=table)
    if not isinstance(source, Csv):
        raise InternalError("Types are proposed for CSV only; other files have them.")
    source = replace(source, form=replace(source.form, encoding=_find_encoding(source.paths, source.form.encoding)))
    folder = PrivateFolder()
    try:
        path = folder.path / "copy.parquet"
        write_lines(source, path)
        with connect(folder) as connection:
            return _propose(connection, load_copy(connection, TableCopy(str(path), "")), source)
    finally:
        folder.close()


def _find_encoding(paths: Sequence[str], shown: CsvEncoding) -> CsvEncoding:
    """Latin-1 where most lines with other signs than those of ASCII are not UTF-8; else what the header has shown."""
    seen = Counter[bool]()
    for path in paths:
        for block in cut_into_blocks(path, Counter[LineFault]()):
            if not block.isascii():
                seen.update(is_utf8(line) for line in block.split(b"\n") if not line.isascii())
    return CsvEncoding.LATIN1 if seen[False] > max(1, seen[True]) else shown


def _propose(connection: DuckDBPyConnection, relation: str, source: Csv) -> TypeProposal:
    def count(names: Sequence[str], form: CsvForm) -> Mapping[str, _Counts]:
        return _count(connection, relation, names, form)

    plain = count(source.names, PLAIN_FORM)
    numbers = [name for name, counts in plain.items() if counts.looks_like("number")]
    days = [name for name, counts in plain.items() if counts.looks_like("date") and not counts.fit(Type.TIMESTAMP)]
    form = PLAIN_FORM
    if not all(plain[name].fit(Type.REAL) for name in numbers):
        pairs = _SEMICOLON_FORMS if source.form.delimiter == ";" else _NUMBER_FORMS
        forms = [CsvForm(decimal=decimal, thousands=thousands) for decimal, thousands in pairs]
        scores = [sum(counts.fit(Type.REAL) for counts in count(numbers, form).values()) for form in forms]
        form = forms[scores.index(max(scores))]
    order, doubtful = _find_order({order: count(days, CsvForm(dates=order)) for order in DateOrder}, days)
    form = replace(form, dates=order)
    found = plain if form == PLAIN_FORM else count(source.names, form)
    form = replace(source.form, decimal=form.decimal, thousands=form.thousands, dates=form.dates)
    return TypeProposal(form, {name: found[name].choose() for name in source.names}, doubtful)


def _find_order(
    found: Mapping[DateOrder, Mapping[str, _Counts]], names: Sequence[str]
) -> tuple[DateOrder, tuple[str, ...]]:
    """The order in which most dates are dates, and the columns for which the day cannot be told from the month."""
    dates = {order: {name: found[order][name].fits[Type.TIMESTAMP] for name in names} for order in DateOrder}
    day_first, month_first = dates[DateOrder.DMY], dates[DateOrder.MDY]
    doubtful = tuple(name for name in names if day_first[name] == month_first[name] > 0)
    best = max(DateOrder, key=lambda order: sum(dates[order].values()))
    return (best, doubtful) if len(doubtful) < len(names) else (DateOrder.YMD, doubtful)


def _count(connection: DuckDBPyConnection, relation: str, names: Sequence[str], form: CsvForm) -> dict[str, _Counts]:
    found = look_at_columns(connection, relation, {name: name for name in names}, list(_write_counts(form)))
    nothing = [0] * (2 + len(_COUNTED) + len(_LOOKS))
    return {name: _read_counts(found.get(name, nothing)) for name in names}


_COUNTED = (Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TIMESTAMP)


def _write_counts(form: CsvForm) -> Iterator[str]:
    there = f"NOT {write_is_missing('x')}"
    yield write_total(there)
    reads = {kind: write_stored_column(StoredColumn("x", "VARCHAR", form), kind, None) for kind in _COUNTED}
    for read in reads.values():
        yield write_total(f"{there} AND ({read}) IS NOT NULL")
    yield write_total(f"{there} AND length(trim(x)) <= 10 AND ({reads[Type.TIMESTAMP]}) IS NOT NULL")
    for pattern in _LOOKS.values():
        yield write_total(f"{there} AND regexp_full_match(trim(x), {quote_text(pattern)})")


def _read_counts(row: Sequence[int]) -> _Counts:
    values, fits, days, looks = row[0], row[1 : 1 + len(_COUNTED)], row[1 + len(_COUNTED)], row[-len(_LOOKS) :]
    return _Counts(values, dict(zip(_COUNTED, fits)), days, dict(zip(_LOOKS, looks)))
