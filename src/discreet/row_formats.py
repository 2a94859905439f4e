"""Rows and documents as bytes: JSON, CSV, Arrow and Parquet, the same for the command line and the service."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


def to_json(document: Any) -> str:
    """Plain values as JSON text. What is not a finite number becomes null: JSON has no word for it.

    >>> to_json([0.5, float("inf")]).split()
    ['[', '0.5,', 'null', ']']
    """
    try:
        return json.dumps(document, indent=2, ensure_ascii=False, default=_to_plain, allow_nan=False)
    except ValueError:
        return to_json(_null_infinities(document))


def _to_plain(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _null_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _null_infinities(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_null_infinities(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_csv(rows: pyarrow.Table) -> bytes:
    """Rows as CSV: a line of names, texts in quotes, full numbers; NULL is empty, an empty text is two quotes."""
    import pyarrow as pa
    from pyarrow import csv

    made = pa.BufferOutputStream()
    csv.write_csv(rows, made)
    return bytes(made.getvalue())


def to_parquet(rows: pyarrow.Table) -> bytes:
    """Rows as a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    made = pa.BufferOutputStream()
    parquet.write_table(rows, made)
    return bytes(made.getvalue())


def to_arrow_stream(rows: pyarrow.Table) -> bytes:
    """Rows as an Arrow stream."""
    import pyarrow as pa

    made = pa.BufferOutputStream()
    with pa.ipc.new_stream(made, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(made.getvalue())
