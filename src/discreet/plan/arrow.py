"""The types of a plan as Arrow types, and frames as Arrow tables: for what is handed to an engine or to people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import UsageError
from discreet.plan.types import Type, Value


def load_arrow_types() -> Mapping[Type, Any]:
    """The Arrow type of each plan type."""
    import pyarrow as pa

    return {
        Type.BOOLEAN: pa.bool_(),
        Type.INTEGER: pa.int64(),
        Type.REAL: pa.float64(),
        Type.TEXT: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }


# For each type of fixed width how NumPy reads its values, and the numbers that Arrow holds.
_FIXED_WIDTH = {
    Type.INTEGER: ("int64", "int64"),
    Type.REAL: ("float64", "float64"),
    Type.DATE: ("datetime64[D]", "int32"),
    Type.TIMESTAMP: ("datetime64[us]", "int64"),
}


def make_arrow_array(values: Sequence[Value], kind: Type) -> Any:
    """Values of one plan type as an Arrow array, texts with long offsets. Unlike ``pyarrow.array``, which imports
    pandas wherever it is installed, this costs nothing at the start.

    >>> make_arrow_array(["a", None, "b"], Type.TEXT).to_pylist()
    ['a', None, 'b']
    """
    import pyarrow as pa

    known = _pack_bits([value is not None for value in values])
    if kind is Type.TEXT:
        texts = [b"" if value is None else str(value).encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        buffers = [known, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.large_string(), len(values), buffers)
    if kind is Type.BOOLEAN:
        held = _pack_bits([bool(value) for value in values])
    else:
        # What stands in the place of NULL is never looked at.
        given: Any = [0 if value is None and kind.is_number else value for value in values]
        read, stored = _FIXED_WIDTH[kind]
        held = pa.py_buffer(np.array(given, dtype=read).astype(stored))
    return pa.Array.from_buffers(load_arrow_types()[kind], len(values), [known, held])


def _pack_bits(bits: Sequence[bool]) -> Any:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(np.array(bits, dtype=np.bool_), bitorder="little"))


def to_arrow_table(frame: Any) -> Any:
    """Any frame as an Arrow table: pyarrow, pandas, polars, or a list of dicts. Bytes that are no text are NULL."""
    import pyarrow as pa

    try:
        return mend_texts(_convert(frame))
    except pa.ArrowException:
        raise UsageError("A frame has a column of text that cannot be read. Nothing was charged.") from None


def mend_texts(table: Any) -> Any:
    """An Arrow table in which every text is UTF-8. One that is not becomes NULL, alone; all other values stay.

    Arrow trusts whoever made a text. An engine that reads one that is none fails, or worse; then one person's bytes
    would decide whether a question is answered. Columns of other types cannot be text, and nested ones are never read.
    """
    columns = table.columns
    mended = [_mend_column(column) for column in columns]
    if all(new is old for new, old in zip(mended, columns)):
        return table
    return type(table).from_arrays(mended, names=table.column_names)


def is_utf8(text: bytes) -> bool:
    """Whether bytes are text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of text, also of text in a dictionary."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def number_texts(table: Any, names: Collection[str]) -> Any:
    """An Arrow table with the same values, where each text of some columns is stored once and the rows have its number.

    ``names`` are in small letters. What an engine asks of a text, it then asks once and not for each row. Every chunk
    numbers its own texts, so that they are never more than its rows.
    """
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        plain = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        if plain and field.name.lower() in names:
            parts = [part.dictionary_encode() for part in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(parts, pa.dictionary(pa.int32(), field.type)))
    return table


def decode_texts(values: Any) -> Any:
    """An Arrow column of bytes as text; what is not UTF-8 is NULL. Only what is not ASCII is looked at one by one."""
    import pyarrow as pa
    from pyarrow import compute

    values = values.cast(pa.large_binary())
    plain = compute.string_is_ascii(values.cast(pa.large_string(), safe=False))
    doubtful = compute.indices_nonzero(compute.invert(compute.fill_null(plain, fill_value=True)))
    wrong = [i for i in doubtful.to_pylist() if not is_utf8(values[i].as_py())]
    kept = np.ones(len(values), np.bool_)
    kept[wrong] = False
    return compute.if_else(pa.array(kept), values, pa.scalar(None, values.type)).cast(pa.large_string())


def _mend_column(column: Any) -> Any:
    import pyarrow as pa

    if not is_text(column.type):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not pa.types.is_dictionary(column.type):
            return decode_texts(column)
        return decode_texts(pa.chunked_array([part.dictionary_decode() for part in column.chunks]))
    return column


def _convert(frame: Any) -> Any:
    import pyarrow as pa

    library = type(frame).__module__.partition(".")[0]
    try:
        if isinstance(frame, pa.Table):
            return frame
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if library == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        if library == "polars" and hasattr(frame, "to_arrow"):
            return frame.to_arrow()
        if hasattr(frame, "to_table"):
            return frame.to_table()  # a pyarrow dataset
        if isinstance(frame, list):
            return pa.Table.from_pylist(frame)
    except (pa.ArrowException, TypeError, ValueError):
        # Arrow's own words would quote the value that does not fit.
        raise UsageError(
            "A frame has columns of mixed kinds. Give each column one type. Nothing was charged."
        ) from None
    raise UsageError(
        f"A source cannot be a {type(frame).__name__}. Give a path, or a pandas, polars or Arrow table. "
        "Nothing was charged."
    )
