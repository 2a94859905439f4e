"""Questions about several tables: equal ones give equal plans, the chain follows, and limits hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.errors import QuestionError
from discreet.frontends import read_sql
from discreet.frontends.chain.aggregates import count, max_, mean, min_, sum_
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.operands import col
from discreet.frontends.resolve.from_tables import MAX_RELATIONS, MAX_SUBQUERIES
from discreet.plan.catalog import Catalog, ColumnFacts, ContributionLimits, TableFacts
from discreet.plan.relations import Join, Scan, Values, walk_relations
from discreet.plan.types import Type
from discreet.privacy import Unit
from tests.work_counts import MOST_CALLS, count_calls
from tests.worlds.tables import HOSPITAL, LABS, PUBLIC, STAYS

VISITS, PATIENTS, LAB, WARDS, WORKERS = (
    TableBuilder(HOSPITAL, name) for name in ("visits", "patients", "labs", "wards", "workers")
)
EARLIER = VISITS.named("earlier")

PAIRS: list[tuple[str, Callable[[], TableBuilder]]] = [
    (
        "SELECT sex, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY sex",
        lambda: VISITS.join(PATIENTS, on="patient_id").group_by("sex").agg(n=count()),
    ),
    (
        "SELECT p.sex, AVG(v.cost) AS c FROM visits v JOIN patients p ON v.patient_id = p.patient_id "
        "AND v.ward = p.ward GROUP BY p.sex",
        lambda: VISITS.join(
            PATIENTS,
            on=[VISITS["patient_id"] == PATIENTS["patient_id"], VISITS["ward"] == PATIENTS["ward"]],
        ).group_by(PATIENTS["sex"]).agg(c=mean(VISITS["cost"])),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id WHERE a.day > b.day",
        lambda: VISITS.join(EARLIER, on=VISITS["patient_id"] == EARLIER["patient_id"])
        .where(VISITS["day"] > EARLIER["day"])
        .agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 30) v LEFT JOIN wards w USING (ward)",
        lambda: VISITS.where(col("age") > 30).join(WARDS, on="ward", how="left").agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor = 2)",
        lambda: VISITS.join(WARDS.where(col("floor") == 2), on="ward", how="semi").agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits v WHERE NOT EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward)",
        lambda: VISITS.join(WARDS, on="ward", how="anti").agg(n=count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM wards CROSS JOIN visits",
        lambda: VISITS.join(WARDS, how="cross").agg(n=count()),
    ),
    (
        "SELECT AVG(top) AS m FROM (SELECT patient_id, COUNT(*) AS n, MAX(age) AS top FROM visits WHERE cost > 5 "
        "GROUP BY patient_id) AS t WHERE n > 2",
        lambda: VISITS.where(col("cost") > 5)
        .per_unit(n=count(), top=max_("age"))
        .where(col("n") > 2)
        .agg(m=mean("top")),
    ),
    (
        "SELECT ward, AVG(span) AS m FROM (SELECT patient_id, ward, MAX(age) - MIN(age) AS span FROM visits "
        "GROUP BY patient_id, ward) AS t GROUP BY ward",
        lambda: VISITS.per_unit("ward", span=max_("age") - min_("age")).group_by("ward").agg(m=mean("span")),
    ),
    (
        "SELECT sex, AVG(n) AS m FROM patients LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM labs GROUP BY 1) AS l "
        "USING (patient_id) GROUP BY sex",
        lambda: PATIENTS.join(LAB.per_unit(n=count()), on="patient_id", how="left").group_by("sex").agg(m=mean("n")),
    ),
    (
        "SELECT SUM(price) AS s FROM labs JOIN prices USING (test)",
        lambda: LAB.join(PUBLIC["prices"], on="test").agg(s=sum_("price")),
    ),
]  # fmt: skip  # pairs, side by side


@pytest.mark.parametrize(("text", "chain"), PAIRS, ids=lambda part: part[:70] if isinstance(part, str) else "")
def test_sql_and_chain_agree(text: str, chain: Callable[[], TableBuilder]) -> None:
    """The SQL and the chain are one plan."""
    assert chain().question == read_sql.read(text, HOSPITAL, PUBLIC)


SAME = [
    (
        "SELECT COUNT(*) AS n FROM visits JOIN patients ON visits.patient_id = patients.patient_id",
        "SELECT COUNT(*) AS n FROM visits AS a INNER JOIN patients AS b ON b.patient_id = a.patient_id",
        "SELECT COUNT(*) AS n FROM visits, patients p WHERE p.patient_id = visits.patient_id",
        "SELECT COUNT(*) AS n FROM visits JOIN patients USING (PATIENT_ID)",
        "SELECT COUNT(*) AS n FROM visits CROSS JOIN patients p WHERE visits.patient_id = p.patient_id",
        "WITH p AS (SELECT patient_id FROM patients) SELECT COUNT(*) AS n FROM visits JOIN p USING (patient_id)",
        "SELECT COUNT(*) AS n FROM (SELECT v.age FROM visits v JOIN patients p USING (patient_id) ORDER BY v.age) AS t",
        "SELECT COUNT(*) AS n FROM visits v JOIN patients p ON TRUE AND v.patient_id = p.patient_id AND TRUE",
    ),
    (
        "SELECT COUNT(*) AS n FROM patients LEFT JOIN visits USING (patient_id)",
        "SELECT COUNT(*) AS n FROM visits RIGHT JOIN patients USING (patient_id)",
        "SELECT COUNT(*) AS n FROM patients p LEFT OUTER JOIN visits v ON v.patient_id = p.patient_id",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits JOIN wards USING (ward)",
        "SELECT COUNT(*) AS n FROM wards JOIN visits USING (ward)",
        "SELECT COUNT(*) AS n FROM wards w, visits v WHERE v.ward = w.ward",
    ),
    (
        "SELECT COUNT(*) AS n FROM labs l JOIN visits v ON l.visit_id = v.visit_id",
        "SELECT COUNT(*) AS n FROM labs JOIN visits USING (visit_id)",
        "SELECT COUNT(*) AS n FROM labs l JOIN visits v ON l.visit_id = v.visit_id AND l.patient_id = v.patient_id",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 3 AND cost > 5",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 3) WHERE cost > 5",
        "WITH a AS (FROM visits WHERE age > 3), b AS (SELECT cost, age FROM a) "
        "SELECT COUNT(*) AS n FROM b WHERE cost > 5 AND age > 3",
    ),
    (
        "SELECT AVG(n) AS m FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
        "WITH f AS (SELECT v.patient_id, COUNT(1) n FROM visits v GROUP BY ALL) SELECT AVG(f.n) AS m FROM f",
        "SELECT AVG(n) AS m FROM (SELECT COUNT(*) AS n FROM visits GROUP BY patient_id)",
    ),
]  # fmt: skip  # groups of equal questions


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0][:60])
def test_ways_to_write_the_same(group: tuple[str, ...]) -> None:
    """Aliases, the side of a condition, USING, commas, WITH and empty subqueries do not matter."""
    first, *others = (read_sql.read(text, HOSPITAL) for text in group)
    for text, other in zip(group[1:], others):
        assert other == first, text


def test_different_questions_differ() -> None:
    """Negative control: other kinds, columns and conditions are other plans."""
    texts = [
        "FROM visits JOIN patients USING (patient_id)",
        "FROM visits LEFT JOIN patients USING (patient_id)",
        "FROM patients LEFT JOIN visits USING (patient_id)",
        "FROM visits FULL JOIN patients USING (patient_id)",
        "FROM visits SEMI JOIN patients USING (patient_id)",
        "FROM visits ANTI JOIN patients USING (patient_id)",
        "FROM visits JOIN patients USING (patient_id, ward)",
        "FROM visits JOIN patients USING (patient_id) WHERE born > 3",
        "FROM visits JOIN (SELECT * FROM patients WHERE born > 3) p USING (patient_id)",
        "FROM visits a JOIN visits b USING (patient_id)",
    ]
    assert len({read_sql.read(f"SELECT COUNT(*) AS n {text}", HOSPITAL) for text in texts}) == len(texts)


def test_the_first_reading_of_a_table_has_its_name() -> None:
    """A table that is read again has another name in the plan, whatever the analyst calls it."""
    text = "SELECT COUNT(*) FROM visits x JOIN visits y USING (patient_id) JOIN visits z USING (patient_id)"
    scans = [node for node in walk_relations(read_sql.read(text, HOSPITAL).source) if isinstance(node, Scan)]
    assert sorted(scan.alias for scan in scans) == ["", "visits 2", "visits 3"]


def test_names_that_are_taken_are_passed_over() -> None:
    """Tables may have the names that plans would give: no relation ever has the name of another."""
    odd = {name: replace(STAYS, name=name) for name in ("visits", "visits 2", "features", "subquery", "labs in visits")}
    catalog = replace(HOSPITAL, tables={**odd, "labs": LABS})
    text = (
        "SELECT COUNT(*) FROM visits a JOIN visits b USING (patient_id) JOIN (SELECT patient_id, MAX(age) + 1 AS m "
        "FROM visits GROUP BY 1) c USING (patient_id) JOIN labs USING (patient_id) "
        'JOIN "labs in visits" d USING (patient_id)'
    )
    names = [
        name for node in walk_relations(read_sql.read(text, catalog).source) if (name := getattr(node, "name", None))
    ]
    assert len(names) == len({name.lower() for name in names})
    for node in walk_relations(read_sql.read(text, catalog).source):
        assert isinstance(node, Scan) or getattr(node, "name", "") not in odd


# Units


def test_the_unit_travels_along() -> None:
    """However a subquery renames or drops the unit's column, what is around it knows whose rows these are."""
    for text in (
        "SELECT COUNT(*) FROM (SELECT age + 1 AS x FROM visits) AS t",
        "SELECT COUNT(*) FROM (SELECT x FROM (SELECT patient_id AS who, age AS x FROM visits) AS s) AS t",
        "SELECT COUNT(*) FROM (SELECT MAX(age) + 1 AS m FROM visits GROUP BY patient_id, ward) AS t",
        "SELECT COUNT(*) FROM (SELECT age * 2 AS a FROM visits UNION ALL SELECT born FROM patients) AS t",
        "SELECT COUNT(*) FROM (SELECT result + 1 AS r, LAG(result) OVER (PARTITION BY patient_id) AS l FROM labs) AS t",
    ):
        assert find_relation_facts(read_sql.read(text, HOSPITAL).source, HOSPITAL).owner is Owner.UNIT, text


