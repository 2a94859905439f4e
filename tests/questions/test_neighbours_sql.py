"""From the words of a question to its integers: no neighbour of a nasty world moves them further than is claimed.

Every accepted fixture about several tables and random SQL is read, bounded and run on a dataset and on each of its
neighbours, by both engines. Checked are the measures (those that choose groups, too), the spreads, and that nobody
else's contribution changes: with the rows of the differing units left out, both answers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from discreet.bounding.bound import BoundedQuestion, bound_all
from discreet.bounding.contributions import BoundedPlan, Counts, Reach, Sensitivity, reach, sensitivity
from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.engines.engine import Groups
from discreet.errors import DiscreetError
from discreet.frontends import read_sql
from discreet.plan.catalog import Catalog, ContributionLimits, Link
from discreet.plan.expressions import Column
from discreet.plan.functions import make_call, make_literal
from discreet.plan.relations import (
    Distinct,
    Join,
    JoinKind,
    PerUnit,
    Scan,
    Union,
    Values,
    Where,
    Window,
    walk_relations,
)
from discreet.plan.types import Type
from tests.engines.oracle import exceeds, histograms, moved, overreaches
from tests.fixtures.cases import cases
from tests.worlds.several import (
    Data,
    Neighbour,
    a_question,
    one_busy_unit,
    owners,
    row_neighbours,
    some_tables,
    tight,
    unit_neighbours,
    without,
)
from tests.worlds.tables import CATALOG, DOSE_KEY, HOSPITAL, PUBLIC, SURVEY
from tests.worlds.tables import world as world_of


@dataclass(frozen=True)
class World:
    """A dataset with its neighbours, whose engines serve many questions."""

    data: Data
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Claims:
    """What is claimed; tests that must fail claim less."""

    sensitivity: Callable[[Sensitivity], Sensitivity] = lambda claim: claim
    reach: Callable[[Reach], Reach] = lambda claim: claim


HONEST = Claims()


@cache
def hospital(seed: int) -> World:
    data = Data(some_tables(seed), tight(HOSPITAL, seed))
    return World(data, tuple(unit_neighbours(data, seed)))


@cache
def one_table(seed: int) -> World:
    """The catalog with one table of visits, beside answers whose rows are units, which its questions leave alone."""
    catalog = tight(CATALOG, seed)
    data = Data(some_tables(seed), catalog)
    return World(data, tuple(unit_neighbours(data, seed)))


@cache
def survey(seed: int, catalog: str) -> World:
    data = Data(some_tables(seed), SURVEY if catalog == "survey" else CATALOG)
    return World(data, tuple(row_neighbours(data, "Answers", seed)))


# The oracle


def broken(bounded: BoundedPlan, world: World, kind: str, claims: Claims = HONEST) -> list[str]:
    """The claims that some neighbour breaks, in words."""
    before = world.data.run(kind, bounded)
    found = []
    for neighbour in world.neighbours:
        after = neighbour.data.run(kind, bounded)
        found += list(_moves(bounded, neighbour, before, after, claims))
        if bounded.unit is not None:
            rest = of_others(bounded, neighbour.differ)
            old, new = (as_dict(data.run(kind, rest)) for data in (world.data, neighbour.data))
            if old != new:
                found.append(f"{neighbour.relation}: others contribute something else")
    return found


def _moves(bounded: BoundedPlan, neighbour: Neighbour, before: Groups, after: Groups, claims: Claims) -> Iterator[str]:
    relation = neighbour.relation
    for i, measure in enumerate(bounded.measures):
        claim = claims.sensitivity(sensitivity(bounded, measure, relation))
        if exceeds(moved(before, after, i), claim):
            yield f"{relation}: {measure} moved {moved(before, after, i)} beyond {claim}"
    for i, spread in enumerate(bounded.spreads):
        reached = claims.reach(reach(bounded, relation))
        if overreaches(before, after, i, reached, relation):
            yield f"{relation}: {spread} beyond {reached}"


def of_others(bounded: BoundedPlan, differ: frozenset[int]) -> BoundedPlan:
    """The same question about everybody else."""
    unit = bounded.unit
    if unit is None:
        raise AssertionError("there are no units here")
    them = make_call("in", unit, *(make_literal(unit) for unit in sorted(differ)))
    return replace(bounded, source=Where(bounded.source, make_call("not", them)))


def as_dict(groups: Groups) -> dict[Any, Any]:
    """The integers and histograms by group, without groups that hold nothing."""
    spreads = [histograms(groups, i) for i in range(len(groups.spreads))]
    found = {
        key: (tuple(column[i] for column in groups.values), tuple(spread[key] for spread in spreads))
        for i, key in enumerate(groups.keys)
    }
    return {key: value for key, value in found.items() if any(value[0]) or any(value[1])}


def forms(text: str, catalog: Catalog, public: dict[str, Values]) -> tuple[BoundedQuestion, ...]:
    """The bounded forms of a question; none where it is refused."""
    try:
        return bound_all(read_sql.read(text, catalog, public), catalog)
    except DiscreetError:
        return ()


def check(text: str, world: World, kinds: Sequence[str], public: dict[str, Values] | None = None) -> int:
    """Assert every claim about a question; how many groupings it has."""
    found = forms(text, world.data.catalog, public or {})
    for form in found:
        for kind in kinds:
            assert broken(form.bounded, world, kind) == [], f"{kind}: {text}"
    return len(found)


# Fixtures and random questions


def fixtures() -> list[tuple[str, str]]:
    return [(case.file, case.question) for case in cases() if "refused" not in case.file]


def world_for(file: str, text: str, seed: int) -> World:
    catalog, _ = world_of(file)
    if catalog is SURVEY:
        return survey(seed, "survey")
    if catalog is HOSPITAL:
        return hospital(seed)
    return survey(seed, "one table") if "answers" in text.lower() else one_table(seed)


def test_fixtures_keep_their_claims() -> None:
    """All accepted fixtures."""
    checked = sum(check(text, world_for(file, text, 1), ("memory",), world_of(file)[1]) for file, text in fixtures())
    assert checked > 200


def test_random_questions_keep_their_claims() -> None:
    checked = sum(check(a_question(seed), hospital(seed % 3), ("memory",), PUBLIC) for seed in range(60))
    assert checked > 60


def test_random_questions_keep_their_claims_in_duckdb() -> None:
    """A few, because every neighbour is a database of its own."""
    assert sum(check(a_question(seed), hospital(1), ("duckdb",), PUBLIC) for seed in (500, 503)) >= 2


def test_questions_are_worth_asking() -> None:
    """Random questions are mostly accepted, hold every kind of relation and measure, and mostly have answers."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        for form in forms(a_question(seed), hospital(1).data.catalog, PUBLIC):
            bounded = form.bounded
            seen.update({type(node).__name__ for node in walk_relations(bounded.source)})
            seen.update({str(measure.counts) for measure in bounded.measures})
            seen["partial"] += any(measure.partial for measure in bounded.measures)
            seen["spread"] += bool(bounded.spreads)
            seen["private keys"] += bounded.domain is None
            seen[str(find_relation_facts(bounded.source, hospital(1).data.catalog).owner)] += 1
            seen["answered"] += bool(as_dict(hospital(1).data.run("memory", bounded)))
    kinds = (Scan, Where, Join, PerUnit, Window, Distinct, Union)
    wanted = [*(kind.__name__ for kind in kinds), *Counts, "partial", "spread", "private keys", Owner.UNIT, Owner.MIXED]
    assert all(seen[name] >= 5 for name in wanted), seen
    assert seen["answered"] > 80


