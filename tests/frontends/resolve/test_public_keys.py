"""Public keys by outer join: the rows are those of the inner join, and the groups are the public side's own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.bounding.bound import bound_all
from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.resolve.public_keys import MAX_KEYS
from discreet.plan.relations import Values, walk_relations
from tests.worlds.plain import answer, plain, some_tables, theirs
from tests.worlds.tables import HOSPITAL, PUBLIC

QUESTIONS = [
    ("labs l RIGHT JOIN prices p ON l.test = p.test", "labs l JOIN prices p ON l.test = p.test", "p.test", "l.result"),
    ("prices p LEFT JOIN labs l ON l.test = p.test", "prices p JOIN labs l ON l.test = p.test", "p.test", "l.result"),
    (
        "(VALUES ('A'), ('B'), ('X')) d (ward) LEFT JOIN visits v ON v.ward = d.ward AND v.age > 30",
        "(VALUES ('A'), ('B'), ('X')) d (ward) JOIN visits v ON v.ward = d.ward AND v.age > 30",
        "d.ward",
        "v.visit_id",
    ),
    (
        "visits v RIGHT JOIN (SELECT 'A' AS k FROM prices UNION ALL SELECT 'X' FROM prices) d ON v.ward = d.k",
        "visits v JOIN (SELECT 'A' AS k FROM prices UNION ALL SELECT 'X' FROM prices) d ON v.ward = d.k",
        "d.k",
        "v.visit_id",
    ),
]  # fmt: skip  # pairs


@pytest.mark.parametrize(("outer", "inner", "key", "counted"), QUESTIONS)
def test_the_plan_is_that_of_the_inner_join(outer: str, inner: str, key: str, counted: str) -> None:
    """So everything that is proved and tested of an inner join with public rows holds."""
    plans = [
        read_sql.read(
            " ".join((f"SELECT {key} AS k, COUNT({counted}) AS n FROM", source, "GROUP BY", key)), HOSPITAL, PUBLIC
        )
        for source in (outer, inner)
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(("outer", "inner", "key", "counted"), QUESTIONS)
def test_without_noise_it_is_plain_sql(outer: str, inner: str, key: str, counted: str) -> None:
    """Counts of a private column by the public keys are DuckDB's own, zeros included."""
    del inner
    text = " ".join((f"SELECT {key} AS k, COUNT({counted}) AS n FROM", outer, "GROUP BY", key))
    question = read_sql.read(text, HOSPITAL, PUBLIC)
    (form,) = bound_all(question, HOSPITAL)
    assert form.bounded.domain is not None
    for seed in range(3):
        tables = some_tables(seed)
        rows: dict[Any, Any] = dict(answer(question, tables))  # type: ignore[arg-type]  # pairs
        found = sorted(((name, rows.get(name, 0)) for (name,) in form.bounded.domain), key=repr)
        assert found == theirs(text, plain(tables))


def make_curator(**changes: Any) -> discreet.curator.Curator:
    visits = pa.table(
        {"patient": [i % 40 for i in range(200)], "city": ["Ulm" if i % 2 else "Bonn" for i in range(200)]}
    )
    cities = pa.table({"city": ["Bonn", "Köln", "Ulm", None], "land": ["NW", "NW", "BW", None]})
    said: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 5,
        "public": ["cities"],
        "budget": discreet.Budget(epsilon=50),
    }
    return discreet.curate({"visits": visits, "cities": changes.pop("cities", cities)}, **(said | changes))


def test_values_of_a_public_table_are_keys() -> None:
    """Keys that the codebook does not list come from the public table itself, so a pure budget can pay for them."""
    holder = make_curator()
    joined = "FROM visits v RIGHT JOIN cities c ON v.city = c.city GROUP BY c.city ORDER BY c.city"
    found = holder.ask(f"SELECT c.city, COUNT(v.patient) AS n {joined}", epsilon=20)
    assert [row[0].value for row in found.rows.rows] == ["Bonn", "Köln", "Ulm", None]
    assert [round(row[1].value, -1) for row in found.rows.rows] == [100, 0, 100, 0]  # type: ignore[arg-type]  # counts
    part = "FROM (SELECT DISTINCT city FROM cities WHERE land = 'NW') c LEFT JOIN visits v USING (city) GROUP BY city"
    some = holder.ask(f"SELECT city, COUNT(v.patient) AS n {part} ORDER BY 1", epsilon=10)
    assert [row[0].value for row in some.rows.rows] == ["Bonn", "Köln"]
    with pytest.raises(discreet.errors.BudgetExceeded, match="come from the data"):
        holder.ask(
            "SELECT c.city, COUNT(*) AS n FROM visits v JOIN cities c ON v.city = c.city GROUP BY c.city", epsilon=1
        )


def test_large_public_tables_stay_tables() -> None:
    """They are not written into the plan, and their values are no list of groups."""
    many = pa.table({"city": [f"city {i}" for i in range(MAX_KEYS + 1)]})
    holder = make_curator(cities=many)
    text = "SELECT c.city, COUNT(v.patient) AS n FROM visits v RIGHT JOIN cities c ON v.city = c.city GROUP BY c.city"
    question = read_sql.read(text, holder.catalog)
    assert not any(isinstance(node, Values) for node in walk_relations(question.source))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward",
        "SELECT COUNT(*) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward WHERE v.visit_id IS NULL",
        "SELECT v.smoker, COUNT(*) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY v.smoker",
        "SELECT AVG(n) AS m FROM (SELECT v.patient_id, COUNT(*) AS n FROM wards w LEFT JOIN visits v "
        "ON v.ward = w.ward GROUP BY v.patient_id) t",
    ],
)
def test_unmatched_rows_that_cannot_be_seen_are_refused(text: str) -> None:
    """Without their groups, dropped public rows would change a number and nobody would notice."""
    with pytest.raises(QuestionError, match="GROUP BY a column of the public table"):
        read_sql.read(text, HOSPITAL)
