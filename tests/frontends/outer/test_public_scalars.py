"""Subqueries over public tables that stand for a value: constants of the question."""

from __future__ import annotations

import datetime as dt

import pytest

from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.outer.computation import ReleasedComputation
from discreet.plan.types import Value
from tests.test_post_processing import DP, curator
from tests.worlds.tables import HOSPITAL


@pytest.mark.parametrize("form", ["SELECT", DP])
def test_they_are_constants(form: str) -> None:
    """The question is the one with the number written out, so an answer to one is an answer to the other."""
    holder = curator()
    text = f"{form} COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(beds) FROM wards WHERE ward <> 'D')"
    first = holder.ask(text, epsilon=1)
    assert holder.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 20.0", epsilon=1).replayed
    assert "20" in first.receipt["question"] and len(holder.history()) == 1


def test_they_stand_wherever_a_value_does() -> None:
    """In outputs, HAVING and inner SELECTs, too; no row is NULL."""
    holder = curator()
    answer = holder.ask(
        "SELECT ward, COUNT(*) / (SELECT SUM(beds) FROM wards) AS per_bed FROM visits GROUP BY ward "
        "HAVING COUNT(*) > (SELECT MIN(beds) - 100 FROM wards) ORDER BY ward",
        epsilon=5,
    )
    assert [row[0].value for row in answer.rows.rows] == ["A", "B", "C"]
    nothing = holder.ask(
        "SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT beds FROM wards WHERE ward = 'Z')", epsilon=5
    )
    assert abs(nothing.rows.rows[0][0].value) < 100  # type: ignore[arg-type]  # a count of no rows
    inside = f"SELECT n FROM ({DP} COUNT(*) AS n FROM visits WHERE age > (SELECT MAX(beds) FROM wards))"
    assert holder.ask(inside, epsilon=1).rows.measured == (True,)


@pytest.mark.parametrize(
    "subquery",
    [
        "(SELECT beds FROM wards)",
        "(SELECT ward, beds FROM wards LIMIT 1)",
        "(SELECT MAX(beds) FROM wards WHERE wards.ward = visits.ward)",
        "(SELECT MAX(nope) FROM wards)",
        "(SELECT AVG(age) FROM visits)",
        "(SELECT MAX(v.age) FROM visits v, wards)",
    ],
)
def test_others_are_refused(subquery: str) -> None:
    """Several rows or columns, columns from outside, unknown ones, and private tables. Nothing is charged."""
    holder = curator()
    with pytest.raises(QuestionError, match="Nothing was charged"):
        holder.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {subquery}", epsilon=1)
    assert not holder.history()


def test_names_of_with_are_not_public_tables() -> None:
    """A WITH that is called like a public table has rows of people, and is not looked up as the table."""
    text = (
        "WITH wards AS (SELECT * FROM visits) SELECT COUNT(*) AS n FROM wards WHERE age > (SELECT AVG(beds) FROM wards)"
    )
    with pytest.raises(QuestionError, match="cannot stand for a single value"):
        curator().ask(text, epsilon=1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        (-3, "-3"),
        (1e-7, "1e-07"),
        (True, "True"),
        (None, "NULL"),
        ("it's", "'it''s'"),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime.fromisoformat("2024-02-29T08:30:00"), "2024-02-29"),
    ],
)
def test_every_kind_of_value_is_written(value: Value, shown: str) -> None:
    """What was computed is what the plan has."""

    def compute(computation: ReleasedComputation) -> list[list[Value]]:
        assert not computation.questions and computation.tables == ("wards",)
        return [[value]]

    text = "SELECT COUNT(CASE WHEN ward = 'A' THEN (SELECT MAX(beds) FROM wards) END) AS n FROM visits"
    found = read_sql.read_with_offer(text, HOSPITAL, {}, compute).question.aggregates
    assert shown in str(found[0])
