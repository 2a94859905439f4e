"""Parameters: values beside a text, each of which is one constant in it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

import discreet
from discreet.errors import ParameterError, QuestionError
from discreet.frontends import read_sql
from tests.worlds.tables import CATALOG
from tests.worlds.visits import curator


def read(text: str, **parameters: Any) -> read_sql.QuestionAndOffer:
    found = read_sql.read_statement(text, CATALOG, parameters=parameters)
    assert isinstance(found, read_sql.QuestionAndOffer)
    return found


@pytest.mark.parametrize(
    ("condition", "value", "written"),
    [
        ("age > @x", 30, "age > 30"),
        ("age - $x > 0", -30, "age - (-30) > 0"),
        ("cost < @x", 1e-7, "cost < 1e-07"),
        ("note = @x", "it's \\ '; --", "note = 'it''s \\ ''; --'"),
        ("smoker = @x", True, "smoker = TRUE"),
        ("coalesce(note, @x) = 'a'", None, "coalesce(note, NULL) = 'a'"),
        ("day > @x", dt.date(2024, 2, 29), "day > DATE '2024-02-29'"),
        ("seen > @x", dt.datetime.fromisoformat("2024-02-29T08:30:00"), "seen > TIMESTAMP '2024-02-29 08:30:00'"),
        ("note = @x OR ward = @x", "A) OR (1 = 1", "note = 'A) OR (1 = 1' OR ward = 'A) OR (1 = 1'"),
    ],
)
def test_a_value_is_a_constant(condition: str, value: Any, written: str) -> None:
    """The question is the one with the value written out, whatever the value holds."""
    texts = [" ".join(("SELECT COUNT(*) AS n FROM visits WHERE", words)) for words in (condition, written)]
    assert read(texts[0], x=value).question == read_sql.read(texts[1], CATALOG)


def test_options_take_parameters() -> None:
    """An ε that is given beside the text is exact."""
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=@e, max_rows_contributed=@m) COUNT(*) FROM visits"
    found = read(text, e=0.1, m=3)
    assert found.offer == {"epsilon": Fraction(1, 10)}
    assert found.question.limits is not None and found.question.limits.max_rows == 3
    with pytest.raises(QuestionError, match="epsilon must be above 0"):
        read(text, e=-1, m=3)


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        ("age > @y", {"x": 1}, "no value for the parameter 'y'"),
        ("age > 1", {"x": 1}, "no parameter 'x'"),
        ("age > @x", {"x": [1]}, "cannot be a constant"),
        ("age > @x", {"x": float("nan")}, "not finite"),
        ("age > ?", {}, "no value for this parameter"),
        ("note = '@x'", {"x": 1}, "no parameter 'x'"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        read(f"SELECT COUNT(*) FROM visits WHERE {text}", **values)


def test_curators_take_parameters() -> None:
    """In asking and in previews; a chain has none."""
    holder = curator()
    text = "SELECT COUNT(*) AS n FROM visits WHERE age > @least"
    shown = holder.preview(text, epsilon=1, parameters={"least": 40})
    answer = holder.ask(text, epsilon=1, parameters={"least": 40})
    assert "40" in holder.explain(text, epsilon=1, parameters={"least": 40})
    assert answer.spent == shown.loss
    assert holder.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 40", epsilon=1).replayed
    with pytest.raises(ParameterError, match="belong to a text"):
        holder.table("visits").agg(n=discreet.count()).ask(epsilon=1, parameters={"x": 1})
