"""The table of an answer by columns: rows are made when they are looked at, and are the same either way."""

from __future__ import annotations

from discreet.answer_rows import Cell, CellColumn, Rows, make_column, make_rows
from discreet.plan.types import Type

ROWS = ((Cell("a"), Cell(5, 3, 7)), (Cell(None), Cell(0, None, 2)))
TABLE = make_rows(("ward", "n"), (Type.TEXT, Type.INTEGER), (False, True), ROWS)


def test_rows_come_back_from_columns() -> None:
    """By place, by slice, from the end, and one after the other."""
    assert TABLE.rows == ROWS and tuple(TABLE.rows) == ROWS and len(TABLE.rows) == 2
    assert TABLE.rows[1] == ROWS[1] and TABLE.rows[-1] == ROWS[-1] and TABLE.rows[:1] == ROWS[:1]
    assert TABLE.rows != ROWS[:1] and TABLE.rows != "rows"


def test_columns_hold_what_rows_hold() -> None:
    """Ends that are unknown in every row are not kept, and equal tables are equal however they were made."""
    assert TABLE.columns == (CellColumn(("a", None)), CellColumn((5, 0), (3, None), (7, 2)))
    assert TABLE.columns[0].ends == ((None, None), (None, None))
    assert make_column([1], [None], [None]) == CellColumn((1,))
    assert Rows(TABLE.names, TABLE.types, TABLE.measured, TABLE.columns) == TABLE


def test_a_table_without_rows_has_none() -> None:
    """Also one without columns."""
    assert len(make_rows(("n",), (Type.INTEGER,), (True,), ()).rows) == 0
    assert len(Rows((), (), (), ()).rows) == 0 and list(Rows((), (), (), ()).rows) == []
