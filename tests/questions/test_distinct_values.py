"""COUNT(DISTINCT x) from end to end: what is said of its limit, and how far its answer is off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

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
