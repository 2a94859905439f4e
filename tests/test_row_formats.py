"""Rows as bytes: every form gives the same rows back."""

from __future__ import annotations

import io

import pyarrow as pa
from pyarrow import parquet

from discreet.row_formats import to_arrow_stream, to_csv, to_json, to_parquet

ROWS = pa.table({"ward": ["a", None, ""], "n": [1.5, float("inf"), None]})


def test_forms_with_types_give_the_same_table_back() -> None:
    assert pa.ipc.open_stream(to_arrow_stream(ROWS)).read_all() == ROWS
    assert parquet.read_table(io.BytesIO(to_parquet(ROWS))) == ROWS


def test_forms_of_text_tell_null_from_empty() -> None:
    assert to_csv(ROWS) == b'"ward","n"\n"a",1.5\n,inf\n"",\n'
    assert '"n": null' in to_json({"n": float("nan")})


def test_no_rows_keep_their_names() -> None:
    none = ROWS.slice(0, 0)
    assert pa.ipc.open_stream(to_arrow_stream(none)).read_all() == none
    assert to_csv(none) == b'"ward","n"\n'
