"""What csv and parquet hold: rows as Arrow tables whose names and types are known also where no row is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

    from discreet.answer import Answer
    from discreet.plan.types import Type, Value
    from discreet.preview import Preview

_PREVIEW = {
    "column": "text",
    "measured_by": "text",
    "group_size": "integer",
    "error": "real",
    "error_in_rank": "integer",
    "usual_error_in_rank": "integer",
    "ends_in_rank": "integer",
}


def make_rows(types: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    """A table with these columns (text, integer, real or boolean) from records, which may hold more than them.

    >>> make_rows({"n": "integer", "share": "real"}, [{"n": 1, "share": 0.5, "words": "half"}]).to_pylist()
    [{'n': 1, 'share': 0.5}]
    """
    import pyarrow as pa

    from discreet.plan.arrow import load_arrow_types
    from discreet.plan.types import Type

    kinds, listed = load_arrow_types(), list(records)
    return pa.table(
        {name: pa.array([record[name] for record in listed], kinds[Type(kind)]) for name, kind in types.items()}
    )


def preview_rows(shown: Preview, known_later: Sequence[str] = ()) -> pyarrow.Table:
    """Expected errors: a row for each column, and where the error depends on the size of a group, for each size.

    The errors of columns that are ``known_later`` are NULL.
    """
    return make_rows(_PREVIEW, _list_errors(shown, known_later))


def batch_preview_rows(each: Sequence[Preview]) -> pyarrow.Table:
    """The expected errors of several questions, which are numbered from one."""
    found = [{"question": number, **row} for number, shown in enumerate(each, 1) for row in _list_errors(shown)]
    return make_rows({"question": "integer", **_PREVIEW}, found)


def _list_errors(shown: Preview, known_later: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    for column in shown.columns:
        row = {"column": column.name, "measured_by": column.what, "group_size": None, "error": column.error,
               "error_in_rank": column.rows, "usual_error_in_rank": column.usual,
               "ends_in_rank": column.ends}  # fmt: skip
        if column.name in known_later:
            yield row | {"error": None}
        elif column.by_size:
            yield from (row | {"group_size": size, "error": error} for size, error in column.by_size)
        else:
            yield row


def batch_rows(answers: Sequence[Answer]) -> pyarrow.Table:
    """Several answers below each other, numbered from one; NULL where an answer lacks a column of another.

    A name that has different types in two answers is text in all of them.
    """
    types: dict[str, str] = {}
    for answer in answers:
        for name, kind, _ in answer.columns():
            types[name] = str(kind) if types.get(name, str(kind)) == str(kind) else "text"
    head = "question"
    while head in types:
        head += "_"
    records = [
        dict.fromkeys(types) | {head: number} | {name: _as_type(value, types[name]) for name, value in row.items()}
        for number, answer in enumerate(answers, 1)
        for row in _list_records(answer.columns())
    ]
    return make_rows({head: "integer", **types}, records)


def _list_records(columns: Sequence[tuple[str, Type, list[Value]]]) -> Iterator[dict[str, Value]]:
    names = [name for name, _, _ in columns]
    return (dict(zip(names, values)) for values in zip(*(values for _, _, values in columns)))


def _as_type(value: Value, kind: str) -> Value:
    return str(value) if kind == "text" and value is not None else value
