"""Blocks of CSV lines in which nothing is odd, read by Arrow's reader, numbers included: most blocks of most files.

Rule. What is read here is what ``csv_lines`` would read and ``stored_texts`` would make of it, or nothing is. Then
lines are looked at one by one. So this is about time alone: the clock of the question that makes a copy may tell that
there are odd lines, a few hundredths of a second for each (``csv_lines.LEAST_PIECE``; ``answer_after`` hides that). The
rows and their values are the same.

Why they are the same. Where there are quotes, the caller has found that they follow the strict pattern in each line;
such a line is cut at the same delimiters by either reader, and two quotes stand for one. Carriage returns stand before
line feeds only; no byte is zero; all bytes are UTF-8; no line is longer than the limit. Arrow refuses a block with a
line of more or fewer fields, but for an empty one, so there is none unless that is a row; it takes a byte order mark
away, so there is none. Both read reals by the same rule (the nearest double). What Arrow takes for a number and
``stored_texts`` does not: tabs around it, integers in hexadecimal digits, and NaN in its many forms. Blocks with a tab,
with 0x, or with a real that is not finite are refused, and so is each text that Arrow takes for no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.plan.arrow import is_utf8
from discreet.plan.csv_form import LINE_LIMIT
from discreet.plan.types import Type

_MARK = b"\xef\xbb\xbf"


def find_arrow_type(kind: Type | None) -> Any:
    """How a column is kept: numbers as what they are, and everything else as it is written."""
    import pyarrow as pa

    if kind is Type.INTEGER:
        return pa.int64()
    return pa.float64() if kind is Type.REAL else pa.string()


def read_plain_block(
    block: bytes, kinds: Sequence[Type | None], delimiter: str, limit: int = LINE_LIMIT, *, quoted: bool = False
) -> Any:
    """The rows of a block of whole lines, as an Arrow column for each kind; None where some line is odd.

    ``quoted``: there are quotes, which follow the strict pattern. Otherwise a block with quotes is odd.
    """
    import pyarrow as pa
    from pyarrow import compute, csv

    if not quoted and b'"' in block:
        return None
    if _is_odd(block, kinds, delimiter) or _has_long_line(block, limit):
        return None
    sign: Any = '"' if quoted else False
    names = [f"c{i}" for i in range(len(kinds))]
    types = {name: find_arrow_type(kind) for name, kind in zip(names, kinds)}
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
            csv.ParseOptions(delimiter=delimiter, quote_char=sign, double_quote=quoted, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True, check_utf8=False),
        )
    except pa.ArrowInvalid:
        return None
    if not _has_all_fields(block, table.num_rows, len(kinds)):
        return None
    reals = (column for column, kind in zip(table.columns, kinds) if kind is Type.REAL)
    if not all(compute.all(compute.is_finite(column)).as_py() in (True, None) for column in reals):
        return None
    return table.columns


def _is_odd(block: bytes, kinds: Sequence[Type | None], delimiter: str) -> bool:
    """Whether there is a byte that the two readers might take for different things."""
    if b"\0" in block or block.startswith(_MARK) or not is_utf8(block):
        return True
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return True
    numbers = any(kind in (Type.INTEGER, Type.REAL) for kind in kinds)
    if numbers and delimiter != "\t" and b"\t" in block:
        return True
    # A single byte is found much sooner than two.
    return Type.INTEGER in kinds and any(x in block and b"0" + x in block for x in (b"x", b"X"))


def _has_long_line(block: bytes, limit: int) -> bool:
    """Whether a line is longer than a limit, without its line feed: then no line feed is within reach of its start."""
    at = 0
    while at < len(block):
        end = block.rfind(b"\n", at, at + limit + 1)
        if end < 0:
            return True
        at = end + 1
    return False


def _has_all_fields(block: bytes, rows: int, width: int) -> bool:
    """Whether each line became a row, and none was empty: Arrow fills an empty line up with NULLs."""
    feeds = np.frombuffer(block, np.uint8) == ord("\n")
    if int(np.count_nonzero(feeds)) != rows:
        return False
    empty = feeds[0] or block.startswith(b"\r\n") or bool(np.any(feeds[1:] & feeds[:-1]))
    return width == 1 or not (empty or (b"\r" in block and b"\n\r\n" in block))
