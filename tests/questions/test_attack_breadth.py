"""The attack checklist over several tables: every way in which rows of different people could meet, and others.

Each attack is asked from outside, in SQL, of a real curator; what cannot be refused must be bounded.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.bounding.bound import bound_all
from discreet.curator import Curator
from discreet.errors import DiscreetError, ParameterError, QuestionError, UsageError
from discreet.frontends import read_sql

PEOPLE = 300
TABLES = {
    "patients": pa.table(
        {
            "patient_id": list(range(PEOPLE)),
            "sex": ["fm"[i % 2] for i in range(PEOPLE)],
            "age": [i % 90 for i in range(PEOPLE)],
        }
    ),
    "visits": pa.table(
        {
            "visit_id": list(range(3 * PEOPLE)),
            # one person has a third of all visits
            "patient_id": [i % PEOPLE if i % 3 else 7 for i in range(3 * PEOPLE)],
            "ward": ["ABC"[i % 3] for i in range(3 * PEOPLE)],
            "cost": [1e9 if i == 5 else float(i % 50) for i in range(3 * PEOPLE)],
        }
    ),
    "labs": pa.table({"visit_id": [i % 900 for i in range(2000)], "value": [float(i % 10) for i in range(2000)]}),
    "wards": pa.table({"ward": ["A"] * 50 + ["B"], "floor": [1] * 50 + [2]}),
}


def curator(**changes: Any) -> Curator:
    said: dict[str, Any] = {
        "unit": "patients.patient_id",
        "public": ["wards"],
        "foreign_keys": {"visits.patient_id": "patients.patient_id", "labs.visit_id": "visits.visit_id"},
        "max_rows": 4,
        "bounds": {"cost": (0, 50), "value": (0, 10), "age": (0, 100)},
        "keys": {"visits.ward": ["A", "B", "C"], "sex": ["f", "m"]},
        "budget": discreet.Budget(epsilon=50, delta=1e-6),
    }
    return discreet.curate(changes.pop("tables", TABLES), **(said | changes))


def exact(question: str, holder: Curator | None = None) -> list[tuple[int, ...]]:
    """The bounded integers behind a question, for the test's eyes only."""
    asked = holder or curator()
    (form,) = bound_all(read_sql.read(question, asked.catalog), asked.catalog)
    return list(asked._engine.run(form.bounded, salt=bytes(16)).values)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 1) AS one",
        "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC LIMIT 1) AS one",
        "SELECT COUNT(*) FROM (SELECT * FROM visits TABLESAMPLE 5 ROWS) AS s",
        "SELECT COUNT(*) FROM visits USING SAMPLE 10",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY cost) AS r, patient_id FROM visits) AS t WHERE r = 1",
        "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY cost) AS r FROM visits) AS t WHERE r = 1",
        "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits) AS d",
        "SELECT COUNT(*) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS d WHERE n > 5",
        "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits WHERE patient_id = 7)",
        "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE patient_id = 7)",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward",
        "SELECT COUNT(*) FROM visits a, visits b",
        "SELECT COUNT(*) FROM visits a CROSS JOIN patients",
        "SELECT COUNT(*) FROM visits a JOIN patients b ON a.patient_id = b.age",
        "SELECT COUNT(*) FROM visits a JOIN patients b ON a.patient_id % 2 = b.patient_id % 2",
        "SELECT COUNT(*) FROM visits a JOIN patients b ON a.patient_id <> b.patient_id",
        "SELECT COUNT(*) FROM visits a JOIN patients b ON a.patient_id = b.patient_id OR a.visit_id = b.age",
        "SELECT COUNT(*) FROM (SELECT patient_id % 2 AS patient_id FROM visits) a JOIN patients b USING (patient_id)",
        "SELECT COUNT(*) FROM (SELECT visit_id AS patient_id, ward FROM visits) a JOIN patients b USING (patient_id)",
        "SELECT COUNT(*) FROM (SELECT age AS patient_id, COUNT(*) AS n FROM patients GROUP BY age) AS t",
        "SELECT COUNT(*) FROM wards w LEFT JOIN visits v ON v.ward = w.ward",
        "SELECT COUNT(*) FROM visits v RIGHT JOIN wards w ON v.ward = w.ward",
        "SELECT COUNT(*) FROM visits v FULL JOIN wards w ON v.ward = w.ward",
        "SELECT COUNT(*) FROM wards WHERE ward IN (SELECT ward FROM visits)",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM wards) AS e",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits INTERSECT SELECT ward FROM wards) AS e",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION SELECT ward FROM wards) AS u",
        "WITH RECURSIVE r AS (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM r) SELECT COUNT(*) FROM r",
        "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id",
        "SELECT COUNT(*) FROM visits v JOIN LATERAL (SELECT * FROM patients LIMIT 1) p ON true",
        "SELECT COUNT(*) FROM (SELECT patient_id, RANDOM() AS r FROM visits) AS t WHERE r < 0.5",
        "SELECT COUNT(*) FROM labs l JOIN visits v ON l.value = v.cost",
    ],
)
def test_12_17_18_19_people_do_not_meet_below_the_aggregate(text: str) -> None:
    """Refused before anything is charged, whichever way they are brought together."""
    holder = curator()
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        holder.ask(text, epsilon=1)
    assert not holder.history()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits) u",
        "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id",
        "SELECT COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward",
        "SELECT COUNT(*) AS n FROM visits v CROSS JOIN wards w",
        "SELECT COUNT(*) AS n FROM labs l JOIN visits v ON l.visit_id = v.visit_id JOIN wards w ON w.ward = v.ward",
    ],
)
def test_14_19_fan_out_is_bounded_by_what_is_charged_for(text: str) -> None:
    """Copies of a person's rows count up to the limit that the noise is for, and no further."""
    holder = curator()
    (form,) = bound_all(read_sql.read(text, holder.catalog), holder.catalog)
    limit = form.bounded.max_rows
    assert limit is not None
    ((count,),) = exact(text, holder)
    assert count <= limit * PEOPLE