@pytest.mark.parametrize("kind", ["memory", "duckdb", "statement"])
def test_a_busy_unit_keeps_its_limits(kind: str) -> None:
    """Far more rows and values than are allowed, all different, by each way that an answer is computed."""
    data = Data(one_busy_unit(1), tight(HOSPITAL, 1))
    world = World(data, tuple(unit_neighbours(data, 1)))
    wanted = (
        "COUNT(*) AS n, COUNT(DISTINCT note) AS d, COUNT(DISTINCT age) AS k, MEDIAN(age) AS m, SUM(cost) AS s, "
        "SUM(DISTINCT cost) AS t, VARIANCE(DISTINCT age) AS w"
    )
    for text in (f"SELECT {wanted} FROM visits", f"SELECT ward, {wanted} FROM visits GROUP BY ward"):
        for limits in (ContributionLimits(max_rows=3), ContributionLimits(max_groups=2, max_rows_per_group=2)):
            question = replace(read_sql.read(text, data.catalog), limits=limits)
            for form in bound_all(question, data.catalog):
                assert broken(form.bounded, world, kind) == []


# Questions that try to lose the unit, or to take another for it

TRICKS = (
    "SELECT COUNT(*) AS n FROM (SELECT COALESCE(v.patient_id, p.patient_id) AS u FROM visits v FULL JOIN patients p "
    "ON v.patient_id = p.patient_id) t JOIN workers w ON w.person = t.u",
    "SELECT COUNT(*) AS n FROM visits v FULL JOIN patients p USING (patient_id) FULL JOIN labs l USING (patient_id)",
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN patients p USING (patient_id) RIGHT JOIN labs l USING (patient_id)",
    "WITH wards AS (SELECT patient_id, ward FROM visits) SELECT COUNT(*) AS n FROM wards",
    "WITH visits AS (SELECT patient_id, ward FROM patients) SELECT COUNT(*) AS n FROM visits "
    "JOIN labs ON labs.patient_id = visits.patient_id",
    "SELECT COUNT(*) AS n FROM visits AS wards JOIN wards AS visits ON wards.ward = visits.ward",
    'SELECT COUNT(*) AS n FROM visits AS "labs in visits" JOIN labs ON labs.patient_id = "labs in visits".patient_id',
    'SELECT COUNT(*) AS n FROM labs AS "x" JOIN visits AS "x in visits" ON x.patient_id = "x in visits".patient_id '
    'JOIN visits AS "x to visits" ON x.patient_id = "x to visits".patient_id',
    "SELECT COUNT(*) AS n FROM visits v WHERE v.patient_id NOT IN (SELECT person FROM workers)",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.visit_id IN (SELECT visit_id FROM labs)",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT NULL FROM patients) t",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, ward FROM visits UNION ALL "
    "SELECT referred_by, ward FROM patients) t",
    "SELECT COUNT(*) AS n FROM (SELECT patient_id, visit_id FROM visits UNION ALL "
    "SELECT born, patient_id FROM patients) t",
    "SELECT COUNT(*) AS n FROM (SELECT 7 AS patient_id, patient_id AS b FROM visits) t "
    "JOIN patients p ON t.b = p.patient_id",
    "SELECT COUNT(*) AS n FROM (SELECT LAG(patient_id) OVER (PARTITION BY patient_id ORDER BY cost) AS patient_id, "
    "ward FROM visits) t",
    "SELECT COUNT(*) AS n FROM (SELECT CASE WHEN ward = 'A' THEN patient_id END AS patient_id, ward FROM visits) t",
    "SELECT COUNT(*) AS n FROM (SELECT * EXCLUDE (patient_id) FROM visits) t",
    "SELECT COUNT(*) AS n FROM labs l JOIN labs m ON l.visit_id = m.visit_id",
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN labs l ON l.visit_id = v.visit_id",
    "SELECT COUNT(*) AS n FROM workers a JOIN workers b ON a.firm = b.firm WHERE a.person = b.person",
    "SELECT COUNT(DISTINCT a.firm) AS n, COUNT(DISTINCT b.wage) AS k FROM workers a JOIN workers b ON a.firm = b.firm",
    "SELECT SUM(DISTINCT a.wage) AS n, AVG(DISTINCT b.wage) AS k FROM workers a JOIN workers b ON a.firm = b.firm",
    "SELECT COUNT(*) AS n, AVG(a.wage) AS w, MEDIAN(b.wage) AS m FROM workers a JOIN workers b ON a.firm = b.firm",
    "SELECT p.sex, q.sex, COUNT(*) AS n FROM patients q JOIN patients p ON q.town = p.town GROUP BY CUBE(p.sex, q.sex)",
    "SELECT note, ward, smoker, day, seen, visit_id, COUNT(*) AS n FROM visits "
    "GROUP BY CUBE (note, ward, smoker, day, seen, visit_id)",
)


