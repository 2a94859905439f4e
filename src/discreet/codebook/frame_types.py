"""Reads the types of a frame's columns from its schema. No value is read.

A frame is anything with an Arrow, polars or pandas schema. A column of a kind that no question can use (lists, structs,
binary) has no plan type and is left out of the codebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet.errors import ParameterError
from discreet.plan.source_kinds import DatabaseTable
from discreet.plan.spark_types import type_of_spark
from discreet.plan.types import Type

# Arrow types by the name of their predicate in pyarrow.types.
_ARROW = (
    ("is_boolean", Type.BOOLEAN),
    ("is_integer", Type.INTEGER),
    ("is_floating", Type.REAL),
    ("is_decimal", Type.REAL),
    ("is_string", Type.TEXT),
    ("is_large_string", Type.TEXT),
    ("is_string_view", Type.TEXT),
    ("is_date", Type.DATE),
    ("is_timestamp", Type.TIMESTAMP),
)
# polars names its types; parameters such as Datetime(time_unit=...) are cut off before the look-up.
_POLARS = {
    "Boolean": Type.BOOLEAN,
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64", "Int128"), Type.INTEGER),
    **dict.fromkeys(("UInt8", "UInt16", "UInt32", "UInt64"), Type.INTEGER),
    **dict.fromkeys(("Float32", "Float64", "Decimal"), Type.REAL),
    **dict.fromkeys(("String", "Utf8", "Categorical", "Enum"), Type.TEXT),
    "Date": Type.DATE,
    "Datetime": Type.TIMESTAMP,
}
# NumPy and pandas: the letter of an array's kind. Objects count as text, because only the values would say more.
_PANDAS = {"b": Type.BOOLEAN, "i": Type.INTEGER, "u": Type.INTEGER, "f": Type.REAL, "M": Type.TIMESTAMP, "O": Type.TEXT}


def types_of(frame: Any) -> dict[str, Type | None]:
    """The plan type of every column of a frame; None for a column without one.

    >>> import pyarrow as pa
    >>> types_of(pa.table({"age": [41], "ward": ["A"]}))
    {'age': <Type.INTEGER: 'integer'>, 'ward': <Type.TEXT: 'text'>}
    """
    if isinstance(frame, DatabaseTable):
        return dict(frame.types)
    library = type(frame).__module__.partition(".")[0]
    if library == "polars" and hasattr(frame, "collect_schema"):
        return {name: _POLARS.get(str(kind).partition("(")[0]) for name, kind in frame.collect_schema().items()}
    if library == "pandas" and hasattr(frame, "dtypes"):
        _check_names(frame.dtypes.index)
        return {str(name): _type_of_pandas(kind) for name, kind in frame.dtypes.items()}
    if library == "pyarrow" and hasattr(frame, "schema"):
        _check_names(frame.schema.names)
        return {field.name: type_of_arrow(field.type) for field in frame.schema}
    if library == "pyspark" and hasattr(frame, "schema"):
        _check_names(field.name for field in frame.schema.fields)
        return {field.name: type_of_spark(field.dataType.simpleString()) for field in frame.schema.fields}
    if isinstance(frame, Mapping):
        raise ParameterError("frames", "hold a plain mapping", "Make it a table first: pyarrow.table(columns).")
    raise ParameterError(
        "frames",
        f"hold a {type(frame).__name__}",
        "Give a pandas, polars or Spark frame, a pyarrow table or dataset, or a text such as 'postgres:schema.table'.",
    )


def list_required(frame: Any) -> list[str]:
    """The columns that cannot be missing by the schema, which only Arrow's says.

    >>> import pyarrow as pa
    >>> list_required(pa.table({"age": [41]}, schema=pa.schema([pa.field("age", pa.int64(), nullable=False)])))
    ['age']
    """
    if type(frame).__module__.partition(".")[0] != "pyarrow":
        return []
    return [field.name for field in frame.schema if not field.nullable and type_of_arrow(field.type) is not None]


def _check_names(columns: Iterable[object]) -> None:
    """Refuse two columns of one name: a question could not say which it means."""
    names = [str(name) for name in columns]
    if len(set(names)) < len(names):
        raise ParameterError("frames", "hold two columns of one name", "Rename one of them. Nothing was charged.")


def type_of_arrow(kind: Any) -> Type | None:
    """The plan type of an Arrow type. Decimals without places are integers, as databases export them."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return type_of_arrow(kind.value_type)
    if types.is_decimal(kind) and kind.scale <= 0:
        return Type.INTEGER
    return next((plan for test, plan in _ARROW if getattr(types, test)(kind)), None)


def _type_of_pandas(dtype: Any) -> Type | None:
    if hasattr(dtype, "pyarrow_dtype"):
        return type_of_arrow(dtype.pyarrow_dtype)
    if type(dtype).__name__ in {"CategoricalDtype", "StringDtype"}:
        # The categories of a column are values, so they are not read. Their type is part of the schema.
        return _type_of_pandas(dtype.categories.dtype) if hasattr(dtype, "categories") else Type.TEXT
    return _PANDAS.get(dtype.kind)
