"""COPY (SELECT ...) TO STDOUT: the rows of an answer as text, CSV or in binary form."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.late_dataclass import dataclass
from discreet.wire.backend_messages import WireColumn, encode_cell
from discreet.wire.refusals import FEATURE_NOT_SUPPORTED, WireRefused
from discreet.wire.statement_words import WireStatement, Word, find_close
from discreet.wire.value_types import to_binary, to_text

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
_FORMS = ("text", "csv", "binary")
_WRITE = "Write COPY (SELECT ...) TO STDOUT, with (FORMAT csv, HEADER) or (FORMAT binary) where it is meant."


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """How rows are written."""

    form: str = "text"
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"

    @property
    def binary(self) -> bool:
        """Whether it is the binary form."""
        return self.form == "binary"


def read_copy(statement: WireStatement) -> tuple[WireStatement, CopyOptions]:
    """The SELECT inside of a COPY, and the options behind it."""
    words = statement.words
    close = find_close(words, 1) if len(words) > 1 and words[1].upper == "(" else None
    if close is None:
        rule = "COPY takes a SELECT in parentheses here: no rows of a table are handed out, and none are taken in."
        raise WireRefused(FEATURE_NOT_SUPPORTED, rule, _WRITE, place=0)
    rest = words[close + 1 :]
    if [word.upper for word in rest[:2]] != ["TO", "STDOUT"]:
        raise WireRefused(FEATURE_NOT_SUPPORTED, "COPY goes to STDOUT alone.", _WRITE, place=words[close].start)
    return statement.cut(words[1].end, words[close].start), _read_options(rest[2:])


def _read_options(words: Sequence[Word]) -> CopyOptions:
    """Both ways to write options: (FORMAT csv, HEADER true), and WITH CSV HEADER."""
    said = [word for word in words if word.upper not in ("WITH", "(", ")", ",", "AS")]
    found: dict[str, Any] = {}
    at = 0
    while at < len(said):
        name, after = said[at].upper.lower(), said[at + 1].value if at + 1 < len(said) else ""
        if name in _FORMS:
            found["form"], at = name, at + 1
        elif name == "header":
            stated = after.lower() in ("true", "on", "1", "false", "off", "0")
            found["header"], at = after.lower() not in ("false", "off", "0"), at + 1 + stated
        elif name == "format" and after.lower() in _FORMS:
            found["form"], at = after.lower(), at + 2
        elif name in ("delimiter", "null", "encoding", "quote", "escape") and after:
            found |= {name: after} if name in ("delimiter", "null") else {}
            at += 2
        else:
            raise WireRefused(FEATURE_NOT_SUPPORTED, "This option of COPY is not known here.", _WRITE)
    if found.get("form") == "csv":
        found = {"delimiter": ",", "null": "", **found}
    if len(found.get("delimiter", ",")) != 1:
        raise WireRefused(FEATURE_NOT_SUPPORTED, "A delimiter of COPY is one sign.", _WRITE)
    return CopyOptions(**found)


def write_copy(columns: Sequence[WireColumn], rows: Sequence[Sequence[Any]], options: CopyOptions) -> Iterator[bytes]:
    """The lines of a COPY, one part for each row."""
    if options.binary:
        head = _HEAD  # it goes with the first row, as clients know it
        for row in rows:
            cells = (encode_cell(to_binary(value, column.type)) for value, column in zip(row, columns))
            yield head + len(columns).to_bytes(2, "big") + b"".join(cells)
            head = b""
        yield head + b"\xff\xff"
        return
    if options.header:
        yield _write_line([column.name for column in columns], options)
    for row in rows:
        texts = (to_text(value, column.type) for value, column in zip(row, columns))
        yield _write_line([None if text is None else text.decode() for text in texts], options)


def _write_line(cells: Sequence[str | None], options: CopyOptions) -> bytes:
    if options.form == "csv":
        line = io.StringIO()
        csv.writer(line, delimiter=options.delimiter, lineterminator="\n").writerow(
            options.null if cell is None else cell for cell in cells
        )
        return line.getvalue().encode("utf-8", "replace")
    escaped = (options.null if cell is None else _escape(cell, options.delimiter) for cell in cells)
    return (options.delimiter.join(escaped) + "\n").encode("utf-8", "replace")


def _escape(cell: str, delimiter: str) -> str:
    written = "".join(_ESCAPES.get(sign, sign) for sign in cell)
    return written if delimiter in _ESCAPES else written.replace(delimiter, f"\\{delimiter}")
