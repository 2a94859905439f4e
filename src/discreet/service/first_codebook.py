"""A first codebook from plain answers, and what they mean: the errors of some questions on fictional rows.

The rows have the columns, types, bounds and sizes of the answers, and are made by counting: no row of the data is read
for them. So the answers beside their true values are safe to show, and the errors are those that the real questions
would have, because errors follow from the codebook alone.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_never

from discreet.codebook.codebook import TableSource
from discreet.codebook.data_files import DataFiles
from discreet.codebook.draft import Choices, draft, write_column
from discreet.codebook.entries import ROW
from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.opening import open_codebook
from discreet.plan.source_kinds import SourceKind
from discreet.plan.types import Type

SHARES = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 5))
_MOST_ROWS = 20_000
_SIZES = "# rows = 60_000     # roughly, if public; so, too: units = 12_000"
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,12})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_STEP = 7919  # a prime, so that counting in steps of it visits every value


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAnswer:
    """What everybody may know of a column: its bounds as they were typed, or all its values."""

    low: str = ""
    high: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAnswers:
    """What only a person knows. Numbers are texts as typed; "" is not known."""

    unit: str
    max_rows: str = ""
    rows: str = ""
    units: str = ""
    epsilon: str = "1"
    columns: Mapping[str, ColumnAnswer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("max_rows", "rows", "units"):
            text = getattr(self, name)
            if text and not (text.isascii() and text.isdecimal() and 0 < int(text) < 10**12):
                raise ParameterError(name, "must be a whole number", "Write for example 20. Nothing was read.")
        if self.unit != ROW and not self.max_rows:
            raise ParameterError("max_rows", "is missing", "Say how many rows of one of them may count.")
        if not _NUMBER.fullmatch(self.epsilon):
            raise ParameterError("epsilon", "must be a number", "Choose one of the offered ones.")

    @property
    def delta(self) -> str:
        """Far below one over the number of people."""
        return f"1e-{len(self.units or self.rows or '1000000') + 3}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleError:
    """One question on fictional rows: its errors at each share, and one answer beside the true value."""

    words: str
    errors: tuple[float | None, ...]
    true: float | None = None
    answer: float | None = None


def write_codebook(found: DataFiles, answers: FirstAnswers, folder: Path, ledger_id: str | None = None) -> str:
    """The codebook as a commented text, for a file in ``folder``."""
    ((_, schema),) = found.tables.items()
    max_rows = None if answers.unit == ROW else answers.max_rows
    choices = Choices(
        unit=answers.unit, max_rows=max_rows, epsilon=answers.epsilon, delta=answers.delta, ledger_id=ledger_id
    )
    text = draft(found, choices, folder)
    for name, kind in schema.items():
        told = answers.columns.get(name)
        if kind is not None and told is not None and (facts := _write_facts(name, kind, told)):
            drafted = write_column(name, kind, owner=name == answers.unit)
            line = drafted.partition(" }")[0]
            text = text.replace(f"\n{drafted}\n", f"\n{line}, {facts} }}\n", 1)
    sizes = [f"{name} = {size}" for name, size in (("rows", answers.rows), ("units", answers.units)) if size]
    if answers.unit == ROW:
        sizes = sizes[:1]
    return text.replace(_SIZES, "\n".join([*sizes, *([] if sizes else [_SIZES])]), 1)


def _write_facts(name: str, kind: Type, told: ColumnAnswer) -> str:
    """The facts of a column as the codebook writes them."""
    if told.keys:
        keys = told.keys if kind.is_number else tuple(_write_text(key) for key in told.keys)
        if kind.is_number and not all(_is_value(kind, key) for key in keys):
            raise ParameterError(name, "has a public value that is no number", "Write them with commas between.")
        return f"keys = [{', '.join(keys)}]"
    if not told.low and not told.high:
        return ""
    if not (_is_value(kind, told.low) and _is_value(kind, told.high)):
        example = "2024-01-01" if kind.is_time else "0 and 110"
        raise ParameterError(name, "needs the smallest and the largest value", f"Write them like {example}.")
    return f"bounds = [{told.low}, {told.high}]"


def _is_value(kind: Type, text: str) -> bool:
    """Whether a text is a value of a type, as the codebook writes it."""
    if not kind.is_time:
        return _NUMBER.fullmatch(text) is not None and (kind is not Type.INTEGER or "." not in text)
    try:
        return _DATE.fullmatch(text) is not None and dt.date.fromisoformat(text) is not None
    except ValueError:
        return False


def _write_text(text: str) -> str:
    """A TOML string; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def find_errors(found: DataFiles, answers: FirstAnswers) -> list[ExampleError]:
    """The errors of some questions, and their answers, on fictional rows of the same shape."""
    import pyarrow.parquet as pq

    ((table, schema),) = found.tables.items()
    known = {name: kind for name, kind in schema.items() if kind is not None}
    write_codebook(found, answers, Path())  # answers that do not fit are refused before rows are made of them
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fictional.parquet"
        rows = make_rows(known, answers)
        pq.write_table(rows, file)
        source = TableSource(kind=SourceKind.PARQUET, path=str(file))
        fictional = replace(found, tables={table: known}, sources={table: source}, proposed=frozenset(), unnamed={})
        book = Path(folder) / "fictional.toml"
        book.write_text(write_codebook(fictional, answers, Path(folder)), encoding="utf-8")
        with open_codebook(book) as curator:
            asked = list_questions(table, known, answers)
            return [_try_question(curator, words, sql, rows) for words, sql in asked]


