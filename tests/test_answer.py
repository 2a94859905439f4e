"""Answers: values, intervals and receipts, in every form, and back from their record."""

from __future__ import annotations

import datetime as dt
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.answer import read_rows
from discreet.errors import UsageError
from tests.worlds.visits import BY_WARD, VISITS, curator


def test_answers_survive_their_record() -> None:
    """What the ledger keeps is the whole answer."""
    answer = curator().ask(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 2", epsilon=8
    )
    assert read_rows(json.loads(json.dumps(answer.record()))) == answer.rows
    assert len(answer) == 2


def test_an_answer_for_eyes() -> None:
    """At most forty rows are shown, and the rest is counted; a replayed answer says that it was free."""
    holder = discreet.curate(
        {"visits": VISITS}, bounds={"age": (0, 110)}, keys={"age": range(97)}, budget=discreet.Budget(epsilon=9)
    )
    text = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    answer = holder.ask(text, epsilon=1)
    assert len(answer) == 97 and "... 57 more rows in .table" in str(answer) and "cost ε 1" in repr(answer)
    assert "57 more rows." in answer._repr_html_()
    assert "given before, free now" in str(holder.ask(text, epsilon=1))
    assert "no limit is needed" in answer.explain()


def test_times_survive_their_record() -> None:
    """Dates and moments are text in the record and come back as what they were."""
    days = [dt.date(2024, 1, 1 + i) for i in range(3)]
    moments = [dt.datetime(2024, 1, 1, i) for i in range(3)]  # noqa: DTZ001  # data without a zone
    holder = discreet.curate(
        {"t": pa.table({"day": days, "at": moments})},
        keys={"day": days, "at": moments},
        budget=discreet.Budget(epsilon=9),
    )
    for column, values in (("day", days), ("at", moments)):
        answer = holder.ask(f"SELECT {column}, COUNT(*) AS n FROM t GROUP BY {column}", epsilon=1)
        again = read_rows(json.loads(json.dumps(answer.record())))
        assert again == answer.rows and [row[0].value for row in again.rows] == values
        assert answer.to_polars().height == len(answer.to_pandas()) == 3


def test_answers_are_read_by_column_and_by_row() -> None:
    """Columns by name with their ends, rows by number or one after the other, and every frame with the same values."""
    answer = curator().ask(BY_WARD, epsilon=1)
    rows = answer.table.to_pylist()
    assert answer["n"] == [row["n"] for row in rows] and answer["age_high"] == [row["age_high"] for row in rows]
    assert answer[0] == rows[0] and answer[-1] == rows[2] and list(answer) == rows and len(answer) == 3
    assert answer._ipython_key_completions_() == answer.table.column_names
    assert pl.DataFrame(answer).to_dicts() == answer.to_polars().to_dicts() == rows
    assert answer.to_arrow() == answer.table == pa.table(answer) and pd.DataFrame(answer).equals(answer.to_pandas())
    with pytest.raises(UsageError, match=r"no column 'm'\. It has ward, n, n_low"):
        answer["m"]


def test_frames_need_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is not part of discreet, and is named."""
    answer = curator().ask(BY_WARD, epsilon=1)
    monkeypatch.setattr("discreet.answer.find_spec", lambda _: None)
    for convert in (answer.to_pandas, answer.to_polars):
        with pytest.raises(UsageError, match=r"pip install (pandas|polars). Or use .table"):
            convert()


def test_answers_say_what_their_intervals_cover() -> None:
    """As text, as HTML and in the receipt: the level, the limits and bounds that apply, and what lies beyond them."""
    answer = curator().ask("SELECT ward, AVG(age) AS age FROM visits GROUP BY ward", epsilon=1)
    limits = ["rows beyond the limit of 5 per patient and group count less"]
    assert answer.receipt["limits"] == limits and answer.receipt["clamped"] == ["age to [0, 110]"]
    for shown in (str(answer), answer._repr_html_()):
        assert "noise 95%" in shown and limits[0] in shown and "age to [0, 110]" in shown
        assert "covers the noise; what lies beyond limits and bounds is outside of it" in shown
    preview = curator().preview("SELECT ward, AVG(age) AS age FROM visits GROUP BY ward", epsilon=1)
    assert preview.to_dict()["limits"] == limits and "noise 95%" in str(preview)
    alone = curator(unit=None, max_groups=None, max_rows_per_group=None).preview(
        "SELECT COUNT(*) AS n FROM visits", epsilon=1
    )
    assert alone.to_dict()["limits"] == [] and "limit  " not in str(alone)


def test_answers_of_older_records_are_read() -> None:
    """They have a value and both ends for each row."""
    cells = {"n": [[5, 3, 7], [6, 4, 8]], "day": [["2030-01-02", None, None], [None, None, None]]}
    kinds = {"n": "integer", "day": "date"}
    record = [{"name": name, "type": kinds[name], "measured": name == "n", "cells": cells[name]} for name in cells]
    rows = read_rows({"columns": record})
    assert [tuple(cell.value for cell in row) for row in rows.rows] == [(5, dt.date(2030, 1, 2)), (6, None)]
    assert rows.columns[0].lows == (3, 4) and rows.columns[1].lows is None
