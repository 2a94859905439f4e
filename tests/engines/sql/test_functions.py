"""The forms of functions in SQL: there is one for each, and none grows too deep."""

from __future__ import annotations

import pytest

from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sql.functions import FORMS, write_call
from discreet.plan.elementary import ELEMENTARY
from discreet.plan.expressions import Column
from discreet.plan.functions import FUNCTIONS, make_call
from discreet.plan.types import Type


def test_every_function_has_a_form() -> None:
    assert FORMS.keys() ^ ELEMENTARY.keys() == FUNCTIONS.keys()


def test_the_tree_of_magnitudes_is_shallow() -> None:
    """A row is compared about eight times, not two hundred times."""
    for column in (Column("t", "n", Type.INTEGER), Column("t", "x", Type.REAL)):
        sql = write_call(DIALECT, make_call("magnitude", column), ["x"])
        depth = deepest = 0
        for word in sql.replace("(", " ").replace(")", " ").split():
            depth += (word == "CASE") - (word == "END")
            deepest = max(deepest, depth)
        assert depth == 0 and deepest <= 9


@pytest.mark.parametrize("word", ["least", "greatest"])
def test_no_column_is_named_twice(word: str) -> None:
    """DuckDB's planner fails over some statements in which a function has one column twice."""
    x, y = (Column("t", name, Type.INTEGER) for name in "xy")
    assert write_call(DIALECT, make_call(word, x, x), ["x", "x"]) == "x"
    assert write_call(DIALECT, make_call(word, x, y, x), ["x", "y", "x"]) == f"{word}(x, y)"