def test_19_the_owner_of_a_row_cannot_be_renamed() -> None:
    """A column called like the unit is not the unit: contributions are bounded by the real one."""
    text = "SELECT COUNT(*) AS n FROM (SELECT visit_id AS patient_id, cost FROM visits) AS t"
    ((count,),) = exact(text)
    assert count <= 4 * PEOPLE and count < 900  # the person with 300 visits counts 4 times
    ((people,),) = exact("SELECT COUNT(DISTINCT v.patient_id) AS n FROM visits v JOIN patients p USING (patient_id)")
    assert people <= PEOPLE


def test_6_11_outliers_stay_within_the_declared_bounds() -> None:
    """A cost of a billion is 50 in a person's sum, and MAX cannot show it."""
    text = "SELECT SUM(s) AS t FROM (SELECT patient_id, SUM(cost) AS s FROM visits GROUP BY patient_id) AS x"
    ((total,),) = exact(text)
    assert total <= 200 * PEOPLE * 2**20
    answer = curator().ask("SELECT MAX(cost) AS m, MIN(cost) AS l FROM visits", epsilon=40)
    row = answer.table.to_pylist()[0]
    assert 0 <= row["l"] <= row["m"] <= 50


def test_public_rows_cannot_take_the_place_of_private_ones() -> None:
    """A table that the analyst brings cannot be called like a declared one, and cannot be anything but rows."""
    holder = curator()
    mine = pa.table({"patient_id": [1], "ward": ["A"]})
    for name in ("visits", "VISITS", "wards"):
        with pytest.raises(DiscreetError, match="Nothing was charged"):
            holder.ask(f"SELECT COUNT(*) FROM {name}", epsilon=1, public={name: mine})
    with pytest.raises(DiscreetError):
        holder.ask("SELECT COUNT(*) FROM visits", epsilon=1, public={"mine": {"a": [1]}})
    with pytest.raises(ParameterError, match="plain name"):
        holder.ask("SELECT COUNT(*) FROM visits", epsilon=1, public={"a b": mine})
    big = pa.table({"patient_id": list(range(100_001))})
    with pytest.raises(UsageError, match="Declare it in the codebook"):
        holder.ask("SELECT COUNT(*) FROM visits", epsilon=1, public={"mine": big})
    assert not holder.history()