def test_units_of_other_types_are_not_equated() -> None:
    """An integer and a real that are equal may name two people, as reals are coarser: no join on the unit."""
    people = TableFacts(
        name="people",
        columns={
            "who": (Type.REAL, ColumnFacts()),
            "x": (Type.INTEGER, ColumnFacts(low=Fraction(0), high=Fraction(1))),
        },
        unit=Unit("patient_id"),
        limits=ContributionLimits(max_rows=1),
        owner="who",
    )
    catalog = Catalog(tables={"visits": STAYS, "people": people}, neighbours=HOSPITAL.neighbours)
    with pytest.raises(QuestionError, match="different units"):
        read_sql.read("SELECT COUNT(*) FROM visits JOIN people ON patient_id = who", catalog)


def test_foreign_keys_to_somebody_else_are_not_followed() -> None:
    """Who referred a patient is another patient: that foreign key does not make two rows one unit's."""
    with pytest.raises(QuestionError, match="different units"):
        read_sql.read("SELECT COUNT(*) FROM patients a JOIN patients b ON a.referred_by = b.patient_id", HOSPITAL)
    with pytest.raises(QuestionError, match="different units"):
        read_sql.read(
            "SELECT COUNT(*) FROM visits v JOIN patients p ON v.ward = p.ward", HOSPITAL
        )  # both refer to wards