def list_questions(table: str, schema: Mapping[str, Type], answers: FirstAnswers) -> Iterator[tuple[str, str]]:
    """Questions that people ask first: how many, an average, and how many in each group."""
    place = _quote(table)
    yield "How many rows", f"SELECT COUNT(*) AS x FROM {place}"  # noqa: S608  # names are quoted; the data is ours
    for name, kind in schema.items():
        told = answers.columns.get(name, ColumnAnswer())
        if kind.is_number and told.low and not told.keys:
            yield f"The average of {name}", f"SELECT AVG({_quote(name)}) AS x FROM {place}"  # noqa: S608  # as above
            break
    for name in schema:
        if answers.columns.get(name, ColumnAnswer()).keys:
            column = _quote(name)
            groups = f"SELECT {column}, COUNT(*) AS x FROM {place} GROUP BY {column}"  # noqa: S608  # as above
            yield f"How many rows for each {name}", groups
            break


def _try_question(curator: Any, words: str, sql: str, rows: Any) -> ExampleError:
    previews = [curator.preview(sql, share=share) for share in SHARES]
    errors = tuple(_find_error(preview, rows.num_rows) for preview in previews)
    if "GROUP BY" in sql:
        return ExampleError(words=words, errors=errors)
    answer = curator.ask(sql, share=SHARES[1])
    averaged = words.removeprefix("The average of ")
    true = float(rows.num_rows) if averaged == words else _find_mean(rows[averaged].to_pylist())
    return ExampleError(words=words, errors=errors, true=true, answer=float(answer.to_dict()["rows"][0]["x"]))


def _find_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _find_error(preview: Any, rows: int) -> float | None:
    column = next(each for each in preview.to_dict()["columns"] if each["name"] == "x")
    if column["error"] is not None:
        return float(column["error"])
    sizes = [(abs(int(size) - rows), error) for size, error in column["error_by_size"].items() if error is not None]
    return float(min(sizes)[1]) if sizes else None


def make_rows(schema: Mapping[str, Type], answers: FirstAnswers) -> Any:
    """Fictional rows: as many as are declared, up to a bound, and so many of each unit as may count."""
    import pyarrow as pa

    count = min(int(answers.rows or 1000), _MOST_ROWS)
    units = min(int(answers.units or count), count)
    columns = {
        name: _make_column(kind, answers.columns.get(name, ColumnAnswer()), count, units if name == answers.unit else 0)
        for name, kind in schema.items()
    }
    return pa.table(columns)


def _make_column(kind: Type, told: ColumnAnswer, count: int, units: int) -> Sequence[Any]:
    if units:
        numbers = [place % units for place in range(count)]
        return numbers if kind is Type.INTEGER else [_convert(kind, number) for number in numbers]
    if told.keys:
        keys: list[Any] = [_read_key(kind, key) for key in told.keys]
        return [keys[place * _STEP % len(keys)] for place in range(count)]
    if kind.is_time:
        first = dt.date.fromisoformat(told.low) if told.low else dt.date(2024, 1, 1)
        last = dt.date.fromisoformat(told.high) if told.high else dt.date(2024, 12, 31)
        days = max(1, (last - first).days + 1)
        return [_make_time(kind, first + dt.timedelta(days=place * _STEP % days)) for place in range(count)]
    low, high = int(float(told.low or 0)), int(float(told.high or 100))
    return [_convert(kind, low + place * _STEP % max(1, high - low + 1)) for place in range(count)]


def _make_time(kind: Type, day: dt.date) -> dt.date:
    return day if kind is Type.DATE else dt.datetime.combine(day, dt.time())


def _read_key(kind: Type, key: str) -> Any:
    return int(key) if kind is Type.INTEGER else float(key) if kind is Type.REAL else key


def _convert(kind: Type, number: int) -> Any:
    match kind:
        case Type.INTEGER:
            return number
        case Type.REAL:
            return float(number)
        case Type.BOOLEAN:
            return number % 2 == 0
        case Type.TEXT:
            return f"word {number}"
        case Type.DATE | Type.TIMESTAMP:
            return _make_time(kind, dt.date(2000, 1, 1) + dt.timedelta(days=number))
        case _:
            assert_never(kind)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
