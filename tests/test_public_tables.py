"""Public tables that a question brings along: read as they are, or refused for free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.errors import DiscreetError, UsageError
from discreet.finish import Cell, Rows
from discreet.plan.types import Type
from discreet.public_tables import MAX_ROWS, read_public_values
from tests.worlds.visits import BY_WARD, curator


def test_frames_become_values() -> None:
    """Columns of known kinds come with their values; others are left out; no tables are no tables."""
    found = read_public_values({"sizes": pa.table({"ward": ["A", None], "beds": [3, 4], "tags": [["x"], []]})})
    assert found["sizes"].columns == (("ward", Type.TEXT), ("beds", Type.INTEGER))
    assert found["sizes"].rows == (("A", 3), (None, 4))
    assert read_public_values(None) == {}


def test_an_answer_is_a_table_of_the_next_question() -> None:
    """Its intervals are columns, and the question that uses it is replayed with it."""
    holder = curator()
    sizes = holder.ask(BY_WARD, epsilon=1)
    (found,) = read_public_values({"sizes": sizes}).values()
    assert [name for name, _ in found.columns] == sizes.table.column_names
    text = "SELECT COUNT(*) AS n FROM visits v JOIN sizes s ON v.ward = s.ward WHERE s.n > 0"
    first = holder.ask(text, epsilon=1, public={"sizes": sizes})
    assert holder.ask(text, epsilon=1, public={"sizes": sizes}).replayed
    assert abs(first.rows.rows[0][0].value - 1800) < 400  # type: ignore[operator]  # a count


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("my table", pa.table({"a": [1]}), "plain name"),
        ("long", pa.table({"a": [1] * (MAX_ROWS + 1)}), "100,001 rows"),
        ("odd", pa.table({"a": [[1]]}), "no column that questions can use"),
        ("zero", pa.table({"a": ["x\0y"]}), "not Unicode"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(name: str, table: Any, words: str) -> None:
    """Names, sizes, kinds and texts; nothing is charged."""
    with pytest.raises(UsageError, match=words):
        read_public_values({name: table})
    holder = curator()
    with pytest.raises(DiscreetError):
        holder.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, public={name: table})
    assert not holder.history()


def test_half_a_character_is_refused() -> None:
    """Half of a pair of code units is text to Python and to nobody else."""
    half = Rows(("ward",), (Type.TEXT,), (False,), ((Cell("\ud800"),),))
    answer = replace(curator().ask("SELECT COUNT(*) AS n FROM visits", epsilon=1), rows=half)
    with pytest.raises(UsageError, match="not Unicode"):
        read_public_values({"half": answer})