def test_look_ups_are_marked_where_a_key_is_declared_unique() -> None:
    """Only then may a row that is its own unit be joined."""
    marked = {
        text: next(
            node for node in walk_relations(read_sql.read(text, HOSPITAL).source) if isinstance(node, Join)
        ).single
        for text in (
            "SELECT COUNT(*) FROM visits JOIN wards USING (ward)",
            "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.city",
            "SELECT COUNT(*) FROM workers JOIN regions USING (town)",
            "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)",
            "SELECT COUNT(*) FROM visits JOIN patients USING (patient_id)",
        )
    }
    assert list(marked.values()) == [True, False, False, False, False]


# Public rows


@pytest.mark.parametrize(
    "public",
    [
        {"visits": PUBLIC["prices"]},
        {"Wards": PUBLIC["prices"]},
        {"x": PUBLIC["prices"], "X": PUBLIC["prices"]},
        {"x": Values("x", (), ())},
        {"x": Values("x", (("a", Type.INTEGER), ("A", Type.INTEGER)), ())},
        {"x": Values("x", (("a", Type.INTEGER),), ((1, 2),))},
        {"x": Values("x", (("a", Type.INTEGER),), ((True,),))},
        {"x": Values("x", (("a", Type.INTEGER),), ((1.5,),))},
        {"x": Values("x", (("a", Type.INTEGER),), ((2**63,),))},
        {"x": Values("x", (("a", Type.REAL),), ((float("nan"),),))},
        {"x": 3},
        {3: PUBLIC["prices"]},
    ],
    ids=str,
)
def test_odd_public_rows_are_refused(public: dict[str, Values]) -> None:
    """They cannot stand for a declared table, and their values are of the types they claim."""
    with pytest.raises(QuestionError):
        read_sql.read("SELECT COUNT(*) FROM visits", HOSPITAL, public)