def test_tricks_keep_their_claims() -> None:
    """All of these are accepted, with a unit that the words do not show, and bounded by it."""
    for text in TRICKS:
        assert check(text, hospital(2), ("memory",), PUBLIC) >= 1, text


def test_public_rows_and_distinct_values_go_together() -> None:
    """Public rows that a question brings, and distinct texts: in DuckDB both are tables of the session."""
    text = "SELECT COUNT(DISTINCT l.test) AS n FROM labs l JOIN prices p ON l.test = p.test"
    assert check(text, hospital(1), ("duckdb",), PUBLIC) == 1


# The oracle sees


def caught(claims: Claims, seeds: range) -> int:
    """How many random questions break claims that are too small."""
    bounded = (form.bounded for seed in seeds for form in forms(a_question(seed), hospital(1).data.catalog, PUBLIC))
    return sum(bool(broken(one, hospital(1), "memory", claims)) for one in bounded)


@pytest.mark.parametrize("name", ["l0", "l1", "l2_squared", "linf"])
def test_smaller_sensitivities_are_caught(name: str) -> None:
    smaller = Claims(sensitivity=lambda claim: replace(claim, **{name: (getattr(claim, name) - 1) // 2}))
    assert caught(smaller, range(12)) > 0


def test_smaller_reaches_are_caught() -> None:
    assert caught(Claims(reach=lambda claim: replace(claim, rows=max(1, claim.rows // 2))), range(40)) > 0
    assert caught(Claims(reach=lambda claim: replace(claim, groups=1, rows=1)), range(40)) > 0


def test_what_others_contribute_is_compared() -> None:
    """A join by ward alone, bounded as if it kept units apart: others' contributions change, in both engines."""
    world = hospital(1)
    ours, theirs = (Column(name, "ward", Type.TEXT) for name in ("v", "w"))
    source = Join(Scan("visits", "v"), Scan("visits", "w"), JoinKind.INNER, ((ours, theirs),))
    (form,) = forms("SELECT COUNT(*) AS n FROM visits v", world.data.catalog, {})
    for kind in ("memory", "duckdb"):
        unit = Column("v", "patient_id", Type.INTEGER)
        free = replace(form.bounded, source=source, unit=unit, max_rows=1_000, max_rows_per_group=None)
        words = " ".join(broken(free, world, kind))
        assert "others contribute something else" in words


JOINT_KEYS = tuple(text for file, text in fixtures() if file == "joint_keys")


def test_joint_keys_keep_their_claims() -> None:
    """Foreign keys of two columns, in worlds where people share the one, the other, and sometimes both."""
    checked = [check(text, hospital(seed), ("memory",), PUBLIC) for text in JOINT_KEYS for seed in (1, 2, 3)]
    assert sum(checked) >= 36
    assert check(JOINT_KEYS[1], hospital(1), ("duckdb",), PUBLIC) == 1


def test_a_foreign_key_without_one_of_its_columns_is_caught() -> None:
    """A dose that reached everybody of its clinic, or of its number: removing its owner would change others."""
    for column, key in DOSE_KEY.pairs:
        link = Link((column,), DOSE_KEY.parent, (key,))
        doses = replace(HOSPITAL.tables["doses"], link=link, keys=(link,))
        broader = replace(HOSPITAL, tables={**HOSPITAL.tables, "doses": doses})
        (form,) = forms("SELECT COUNT(*) AS n FROM doses", broader, {})
        honest = hospital(1)
        neighbours = tuple(replace(n, data=Data(n.data.tables, broader)) for n in honest.neighbours)
        words = " ".join(broken(form.bounded, World(Data(honest.data.tables, broader), neighbours), "memory"))
        assert "others contribute something else" in words


def test_units_are_found_in_all_tables() -> None:
    """What the neighbours are: a lab of two people's visit stays when one of them leaves, and goes with the last."""
    visit: dict[str, Any] = dict.fromkeys(HOSPITAL.tables["visits"].columns)
    lab: dict[str, Any] = {"visit_id": 1, "test": "blood", "result": 1.0}
    tables: dict[str, Any] = {
        **{name: [] for name in HOSPITAL.tables},
        "visits": [{**visit, "visit_id": 1, "patient_id": unit} for unit in (1, 2)],
        "labs": [lab, {**lab, "visit_id": 9}],
    }
    assert owners(tables, HOSPITAL, "labs", lab) == {1, 2}
    one = without(tables, HOSPITAL, 1)
    assert len(one["visits"]) == 1 and len(one["labs"]) == 2
    assert without(one, HOSPITAL, 2)["labs"] == [{**lab, "visit_id": 9}]


@pytest.mark.long
def test_all_fixtures_keep_their_claims_in_duckdb() -> None:
    for file, text in fixtures():
        for seed in (1, 2):
            check(text, world_for(file, text, seed), ("memory", "duckdb"), world_of(file)[1])


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_many_random_questions_keep_their_claims(part: int) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        check(a_question(seed), hospital(10 + seed % 7), ("memory", "duckdb"), PUBLIC)
