"""Statements: what is code and what is not, whatever is between quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.dbapi.exceptions import ProgrammingError
from discreet.dbapi.statements import bind_names, cut_explain, read_set


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("a = :x", "a = @x"),
        ("a = ':x'", "a = ':x'"),
        ("a = 'it''s :x' AND b = :x", "a = 'it''s :x' AND b = @x"),
        ('":x" = :x', '":x" = @x'),
        ("a::date = :x", "a::date = @x"),
        ("a /* :x */ = :x -- :x\n + :x", "a /* :x */ = @x -- :x\n + @x"),
    ],
)
def test_names_are_bound_outside_of_texts(sql: str, bound: str) -> None:
    assert bind_names(sql, {"x": 1}) == bound


@given(text=st.text(alphabet="ab':x\"-/* \n", max_size=30))
def test_a_text_in_quotes_is_never_changed(text: str) -> None:
    """Whatever it holds, as long as it is quoted."""
    quoted = "'" + text.replace("'", "''") + "'"
    assert bind_names(f"SELECT {quoted} = :x", {"x": 1}) == f"SELECT {quoted} = @x"


def test_a_name_without_a_value_is_refused() -> None:
    with pytest.raises(ProgrammingError):
        bind_names("a = :y", {"x": 1})


def test_sets_and_explanations() -> None:
    """SET knows its words alone; EXPLAIN stands before a question."""
    assert read_set("SELECT 1", {}) is None and read_set("SET other.share = 1", {}) is None
    assert list(read_set("SET discreet.rho = 1e-3", {"share": 1, "level": 2}) or {}) == ["level", "rho"]
    with pytest.raises(ProgrammingError):
        read_set("SET discreet.share = 1/0", {})
    assert cut_explain("explain  SELECT 1") == "SELECT 1" and cut_explain("SELECT 1") is None