def test_public_rows_may_be_used_twice() -> None:
    """Each use has a name of its own."""
    text = "SELECT COUNT(*) FROM labs JOIN prices a USING (test) JOIN prices b ON a.price = b.price"
    names = [
        node.name for node in walk_relations(read_sql.read(text, HOSPITAL, PUBLIC).source) if isinstance(node, Values)
    ]
    assert sorted(names) == ["prices", "prices 2"]


# Limits


def nested(depth: int) -> str:
    return f"SELECT COUNT(*) FROM {'(SELECT age + 1 AS age FROM ' * depth}visits{')' * depth}"


def doubled(times: int) -> str:
    """WITH parts that use the one before twice: 2 to the power of ``times`` readings."""
    names = [f"t{i}" for i in range(times + 1)]
    parts = [f"{b} AS (SELECT * FROM {a} JOIN {a} AS x USING (patient_id))" for a, b in pairwise(names)]
    return f"WITH t0 AS (SELECT patient_id FROM visits), {', '.join(parts)} SELECT COUNT(*) FROM {names[-1]}"


def test_depth_is_limited() -> None:
    """Ten subqueries within each other are read, eleven are not."""
    read_sql.read(nested(MAX_SUBQUERIES), HOSPITAL)
    with pytest.raises(QuestionError, match="More than 10 subqueries within each other"):
        read_sql.read(nested(MAX_SUBQUERIES + 1), HOSPITAL)


def test_size_is_limited() -> None:
    """Fifty tables and subqueries are read; names from WITH count as often as they are used."""
    joined = " ".join(f"JOIN visits v{i} USING (patient_id)" for i in range(MAX_RELATIONS - 1))
    read_sql.read(f"SELECT COUNT(*) FROM visits v {joined}", HOSPITAL)
    with pytest.raises(QuestionError, match="more than 50 tables and subqueries"):
        read_sql.read(f"SELECT COUNT(*) FROM visits v {joined} JOIN visits w USING (patient_id)", HOSPITAL)

    def read_doubled() -> None:
        for times in (6, 9, 40):
            with pytest.raises(QuestionError, match=r"more than 50|More than 10|longer than"):
                read_sql.read(doubled(times), HOSPITAL)

    assert count_calls(read_doubled) < MOST_CALLS


