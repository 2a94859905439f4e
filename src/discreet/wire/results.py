"""What a statement gives: columns and rows, or a word that it is done, and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass
from discreet.wire.backend_messages import (
    COPY_DONE,
    WireColumn,
    begin_copy,
    complete,
    describe_rows,
    send_copied,
    send_row,
)
from discreet.wire.copying import CopyOptions, write_copy
from discreet.wire.value_types import OF_PLAN, WireType, encode_value

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.preview import Preview
    from discreet.wire.catalog_database import CatalogRows


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """The end of a statement. ``beside`` are notices and settings, already written; ``copy`` says that it is a COPY."""

    tag: str
    columns: tuple[WireColumn, ...] | None = None
    rows: Sequence[Sequence[Any]] = ()
    beside: bytes = b""
    copy: CopyOptions | None = None
    empty: bool = field(default=False)


def make_answer_result(answer: Answer) -> StatementResult:
    """The rows of an answer."""
    columns = answer.columns()
    rows = list(zip(*(values for _, _, values in columns)))
    described = tuple(WireColumn(name, OF_PLAN[kind]) for name, kind, _ in columns)
    return StatementResult(tag=f"SELECT {len(rows)}", columns=described, rows=rows)


def make_catalog_result(found: CatalogRows) -> StatementResult:
    """The rows of a query of the catalog."""
    columns = tuple(WireColumn(name, kind) for name, kind in zip(found.names, found.types))
    return StatementResult(tag=f"SELECT {len(found.rows)}", columns=columns, rows=found.rows)


def make_text_result(tag: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> StatementResult:
    """Rows of texts."""
    columns = tuple(WireColumn(title, WireType.TEXT) for title in titles)
    return StatementResult(tag=tag, columns=columns, rows=rows)


def describe_preview(preview: Preview) -> tuple[WireColumn, ...]:
    """The columns that an answer will have, before it is asked for."""
    from discreet.plan.arrow import load_arrow_types

    kinds = {kind: OF_PLAN[plan] for plan, kind in load_arrow_types().items()}
    return tuple(WireColumn(each.name, kinds[each.type]) for each in preview.schema)


def spread_formats(chosen: Sequence[int], count: int) -> tuple[int, ...]:
    """The format of each column: none chosen is text, one is for all."""
    if len(chosen) == count:
        return tuple(chosen)
    return (chosen[0] if len(chosen) == 1 else 0,) * count


def write_rows(result: StatementResult, formats: Sequence[int], rows: Sequence[Sequence[Any]]) -> bytes:
    """Rows of a result as messages."""
    columns = result.columns or ()
    return b"".join(
        send_row(
            [encode_value(cell, column.type, binary=bool(form)) for cell, column, form in zip(row, columns, formats)]
        )
        for row in rows
    )


def write_whole(result: StatementResult) -> bytes:
    """All that the simple protocol sends for a result."""
    if result.copy is not None:
        return result.beside + write_copied(result)
    if result.columns is None:
        return result.beside + complete(result.tag)
    formats = (0,) * len(result.columns)
    head = describe_rows(result.columns, formats)
    return result.beside + head + write_rows(result, formats, result.rows) + complete(result.tag)


def write_copied(result: StatementResult) -> bytes:
    """The rows of a COPY."""
    columns, options = result.columns or (), result.copy or CopyOptions()
    parts = [send_copied(part) for part in write_copy(columns, result.rows, options)]
    return b"".join([begin_copy(len(columns), binary=options.binary), *parts, COPY_DONE, complete(result.tag)])