def test_12_a_list_of_one_person_is_still_one_person() -> None:
    """Joining to a list of ids narrows the question to few people; the noise stays that of any question."""
    holder = curator()
    mine = pa.table({"patient_id": [7]})
    text = "SELECT COUNT(*) AS n FROM visits v JOIN mine m ON v.patient_id = m.patient_id"
    one = holder.preview(text, epsilon=1, public={"mine": mine})
    many = holder.preview("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert [e.error for e in one.columns] == [e.error for e in many.columns]
    answer = holder.ask(text, epsilon=1, public={"mine": mine})
    assert answer.table["n_high"][0].as_py() - answer.table["n"][0].as_py() >= 4


def test_29_the_public_table_is_part_of_the_question() -> None:
    """The same words with other rows are another question, charged anew; with the same rows they are replayed."""
    holder = curator()
    text = "SELECT COUNT(*) AS n FROM visits v JOIN mine m ON v.ward = m.ward"
    first = holder.ask(text, epsilon=1, public={"mine": pa.table({"ward": ["A"]})})
    again = holder.ask(text, epsilon=1, public={"mine": pa.table({"ward": ["A"]})})
    other = holder.ask(text, epsilon=1, public={"mine": pa.table({"ward": ["B"]})})
    assert again.replayed and not first.replayed and not other.replayed
    assert len(holder.history()) == 2


def test_a_released_answer_is_public() -> None:
    """An answer joins freely, because it was paid for."""
    holder = curator()
    wards = holder.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=20)
    text = "SELECT COUNT(*) AS m FROM visits v JOIN sizes s ON v.ward = s.ward WHERE s.n > 0"
    assert holder.ask(text, epsilon=20, public={"sizes": wards}).table["m"][0].as_py() > 0


def test_row_units_cannot_be_multiplied() -> None:
    """Where a row is the unit it joins to one public row at most, and to no private one."""
    rows = pa.table({"ward": ["A", "A", "B"], "x": [1, 2, 3]})
    said: dict[str, Any] = {"public": ["wards"], "bounds": {"x": (0, 5)}, "budget": discreet.Budget(epsilon=9)}
    holder = discreet.curate({"t": rows, "wards": TABLES["wards"]}, **said)
    with pytest.raises(DiscreetError, match="one public row at most"):
        holder.ask("SELECT COUNT(*) AS n FROM t JOIN wards w ON t.ward = w.ward", epsilon=1)
    with pytest.raises(DiscreetError, match="Nothing was charged"):
        holder.ask("SELECT COUNT(*) AS n FROM t a JOIN t b ON a.x = b.x", epsilon=1)
    looked = discreet.curate({"t": rows, "wards": TABLES["wards"]}, unique=["wards.ward"], **said)
    # "A" stands 50 times in the table that was declared unique: such a key matches nothing
    assert exact("SELECT COUNT(*) AS n FROM t JOIN wards w ON t.ward = w.ward", looked) == [(1,)]


def test_25_previews_of_joins_do_not_look() -> None:
    """The same preview, explanation and plan whatever the data."""
    text = "SELECT p.sex, AVG(v.cost) AS c FROM visits v JOIN patients p USING (patient_id) GROUP BY p.sex"
    full, empty = curator(), curator(tables={name: table.slice(0, 0) for name, table in TABLES.items()})
    assert full.explain(text) == empty.explain(text)
    assert str(full.preview(text, epsilon=1)) == str(empty.preview(text, epsilon=1))


def test_deep_and_huge_questions_meet_limits_and_not_the_stack() -> None:
    """Nesting, joins and names beyond the stated limits are refused in words."""
    holder = curator()
    nested = "visits"
    for i in range(200):
        nested = f"(SELECT * FROM {nested}) AS t{i}"
    wide = "SELECT COUNT(*) FROM visits v0 " + " ".join(
        f"JOIN visits v{i} ON v0.patient_id = v{i}.patient_id" for i in range(1, 200)
    )
    unions = "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT patient_id FROM visits"] * 300) + ") u"
    ctes = (
        "WITH "
        + ", ".join(f"c{i} AS (SELECT * FROM {'visits' if not i else f'c{i - 1}'})" for i in range(200))
        + " SELECT COUNT(*) FROM c199"
    )
    doubling = (
        "WITH c0 AS (SELECT patient_id FROM visits)"
        + "".join(f", c{i} AS (SELECT * FROM c{i - 1} UNION ALL SELECT * FROM c{i - 1})" for i in range(1, 40))
        + " SELECT COUNT(*) FROM c39"
    )
    for text in (f"SELECT COUNT(*) FROM {nested}", wide, unions, ctes, doubling):
        with pytest.raises(QuestionError, match="Nothing was charged"):
            holder.ask(text, epsilon=1)
    assert not holder.history()
