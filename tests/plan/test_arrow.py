"""Tests of plan types as Arrow: the arrays that are made without pandas are those that pyarrow makes."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.plan.arrow import load_arrow_types, make_arrow_array, number_texts
from discreet.plan.types import Type

VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOLEAN: st.booleans(),
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.REAL: st.floats(),
    Type.TEXT: st.text(),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
}


@pytest.mark.parametrize("kind", list(Type))
def test_arrays_are_those_of_pyarrow(kind: Type) -> None:
    @settings(deadline=None)
    @given(st.lists(st.none() | VALUES[kind], max_size=20))
    def check(values: list[Any]) -> None:
        made, expected = make_arrow_array(values, kind), pa.array(values, load_arrow_types()[kind])
        made.validate(full=True)
        assert made.null_count == expected.null_count
        assert made.type == (pa.large_string() if kind is Type.TEXT else expected.type)
        for value, other in zip(made.to_pylist(), expected.to_pylist(), strict=True):
            assert value == other or (math.isnan(value) and math.isnan(other))

    check()


def test_ends_of_the_calendar() -> None:
    days = [dt.date.min, None, dt.date.max]
    assert make_arrow_array(days, Type.DATE).to_pylist() == days
    moments = [dt.datetime.min, None, dt.datetime.max]  # noqa: DTZ901  # timestamps have no zone here
    assert make_arrow_array(moments, Type.TIMESTAMP).to_pylist() == moments


def test_pandas_is_not_imported() -> None:
    words = "import sys; from discreet.plan.arrow import *; make_arrow_array(['a', None], Type.TEXT)"
    command = [sys.executable, "-c", f"{words}; sys.exit('pandas' in sys.modules)"]
    assert subprocess.run(command, check=False).returncode == 0  # noqa: S603  # our own words


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_numbered_texts_are_the_same_texts(kind: Any) -> None:
    """Columns that are named are numbered, chunk by chunk; others, and those of other types, stay as they are."""
    texts = pa.chunked_array([["a", None, "a"], [], ["b", "", "b"]], kind)
    table = pa.table({"Ward": texts, "city": texts, "age": range(6), "seen": texts.cast(pa.string_view())})
    numbered = number_texts(table, {"ward", "age", "seen"})
    assert numbered.to_pydict() == table.to_pydict()
    assert numbered.schema.field("Ward").type == pa.dictionary(pa.int32(), kind)
    assert [len(part.dictionary) for part in numbered.column("Ward").chunks] == [1, 0, 2]
    assert numbered.drop_columns("Ward").schema == table.drop_columns("Ward").schema
    assert number_texts(table.slice(0, 0), {"ward"}).num_rows == 0