@pytest.mark.parametrize("size", [12, 60, 300])
@pytest.mark.parametrize("kind", ["subqueries", "unions", "joins", "memberships", "parentheses", "with"])
def test_huge_questions_are_refused_soon(kind: str, size: int) -> None:
    """However large, the outcome is a question or a refusal, after a bounded number of steps."""
    text = {
        "subqueries": nested(size),
        "unions": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM visits"] * size) + ")",
        "joins": "SELECT COUNT(*) FROM visits v0" + "".join(f", visits v{i + 1}" for i in range(size)),
        "memberships": "SELECT COUNT(*) FROM visits WHERE "
        + "ward IN (SELECT ward FROM wards WHERE ward IN " * size + "('A'" + ")" * (size + 1),
        "parentheses": f"SELECT COUNT(*) FROM {'(' * size}visits{')' * size}",
        "with": f"WITH {', '.join(f't{i + 1} AS (SELECT * FROM t{i})' for i in range(size))} SELECT COUNT(*) FROM t9",
    }[kind]  # fmt: skip  # one line a kind

    def read() -> None:
        with suppress(QuestionError):
            read_sql.read(text, HOSPITAL)

    assert count_calls(read) < MOST_CALLS


# The chain


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: VISITS.join("patients", on="patient_id"),  # type: ignore[arg-type]  # on purpose
        lambda: VISITS.join(PATIENTS),
        lambda: VISITS.join(PATIENTS, on="patient_id", how="outer"),
        lambda: VISITS.join(PATIENTS, on=3),
        lambda: VISITS.join(PATIENTS, on=[]),
        lambda: VISITS.join(PATIENTS, on=["patient_id", VISITS["ward"] == "A"]),
        lambda: VISITS.join(WARDS, on="ward", how="cross"),
        lambda: VISITS.group_by("ward").join(PATIENTS, on="patient_id"),
        lambda: VISITS.join(PATIENTS.agg(n=count()), on="patient_id"),
        lambda: VISITS.agg(n=count()).per_unit(n=count()),
        lambda: VISITS.per_unit(n=3),  # type: ignore[arg-type]  # on purpose
        lambda: WARDS.per_unit(n=count()),
        lambda: VISITS.named(""),
        lambda: VISITS.join(PATIENTS, on="patient_id").named("x"),
        lambda: VISITS[3],  # type: ignore[index]  # on purpose
        lambda: VISITS.join(EARLIER, on="patient_id").where(col("age") > 3).join(PATIENTS, on="patient_id", how="full"),
        lambda: VISITS.join(Values("wards", (("a", Type.INTEGER),), ()), on="a"),
        lambda: VISITS.join(VISITS, on="patient_id").agg(n=count()).question,
        lambda: VISITS.join(PATIENTS, on="ward").agg(n=count()).question,
    ],
)
def test_odd_chains_are_refused(wrong: Callable[[], object]) -> None:
    """Each with a reason and a fix, and without a place, as a chain has none."""
    with pytest.raises(QuestionError) as caught:
        wrong()
    assert caught.value.fix.endswith((".", "?")) and caught.value.line is None


def test_a_real_unit_column_goes_before_the_implicit_one() -> None:
    """A table that reaches its unit by a key shows the unit as a column; a table that has the column means its own."""
    read = [
        read_sql.read(f"SELECT COUNT(DISTINCT {name}) AS n FROM {tables}", HOSPITAL)
        for tables in ("visits v JOIN labs l USING (visit_id)", "labs l JOIN visits v USING (visit_id)")
        for name in ("patient_id", "v.patient_id")
    ]
    assert read[0] == read[1] and read[2] == read[3]
