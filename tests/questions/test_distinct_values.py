"""COUNT(DISTINCT x) and sums of distinct values, from end to end: what is said, and how far answers are off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.curator import Curator

PEOPLE, VALUES = 400, 60


def make_curator(**facts: Any) -> Curator:
    """Every person has 20 rows; values 0 to 59 are common, in two wards."""
    drawn = np.random.default_rng(5).integers(0, VALUES, (PEOPLE, 20))
    people = np.repeat(np.arange(PEOPLE), 20)
    table = pa.table({"person": people, "v": drawn.ravel(), "ward": np.where(drawn.ravel() % 3, "A", "B")})
    return discreet.curate(
        {"t": table},
        **{
            "unit": "person",
            "max_rows": 20,
            "keys": {"ward": ["A", "B"]},
            "budget": discreet.Budget(epsilon=1000),
            **facts,
        },
    )


def test_one_value_of_each_person_is_enough_and_far_sharper() -> None:
    """All values are found by one each, and the noise is that of one value instead of twenty."""
    narrow, wide = make_curator(max_values={"v": 1}), make_curator()
    sql = "SELECT COUNT(DISTINCT v) AS n FROM t"
    sharp, blunt = (holder.preview(sql, epsilon=1).columns[0].error for holder in (narrow, wide))
    assert sharp is not None and blunt is not None and blunt > 15 * sharp
    assert abs(narrow.ask(sql, epsilon=50).table["n"][0].as_py() - VALUES) <= 1
    by_ward = narrow.ask("SELECT ward, COUNT(DISTINCT v) AS n FROM t GROUP BY ward", epsilon=50).table
    assert all(abs(n - wanted) <= 1 for n, wanted in zip(by_ward["n"].to_pylist(), (40, 20)))


def test_filters_and_functions_have_the_limit_of_their_column() -> None:
    curator = make_curator(max_values={"v": 1})
    sql = "SELECT COUNT(DISTINCT v) FILTER (WHERE ward = 'B') AS b, COUNT(DISTINCT v + 1) AS more FROM t"
    found = curator.ask(sql, epsilon=100).table.to_pylist()[0]
    assert abs(found["b"] - 20) <= 1 and abs(found["more"] - VALUES) <= 1


def test_what_applies_is_said_before_and_after() -> None:
    """Preview, answer and explanation name the limit, and that the number is a lower bound."""
    sql = "SELECT COUNT(DISTINCT v) AS n FROM t"
    one, many = make_curator(max_values={"v": 1}), make_curator()
    words = "each person brings at most 1 value of v, so their number is a lower bound"
    assert words in str(one.preview(sql, epsilon=1))
    assert words in str(one.ask(sql, epsilon=1))
    assert "each person brings at most 20 values of v" in str(many.preview(sql, epsilon=1))
    assert "each unit brings at most 1 value of v" in one.ask(sql, epsilon=1).explain()


def test_few_people_bring_few_values() -> None:
    """It is a lower bound: three people with a hundred values each bring three."""
    table = pa.table({"person": np.repeat(np.arange(3), 100), "v": np.arange(300)})
    curator = discreet.curate(
        {"t": table}, unit="person", max_rows=100, max_values={"v": 1}, budget=discreet.Budget(epsilon=100)
    )
    found = curator.ask("SELECT COUNT(DISTINCT v) AS n FROM t", epsilon=50).table["n"][0].as_py()
    assert abs(found - 3) <= 1


# Sums, averages and variances of distinct values


def test_sums_of_distinct_values_are_those_of_plain_sql() -> None:
    """Values 0 to 59, whoever has them: in all, by ward, with FILTER; beside a sum of all rows."""
    curator = make_curator(max_values={"v": 1}, bounds={"v": (0, 59)}, budget=discreet.Budget(epsilon=9000))
    sql = "SELECT SUM(DISTINCT v) AS s, AVG(DISTINCT v) AS a, VAR_POP(DISTINCT v) AS q, COUNT(DISTINCT v) AS n FROM t"
    found = curator.ask(sql, epsilon=4000).table.to_pylist()[0]
    assert abs(found["s"] - 1770) <= 2 and abs(found["n"] - VALUES) <= 1
    assert abs(found["a"] - 29.5) < 0.1 and abs(found["q"] - (VALUES**2 - 1) / 12) < 2
    sql = "SELECT ward, SUM(DISTINCT v) AS s, COUNT(*) AS n FROM t GROUP BY ward"
    wards = curator.ask(sql, epsilon=4000).table.to_pylist()
    assert [abs(row["s"] - wanted) <= 2 for row, wanted in zip(wards, (1200, 570))] == [True, True]


def test_a_count_beside_a_sum_of_distinct_values_is_free() -> None:
    """One noise hides both, as it does for rows; twenty values of a person need twenty times the noise of one."""
    one, many = (make_curator(bounds={"v": (0, 59)}, max_values={"v": most}) for most in (1, 20))
    both = "SELECT AVG(DISTINCT v) AS a, COUNT(DISTINCT v) AS n FROM t"
    alone = one.preview("SELECT COUNT(DISTINCT v) AS n FROM t", epsilon=1).columns[0].error
    beside = next(column.error for column in one.preview(both, epsilon=1).columns if column.name == "n")
    assert alone is not None and beside is not None and beside < 1.8 * alone  # two noises of half the ε: 2 or more
    sums = [holder.preview("SELECT SUM(DISTINCT v) AS s FROM t", epsilon=1).columns[0].error for holder in (one, many)]
    assert sums[0] is not None and sums[1] is not None and 19 < sums[1] / sums[0] < 21


def test_values_of_rows_that_are_units_are_summed_once() -> None:
    """Every row is its own unit: nothing is matched, and one row moves a sum by its bounds."""
    table = pa.table({"v": np.repeat(np.arange(40), 3), "ward": ["A", "B", "A"] * 40})
    curator = discreet.curate(
        {"t": table}, unit="row", bounds={"v": (0, 39)}, keys={"ward": ["A", "B"]}, budget=discreet.Budget(epsilon=9000)
    )
    found = curator.ask("SELECT ward, SUM(DISTINCT v) AS s FROM t GROUP BY ward", epsilon=4000).table["s"].to_pylist()
    assert all(abs(total - 780) <= 1 for total in found)


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT SUM(DISTINCT v) AS s FROM t", "has no bounds"),
        ("SELECT MEDIAN(DISTINCT v) AS s FROM t", "MEDIAN takes no DISTINCT"),
        ("SELECT SUM(DISTINCT 3) AS s FROM t", "of a constant"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = person) "
            "SUM(DISTINCT clamp(v, 0, 9), contribution_bounds_per_group => (0, 5)) AS s FROM t",
            "contribution_bounds_per_group is not available in this aggregate",
        ),
    ],
)
def test_what_has_no_bounded_sum_is_refused(sql: str, rule: str) -> None:
    with pytest.raises(discreet.DiscreetError, match=rule):
        make_curator().preview(sql, epsilon=None if "OPTIONS" in sql else 1)


def test_errors_of_averages_of_distinct_values_are_not_promised() -> None:
    """How many distinct values a group has does not follow from its size."""
    curator = make_curator(bounds={"v": (0, 59)})
    with pytest.raises(discreet.DiscreetError, match="not an error that public facts determine"):
        curator.preview("SELECT AVG(DISTINCT v) AS a FROM t", error={"a": 1}, group_size=1000)
