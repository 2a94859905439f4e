"""The types of a plan as Arrow types, and frames as Arrow tables: for what is handed to an engine or to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import UsageError
from discreet.plan.types import Type


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


def to_arrow_table(frame: Any) -> Any:
    """Any frame as an Arrow table: pyarrow, pandas, polars, or a list of dicts."""
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
